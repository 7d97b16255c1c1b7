"""Measures the table of widths in `inference.md`.

python docs/tools/widths.py              # a minute or two on two cores
python docs/tools/widths.py --runs 5
"""

import argparse

import numpy as np

import decoupled as dc
from decoupled.inference import Sequences

MEANS = np.array([0.35, 0.425, 0.5, 0.575, 0.65])
LOOKS = (100, 1_000, 10_000, 100_000)
POLICIES = {"`FTPL()`": dc.FTPL(), "`Ladder()`": dc.Ladder()}


def widths(policy: dc.Policy, seed: int) -> dict[tuple[int, str], list[float]]:
    """For each look, and for the best arm, the worst arm and what was served, the widths of the intervals."""
    learner, sequences = policy.start(len(MEANS), seed), Sequences(len(MEANS))
    uniform = np.random.default_rng(seed).random(LOOKS[-1]).tolist()
    log: list[tuple[int, int, float, float]] = []
    found = {}
    for n, chance in enumerate(uniform, 1):
        _, _, exploit, explore, _, weight = decision = learner.decide()
        loss = float(chance < MEANS[explore])  # type: ignore[index]
        learner.observe(decision, loss)
        log.append((explore, exploit, weight, loss))  # type: ignore[arg-type]
        sequences.update(explore, weight, loss, exploit)  # type: ignore[arg-type]
        if n in LOOKS:
            one_look = fixed_time(np.array(log))
            for drift in (True, False):
                ends = [*sequences.arms(drift=drift), sequences.served(drift=drift)]
                for name, place in (("best", 0), ("worst", 4), ("served", 5)):
                    cell = found.setdefault((n, name), [one_look[place]])
                    cell.append(ends[place].high - ends[place].low)
    return found


def fixed_time(log: np.ndarray) -> list[float]:
    """The widths of normal 95 % intervals for one look: of weighted losses less a running mean."""
    explore, exploit, weight, loss = log.T
    n = len(loss)
    known = np.concatenate([[0.5], np.cumsum(loss)[:-1] / np.arange(1, n)])
    rest = weight * (loss - known)
    columns = [*((explore == arm) * rest for arm in range(len(MEANS))), (explore == exploit) * rest]
    return [min(1.0, 2 * 1.96 * float((known + each).std()) / n**0.5) for each in columns]


def main() -> None:
    """Print the table in Markdown: means over runs."""
    parser = argparse.ArgumentParser(description="The table of widths in inference.md.")
    parser.add_argument("--runs", type=int, default=10)
    runs = parser.parse_args().runs
    print(
        "| policy | of | observations | one look | watched | watched, no drift |\n|---|---|---|---|---|---|"
    )
    for name, policy in POLICIES.items():
        found = [widths(policy, seed) for seed in range(runs)]
        for of in ("best", "worst", "served"):
            for look in LOOKS:
                cells = np.mean([each[look, of] for each in found], axis=0)
                print(
                    f"| {name} | {of} | {look:,} | {' | '.join(f'{cell:.3f}' for cell in cells)} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()

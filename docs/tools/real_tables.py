"""Measures the table of recorded losses in `choosing.md`.

    DECOUPLED_DATA=folder python docs/tools/real_tables.py              # some minutes
    DECOUPLED_DATA=folder python docs/tools/real_tables.py --runs 50

The folder holds `real/NAME.npz` for each name in `TABLES`: an array `losses`, rounds x arms, in [0, 1]. The
tables come from public data and are not part of this package. You can use your own tables instead.
"""

import argparse
import os
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import decoupled as dc
from decoupled.base.arrays import Floats
from decoupled_lab.paper.setup import CENTRED_FTPL

TABLES = ("digits-01-x3", "phishing-01", "chicago-forecast", "flights-carrier")
POLICIES = {
    "`Ladder()`": dc.Ladder(),
    "centred `FTPL`": CENTRED_FTPL,
    "`FTPL()`": dc.FTPL(),
    "`TopTwo()`": dc.TopTwo(),
    "`FollowTheLeader()`": dc.FollowTheLeader(),
    "`Forgetting(Ladder(), period=1_000)`": dc.Forgetting(dc.Ladder(), period=1_000),
}
PUNISHED_ROUNDS = 5_000
DELAY = 200  # rounds
DELAYED = ("chicago-forecast", "flights-carrier")
DELAYED_RUNS = 20  # divides the runs: a learner in Python takes a hundred times as long as the simulation


def losses_of(folder: Path, name: str) -> Floats:
    """A recorded table, rounds x arms."""
    with np.load(folder / "real" / f"{name}.npz") as kept:
        return np.asarray(kept["losses"], float)


def formatted(regret: Floats) -> str:
    """Mean regret and the half-width of its 95 % interval."""
    half = 1.96 * regret.std(ddof=1) / np.sqrt(len(regret))
    return f"{regret.mean():,.0f} ± {half:,.{0 if half >= 0.95 else 1}f}"


def simulated(world: dc.environments.Environment, rounds: int, runs: int) -> dict[str, Floats]:
    """The regret of every policy in one environment, one number per run."""
    results = dc.simulate(list(POLICIES.values()), world, rounds, runs, seed=0, checkpoints=1)
    return {name: results.final_regret(policy) for name, policy in POLICIES.items()}


def recorded(losses: Floats, runs: int) -> dict[str, Floats]:
    """The regret of every policy on a recorded table, in the recorded order."""
    return simulated(dc.environments.LossTable(losses, noise="none"), len(losses), runs)


def regret_with_delay(policy: dc.Policy, losses: Floats, seed: int) -> float:
    """The regret of one run in which every loss is reported `DELAY` rounds late."""
    learner = policy.start(arms=losses.shape[1], seed=seed)
    waiting: deque[tuple[dc.Decision, float]] = deque()
    suffered = 0.0
    for row in losses:
        decision = learner.decide()
        suffered += row[decision.exploit]
        waiting.append((decision, row[decision.explore]))
        if len(waiting) > DELAY:
            early, loss = waiting.popleft()
            learner.observe(early, loss=loss)
    return float(suffered - losses.sum(axis=0).min())


def delayed(losses: Floats, runs: int) -> dict[str, Floats]:
    """The regret of every policy with late feedback."""
    return {
        name: np.array([regret_with_delay(policy, losses, seed) for seed in range(runs)])
        for name, policy in POLICIES.items()
    }


def columns(folder: Path, runs: int) -> Iterator[tuple[str, dict[str, Floats]]]:
    """A column for each environment: its heading, and the regret of each policy."""
    for name in TABLES:
        losses = losses_of(folder, name)
        rounds, arms = losses.shape
        guessed = rounds * losses.mean() - losses.sum(axis=0).min()
        yield f"{name}: K = {arms}, T = {rounds:,}, guessing {guessed:,.0f}", recorded(losses, runs)
    for name in DELAYED:
        few = max(4, runs // DELAYED_RUNS)
        yield f"{name}, {DELAY} rounds late, {few} runs", delayed(losses_of(folder, name), few)
    punish = dc.environments.PunishLast(arms=8)
    yield f"PunishLast(8), T = {PUNISHED_ROUNDS:,}", simulated(punish, PUNISHED_ROUNDS, runs)


def main() -> None:
    """Print the table, one column at a time."""
    parser = argparse.ArgumentParser(description="The table of recorded losses in choosing.md.")
    parser.add_argument("--runs", type=int, default=1_000)
    runs = parser.parse_args().runs
    folder = os.environ.get("DECOUPLED_DATA")
    if not folder:
        parser.error("DECOUPLED_DATA: is not set; set it to the folder that holds real/NAME.npz")
    for head, cells in columns(Path(folder), runs):
        print(head)
        for name, regret in cells.items():
            print(f"  {name:<50} {formatted(regret)}", flush=True)


if __name__ == "__main__":
    main()

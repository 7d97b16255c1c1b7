"""Measures what `guardrails.md` says of an incumbent, and what `preferences.md` says of preferences.

    python docs/tools/guarding_table.py incumbent
    python docs/tools/guarding_table.py preferences

Regret is that of the arms served, by their true means.
"""

import random
import sys
from collections.abc import Iterator, Mapping
from statistics import mean, median, stdev
from typing import Any

import decoupled as dc

RUNS, ROUNDS = 100, 3_000
WATCHED = 40  # runs with an incumbent, each of which takes a second
MEANS = {"a": 0.5, "b": 0.3, "c": 0.6, "d": 0.6}  # an incumbent `a`, a better arm, and two worse ones
EQUAL = dict.fromkeys(MEANS, 0.5)


def interval(values: list[float]) -> str:
    """A mean with its 95 % interval."""
    half = 1.96 * stdev(values) / len(values) ** 0.5
    return f"{mean(values):.0f} ({mean(values) - half:.0f} to {mean(values) + half:.0f})"


def guarded(means: Mapping[str, float], rules: dc.Guardrails, seed: int) -> tuple[float, int | None]:
    """The regret of one run, and the round in which the incumbent was left."""
    learner = dc.Learner(dc.Ladder(), list(means), seed, guardrails=rules)
    luck, regret, left, best = random.Random(seed), 0.0, None, min(means.values())
    for turn in range(1, ROUNDS + 1):
        decision = learner.decide()
        regret += means[str(decision.exploit)] - best
        learner.observe(decision, loss=float(luck.random() < means[str(decision.explore)]))
        if rules.incumbent and left is None and learner.inference.incumbent_released:
            left = turn
    return regret, left


def incumbents() -> Iterator[str]:
    """How often and when an incumbent is left, and the regret."""
    for incumbent, means in ((None, MEANS), ("a", MEANS), ("b", MEANS), ("a", EQUAL)):
        found = [guarded(means, dc.Guardrails(incumbent=incumbent), seed) for seed in range(WATCHED)]
        rounds = [left for _, left in found if left is not None]
        when = f", in round {median(rounds):,.0f} (median)" if rounds else ""
        regret = interval([regret for regret, _ in found])
        yield f"{incumbent}, {means}: left in {len(rounds)} of {WATCHED} runs{when}, regret {regret}"


def compared(policy: dc.Policy, *, by_preference: bool, seed: int) -> float:
    """The regret of one run that learns from losses, or from which arm won by the law that is assumed."""
    learner, luck, regret = policy.start(list(MEANS), seed=seed), random.Random(seed), 0.0
    for _ in range(ROUNDS):
        decision = learner.decide()
        exploit, explore = MEANS[str(decision.exploit)], MEANS[str(decision.explore)]
        regret += exploit - min(MEANS.values())
        if by_preference:
            winner: Any = "explore" if luck.random() < 0.5 + (exploit - explore) / 2.0 else "exploit"
            learner.observe(decision, preference=winner)
        else:
            learner.observe(decision, loss=float(luck.random() < explore))
    return regret


def preferences() -> Iterator[str]:
    """Regret from losses and from preferences."""
    for policy in (dc.FTPL(), dc.Ladder()):
        for by_preference in (False, True):
            found = [compared(policy, by_preference=by_preference, seed=seed) for seed in range(RUNS)]
            yield f"{policy.label} from {'preferences' if by_preference else 'losses'}: {interval(found)}"


if __name__ == "__main__":
    for line in {"incumbent": incumbents, "preferences": preferences}[sys.argv[1]]():
        print(line, flush=True)

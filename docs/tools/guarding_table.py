"""Measures what `guardrails.md` and `preferences.md` report, and prints their tables.

    python docs/tools/guarding_table.py incumbent
    python docs/tools/guarding_table.py preferences

Regret is that of the arms served, by their true means.
"""

import itertools
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from statistics import mean, median, stdev
from typing import Any

import decoupled as dc

RUNS, ROUNDS = 100, 3_000
WATCHED = 40  # runs with an incumbent, each of which takes a second
MEANS = {"a": 0.5, "b": 0.3, "c": 0.6, "d": 0.6}  # an incumbent `a`, a better arm, and two worse ones
EQUAL = dict.fromkeys(MEANS, 0.5)
CYCLE = {("a", "b"): 0.7, ("b", "c"): 0.7, ("c", "a"): 0.7}  # each arm beats the next

Feedback = Callable[[dc.Learner, dc.Decision, random.Random], None]


def interval(values: list[float]) -> str:
    """A mean with its 95 % interval."""
    half = 1.96 * stdev(values) / len(values) ** 0.5
    return f"{mean(values):.0f} ({mean(values) - half:.0f} to {mean(values) + half:.0f})"


# The incumbent


def played(means: Mapping[str, float], rules: dc.Guardrails, seed: int) -> tuple[float, int | None]:
    """The regret of one run, and the round in which the incumbent was left."""
    learner = dc.Learner(dc.Ladder(), list(means), seed, guardrails=rules)
    luck, regret, left, best = random.Random(seed), 0.0, None, min(means.values())
    for turn in range(1, ROUNDS + 1):
        decision = learner.decide()
        regret += means[str(decision.exploit)] - best
        learner.observe(decision, loss=float(luck.random() < means[str(decision.explore)]))
        if left is None and learner.inference.incumbent_released:
            left = turn
    return regret, left


def incumbent_row(title: str, means: Mapping[str, float], rules: dc.Guardrails) -> str:
    """One row of the table."""
    found = [played(means, rules, seed) for seed in range(WATCHED)]
    rounds = [left for _, left in found if left is not None]
    when = f"{median(rounds):,.0f}" if 2 * len(rounds) > WATCHED else ""
    left = "" if rules.incumbent is None else f"{len(rounds)} of {WATCHED}"
    return f"| {title} | {left} | {when} | {interval([regret for regret, _ in found])} |"


def incumbents() -> Iterator[str]:
    """The table of `guardrails.md`."""
    yield "| served | left the incumbent | in round (median) | regret |"
    yield "|---|---|---|---|"
    yield incumbent_row("the policy's choice", MEANS, dc.Guardrails())
    yield incumbent_row("`a` first, losses may drift", MEANS, dc.Guardrails(incumbent="a"))
    yield incumbent_row("`a` first, `drift=False`", MEANS, dc.Guardrails(incumbent="a", drift=False))
    yield incumbent_row("`b`, the best, first", MEANS, dc.Guardrails(incumbent="b"))
    yield incumbent_row(
        "`b`, the best, first, `drift=False`", MEANS, dc.Guardrails(incumbent="b", drift=False)
    )
    yield incumbent_row("`a` first, all arms equal", EQUAL, dc.Guardrails(incumbent="a"))
    yield incumbent_row(
        "`a` first, all arms equal, `drift=False`", EQUAL, dc.Guardrails(incumbent="a", drift=False)
    )


# Preferences


def by_losses(learner: dc.Learner, decision: dc.Decision, luck: random.Random) -> None:
    """The loss of the explored arm."""
    learner.observe(decision, loss=float(luck.random() < MEANS[str(decision.explore)]))


def by_preferences(ties: float) -> Feedback:
    """Which arm won, by the law that is assumed."""

    def observe(learner: dc.Learner, decision: dc.Decision, luck: random.Random) -> None:
        edge = (MEANS[str(decision.exploit)] - MEANS[str(decision.explore)]) / 2.0
        chances = {"explore": (1.0 - ties) / 2.0 + edge, "exploit": (1.0 - ties) / 2.0 - edge, "tie": ties}
        winner: Any = luck.choices(list(chances), weights=list(chances.values()))[0]
        learner.observe(decision, preference=winner)

    return observe


def regrets(policy: dc.Policy, observe: Feedback) -> list[float]:
    """The regret of every run."""
    found = []
    for seed in range(RUNS):
        learner, luck, regret = policy.start(list(MEANS), seed=seed), random.Random(seed), 0.0
        for _ in range(ROUNDS):
            decision = learner.decide()
            regret += MEANS[str(decision.exploit)] - min(MEANS.values())
            observe(learner, decision, luck)
        found.append(regret)
    return found


def shares_in_a_cycle(rounds: int) -> tuple[dict[str, float], int]:
    """How often each of three arms that beat each other in turn is served, and how often the served arm changes."""
    learner, luck = dc.Ladder().start(["a", "b", "c"], seed=0), random.Random(0)
    served = []
    for _ in range(rounds):
        decision = learner.decide()
        pair = str(decision.explore), str(decision.exploit)
        chance = CYCLE.get(pair) or (1.0 - CYCLE[pair[::-1]] if pair[0] != pair[1] else 0.5)
        learner.observe(decision, preference="explore" if luck.random() < chance else "exploit")
        served.append(pair[1])
    blocks = [max("abc", key=served[start : start + 100].count) for start in range(0, rounds, 100)]
    changes = sum(one != two for one, two in itertools.pairwise(blocks))
    return {arm: served.count(arm) / rounds for arm in "abc"}, changes


def preferences() -> Iterator[str]:
    """The table of `preferences.md`."""
    yield "| policy | from losses | from preferences | from preferences, 30 % ties |"
    yield "|---|---|---|---|"
    for policy in (dc.FTPL(), dc.Ladder(), dc.TsallisINF(), dc.Exp3()):
        kinds = (by_losses, by_preferences(0.0), by_preferences(0.3))
        cells = " | ".join(interval(regrets(policy, each)) for each in kinds)
        yield f"| {policy.label} | {cells} |"
    for rounds in (10_000, 100_000):
        yield f"a cycle, {rounds:,} rounds: {shares_in_a_cycle(rounds)}"


if __name__ == "__main__":
    for line in {"incumbent": incumbents, "preferences": preferences}[sys.argv[1]]():
        print(line, flush=True)

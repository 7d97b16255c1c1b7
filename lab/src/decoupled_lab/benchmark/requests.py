"""The tasks of the suite `decoupled-2`, frozen: requests with a context, and what goes wrong or costs in production."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import decoupled as dc
from decoupled.base import Ints
from decoupled.environments import ContextTable
from decoupled.policies import Policy

from .peers import player
from .task import Task
from .worlds import ROWS, Draws

ARMS, SEGMENTS = 4, 4
REQUESTS = "regret against the best arm of each request"
PRICED = "regret against the best arm of each request, and the price of each look"
GROUPS = {
    "poisoned": "Hostile feedback",
    "cold-start": "An arm that is added late",
    "biased-judge": "A judge that errs, with labels",
    "paid": "A price for each look",
}
FIRST_PLACE = 200  # of the random numbers of these worlds
LABELS = dc.Labels(share=0.1, first=100)
# The chance of the word 1 of an arm whose loss is 0, and 1. One judge is hard on two arms, the other errs on all alike.
HARSH = ((0.4, 0.95), (0.4, 0.95), (0.05, 0.7), (0.05, 0.7))
NOISY = ((0.2, 0.8),) * ARMS


@dataclass(frozen=True)
class RequestTask(Task):
    """Requests come one by one; a player serves an arm to each, may look at one, and is told of that.

    Its environment has the mean losses of each request; a loss is 0 or 1. `rules` is what is special: `hostile`, the share
    of the feedback that says 1 of the best arm and 0 of the others; `burst`, whether that comes in a row; `late`, the round
    from which the last arm is there; `judge`, whose word takes the place of losses, with labels; and `price`, of a look.
    """

    rules: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The definition as plain values."""
        return {**super().to_dict(), "rules": dict(self.rules)}

    def places(self, run: int) -> Ints:
        """As in any task, but an arm that comes late is the last one."""
        places = super().places(run)
        last = self.environment.arms - 1
        return np.append(places[places != last], last) if "late" in self.rules else places

    def plan(self, policy: Policy) -> Any:
        """The policy itself, if it can play."""
        if isinstance(policy, dc.baselines.LinUCB | dc.baselines.PerSegment):
            table: Any = self.environment
            policy.check(table)
        self._player(policy, self.world(0), 0)
        return policy

    def _player(self, policy: Policy, here: Any, run: int) -> Any:
        names = here.context
        contexts = [dict(zip(names, values, strict=True)) for values in zip(*names.values(), strict=True)]
        present = here.arms - ("late" in self.rules)
        seed = np.random.SeedSequence(self.seed, spawn_key=(run, 1))
        labels = LABELS if "judge" in self.rules else None
        return player(policy, here, contexts, present, seed, labels, priced="price" in self.rules)

    def _run(self, policy: Any, run: int) -> tuple[float, float]:
        """What is counted in a run; no switches are."""
        here, rules, rounds = self.world(run), self.rules, self.rounds
        playing, means = self._player(policy, here, run), np.array(here.losses)  # type: ignore[attr-defined]
        words = np.random.PCG64(np.random.SeedSequence(self.seed, spawn_key=(run, 0)))
        luck = ((words.random_raw(4 * rounds) >> np.uint64(11)) * 2.0**-53).reshape(4, rounds)
        hostile = luck[1] < rules.get("hostile", 0.0)
        if rules.get("burst"):
            hostile = np.arange(rounds) // (rules["hostile"] * rounds) == 2.0
        labelled = (luck[3] < LABELS.share) | (np.arange(rounds) < LABELS.first)
        judge, price = rules.get("judge"), rules.get("price", 0.0)
        judge = None if judge is None else np.array(judge)[self.places(run)]
        present, value = self.environment.arms - ("late" in rules), 0.0
        for t, row in enumerate(here.row_at(rounds, self.seed, run).tolist()):  # type: ignore[attr-defined]
            if t == rules.get("late"):
                playing.add_arm()
                present += 1
            of = means[row, :present]
            best = int(of.argmin())
            served, looked = playing.decide(row)
            value += float(of[served] - of[best])
            if looked is None:
                continue
            value += price
            true = told = float(luck[0, t] < of[looked])
            if hostile[t]:
                told = float(looked == best)
            elif judge is not None:
                told = float(luck[2, t] < judge[looked, int(true)])
            playing.observe(told, true, judge is not None and bool(labelled[t]))
        return value, 0.0


def tasks(runs: int, part: int) -> Iterator[Task]:
    """All tasks, at a size."""
    rounds = -(-3_000 // part)
    known: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("poisoned-spread-4", "poisoned", {"hostile": 0.1}),
        ("poisoned-burst-4", "poisoned", {"hostile": 0.1, "burst": True}),
        ("cold-start-better-4", "cold-start", {"late": rounds // 3}),
        ("cold-start-worse-4", "cold-start", {"late": rounds // 3}),
        ("biased-judge-harsh-4", "biased-judge", {"judge": HARSH}),
        ("biased-judge-noisy-4", "biased-judge", {"judge": NOISY}),
        ("paid-low-4", "paid", {"price": 0.02}),
        ("paid-high-4", "paid", {"price": 0.2}),
    )
    for place, (name, group, rules) in enumerate(known):
        # Each arm is the best of a segment, more or less so by x.
        draw = Draws(FIRST_PLACE + place)
        segment, x = np.array(draw.whole(SEGMENTS, ROWS)), draw.between(-1.0, 1.0, ROWS)
        levels = draw.between(0.4, 0.6, SEGMENTS, ARMS) - 0.2 * np.eye(SEGMENTS)
        means = levels[segment] + x[:, None] * draw.between(-0.15, 0.15, ARMS)
        columns = {"segment": [f"s{each}" for each in segment], "x": x.tolist()}
        if "cold-start" in name:
            means[:, -1] += -0.1 if "better" in name else 0.3
        table = ContextTable(np.round(means.clip(0.02, 0.98), 4), columns, ["segment"], order="shuffled")
        unit = PRICED if group == "paid" else REQUESTS
        yield RequestTask(name, group, table, rounds, runs, unit, rules=rules)

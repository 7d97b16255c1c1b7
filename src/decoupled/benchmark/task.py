"""A task of the benchmark: a world, its size, and what is counted there."""

import math
import zlib
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..base.arrays import Floats
from ..environments import ContextTable, Environment
from ..errors import UnsupportedError
from ..policies import Policy
from ..simulation.cpu import run_block, world
from ..simulation.plan import Plan, as_rounds, make_plan
from ..simulation.traffic import DIRECT, Traffic

# What is counted, one number a run; all of them stay above 0 where plain regret need not.
REGRET = "regret against the best arm"
TRACKING = "regret against the best arm of each round"
SEGMENTS = "regret against the best arm of each segment"
SWITCHING = "regret against the best arm of each round, and 1 for each change of the served arm"


class Played(NamedTuple):
    """What was counted in each run, and the changes of the served arm where they are counted."""

    values: Floats
    switches: Floats | None


@dataclass(frozen=True)
class Task:
    """A world that policies meet in the same runs, of the same seeds."""

    name: str
    group: str
    environment: Environment
    rounds: int
    runs: int
    unit: str = REGRET
    traffic: Traffic = DIRECT
    data: str | None = None

    @property
    def seed(self) -> int:
        """The seed of all its runs, which its name gives: a task more or less changes no other."""
        return zlib.crc32(self.name.encode())

    def to_dict(self) -> dict[str, Any]:
        """The definition as plain values."""
        return {
            "name": self.name,
            "group": self.group,
            "environment": self.environment.to_dict(),
            "rounds": self.rounds,
            "runs": self.runs,
            "seed": self.seed,
            "unit": self.unit,
            "traffic": self.traffic.to_dict(),
        }

    def plan(self, policy: Policy) -> Plan:
        """What is simulated for a policy; an error if it cannot be."""
        traffic = self.traffic
        if traffic.keys and not _has_law(policy, self.environment.arms):
            traffic = replace(traffic, sticky=False)
        return make_plan(policy, self.environment, self.rounds, self.runs, self.seed, 1, traffic=traffic)

    def play(self, policy: Policy) -> Played:
        """Play all runs of a policy, one after another."""
        plan = self.plan(policy)
        ends = as_rounds(plan)
        done = run_block(policy, self.environment, self.rounds, ends, self.seed, 0, self.runs, plan.traffic)
        values, switches = done.regret[:, -1], None
        if self.unit in (TRACKING, SWITCHING):
            values = values + self._behind_the_moving_best()
        elif self.unit == SEGMENTS:
            values = values + self._available()
        if done.switches is not None:
            switches = done.switches[:, -1] * plan.traffic.keys
            values = values + switches
        return Played(values, switches)

    def _behind_the_moving_best(self) -> float:
        """What the best single arm loses to the best arm of each round, by mean losses."""
        table, best = world(self.environment, self.rounds)
        behind = table.rows[:, best] - table.rows.min(axis=1)
        return math.fsum(np.bincount(table.row_at, minlength=len(behind)) * behind)

    def _available(self) -> Floats:
        table = self.environment
        assert isinstance(table, ContextTable)
        rows = (table.row_at(self.rounds, self.seed, run) for run in range(self.runs))
        return np.array([table.available(each) for each in rows])


def _has_law(policy: Policy, arms: int) -> bool:
    """Whether the probabilities of what is exploited are known, which the draw of a key needs."""
    try:
        policy.start(arms, 0).exploitation_probabilities()
    except UnsupportedError:
        return False
    return True

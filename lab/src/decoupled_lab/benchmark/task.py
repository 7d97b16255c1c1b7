"""A task of the benchmark: a world, its size, and what is counted there; and a short trial of a policy."""

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from decoupled.base import Floats, Ints
from decoupled.environments import (
    AdaptiveAlternating,
    ContextTable,
    Environment,
    LossTable,
    PunishLast,
)
from decoupled.errors import ContractError, UnsupportedError
from decoupled.extend import NOISE_KINDS
from decoupled.kernels.jit import is_ours
from decoupled.policies import Policy
from decoupled.simulation import (
    DIRECT,
    Plan,
    Traffic,
    as_rounds,
    make_plan,
    run_block,
    table_and_best,
)

from ..playing import play_keys

# The fifth child of a run's seed; the others are noise, draws, traffic and the order of requests.
PLACES = 4
# What is counted, one number a run. Against an arm that is best in hindsight it may be below 0.
REGRET = "regret against the best arm"
TRACKING = "regret against the best arm of each round"
SEGMENTS = "regret against the best arm of each segment"
SWITCHING = "regret against the best arm of each round, and 1 for each change of the served arm"


SEEDED = "draw from known.random() alone, and keep nothing but the learned arrays"


class Played(NamedTuple):
    """What was counted in each run, and the changes of the served arm where they are counted."""

    values: Floats
    switches: Floats | None

    @classmethod
    def of(cls, values: Sequence[float], switches: Sequence[float] | None) -> Self:
        """What a worker has counted, which says it in lists."""
        return cls(np.array(values), None if switches is None else np.array(switches))

    def to_lists(self) -> dict[str, list[float] | None]:
        """The numbers as `of` takes them."""
        return {
            name: each if each is None else each.tolist() for name, each in self._asdict().items()
        }


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
    keys: int = 0  # so many keys take turns; 0 for none

    @property
    def seed(self) -> int:
        """The seed of all its runs, which its name gives: a task more or less changes no other."""
        return zlib.crc32(self.name.encode())

    def to_dict(self) -> dict[str, Any]:
        """The definition as plain values."""
        traffic = self.traffic.to_dict()
        if self.keys:
            traffic["keys"] = self.keys
        return {
            "name": self.name,
            "group": self.group,
            "environment": self.environment.to_dict(),
            "rounds": self.rounds,
            "runs": self.runs,
            "seed": self.seed,
            "unit": self.unit,
            "traffic": traffic,
            "places": [self.places(run).tolist() for run in range(self.runs)],
        }

    def places(self, run: int) -> Ints:
        """The arm of the world that stands at each place in a run, so that the number of an arm tells nothing."""
        words = np.random.PCG64(np.random.SeedSequence(self.seed, spawn_key=(run, PLACES)))
        return words.random_raw(self.environment.arms).argsort(kind="stable")

    def world(self, run: int) -> Environment:
        """The world of a run, with its arms at other places."""
        given, places = self.environment, self.places(run)
        if isinstance(given, AdaptiveAlternating | PunishLast):  # all arms but one are alike
            return replace(given, best=int(places.argmin()))
        if isinstance(given, ContextTable):
            return replace(given, losses=given.losses[:, places])
        table = given.table(self.rounds)
        return LossTable(
            table.rows[:, places], table.row_at, NOISE_KINDS[table.noise], table.concentration
        )

    def plan(self, policy: Policy) -> Plan:
        """What is simulated for a policy; an error if it cannot be."""
        return make_plan(
            policy,
            self.environment,
            self.rounds,
            self.runs,
            self.seed,
            1,
            traffic=self.traffic,
        )

    def play(self, policy: Policy) -> Played:
        """Play all runs of a policy, one after another, and the first again: nothing may pass from a run to another."""
        plan = self.plan(policy)
        is_sticky = self.keys > 0 and _has_law(policy, self.environment.arms)
        counts = [self._run(plan, run, is_sticky) for run in (*range(self.runs), 0)]
        if counts.pop() != counts[0]:
            raise ContractError(
                f"{policy.label}: plays another game when it plays the first one again; {SEEDED}"
            )
        values, switches = np.array(counts).T
        return Played(values, switches if self.keys else None)

    def _run(self, plan: Plan, run: int, is_sticky: bool) -> tuple[float, float]:
        """What is counted in a run, and the changes of the served arm, 0 where they are not counted."""
        (policy,) = plan.policies
        here = self.world(run)
        if self.keys:
            regret, mean_switches, plays = play_keys(
                policy,
                here,
                as_rounds(plan),
                self.seed,
                run,
                keys=self.keys,
                is_sticky=is_sticky,
            )
            switches = mean_switches.item() * self.keys
        else:
            regret, plays = run_block(
                policy,
                here,
                self.rounds,
                as_rounds(plan),
                self.seed,
                range(run, run + 1),
                traffic=self.traffic,
            )
            switches = 0.0
        if (plays.sum(axis=1) != self.rounds).any():
            rule = f"gave an arm out of range; arms are numbered 0 to {here.arms - 1}"
            raise ContractError(f"{policy.label}: {rule}")
        value = regret.item()
        if self.unit in (TRACKING, SWITCHING):
            table, best = table_and_best(here, self.rounds)
            behind = table.rows[:, best] - table.rows.min(axis=1)  # of the best single arm
            value += math.fsum(np.bincount(table.row_at, minlength=len(behind)) * behind)
        elif isinstance(here, ContextTable) and self.unit == SEGMENTS:
            value += here.available(here.row_at(self.rounds, self.seed, run))
        return value + switches, switches


def _has_law(policy: Policy, arms: int) -> bool:
    """Whether the probabilities of what is exploited are known, which the draw of a key needs."""
    try:
        policy.start(arms, 0).exploitation_probabilities()
    except UnsupportedError:
        return False
    return True


TRIAL_ROUNDS, TRIAL_ARMS, TRIAL_RUNS = 100, 5, 2
TRIAL_WORLDS = (
    (LossTable(np.linspace(0.1, 0.9, TRIAL_ARMS)[None, :], [0]), DIRECT),
    (PunishLast(TRIAL_ARMS), DIRECT),
    (LossTable(np.linspace(0.9, 0.1, 2)[None, :], [0]), Traffic(delay=3)),
)


def check_entry(policy: Policy) -> None:
    """Raise an error if a policy cannot enter: it breaks its contract, or plays another game when it plays again."""
    if not policy.in_python and not is_ours(policy.params_type, *policy.functions):
        # Most entries do not need it, and it takes a second to load.
        from decoupled.testing import PolicyUnderTest, check_defined

        # Compiled code notices no index out of range.
        check_defined(PolicyUnderTest(policy, TRIAL_ARMS, TRIAL_ROUNDS, 0))
    for here, traffic in TRIAL_WORLDS:
        how = here, TRIAL_ROUNDS, np.array([TRIAL_ROUNDS], np.int64), 0, range(TRIAL_RUNS)
        once, again = (run_block(policy, *how, traffic=traffic) for _ in range(2))
        if (
            once.regret.tolist() != again.regret.tolist()
            or once.plays.tolist() != again.plays.tolist()
        ):
            raise ContractError(
                f"{policy.label}: plays another game when it plays the same one again; {SEEDED}"
            )

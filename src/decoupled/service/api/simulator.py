"""A simulation to watch: the package's policies in an environment of your choice, in short steps.

Each step runs the compiled round loop of `simulate` for some rounds, so the last numbers equal those of `simulate`
with the same seed. Nothing is kept between requests.
"""

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from ...base.arrays import Ints
from ...environments import Adversary, Alternating, Bernoulli, Drifting, Environment, PunishLast
from ...kernels.random.hashed import secret_of
from ...kernels.rounds import drive_adaptive
from ...policies import FTPL, Exp3, Ladder, Policy, TsallisINF
from ...simulation.cpu import checked_table, run_streams, table_loop
from ..errors import Invalid

MOST_ARMS, MOST_ROUNDS, MOST_RUNS = 32, 100_000, 32
MOST_WORK = 4_000_000  # rounds x arms x runs: at most a second of one core, for all policies
LEAST_ARMS = 8  # a round with fewer arms costs the same
FRAMES = 100
MOVES = 4  # the periods of a drifting environment, each with another best arm

WorldName: TypeAlias = Literal["stochastic", "alternating", "punish-last", "drifting"]
WORLDS: dict[WorldName, Callable[[int, float, int], Environment]] = {
    "stochastic": lambda arms, gap, rounds: Bernoulli([0.5 + gap] + [0.5] * (arms - 1)),
    "alternating": lambda arms, gap, rounds: Alternating(arms, gap),
    "punish-last": lambda arms, gap, rounds: PunishLast(arms, gap=gap),
    "drifting": lambda arms, gap, rounds: Drifting(arms, gap, period=-(-rounds // MOVES)),
}
POLICIES: dict[str, Policy] = {
    "FTPL": FTPL(),
    "Ladder": Ladder(),
    "Tsallis-INF": TsallisINF(),
    "EXP3": Exp3(),
}


@dataclass(frozen=True)
class Question:
    """What to simulate. More work than `MOST_WORK` is an error.

    >>> Question("stochastic", arms=8, gap=0.1, rounds=10_000, runs=16).work
    1280000
    """

    world: WorldName
    arms: int = 8
    gap: float = 0.125
    rounds: int = 10_000
    runs: int = 16
    seed: int = 0

    def __post_init__(self) -> None:
        if self.work > MOST_WORK:
            raise Invalid(
                f"rounds x arms x runs = {self.work:,} (fewer than {LEAST_ARMS} arms count as {LEAST_ARMS}): "
                f"must not exceed {MOST_WORK:,}; ask for fewer runs or rounds"
            )

    @property
    def work(self) -> int:
        """Rounds x arms x runs."""
        return self.rounds * max(self.arms, LEAST_ARMS) * self.runs

    def environment(self) -> Environment:
        """The environment to simulate."""
        return WORLDS[self.world](self.arms, self.gap, self.rounds)


def lines(question: Question) -> Iterator[str]:
    """One line that describes the simulation, then one for each step: the mean regret so far, and each arm's share.

    >>> first, *steps = lines(Question("stochastic", arms=2, gap=0.25, rounds=1_000, runs=4))
    >>> json.loads(first)["policies"][0]["name"], len(steps)
    ('FTPL', 100)
    >>> last = json.loads(steps[-1])
    >>> last["round"], [round(sum(each["exploit"]), 3) for each in last["policies"]]
    (1000, [1.0, 1.0, 1.0, 1.0])
    """
    environment = question.environment()
    ends = np.unique(np.linspace(0, question.rounds, FRAMES + 1).astype(np.int64))
    runs = [_runs(policy, environment, question) for policy in POLICIES.values()]
    yield _line(
        {
            "environment": environment.to_dict(),
            "arms": question.arms,
            "rounds": question.rounds,
            "runs": question.runs,
            "seed": question.seed,
            "steps": len(ends) - 1,
            "policies": [{"name": name, "policy": policy.to_dict()} for name, policy in POLICIES.items()],
        }
    )
    for first, last in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        yield _line({"round": last, "policies": [_step(each, first, last) for each in runs]})


def _line(content: dict[str, Any]) -> str:
    return json.dumps(content, allow_nan=False, separators=(",", ":")) + "\n"


def _step(runs: "list[_Run]", first: int, last: int) -> dict[str, Any]:
    plays = np.zeros((2, len(runs[0].arm_losses)), np.int64)
    regret = np.array([run.advance(first, last, plays) for run in runs])
    # A 95 % interval for the mean of the runs, which one run alone does not have.
    half = None if len(runs) == 1 else round(1.96 * float(regret.std(ddof=1)) / math.sqrt(len(runs)), 3)
    exploit, explore = (plays / ((last - first) * len(runs))).round(4).tolist()
    return {
        "regret": round(float(regret.mean()), 3),
        "half_width": half,
        "exploit": exploit,
        "explore": explore,
    }


def _runs(policy: Policy, environment: Environment, question: Question) -> "list[_Run]":
    policy = policy.at(environment.arms)
    policy.register()
    if isinstance(environment, Adversary):
        environment.prepare()
        return [_AdversaryRun(policy, environment, question.seed, run) for run in range(question.runs)]
    table = checked_table(environment, question.rounds)
    best = int((np.bincount(table.row_at, minlength=len(table.rows)) @ table.rows).argmin())
    return [_TableRun(policy, table, best, question.seed, run) for run in range(question.runs)]


class _Run:
    """One run of one policy, which can be continued."""

    def __init__(self, policy: Policy, arms: int, seed: int, run: int) -> None:
        self.noise, self.draws = run_streams(seed, run)
        self.params, self.state = policy.params(), policy.layout.new_state(arms, secret_of(self.draws))
        self.local, self.total = np.zeros(2, np.uint64), 0.0
        self.arm_losses = np.zeros(arms)

    def advance(self, first: int, last: int, plays: Ints) -> float:
        """Play rounds `first` to `last - 1`, and return the regret so far."""
        raise NotImplementedError


class _TableRun(_Run):
    def __init__(self, policy: Policy, table: Any, best: int, seed: int, run: int) -> None:
        super().__init__(policy, table.rows.shape[1], seed, run)
        self.loop, self.table, self.best = table_loop(policy), table, best

    def advance(self, first: int, last: int, plays: Ints) -> float:
        part = self.table._replace(row_at=self.table.row_at[first:last])
        end, gained = np.array([last - first]), np.empty(1)
        self.loop(
            self.params, self.state, self.draws, self.noise, self.local, part, self.best, end, gained, plays
        )
        self.total += float(gained[0])
        return self.total


class _AdversaryRun(_Run):
    """A run against an adversary. The best arm is the one with the lowest loss so far."""

    def __init__(self, policy: Policy, adversary: Adversary, seed: int, run: int) -> None:
        super().__init__(policy, adversary.arms, seed, run)
        self.adversary, self.memory = adversary, adversary.memory()

    def advance(self, first: int, last: int, plays: Ints) -> float:
        end, suffered = np.array([last - first]), np.empty(1)
        losses, arm_losses = np.empty_like(self.arm_losses), np.empty((1, len(self.arm_losses)))
        if first and isinstance(self.adversary, PunishLast):
            self._restore_memory()
        drive_adaptive(
            self.params,
            self.state,
            self.draws,
            self.noise,
            self.local,
            self.adversary.params(),
            self.memory,
            last - first,
            losses,
            self.arm_losses,
            end,
            suffered,
            arm_losses,
            plays,
        )
        self.total += float(suffered[0])
        return self.total - float(self.arm_losses.min())

    def _restore_memory(self) -> None:
        # The loop counts rounds from 0 in every step. In round 0 PunishLast, whose window is one round, uses its
        # counts alone, so they must hold the last play and nothing else.
        self.memory.ints[1:] = 0
        self.memory.ints[1 + self.memory.ints[0]] = 1

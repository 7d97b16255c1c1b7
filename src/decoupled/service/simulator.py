"""A simulation that can be watched: the package's own policies on a world of one's choice, in short steps.

Nothing is kept between requests, and nothing is imitated: each step runs the compiled round loop of
`simulate` for a while, so the last numbers are those of `simulate` with the same seed.
"""

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from ..base.arrays import Ints
from ..environments import Adversary, Alternating, Bernoulli, Drifting, Environment, PunishLast
from ..kernels.rounds import drive_adaptive
from ..policies import FTPL, Exp3, Policy, TsallisINF
from ..simulation.cpu import checked_table, run_streams, table_loop
from .errors import Invalid

MOST_ARMS, MOST_ROUNDS, MOST_RUNS = 32, 100_000, 32
MOST_WORK = 4_000_000  # rounds x arms x runs: a second of one core or less, for all policies
LEAST_ARMS = 8  # a round with fewer costs as much
FRAMES = 100
MOVES = 4  # the parts of a drifting world's rounds, each with another best arm

WorldName: TypeAlias = Literal["stochastic", "alternating", "punish-last", "drifting"]
WORLDS: dict[WorldName, Callable[[int, float, int], Environment]] = {
    "stochastic": lambda arms, gap, rounds: Bernoulli([0.5 + gap] + [0.5] * (arms - 1)),
    "alternating": lambda arms, gap, rounds: Alternating(arms, gap),
    "punish-last": lambda arms, gap, rounds: PunishLast(arms, gap=gap),
    "drifting": lambda arms, gap, rounds: Drifting(arms, gap, period=-(-rounds // MOVES)),
}
POLICIES: dict[str, Policy] = {
    "FTPL": FTPL(),
    "FTPL recommended": FTPL.recommended(),
    "FTRL (Tsallis-INF)": TsallisINF(),
    "EXP3": Exp3(),
}


@dataclass(frozen=True)
class Question:
    """What to simulate; more work than `MOST_WORK` is refused.

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
                f"rounds x arms x runs = {self.work:,} (fewer arms than {LEAST_ARMS} count as so many): "
                f"must not exceed {MOST_WORK:,}; ask for fewer runs or rounds"
            )

    @property
    def work(self) -> int:
        """How much there is to do."""
        return self.rounds * max(self.arms, LEAST_ARMS) * self.runs

    def environment(self) -> Environment:
        """The world as the package describes it."""
        return WORLDS[self.world](self.arms, self.gap, self.rounds)


def lines(question: Question) -> Iterator[str]:
    """What will be simulated, then a line for each step: mean regret so far, and each arm's share of the step.

    >>> first, *steps = lines(Question("stochastic", arms=2, gap=0.25, rounds=1_000, runs=4))
    >>> json.loads(first)["policies"][0]["name"], len(steps)
    ('FTPL', 100)
    >>> last = json.loads(steps[-1])
    >>> last["round"], [round(sum(each["exploit"]), 3) for each in last["policies"]]
    (1000, [1.0, 1.0, 1.0, 1.0])
    """
    environment = question.environment()
    ends = np.unique(np.linspace(0, question.rounds, FRAMES + 1).astype(np.int64))
    walks = [_walks(policy, environment, question) for policy in POLICIES.values()]
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
        yield _line({"round": last, "policies": [_step(those, first, last) for those in walks]})


def _line(content: dict[str, Any]) -> str:
    return json.dumps(content, allow_nan=False, separators=(",", ":")) + "\n"


def _step(walks: "list[_Walk]", first: int, last: int) -> dict[str, Any]:
    plays = np.zeros((2, len(walks[0].arm_losses)), np.int64)
    regret = np.array([walk.advance(first, last, plays) for walk in walks])
    runs = len(walks)
    # 95 per cent for the mean of the runs; one run alone says nothing of that.
    half = None if runs == 1 else round(1.96 * float(regret.std(ddof=1)) / math.sqrt(runs), 3)
    exploit, explore = (plays / ((last - first) * runs)).round(4).tolist()
    return {
        "regret": round(float(regret.mean()), 3),
        "half_width": half,
        "exploit": exploit,
        "explore": explore,
    }


def _walks(policy: Policy, environment: Environment, question: Question) -> "list[_Walk]":
    policy = policy.at(environment.arms)
    policy.register()
    if isinstance(environment, Adversary):
        environment.prepare()
        return [_Duel(policy, environment, question.seed, run) for run in range(question.runs)]
    table = checked_table(environment, question.rounds)
    best = int((np.bincount(table.row_at, minlength=len(table.rows)) @ table.rows).argmin())
    return [_TableWalk(policy, table, best, question.seed, run) for run in range(question.runs)]


class _Walk:
    """One run of one policy, which goes on where it stopped."""

    def __init__(self, policy: Policy, arms: int, seed: int, run: int) -> None:
        self.noise, self.draws = run_streams(seed, run)
        self.params, self.state = policy.params(), policy.layout.new_state(arms)
        self.local, self.so_far = np.zeros(2, np.uint64), 0.0
        self.arm_losses = np.zeros(arms)

    def advance(self, first: int, last: int, plays: Ints) -> float:
        """Rounds `first` to `last - 1`; the regret so far. The loop derives what it needs from what was learned."""
        raise NotImplementedError


class _TableWalk(_Walk):
    def __init__(self, policy: Policy, table: Any, best: int, seed: int, run: int) -> None:
        super().__init__(policy, table.rows.shape[1], seed, run)
        self.loop, self.table, self.best = table_loop(policy), table, best

    def advance(self, first: int, last: int, plays: Ints) -> float:
        part = self.table._replace(row_at=self.table.row_at[first:last])
        end, gained = np.array([last - first]), np.empty(1)
        self.loop(
            self.params, self.state, self.draws, self.noise, self.local, part, self.best, end, gained, plays
        )
        self.so_far += float(gained[0])
        return self.so_far


class _Duel(_Walk):
    """Against an adversary; the best arm is the one that the losses so far were kindest to."""

    def __init__(self, policy: Policy, adversary: Adversary, seed: int, run: int) -> None:
        super().__init__(policy, adversary.arms, seed, run)
        self.adversary, self.memory = adversary, adversary.memory()

    def advance(self, first: int, last: int, plays: Ints) -> float:
        end, suffered = np.array([last - first]), np.empty(1)
        losses, arm_losses = np.empty_like(self.arm_losses), np.empty((1, len(self.arm_losses)))
        if first and isinstance(self.adversary, PunishLast):
            self._look_back()
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
        self.so_far += float(suffered[0])
        return self.so_far - float(self.arm_losses.min())

    def _look_back(self) -> None:
        # The loop counts rounds from 0 in every step. In round 0 PunishLast, with its window of one
        # round, goes by its counts alone: the last play has to be all they hold.
        self.memory.ints[1:] = 0
        self.memory.ints[1 + self.memory.ints[0]] = 1

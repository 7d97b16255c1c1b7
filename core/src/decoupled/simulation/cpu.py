"""Running a block on the CPU: the result depends only on the plan and the run numbers."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..base.arrays import Floats, Ints, Words
from ..environments import ContextTable, Environment
from ..environments.base import Adversary
from ..errors import ParameterError
from ..kernels.feedback_delay import Direct, FeedbackQueue
from ..kernels.jit import is_ours, translate
from ..kernels.lazy_numba import compiling_for
from ..kernels.random.sampling import NONE
from ..kernels.random.stream import secret_of
from ..kernels.rounds import Run, Table, against_best, play_rounds
from ..kernels.worlds import AdversaryWorld, ContextWorld, TableWorld
from ..learner.context import Contexts
from ..policies import Policy
from .admission import find_outside, outside_range
from .baseline import Baseline, TableRun
from .contextual import best_arm, context_world, sees_context
from .traffic import DIRECT, DRAWS, KEY, LOSS_NOISE, Traffic, new_queue, stream_of


class BlockResult(NamedTuple):
    """The results of the runs of a block.

    Attributes:
        regret: of each run at the checkpoints, runs x checkpoints.
        plays: how often each arm was exploited and explored in all runs, 2 x arms.

    Two runs of ten rounds with two arms:

    >>> result = BlockResult(np.array([[0.5, 1.0], [0.5, 2.0]]), np.array([[3, 17], [10, 10]]))
    >>> result.plays.sum(axis=1).tolist()
    [20, 20]
    """

    regret: Floats
    plays: Ints


# The loop for policies and adversaries from outside the package, whose machine code is not cached.
_uncached_loop: Any = translate(
    getattr(play_rounds, "py_func", play_rounds), keep=False, counting=False
)


def run_block(
    policy: Policy,
    environment: Environment,
    horizon: int,
    checkpoints: Ints,
    seed: int,
    runs: range,
    *,
    traffic: Traffic = DIRECT,
) -> BlockResult:
    """Play some runs of one policy, one after another.

    >>> import decoupled as dc
    >>> easy = dc.environments.Bernoulli(rewards=[0.2, 0.7])
    >>> run_block(dc.FTPL(), easy, 100, np.array([50, 100]), seed=0, runs=range(3)).regret.shape
    (3, 2)
    """
    regret = np.empty((len(runs), len(checkpoints)))
    plays = np.zeros((2, environment.arms), np.int64)
    if isinstance(policy, Baseline):  # which plays by itself, since it may read the whole table
        table: Any = environment
        for place, number in enumerate(runs):
            row_at = table.row_at(horizon, seed, number)
            best = best_arm(table, row_at)
            policy.play(
                TableRun(
                    table=table,
                    row_at=row_at,
                    best=best,
                    checkpoints=checkpoints,
                    seed=seed,
                    number=number,
                    regret=regret[place],
                    plays=plays,
                )
            )
        return BlockResult(regret, plays)
    factory = RunFactory(policy, environment, horizon, seed, traffic=traffic)
    for place, number in enumerate(runs):
        run = factory.new_run(number, checkpoints, regret[place], plays)
        factory.loop(run)
        factory.finish(run, number)
    return BlockResult(regret, plays)


class RunFactory:
    """Makes the runs of one policy in one environment, which the loop plays."""

    def __init__(
        self,
        policy: Policy,
        environment: Environment,
        horizon: int,
        seed: int,
        *,
        traffic: Traffic = DIRECT,
    ) -> None:
        self._policy = policy.at(environment.arms)
        self._policy.register()  # also in a process that has not seen the policy
        self._environment: Any = environment
        self._horizon = horizon
        self._seed = seed
        self._queue = None
        code: tuple[Any, ...] = ()
        if isinstance(environment, Adversary):
            environment.prepare()
            code = (environment.params_type, *environment.functions)
        if not traffic.is_direct:
            self._queue = new_queue(self._policy, environment.arms, traffic, horizon)
            compiling_for(f"{type(policy).__name__} with {traffic.label}")
        self.loop = loop_for(self._policy, *code)

    def new_run(self, number: int, checkpoints: Ints, regret: Floats, plays: Ints) -> Run:
        """A run before its first round, with streams of its own and the arrays to fill."""
        policy: Any = self._policy
        draws = stream_of(self._seed, number, DRAWS)
        state = policy.layout.new_state(self._environment.arms, secret_of(draws))
        if sees_context(policy, self._environment):
            state = Contexts.room(policy, state)
        feedback: Direct | FeedbackQueue = Direct()
        if self._queue is not None:
            feedback = self._queue._replace(key=stream_of(self._seed, number, KEY))
        return Run(
            params=policy.params(),
            state=state,
            draws=draws,
            world=self._new_world(number, len(checkpoints)),
            feedback=feedback,
            horizon=self._horizon,
            checkpoints=checkpoints,
            regret=regret,
            plays=plays,
        )

    def _new_world(
        self, number: int, checkpoints: int
    ) -> TableWorld | ContextWorld | AdversaryWorld:
        """What one run plays: rounds of a table, with contexts or without, or an adversary."""
        environment = self._environment
        policy = self._policy
        noise = stream_of(self._seed, number, LOSS_NOISE)
        scratch = np.zeros(2, np.uint64)
        if isinstance(environment, Adversary):
            return AdversaryWorld(
                params=environment.params(),
                memory=environment.memory(),
                noise=noise,
                scratch=scratch,
                losses=np.zeros(environment.arms),
                arm_sums=np.zeros(environment.arms),
                arm_losses=np.empty((checkpoints, environment.arms)),
            )
        if not isinstance(environment, ContextTable) or (
            environment.order == "given" and not policy.contextual
        ):  # the same rounds in every run
            table, best = table_and_best(environment, self._horizon)
            return TableWorld(table, best, noise, scratch)
        row_at = environment.row_at(self._horizon, self._seed, number)
        best = best_arm(environment, row_at)
        if policy.contextual:
            return context_world(policy, environment, row_at, best)
        table = Table(environment.table(1).rows, np.ascontiguousarray(row_at), NONE)
        return TableWorld(table, best, noise, scratch)

    def finish(self, run: Run, number: int) -> None:
        """Turn losses against an adversary into regret; an error if the adversary left [0, 1]."""
        if not isinstance(run.world, AdversaryWorld):
            return
        arm_losses = run.world.arm_losses
        if against_best(run.checkpoints, arm_losses, run.regret):
            return

        def replay(rounds: Ints) -> Floats:
            ignored = np.empty(len(rounds)), np.zeros_like(run.plays)
            same = self.new_run(number, rounds, *ignored)._replace(horizon=int(rounds[-1]))
            self.loop(same)
            losses: Floats = same.world.arm_losses
            return losses

        outside = find_outside(replay, run.checkpoints, arm_losses)
        raise outside_range(self._environment, outside)


def loop_for(policy: Policy, *code: Any) -> Callable[[Run], None]:
    """The round loop for a policy, and perhaps for the `code` of an adversary."""
    if policy.in_python:
        # As plain Python. What does not call the policy stays machine code.
        return getattr(play_rounds, "py_func", play_rounds)
    is_cached = is_ours(policy.params_type, *policy.functions, *code)
    return play_rounds if is_cached else _uncached_loop


def run_streams(seed: int, run: int) -> tuple[Words, Words]:
    """The streams of the environment's noise and the policy's draws: two children of a seed."""
    return stream_of(seed, run, LOSS_NOISE), stream_of(seed, run, DRAWS)


@lru_cache(maxsize=4)
def table_and_best(environment: Environment, horizon: int) -> tuple[Table, int]:
    """The table of an environment, and its best fixed arm by mean loss over the whole horizon.

    >>> import decoupled as dc
    >>> table, best = table_and_best(dc.environments.Bernoulli(rewards=[0.2, 0.7]), horizon=10)
    >>> table.rows.round(1).tolist(), best
    ([[0.8, 0.3]], 1)
    """
    table = checked_table(environment, horizon)
    visits = np.bincount(table.row_at, minlength=len(table.rows))
    return table, int((visits @ table.rows).argmin())


def checked_table(environment: Environment, horizon: int) -> Table:
    """The table of an environment, which may be a user's own, checked for compiled code."""
    table = environment.table(horizon)
    rows = np.ascontiguousarray(table.rows, np.float64)
    row_at = np.ascontiguousarray(table.row_at, np.int64)
    what = f"{type(environment).__name__}.table({horizon})"
    problem = ""
    if (
        rows.ndim != 2
        or rows.shape[1] != environment.arms
        or not ((rows >= 0.0) & (rows <= 1.0)).all()
    ):
        rule = f"must be rows x {environment.arms} arms of losses in [0, 1]"
        problem = f"rows, of shape {rows.shape}: {rule}"
    elif row_at.shape != (horizon,) or row_at.min() < 0 or row_at.max() >= len(rows):
        rule = f"must be a row number from 0 to {len(rows) - 1} for each of {horizon} rounds"
        problem = f"row_at, of shape {row_at.shape}: {rule}"
    if problem:
        raise ParameterError(f"{what}.{problem}; fix the environment")
    return table._replace(rows=rows, row_at=row_at)

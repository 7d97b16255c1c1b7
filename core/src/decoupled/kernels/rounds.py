"""The round loop: one policy in one world, for a whole horizon.

There is one loop. What differs between worlds, and between prompt and late feedback, is chosen by
type when the loop is compiled: see `dispatch`, `worlds` and `feedback_delay`.

Each round uses the same amount of the noise stream whatever is played, so every policy meets the
same losses. Regret is computed from mean losses. Curves of many runs are merged in an order that
does not depend on blocks or workers.
"""

from importlib import import_module
from typing import Any, NamedTuple

from ..base.arrays import Floats, Ints, Words
from ..native.load import tell_apart_by
from .dispatch import (
    begin_round,
    clear_feedback,
    decide,
    draw_explored,
    init,
    note_checkpoint,
    note_exploited,
    send_feedback,
)
from .jit import compiled
from .lazy_numba import on_cpu, overload
from .random.sampling import BERNOULLI
from .state import State

EXPLOITED, EXPLORED = range(2)  # rows of the counts of plays


class Table(NamedTuple):
    """The losses of an oblivious environment.

    Attributes:
        rows: mean losses, rows x arms, each in [0, 1].
        row_at: the row of each round.
        noise: how a loss is drawn from its mean: 0 (`BERNOULLI`), 1 (`NONE`, the loss is its mean)
            or 2 (`BETA`).
        concentration: for beta: a loss is Beta(mean * concentration, (1 - mean) * concentration).

    Two arms that change places after three rounds:

    >>> import numpy as np
    >>> table = Table(np.array([[0.2, 0.6], [0.6, 0.2]]), np.array([0, 0, 0, 1, 1]))
    >>> table.rows[table.row_at[4]].tolist()
    [0.6, 0.2]
    """

    rows: Floats
    row_at: Ints
    noise: int = BERNOULLI
    concentration: float = 1.0


@on_cpu
def count(plays: Ints, row: int, arm: int) -> None:
    """Count a play of an arm in row `EXPLOITED` or `EXPLORED`."""
    plays[row, arm] += 1


@overload(count, target="cuda")
def _count_together(plays: Any, row: Any, arm: Any) -> Any:
    # Private counts would take a fifth of a thread's memory. These are shared by the threads of a
    # block.
    cuda: Any = import_module("numba.cuda")

    def implementation(plays: Any, row: Any, arm: Any) -> Any:
        cuda.atomic.add(plays, (row, arm), 1)

    return implementation


class Run(NamedTuple):
    """One run of one policy: what the round loop takes.

    Attributes:
        params: the parameters of the policy.
        state: its state, before the first round.
        draws: the stream of its random numbers.
        world: where losses come from: one of the types in `kernels.worlds`.
        feedback: how losses reach the policy: `Direct` or a `FeedbackQueue`.
        horizon: how many rounds are played.
        checkpoints: the rounds after which regret is recorded. The last is the horizon.
        regret: to fill, at each checkpoint.
        plays: how often each arm was exploited and explored (2 x arms), to add to.
    """

    params: Any
    state: State
    draws: Words
    world: Any
    feedback: Any
    horizon: int
    checkpoints: Ints
    regret: Floats
    plays: Ints


tell_apart_by(Run, "params", "world", "feedback")


@compiled
def play_rounds(run: Run) -> None:
    """Play every round of a run, which fills its `regret` and adds to its `plays`.

    Against an adversary, `regret` is the loss suffered so far until `against_best` has found the
    best arm.
    """
    params = run.params
    state = run.state
    world = run.world
    feedback = run.feedback
    checkpoints = run.checkpoints
    init(params, state)
    clear_feedback(feedback)
    regret = 0.0
    checkpoint = 0
    next_checkpoint = checkpoints[0]
    for t in range(run.horizon):
        begin_round(world, state, t)
        exploit, explore, weight, _ = decide(params, state, run.draws)
        # Drawn in every round, so that all policies meet the same losses, whatever happens to the
        # feedback.
        loss = draw_explored(world, t, explore)
        has_explored = send_feedback(feedback, params, state, t, explore, weight, loss)
        count(run.plays, EXPLOITED, exploit)
        if has_explored:
            count(run.plays, EXPLORED, explore)
        regret += note_exploited(world, t, exploit)
        if t + 1 == next_checkpoint:
            run.regret[checkpoint] = regret
            note_checkpoint(world, checkpoint)
            checkpoint += 1
            next_checkpoint = checkpoints[checkpoint] if checkpoint < len(checkpoints) else 0


@compiled
def against_best(checkpoints: Ints, arm_losses: Floats, suffered: Floats) -> bool:
    """Turn `suffered` into regret against the best arm of the run, known only at its end.

    Return whether every arm's losses were in [0, 1], since a user's adversary may break that rule.
    """
    last = len(checkpoints) - 1
    best = 0
    within = True
    for arm in range(arm_losses.shape[1]):
        if arm_losses[last, arm] < arm_losses[last, best]:
            best = arm
        for place in range(len(checkpoints)):
            # Written so that NaN counts as outside.
            if not 0.0 <= arm_losses[place, arm] <= checkpoints[place]:
                within = False
    for place in range(len(checkpoints)):
        suffered[place] -= arm_losses[place, best]
    return within


GROUP = 50


@compiled
def merge_groups(curves: Floats, count: int, mean: Floats, squares: Floats) -> int:
    """Merge runs, fifty at a time, into the mean and squared deviations of `count` runs.

    Return the new count.

    Every number is summed in the order of the runs, so that the bits depend on the groups alone.
    """
    for start in range(0, len(curves), GROUP):
        size = min(GROUP, len(curves) - start)
        new_count = count + size
        for column in range(len(mean)):
            middle = 0.0
            for run in range(start, start + size):
                middle += curves[run, column]
            middle /= size
            spread = 0.0
            for run in range(start, start + size):
                spread += (curves[run, column] - middle) ** 2
            shift = middle - mean[column]
            squares[column] += spread + shift**2 * (count * size / new_count)
            mean[column] += shift * (size / new_count)
        count = new_count
    return count

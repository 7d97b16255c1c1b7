"""The round loop: one policy in one environment, for a whole horizon.

Each round uses the same amount of the noise stream whatever is played, so every policy meets the same losses.
Regret is computed from mean losses.
Curves of many runs are merged in an order that does not depend on blocks or workers.
"""

from importlib import import_module
from typing import Any, NamedTuple

from ..base.arrays import Floats, Ints, Words
from .dispatch import Memory, decide, fill_losses, init, note_play, update
from .jit import compiled
from .lazy_numba import on_cpu, overload
from .random.sampling import BERNOULLI, draw_loss
from .state import State

EXPLOITED, EXPLORED = range(2)  # rows of the counts of plays


class Table(NamedTuple):
    """The losses of an oblivious environment.

    Attributes:
        rows: mean losses, rows x arms, each in [0, 1].
        row_at: the row of each round.
        noise: how a loss is drawn from its mean: 0 (`BERNOULLI`), 1 (`NONE`, the loss is its mean) or 2 (`BETA`).
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
    # Private counts would take a fifth of a thread's memory. These are shared by the threads of a block.
    cuda: Any = import_module("numba.cuda")

    def implementation(plays: Any, row: Any, arm: Any) -> Any:
        cuda.atomic.add(plays, (row, arm), 1)

    return implementation


@compiled
def drive(
    params: Any,
    state: State,
    stream: Words,
    noise: Words,
    local: Words,
    table: Table,
    best: int,
    checkpoints: Ints,
    regret: Floats,
    plays: Ints,
) -> None:
    """Run every round of `table`. Fill `regret` against arm `best`, and `plays` (exploited, explored).

    `local` is work space for two words.
    """
    init(params, state)
    rows, row_at = table.rows, table.row_at
    so_far = 0.0
    checkpoint = 0
    upcoming = checkpoints[0]
    for t in range(len(row_at)):
        row = row_at[t]
        exploit, explore, weight, _ = decide(params, state, stream)
        loss = draw_loss(table.noise, table.concentration, rows[row, explore], noise, local)
        update(params, state, explore, weight, loss)
        so_far += rows[row, exploit] - rows[row, best]
        count(plays, EXPLOITED, exploit)
        count(plays, EXPLORED, explore)
        if t + 1 == upcoming:
            regret[checkpoint] = so_far
            checkpoint += 1
            upcoming = checkpoints[checkpoint] if checkpoint < len(checkpoints) else 0


class RoundContexts(NamedTuple):
    """The contexts of the rounds, and where the state of a contextual policy has room for one."""

    segment_at: Ints  # of each round
    numbers: Floats  # of each row, rows x numbers
    wanted: int  # the place of the scalar for the number of the segment
    numbers_at: int  # the place of the first number
    entering: int  # the place of the scalar that tells the policy that a context was written


@compiled
def drive_in_context(
    params: Any,
    state: State,
    stream: Words,
    table: Table,
    contexts: RoundContexts,
    best: int,
    checkpoints: Ints,
    regret: Floats,
    plays: Ints,
) -> None:
    """Like `drive`, with the context of each round and losses without noise: what a learner does."""
    init(params, state)
    rows, row_at, scalars = table.rows, table.row_at, state.scalars
    so_far = 0.0
    checkpoint = 0
    upcoming = checkpoints[0]
    for t in range(len(row_at)):
        row = row_at[t]
        scalars[contexts.wanted] = contexts.segment_at[t]
        for each in range(contexts.numbers.shape[1]):
            scalars[contexts.numbers_at + each] = contexts.numbers[row, each]
        scalars[contexts.entering] = 1.0
        exploit, explore, weight, _ = decide(params, state, stream)
        update(params, state, explore, weight, rows[row, explore])
        so_far += rows[row, exploit] - rows[row, best]
        count(plays, EXPLOITED, exploit)
        count(plays, EXPLORED, explore)
        if t + 1 == upcoming:
            regret[checkpoint] = so_far
            checkpoint += 1
            upcoming = checkpoints[checkpoint] if checkpoint < len(checkpoints) else 0


@compiled
def drive_adaptive(
    params: Any,
    state: State,
    stream: Words,
    noise: Words,
    local: Words,
    adversary: Any,
    memory: Memory,
    horizon: int,
    losses: Floats,
    arm_sums: Floats,
    checkpoints: Ints,
    suffered: Floats,
    arm_losses: Floats,
    plays: Ints,
) -> None:
    """Run `horizon` rounds against an adversary, with Bernoulli losses.

    At each checkpoint, `suffered` is the policy's loss so far and `arm_losses` (checkpoints x arms) is what each arm
    would have cost on the same losses. `losses`, `arm_sums` and `local` are work space.
    """
    init(params, state)
    so_far = 0.0
    checkpoint = 0
    upcoming = checkpoints[0]
    for t in range(horizon):
        fill_losses(adversary, memory, t, losses)
        exploit, explore, weight, _ = decide(params, state, stream)
        loss = draw_loss(BERNOULLI, 1.0, losses[explore], noise, local)
        update(params, state, explore, weight, loss)
        note_play(adversary, memory, t, exploit)
        so_far += losses[exploit]
        for arm in range(len(losses)):
            arm_sums[arm] += losses[arm]
        count(plays, EXPLOITED, exploit)
        count(plays, EXPLORED, explore)
        if t + 1 == upcoming:
            suffered[checkpoint] = so_far
            for arm in range(len(losses)):
                arm_losses[checkpoint, arm] = arm_sums[arm]
            checkpoint += 1
            upcoming = checkpoints[checkpoint] if checkpoint < len(checkpoints) else 0


@compiled
def against_best(checkpoints: Ints, arm_losses: Floats, suffered: Floats) -> bool:
    """Turn `suffered` into regret against the best arm of the whole run, which is known only at the end.

    Return whether every arm's losses were in [0, 1], since a user's adversary may break that rule.
    """
    last = len(checkpoints) - 1
    best, within = 0, True
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
    """Merge runs, fifty at a time, into the mean and squared deviations of `count` runs; return the new count.

    Every number is summed in the order of the runs, so that the bits depend on the groups alone.
    """
    for start in range(0, len(curves), GROUP):
        size = min(GROUP, len(curves) - start)
        whole = count + size
        for column in range(len(mean)):
            middle = 0.0
            for run in range(start, start + size):
                middle += curves[run, column]
            middle /= size
            spread = 0.0
            for run in range(start, start + size):
                spread += (curves[run, column] - middle) ** 2
            shift = middle - mean[column]
            squares[column] += spread + shift**2 * (count * size / whole)
            mean[column] += shift * (size / whole)
        count = whole
    return count

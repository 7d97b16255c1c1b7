"""The worlds that a policy can play in: a table of losses, a table with contexts, and an adversary.

Each is a named tuple, and the round loop calls the functions that are registered for its type.
"""

from typing import Any, NamedTuple

from ..base.arrays import Floats, Ints, Words
from .dispatch import Memory, WorldFunctions, fill_losses, note_play, register_world
from .random.sampling import BERNOULLI, draw_loss
from .rounds import Table
from .state import State


class TableWorld(NamedTuple):
    """Losses that no play changes, drawn from the means of a table.

    Attributes:
        table: the table.
        best: the arm that regret is against.
        noise: the stream of the losses.
        scratch: work space for two words.
    """

    table: Table
    best: int
    noise: Words
    scratch: Words


def _begin_nothing(world: Any, state: State, t: int) -> None:
    pass


def _draw_from_table(world: TableWorld, t: int, arm: int) -> float:
    table = world.table
    mean = table.rows[table.row_at[t], arm]
    return draw_loss(table.noise, table.concentration, mean, world.noise, world.scratch)


def _regret_in_table(world: Any, t: int, arm: int) -> float:
    """How much more an arm costs in this round than the best arm; for both kinds of tables."""
    rows = world.table.rows
    row = world.table.row_at[t]
    regret: float = rows[row, arm] - rows[row, world.best]
    return regret


def _note_no_checkpoint(world: Any, checkpoint: int) -> None:
    pass


register_world(
    TableWorld,
    WorldFunctions(
        begin=_begin_nothing,
        draw=_draw_from_table,
        exploited=_regret_in_table,
        checkpoint=_note_no_checkpoint,
    ),
)


class RoundContexts(NamedTuple):
    """The contexts of the rounds, and where the state of a contextual policy has room for one.

    Attributes:
        segment_at: the segment of each round.
        numbers: the numbers of each row of the table.
        wanted: the place of the scalar for the number of the segment.
        numbers_at: the place of the first number.
        entering: the place of the scalar that tells the policy that a context was written.
    """

    segment_at: Ints
    numbers: Floats
    wanted: int
    numbers_at: int
    entering: int


class ContextWorld(NamedTuple):
    """Recorded losses without noise, and a context in every round, which the policy sees first."""

    table: Table
    best: int  # the arm that regret is against
    contexts: RoundContexts


def _enter_context(world: ContextWorld, state: State, t: int) -> None:
    """Write the context of the round into the state."""
    contexts = world.contexts
    row = world.table.row_at[t]
    state.scalars[contexts.wanted] = contexts.segment_at[t]
    for number in range(contexts.numbers.shape[1]):
        state.scalars[contexts.numbers_at + number] = contexts.numbers[row, number]
    state.scalars[contexts.entering] = 1.0


def _recorded_loss(world: ContextWorld, t: int, arm: int) -> float:
    loss: float = world.table.rows[world.table.row_at[t], arm]
    return loss


register_world(
    ContextWorld,
    WorldFunctions(
        begin=_enter_context,
        draw=_recorded_loss,
        exploited=_regret_in_table,
        checkpoint=_note_no_checkpoint,
    ),
)


class AdversaryWorld(NamedTuple):
    """An adversary that answers past plays, with Bernoulli losses.

    Regret needs the best arm of the whole run, which is known only at its end: see `against_best`.
    Until then, the loop records the loss suffered, and `arm_losses` is what each arm would have
    cost on the same losses.

    Attributes:
        params: the parameters of the adversary.
        memory: what it remembers.
        noise: the stream of the losses.
        scratch: work space for two words.
        losses: the mean losses of the round.
        arm_sums: the sums of these so far.
        arm_losses: these sums at each checkpoint, checkpoints x arms, to fill.
    """

    params: Any
    memory: Memory
    noise: Words
    scratch: Words
    losses: Floats
    arm_sums: Floats
    arm_losses: Floats


def _answer(world: AdversaryWorld, state: State, t: int) -> None:
    fill_losses(world.params, world.memory, t, world.losses)


def _draw_answer(world: AdversaryWorld, t: int, arm: int) -> float:
    return draw_loss(BERNOULLI, 1.0, world.losses[arm], world.noise, world.scratch)


def _tell_adversary(world: AdversaryWorld, t: int, arm: int) -> float:
    """Tell the adversary what was exploited, and return the loss suffered."""
    note_play(world.params, world.memory, t, arm)
    for other in range(len(world.losses)):
        world.arm_sums[other] += world.losses[other]
    loss: float = world.losses[arm]
    return loss


def _keep_arm_losses(world: AdversaryWorld, checkpoint: int) -> None:
    for arm in range(len(world.losses)):
        world.arm_losses[checkpoint, arm] = world.arm_sums[arm]


register_world(
    AdversaryWorld,
    WorldFunctions(
        begin=_answer,
        draw=_draw_answer,
        exploited=_tell_adversary,
        checkpoint=_keep_arm_losses,
    ),
)

"""The round loop: one policy against one table of losses, for a whole horizon."""

from typing import Any, NamedTuple

from ..arrays import Floats, Ints, Words
from .compiled import compiled
from .dispatch import decide, init, update
from .state import State
from .stream import uniform


class Table(NamedTuple):
    """An oblivious environment: mean losses (rows x arms) and the row that holds in each round."""

    rows: Floats
    row_at: Ints


@compiled
def drive(
    params: Any,
    state: State,
    stream: Words,
    noise: Words,
    table: Table,
    best: int,
    checkpoints: Ints,
    regret: Floats,
    plays: Ints,
) -> None:
    """Run every round of `table`; fill `regret` at the checkpoints and `plays` (exploited, explored).

    Losses are Bernoulli. Each round takes one number of `noise` whatever is played, so every policy
    meets the same losses. Regret is by mean loss against the arm `best`.
    """
    init(params, state)
    rows, row_at = table.rows, table.row_at
    so_far = 0.0
    checkpoint = 0
    for t in range(len(row_at)):
        row = row_at[t]
        draw = uniform(noise)
        exploit, explore, weight, _ = decide(params, state, stream)
        loss = 1.0 if draw <= rows[row, explore] else 0.0
        update(params, state, explore, weight, loss)
        so_far += rows[row, exploit] - rows[row, best]
        plays[0, exploit] += 1
        plays[1, explore] += 1
        if checkpoint < len(checkpoints) and t + 1 == checkpoints[checkpoint]:
            regret[checkpoint] = so_far
            checkpoint += 1

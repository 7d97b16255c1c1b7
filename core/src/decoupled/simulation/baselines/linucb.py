"""LinUCB: a linear model of each arm's loss, and optimism, in the standard game."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from ...base.arrays import Floats, Ints, Words
from ...base.validation import set_number
from ...environments import ContextTable
from ...environments.context_table import check_columns
from ...errors import ParameterError
from ...kernels.jit import compiled
from ...kernels.random.stream import below
from ..contextual import draws_of, fill_regret
from .base import Baseline, TableRun
from .per_segment import field_names


@compiled
def play_linear(
    losses: Floats,
    row_at: Ints,
    places: Ints,
    values: Floats,
    alpha: float,
    inverse: Floats,
    model: Floats,
    step: Floats,
    stream: Words,
    played: Ints,
) -> None:
    """Play every round and fill `played`.

    The features of a row are `values[row]` at `places[row]`, and 0 elsewhere. `inverse` (arms x d x d) holds the inverse
    of the ridge matrix and `model` (arms x d) the coefficients; `step` is work space.
    """
    width = places.shape[1]
    for t in range(len(row_at)):
        row = row_at[t]
        smallest, tied, chosen = np.inf, 0, 0
        for arm in range(losses.shape[1]):
            mean, variance = 0.0, 0.0
            for i in range(width):
                mean += model[arm, places[row, i]] * values[row, i]
                for j in range(width):
                    variance += (
                        values[row, i] * inverse[arm, places[row, i], places[row, j]] * values[row, j]
                    )
            index = mean - alpha * math.sqrt(max(variance, 0.0))
            if index < smallest:
                smallest, tied, chosen = index, 1, arm
            elif index == smallest:
                tied += 1
                if below(tied, stream) == 0:
                    chosen = arm
        played[t] = chosen
        _learn(inverse[chosen], model[chosen], step, places[row], values[row], losses[row, chosen])


@compiled
def _learn(inverse: Floats, model: Floats, step: Floats, places: Ints, values: Floats, loss: float) -> None:
    """Recursive least squares: a Sherman-Morrison step."""
    size, error, scale = len(model), loss, 1.0
    for i in range(size):
        step[i] = 0.0
        for j in range(len(places)):
            step[i] += inverse[i, places[j]] * values[j]
    for j in range(len(places)):
        error -= model[places[j]] * values[j]
        scale += step[places[j]] * values[j]
    for i in range(size):
        model[i] += step[i] * error / scale
        for j in range(size):
            inverse[i, j] -= step[i] * step[j] / scale


@dataclass(frozen=True)
class LinUCB(Baseline):
    r"""LinUCB in the standard game: each arm's loss is linear in the context, and the arm that could be best is played.

    With the features $x$ of a round, it plays the arm with the smallest
    $\hat\theta_a^\top x - \alpha \sqrt{x^\top A_a^{-1} x}$, where $A_a = \lambda I + \sum x x^\top$ over the rounds in
    which arm $a$ was played and $\hat\theta_a$ is its ridge estimate. Ties are broken at random. Features are 1, an
    indicator for each value of each field of `segments`, and `numbers`, which are scaled by their mean and deviation in
    the whole table; a missing number counts as the mean.

    Li, L., Chu, W., Langford, J. and Schapire, R. E. (2010). A contextual-bandit approach to personalized news article
    recommendation. WWW. Algorithm 1, on losses instead of rewards.

    Args:
        segments: the columns of the context that are categories.
        numbers: the columns of the context that are numbers.
        alpha: how wide the confidence bounds are, above 0.
        ridge: the penalty $\lambda$ of the coefficients, above 0.

    >>> import decoupled as dc
    >>> losses, subjects = [[0.1, 0.9], [0.8, 0.2]] * 100, ["law", "art"] * 100
    >>> table = dc.environments.ContextTable(losses, {"subject": subjects}, order="shuffled")
    >>> results = dc.simulate(dc.baselines.LinUCB(["subject"]), table, horizon=200, runs=20, seed=0)
    >>> results.summary()[["gain", "segment_regret"]].round(1).values.tolist()
    [[56.6, 3.4]]
    """

    segments: Sequence[str] = field(default=(), metadata={"depth": 1})
    numbers: Sequence[str] = field(default=(), metadata={"depth": 1})
    alpha: float = 1.0
    ridge: float = 1.0

    def __post_init__(self) -> None:
        for name in ("segments", "numbers"):
            object.__setattr__(self, name, field_names(name, getattr(self, name), 0))
        if not self.segments and not self.numbers:
            rule = "must not both be empty"
            raise ParameterError.of("segments, numbers", (), rule, 'such as segments=["subject"]')
        set_number(self, "alpha", 0.0, 1e6, "the default is 1")
        set_number(self, "ridge", 0.0, 1e6, "the default is 1")

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(["subject"]),)

    def check(self, table: ContextTable) -> None:
        check_columns(table.context, self.segments, self.numbers)

    def features(self, table: ContextTable) -> tuple[Ints, Floats, int]:
        """The places of a row's features that are not 0, their values, and the number of features.

        Args:
            table: the environment.
        """
        rows = len(table.losses)
        places, values, size = [np.zeros(rows, np.int64)], [np.ones(rows)], 1
        for name in self.segments:
            found = table.segment_at([name])
            places.append(size + found)
            values.append(np.ones(rows))
            size += int(found.max()) + 1
        for name in self.numbers:
            column = table.numbers(name)
            spread = np.nanstd(column)
            places.append(np.full(rows, size))
            values.append(np.nan_to_num((column - np.nanmean(column)) / (spread if spread > 0.0 else 1.0)))
            size += 1
        return np.stack(places, axis=1), np.stack(values, axis=1), size

    def play(self, run: TableRun) -> None:
        table, row_at = run.table, run.row_at
        places, values, size = self.features(table)
        inverse = np.tile(np.eye(size) / self.ridge, (table.arms, 1, 1))
        model, step = np.zeros((table.arms, size)), np.zeros(size)
        played, losses = np.zeros(len(row_at), np.int64), table.table(1).rows
        stream = draws_of(run.seed, run.number)
        play_linear(losses, row_at, places, values, self.alpha, inverse, model, step, stream, played)
        fill_regret(losses, run, played)

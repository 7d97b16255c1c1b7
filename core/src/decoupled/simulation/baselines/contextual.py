"""What contextual policies are compared with: one policy for each segment, and LinUCB."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self, cast

import numpy as np

from ...base.arrays import Floats, Ints, Words
from ...base.validation import set_number
from ...environments import ContextTable
from ...environments.context_table import check_columns
from ...errors import ParameterError
from ...kernels.jit import compiled
from ...kernels.random.stream import below
from ...policies import Ladder, Policy
from ..baseline import Baseline, TableRun
from ..contextual import blind_run, fill_regret
from ..cpu import loop_for
from ..traffic import DRAWS, stream_of


@dataclass(frozen=True)
class PerSegment(Baseline):
    """One policy for each segment, like a dictionary of learners.

    Each starts from nothing and sees only the rounds of its segment. With a policy of the standard
    game, such as `ThompsonSampling()`, this is the usual personalisation when you only see the loss
    of what you serve.

    Args:
        policy: the policy of each segment.
        segments: the columns of the context whose values make a segment.

    >>> import decoupled as dc
    >>> losses, subjects = [[0.1, 0.9], [0.8, 0.2]] * 100, ["law", "art"] * 100
    >>> table = dc.environments.ContextTable(losses, {"subject": subjects}, order="shuffled")
    >>> each = dc.baselines.PerSegment(dc.Ladder(), segments=["subject"])
    >>> results = dc.simulate([each, dc.Ladder()], table, horizon=200, runs=20, seed=0)
    >>> gains = results.summary()["gain"]  # of 60 that the best arm for each segment gains
    >>> gains.round().to_dict()
    {'Ladder for each subject': 58.0, 'Ladder': -3.0}
    """

    policy: Any
    segments: Sequence[str] = field(metadata={"depth": 1})

    def __post_init__(self) -> None:
        policy = self.policy
        if isinstance(policy, dict):
            policy = Policy.from_dict(policy)
        if not isinstance(policy, Policy):
            rule = "must be a policy"
            raise ParameterError.of("policy", policy, rule, "for example dc.Ladder()")
        if policy.contextual:
            rule = "knows the context itself, so it needs no segments of its own"
            raise ParameterError(f"policy: {policy.label} {rule}; use dc.Ladder()")
        object.__setattr__(self, "policy", policy)
        object.__setattr__(self, "segments", field_names("segments", self.segments))

    @property
    def label(self) -> str:
        return f"{self.policy.label} for each {', '.join(self.segments)}"

    @property
    def in_python(self) -> bool:
        return cast(bool, self.policy.in_python)

    @property
    def interpreted(self) -> bool:
        return cast(bool, self.policy.interpreted)

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls(Ladder(), ["subject"]),)

    def check(self, table: ContextTable) -> None:
        check_columns(table.context, self.segments)

    def play(self, run: TableRun) -> None:
        table = run.table
        row_at = run.row_at
        policy = self.policy.at(table.arms)
        rows = table.table(1).rows
        policy.register()  # also in a process that has not seen the policy
        loop = loop_for(policy)
        segments = table.segment_at(self.segments)[row_at]
        run.regret[:] = 0.0
        # The segments share nothing, so each is played to its end before the next begins.
        order = segments.argsort(kind="stable")
        for rounds in np.split(order, np.flatnonzero(np.diff(segments[order])) + 1):
            # How many of its rounds there are up to each checkpoint.
            rounds_seen = np.searchsorted(rounds, run.checkpoints)
            ends = np.unique(rounds_seen[rounds_seen > 0])
            # It begins with 0, for checkpoints before the first round of the segment.
            segment_regret = np.zeros(1 + len(ends))
            draws = stream_of(run.seed, run.number, DRAWS, int(segments[rounds[0]]))
            run_of_segment = run._replace(
                row_at=row_at[rounds], checkpoints=ends, regret=segment_regret[1:]
            )
            loop(blind_run(policy, rows, draws, run_of_segment))
            run.regret[:] += segment_regret[np.searchsorted(ends, rounds_seen, side="right")]


def field_names(argument: str, value: object, least: int = 1) -> tuple[str, ...]:
    """A tuple of at least `least` names."""
    if isinstance(value, list | tuple) and len(value) >= least:
        names = tuple(name for name in value if isinstance(name, str))
        if len(names) == len(value):
            return names
    rule = "must be a list of names of columns"
    raise ParameterError.of(argument, value, rule, 'such as ["subject"]')


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

    The features of a row are `values[row]` at `places[row]`, and 0 elsewhere. `inverse` (arms x d x
    d) holds the inverse of the ridge matrix and `model` (arms x d) the coefficients; `step` is work
    space.
    """
    width = places.shape[1]
    for t in range(len(row_at)):
        row = row_at[t]
        smallest = np.inf
        tied = 0
        chosen = 0
        for arm in range(losses.shape[1]):
            mean = 0.0
            variance = 0.0
            for i in range(width):
                mean += model[arm, places[row, i]] * values[row, i]
                for j in range(width):
                    variance += (
                        values[row, i]
                        * inverse[arm, places[row, i], places[row, j]]
                        * values[row, j]
                    )
            index = mean - alpha * math.sqrt(max(variance, 0.0))
            if index < smallest:
                smallest = index
                tied = 1
                chosen = arm
            elif index == smallest:
                tied += 1
                if below(tied, stream) == 0:
                    chosen = arm
        played[t] = chosen
        _learn(inverse[chosen], model[chosen], step, places[row], values[row], losses[row, chosen])


@compiled
def _learn(
    inverse: Floats, model: Floats, step: Floats, places: Ints, values: Floats, loss: float
) -> None:
    """Recursive least squares: a Sherman-Morrison step."""
    size = len(model)
    error = loss
    scale = 1.0
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
    r"""LinUCB in the standard game, which plays the arm that could be best if losses are linear in
    the context.

    With the features $x$ of a round, it plays the arm with the smallest
    $\hat\theta_a^\top x - \alpha \sqrt{x^\top A_a^{-1} x}$, where $A_a = \lambda I + \sum x x^\top$
    over the rounds in which arm $a$ was played and $\hat\theta_a$ is its ridge estimate. Ties are
    broken at random. Features are 1, an indicator for each value of each field of `segments`, and
    `numbers`, which are scaled by their mean and deviation in the whole table; a missing number
    counts as the mean.

    Li, L., Chu, W., Langford, J. and Schapire, R. E. (2010). A contextual-bandit approach to
    personalized news article recommendation. WWW. Algorithm 1, on losses instead of rewards.

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
        places = [np.zeros(rows, np.int64)]
        values = [np.ones(rows)]
        size = 1
        for name in self.segments:
            segment_at = table.segment_at([name])
            places.append(size + segment_at)
            values.append(np.ones(rows))
            size += int(segment_at.max()) + 1
        for name in self.numbers:
            column = table.numbers(name)
            spread = np.nanstd(column)
            scale = spread if spread > 0.0 else 1.0
            places.append(np.full(rows, size))
            values.append(np.nan_to_num((column - np.nanmean(column)) / scale))
            size += 1
        return np.stack(places, axis=1), np.stack(values, axis=1), size

    def play(self, run: TableRun) -> None:
        table = run.table
        row_at = run.row_at
        places, values, size = self.features(table)
        inverse = np.tile(np.eye(size) / self.ridge, (table.arms, 1, 1))
        model = np.zeros((table.arms, size))
        step = np.zeros(size)
        played = np.zeros(len(row_at), np.int64)
        losses = table.table(1).rows
        stream = stream_of(run.seed, run.number, DRAWS)
        play_linear(
            losses, row_at, places, values, self.alpha, inverse, model, step, stream, played
        )
        fill_regret(losses, run, played)

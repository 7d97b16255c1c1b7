"""The base class of baselines."""

from typing import Any, NamedTuple, Never

from ..base.arrays import Floats, Ints
from ..environments import ContextTable
from ..errors import UnsupportedError
from ..policies import Policy


class TableRun(NamedTuple):
    """One run on a `ContextTable`, and where its results go.

    Attributes:
        table: the table.
        row_at: the row of each round.
        best: the arm that regret is against.
        checkpoints: the rounds after which regret is recorded.
        seed: the seed of the simulation.
        number: the number of the run.
        regret: the regret at each checkpoint, to fill.
        plays: how often each arm was exploited and explored (2 x arms), to add to.
    """

    table: ContextTable
    row_at: Ints
    best: int
    checkpoints: Ints
    seed: int
    number: int
    regret: Floats
    plays: Ints


class Baseline(Policy, kind="baseline", package=f"{__package__}.baselines"):
    """A policy that only runs in `simulate`, for comparisons on a `ContextTable`.

    Unlike other policies, it may read the whole table of contexts before the first round, for
    example to list the segments. It sees the loss of a round only after it has decided.

    >>> import decoupled as dc
    >>> sorted(dc.baselines.Baseline.known())
    ['LinUCB', 'PerSegment']
    """

    @property
    def contextual(self) -> bool:
        """True: it sees the context of each round."""
        return True

    def start(self, *arguments: Any, **others: Any) -> Never:
        """Raise an error: there is no learner of a baseline."""
        remedy = "use dc.simulate, or a policy such as dc.Ladder()"
        raise UnsupportedError(f"start(): {self.label} runs in simulations only; {remedy}")

    def check(self, table: ContextTable) -> None:
        """Raise an error if the table lacks what this baseline reads.

        Args:
            table: the environment.
        """
        raise NotImplementedError

    def play(self, run: TableRun) -> None:
        """Play one run.

        Args:
            run: which run, and where its results go.
        """
        raise NotImplementedError

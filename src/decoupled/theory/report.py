"""What `check` returns: one line an inequality, with the state that shows how tight it is."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import ParameterError, invalid_value, near_name
from .inequality import Line, Tally
from .lemmas import in_order

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Report:
    """How every inequality of the proofs fared along a trajectory.

    A ratio is left side over right side: 1 is tight, above 1 a violation. `lines` are in the order of the
    argument; each has the `witness` that shows its ratio. Lines whose status is "as printed" are steps that
    fail somewhere and stand next to their "mended" form; "not claimed" is outside the theorem's range.

    >>> import decoupled as dc
    >>> report = dc.theory.check(dc.environments.Alternating(arms=4, gap=0.25), horizon=50, seed=1)
    >>> report.surprises
    []
    >>> report["w <= (1 + eta u)^-alpha"].violations
    0
    """

    lines: tuple[Line, ...]

    @property
    def violations(self) -> list[Line]:
        """Every line that failed somewhere, the known slips among them."""
        return [line for line in self.lines if line.violations]

    @property
    def surprises(self) -> list[Line]:
        """The lines that failed although they are meant to hold."""
        return [line for line in self.violations if line.inequality.expected]

    def __getitem__(self, name: str) -> Line:
        for line in self.lines:
            if line.inequality.name == name:
                return line
        names = [line.inequality.name for line in self.lines]
        raise ParameterError(
            invalid_value("name", name, "is no inequality of this report", near_name(name, names))
        )

    def table(self) -> "pd.DataFrame":
        """One row an inequality: its source, its status, how often it was evaluated, its tightest ratio."""
        import pandas as pd

        rows = [
            (
                line.inequality.name,
                line.inequality.source,
                line.inequality.status,
                line.evaluated,
                line.ratio,
                line.violations,
            )
            for line in self.lines
        ]
        columns = ["inequality", "source", "status", "evaluated", "ratio", "violations"]
        return pd.DataFrame(rows, columns=columns).set_index("inequality")


def combine(reports: Iterable[Report]) -> Report:
    """One report of several: counts add up, and each line keeps its tightest state.

    >>> import decoupled as dc
    >>> world = dc.environments.Alternating(arms=4, gap=0.25)
    >>> reports = [dc.theory.check(world, horizon=20, seed=seed) for seed in range(2)]
    >>> combined = dc.theory.combine(reports)
    >>> every = [line for report in reports for line in report.lines]
    >>> sum(line.evaluated for line in combined.lines) == sum(line.evaluated for line in every)
    True
    """
    tally = Tally()
    for report in reports:
        tally.merge(report.lines)
    return Report(in_order(tally))

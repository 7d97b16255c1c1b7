"""The report of `check`: one line per inequality, with the state in which it is tightest."""

from collections.abc import Iterable
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING

from decoupled.errors import ParameterError, near_name

from .inequality import Line, Tally
from .lemmas import in_order

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Report:
    """The result for every inequality of the proofs along a trajectory.

    A ratio is left side over right side: 1 is tight, and above 1 is a violation. `lines` follow the order of
    the argument, and each has the `witness` that shows its ratio. The status "as printed" marks a step that
    fails somewhere; its corrected form, with status "corrected", is next to it. The status "ours" marks a lemma of
    the ladder. The status "not claimed" means outside the range of the theorem.

    Attributes:
        lines: one line for each inequality, in the order of the argument.

    >>> import decoupled as dc
    >>> import decoupled_lab as lab
    >>> report = lab.theory.check(dc.environments.Alternating(arms=4, gap=0.25), horizon=50, seed=1)
    >>> report.surprises
    []
    >>> report["w <= (1 + eta u)^-alpha"].violations
    0
    """

    lines: tuple[Line, ...]

    @property
    def violations(self) -> list[Line]:
        """Every line that failed somewhere, including the known slips."""
        return [line for line in self.lines if line.violations]

    @property
    def surprises(self) -> list[Line]:
        """The lines that should hold but failed."""
        return [line for line in self.violations if line.inequality.expected]

    def __getitem__(self, name: str) -> Line:
        for line in self.lines:
            if line.inequality.name == name:
                return line
        names = [line.inequality.name for line in self.lines]
        raise ParameterError.of("name", name, "is not an inequality of this report", near_name(name, names))

    def table(self) -> "pd.DataFrame":
        """One row per inequality: its source, status, number of evaluations, tightest ratio and violations."""
        import pandas as pd

        rows = [
            (*astuple(line.inequality), line.evaluated, line.ratio, line.violations) for line in self.lines
        ]
        columns = ["inequality", "source", "status", "evaluated", "ratio", "violations"]
        return pd.DataFrame(rows, columns=columns).set_index("inequality")


def combine(reports: Iterable[Report]) -> Report:
    """Merge several reports into one: counts add up, and each line keeps its tightest state.

    Args:
        reports: the reports, of any number of trajectories.

    >>> import decoupled as dc
    >>> import decoupled_lab as lab
    >>> world = dc.environments.Alternating(arms=4, gap=0.25)
    >>> reports = [lab.theory.check(world, horizon=20, seed=seed) for seed in range(2)]
    >>> combined = lab.theory.combine(reports)
    >>> every = [line for report in reports for line in report.lines]
    >>> sum(line.evaluated for line in combined.lines) == sum(line.evaluated for line in every)
    True
    """
    tally = Tally()
    for report in reports:
        tally.merge(report.lines)
    return Report(in_order(tally))

"""A section of a report: text, tables, figures and claims."""

from collections.abc import Callable
from typing import NamedTuple

from decoupled.plots import Picture

from .claims import Claim


class ReportTable(NamedTuple):
    """A small table; the first column names the rows."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    latex: Callable[[str], str] | None = (
        None  # from a label to its form in a paper, if that is not these words in columns
    )


class Section(NamedTuple):
    """One experiment in a report."""

    text: str
    claims: tuple[Claim, ...]
    pictures: tuple[Picture, ...]
    tables: tuple[ReportTable, ...] = ()
    warnings: tuple[str, ...] = ()
    name: str = ""
    title: str = ""
    extent: str = ""  # how much was run: runs and rounds, or repetitions

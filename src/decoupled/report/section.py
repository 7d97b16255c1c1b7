"""A section of a report: text, tables, figures and claims."""

from typing import NamedTuple

from ..plots import Picture
from .claims import Claim


class Table(NamedTuple):
    """A small table; the first column names the rows."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Section(NamedTuple):
    """One experiment in a report."""

    name: str
    title: str
    text: str
    claims: tuple[Claim, ...]
    pictures: tuple[Picture, ...]
    tables: tuple[Table, ...] = ()
    warnings: tuple[str, ...] = ()
    extent: str = ""  # how much was run: runs and rounds, or repetitions

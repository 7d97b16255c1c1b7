"""A document as values: headings, paragraphs, tables and figures. `markdown` and `latex` write it out.

Texts are plain, except for `$...$` (a formula in TeX), backticks (code) and `**...**` (bold). All else is escaped.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from ..mathematics import FORMULA

_MARKED = re.compile(rf"`(?P<code>[^`]+)`|{FORMULA.pattern}|\*\*(?P<bold>.+?)\*\*")


class Heading(NamedTuple):
    """The heading of a section, or of a part of one."""

    text: str
    level: int = 1
    numbered: bool = True


class Paragraph(NamedTuple):
    """A paragraph of text."""

    text: str


class Notice(NamedTuple):
    """A paragraph that nobody should overlook."""

    text: str


class Items(NamedTuple):
    """A list."""

    items: tuple[str, ...]
    numbered: bool = False


class TextTable(NamedTuple):
    """A table of short texts; `widths` are shares of the page for columns that need several lines, or 0; `ruled` has lines between rows."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    widths: tuple[float, ...] = ()
    ruled: bool = False


class Drawing(NamedTuple):
    """A figure, by its path without the ending; `width` is a share of the page."""

    path: str
    title: str
    caption: str
    width: float = 1.0


class Listing(NamedTuple):
    """Lines for a terminal, or of a program."""

    lines: tuple[str, ...]
    language: str = "sh"


class Included(NamedTuple):
    """Another file of LaTeX, such as one with a table, by its path."""

    path: str


Block: TypeAlias = Heading | Paragraph | Notice | Items | TextTable | Drawing | Listing | Included


class Document(NamedTuple):
    """A whole document; without an author, a date or an abstract if they are empty."""

    title: str
    author: str
    date: str
    abstract: str
    blocks: tuple[Block, ...]


def spans(text: str) -> Iterator[tuple[str, str]]:
    """The pieces of a text with their kinds: "plain", "code", "formula" or "bold".

    >>> list(spans("at **most** $K^2$"))
    [('plain', 'at '), ('bold', 'most'), ('plain', ' '), ('formula', 'K^2')]
    """
    start = 0
    for found in _MARKED.finditer(text):
        if found.start() > start:
            yield "plain", text[start : found.start()]
        kind = str(found.lastgroup)
        yield kind, found[kind]
        start = found.end()
    if start < len(text):
        yield "plain", text[start:]

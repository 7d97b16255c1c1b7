"""LaTeX tables with booktabs rules and siunitx columns, as text."""

import math
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import groupby
from typing import NamedTuple, TypeAlias

from .tex_text import Markup as Markup
from .tex_text import escape as escape

ABSENT = "{--}"
_LONGEST = 16  # characters; a number without declared decimals that is longer is written with an exponent
_WIDE = 70  # characters, of about 75 on a line
_SHRUNK = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"  # only if it is too wide; needs graphicx
# All of it is local to the table, so a document needs only the packages.
_SETUP = r"""\sisetup{detect-weight = true, mode = text, separate-uncertainty = true, table-align-uncertainty = true, retain-zero-uncertainty = true,
  group-digits = integer, group-minimum-digits = 4, group-separator = {,}}
% The signs of formulas: those of text fonts are often bitmaps. And a bold series with digits as wide as the plain ones.
\def\textminus{\ensuremath{-}}\def\textpm{\ensuremath{\pm}}\def\texttimes{\ensuremath{\times}}
\protected\def\tablebold{\fontseries{b}\selectfont}"""


class Cell(NamedTuple):
    """What a table shows in one place.

    Attributes:
        value: a text or a number; None or NaN for nothing, which is shown as a dash.
        error: what follows the number after ±, such as its standard error.
        bold: whether it is set in bold.
    """

    value: str | float | None
    error: float | None = None
    bold: bool = False


Row: TypeAlias = Sequence[Cell | str | float | None]


class Column(NamedTuple):
    r"""A column of a table.

    Attributes:
        head: the words at its top.
        align: "S" for numbers aligned at their decimal points, or "l", "c", "r" for text.
        decimals: digits after the point. None shows two digits of a number's error, or else all digits of the number.
        over: words above this head; neighbours with the same share them.
        width: a text column's width as a part of the page's; longer text is broken into lines.
    """

    head: str
    align: str = "S"
    decimals: int | None = None
    over: str = ""
    width: float | None = None


class Table(NamedTuple):
    r"""A table for a paper. Every text in it is escaped, unless it is `Markup`.

    Attributes:
        columns: the columns.
        rows: cells, one for each column; a text, a number or None stands for its `Cell`. An empty row is a rule.
        caption: the text above the table.
        label: what the text refers to it by.
        long: whether it may break over pages; needs the package longtable.
        tight: whether its letters are smaller and its columns closer, since a table over pages cannot be shrunk.

    >>> columns = [Column("policy", "l"), Column("regret")]
    >>> table = Table(columns, [["my_policy", Cell(12.345, 0.678, bold=True)], ["other", None]], "Regret", "tab:regret")
    >>> print(table.to_latex().partition(r"\toprule")[2].partition(r"\bottomrule")[0])
    <BLANKLINE>
    policy & {regret} \\
    \midrule
    my\_policy & \tablebold 12.35 \pm 0.68 \\
    other & {--} \\
    <BLANKLINE>
    """

    columns: Sequence[Column]
    rows: Sequence[Row]
    caption: str
    label: str
    long: bool = False
    tight: bool = False

    def to_latex(self) -> str:
        """The table as a float, or with `long` as a table that may break over pages."""
        label = re.sub(r"[^A-Za-z0-9:.-]+", "-", self.label)
        caption = rf"\caption{{{escape(self.caption)}}}\label{{{label}}}"
        end = r" \\ \addlinespace" if any(column.width for column in self.columns) else r" \\"
        rows = [r"\midrule" if not row else " & ".join(self._cells(row)) + end for row in self.rows]
        head = "\n".join([r"\toprule", *self._heads(), r"\midrule"])
        layout = " ".join(self._layout())
        if self.long:
            start = [
                "{",
                r"\footnotesize\setlength{\tabcolsep}{3pt}" if self.tight else r"\small",
                r"\setlength{\LTcapwidth}{\linewidth}",
                _SETUP,
                rf"\begin{{longtable}}{{{layout}}}",
            ]
            again = [head, r"\endfirsthead", head, r"\endhead", r"\bottomrule", r"\endfoot"]
            lines = [*start, rf"{caption} \\", *again, *rows, r"\end{longtable}", "}"]
        else:
            start = [r"\begin{table}[htbp]", r"\centering", r"\setlength{\belowcaptionskip}{6pt}"]
            body = [rf"\begin{{tabular}}{{{layout}}}", head, *rows, r"\bottomrule", r"\end{tabular}"]
            body = [_SHRUNK, *body, "}"] if self._is_wide() else body
            lines = [*start, caption, r"\small", _SETUP, *body, r"\end{table}"]
        return "\n".join(lines) + "\n"

    def _cells(self, row: Row) -> Iterator[str]:
        for column, cell in zip(self.columns, row, strict=True):
            yield _shown(_cell(cell), column)

    def _is_wide(self) -> bool:
        """Whether it may be wider than a page; columns with a width of their own are not."""
        lines = [
            [column.head for column in self.columns],
            *(list(self._cells(row)) for row in self.rows if row),
        ]
        widths = [max(len(line[number]) for line in lines) + 2 for number in range(len(self.columns))]
        return sum(widths) > _WIDE and not any(column.width for column in self.columns)

    def _heads(self) -> Iterator[str]:
        """One line of heads, and one above it where columns share words."""
        if any(column.over for column in self.columns):
            spans, rules, place = [], [], 1
            for over, some in groupby(self.columns, key=lambda column: column.over):
                size = len(list(some))
                spans.append(rf"\multicolumn{{{size}}}{{c}}{{{escape(over)}}}")
                rules += [rf"\cmidrule(lr){{{place}-{place + size - 1}}}"] if over else []
                place += size
            yield " & ".join(spans) + r" \\"
            yield " ".join(rules)
        heads = (
            escape(each.head) if each.align != "S" else f"{{{escape(each.head)}}}" for each in self.columns
        )
        yield " & ".join(heads) + r" \\"

    def _layout(self) -> Iterator[str]:
        for number, column in enumerate(self.columns):
            if column.width is not None:
                yield rf">{{\raggedright\arraybackslash}}p{{{column.width:g}\textwidth}}"
            elif column.align == "S":
                numbers = [written(_cell(row[number]), column.decimals) for row in self.rows if row]
                yield f"S[table-format = {_format([each for each in numbers if each])}]"
            else:
                yield column.align


def decimals_of(error: float) -> int | None:
    """The decimals that show two digits of an error; None if it has none.

    >>> decimals_of(0.678), decimals_of(0.0996), decimals_of(432.1), decimals_of(0.0)
    (2, 2, 0, None)
    """
    if not (math.isfinite(error) and error > 0.0):
        return None
    return max(0, 1 - int(f"{error:.1e}".partition("e")[2]))


def written(cell: Cell, decimals: int | None = None) -> tuple[str, str] | None:
    """The digits of a cell's number and of its error, "" without one; None if it has no number to align."""
    value, error = cell.value, cell.error
    if value is None or isinstance(value, str) or not math.isfinite(value):
        return None
    if error is None or not math.isfinite(error):
        number = _digits(value, decimals)
        return (number, "") if decimals is not None or len(number) <= _LONGEST else None
    decimals = decimals_of(error) if decimals is None else decimals
    return _digits(value, decimals), _digits(error, decimals)


def _digits(value: float, decimals: int | None) -> str:
    """A number without an exponent; without decimals, all of its digits."""
    if decimals is not None:
        return f"{value:z.{decimals}f}"
    return format(Decimal(str(value)), "f").removesuffix(".0")


def _cell(cell: Cell | str | float | None) -> Cell:
    return cell if isinstance(cell, Cell) else Cell(cell)


def _shown(cell: Cell, column: Column) -> str:
    found = written(cell, column.decimals)
    if found is not None:
        number = rf"{found[0]} \pm {found[1]}" if found[1] else found[0]
        shown = number if column.align == "S" else rf"\num{{{number}}}"
        return rf"\tablebold {shown}" if cell.bold else shown
    text = _text(cell.value)
    if text == ABSENT:
        return text
    text = rf"\tablebold {text}" if cell.bold else text
    # Braces keep siunitx from reading a number in it, and a bold series from the cells that follow.
    return f"{{{text}}}" if cell.bold or column.align == "S" else text


def _text(value: str | float | None) -> str:
    """What stands in a cell that has no number to align."""
    if value is None or (not isinstance(value, str) and math.isnan(value)):
        return ABSENT
    if isinstance(value, str):
        return escape(value)
    if math.isinf(value):
        return r"\ensuremath{\infty}" if value > 0.0 else r"\ensuremath{-\infty}"
    return rf"\num{{{float(value)!r}}}"


def _format(numbers: Sequence[tuple[str, str]]) -> str:
    """The room that siunitx keeps in a column: a sign, digits before and after the point, digits of the error."""
    sign = "-" if any(number.startswith("-") for number, _ in numbers) else ""
    whole, part = _room([number for number, _ in numbers])
    errors = [error for _, error in numbers if error]
    room = f"({sum(_room(errors))})" if errors else ""
    return f"{sign}{whole}.{part}{room}"


def _room(numbers: Sequence[str]) -> tuple[int, int]:
    """The most digits before the point, and after it."""
    halves = [number.lstrip("-").partition(".") for number in numbers]
    return max((len(each[0]) for each in halves), default=1), max(
        (len(each[2]) for each in halves), default=0
    )

"""LaTeX tables as text: structure, escaping, and numbers that keep their digits."""

# ruff: noqa: RUF001 # it is about characters that look like others

import math
import re

import numpy as np
import pytest

from decoupled.base import tex_text
from decoupled.base.latex import Cell, Column, Markup, Row, Table, escape

COLUMNS = [Column("Policy", "l"), Column("Regret")]


def body(table: Table) -> list[str]:
    """The rows between the rules."""
    return table.to_latex().partition("\\midrule\n")[2].partition("\\bottomrule")[0].splitlines()


def room(table: Table) -> str:
    """The room that the second column keeps."""
    found = re.search(r"table-format = ([^]]*)]", table.to_latex())
    assert found is not None
    return found[1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("my_policy", r"my\_policy"),
        ("5 % & #1 $x$ {y}", r"5\,\% \& \#1 \$x\$ \{y\}"),
        (r"a\b^c~d", r"a\textbackslash{}b\textasciicircum{}c\textasciitilde{}d"),
        ("α ≤ Ω", r"\ensuremath{\alpha} \ensuremath{\le} \ensuremath{\Omega}"),
        ("λ × Α ± ο", r"\ensuremath{\lambda} \ensuremath{\times} \ensuremath{\mathrm{A}} \ensuremath{\pm} \ensuremath{o}"),
        ("∆ µ ⋅", r"\ensuremath{\Delta} \ensuremath{\mu} \ensuremath{\cdot}"),
        ("K² x₁", r"K\ensuremath{^{2}} x\ensuremath{_{1}}"),
        ("Erdős, naïve", r"Erd\H{o}s, na\"{\i}ve"),
        ("e\u0301", r"\'{e}"),  # two characters for one
        ("a--b", "a-{}-b"),  # not a dash
        ("[x]*", "{[}x{]}{*}"),  # not an argument of the row's end
        ("日", "{[}U+65E5{]}"),
        ("a\nb\tc", "a b c"),
        ("\x00", "{[}U+0000{]}"),
    ],
)  # fmt: skip
def test_texts_are_escaped(text: str, expected: str) -> None:
    assert escape(text) == expected


def test_escaped_text_is_plain_and_nothing_of_it_is_lost() -> None:
    for number in [*range(0x2600), *range(0x1F300, 0x1F320)]:
        if not 0xD800 <= number < 0xE000:
            shown = escape(chr(number))
            assert shown.isascii(), hex(number)
            assert shown.count("{") == shown.count("}") or number in (0x7B, 0x7D)
            assert shown or number in (0x200D,), hex(number)
    assert escape(Markup(r"\LaTeX")) == r"\LaTeX"
    assert len(tex_text.escape("a" * 1000)) == 1000


def test_a_table_has_its_parts_in_order() -> None:
    text = Table(COLUMNS, [["a_b", 1.5], (), ["c", 2]], "My 5 % & more", "tab:my table").to_latex()
    parts = [
        r"\begin{table}", r"\caption{My 5\,\% \& more}\label{tab:my-table}", r"\sisetup",
        r"\begin{tabular}{l S[table-format = 1.1]}", r"\toprule", r"Policy & {Regret} \\", r"\midrule",
        r"a\_b & 1.5 \\", r"\midrule", r"c & 2 \\", r"\bottomrule", r"\end{tabular}", r"\end{table}",
    ]  # fmt: skip
    places = [text.index(part) for part in parts]
    assert places[0] == 0
    assert [place for place in places if place not in (places[6], places[8])] == sorted(
        place for place in places if place not in (places[6], places[8])
    )
    assert text.count(r"\midrule") == 2


def test_heads_can_be_shared() -> None:
    columns = [*COLUMNS, Column("more", over="a & b"), Column("still", over="a & b")]
    text = Table(columns, [["x", 1, 2, 3]], "", "tab:a").to_latex()
    assert r"\multicolumn{2}{c}{} & \multicolumn{2}{c}{a \& b} \\" in text
    assert r"\cmidrule(lr){3-4}" in text


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        (None, "{--}"),
        (math.nan, "{--}"),
        (Cell(math.nan, 1.0, bold=True), "{--}"),
        (Cell(None, bold=True), "{--}"),
        (math.inf, r"{\ensuremath{\infty}}"),
        (3, "3"),
        (np.int64(2**53 + 1), "9007199254740993"),
        (0.1, "0.1"),
        (np.float64(0.1), "0.1"),
        (-2.5, "-2.5"),
        (1e-9, "0.000000001"),
        (0.1 + 0.2, r"{\num{0.30000000000000004}}"),
        (1e300, r"{\num{1e+300}}"),
        ("not a number", "{not a number}"),
        (Cell("text", bold=True), r"{\tablebold text}"),
        (Cell(12.345, 0.678), r"12.35 \pm 0.68"),
        (Cell(12.345, 0.0996), r"12.35 \pm 0.10"),
        (Cell(12345.6, 432.1), r"12346 \pm 432"),
        (Cell(12.345, 0.0), r"12.345 \pm 0"),
        (Cell(12.345, math.nan), "12.345"),
        (Cell(-0.001, 0.2), r"0.00 \pm 0.20"),
        (Cell(1.5, 0.25, bold=True), r"\tablebold 1.50 \pm 0.25"),
    ],
)
def test_cells_of_a_column_of_numbers(cell: Cell | float | str | None, expected: str) -> None:
    assert body(Table(COLUMNS, [["a", cell]], "", "tab:a")) == [rf"a & {expected} \\"]


def test_numbers_in_columns_of_text_are_set_as_numbers() -> None:
    columns = [Column("Policy", "l"), Column("Regret", "r", decimals=1)]
    assert body(Table(columns, [["a", Cell(1.26, 0.31)]], "", "tab:a")) == [r"a & \num{1.3 \pm 0.3} \\"]


def test_a_column_keeps_room_for_its_widest_number() -> None:
    rows: list[Row] = [["a", Cell(12345.6, 432.1)], ["b", Cell(-1.234, 0.056)], ["c", None], ["d", "words"]]
    assert room(Table(COLUMNS, rows, "", "tab:a")) == "-5.3(6)"
    assert room(Table(COLUMNS, [["a", None]], "", "tab:a")) == "1.0"
    same = [Column("Policy", "l"), Column("Regret", decimals=1)]
    assert room(Table(same, rows, "", "tab:a")) == "-5.1(4)"


def test_a_row_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        Table(COLUMNS, [["a"]], "", "tab:a").to_latex()


def test_a_wide_table_is_shrunk_and_a_long_one_broken() -> None:
    wide = Table([Column("x" * 20, "l")] * 4, [["y"] * 4], "", "tab:a")
    assert r"\resizebox" in wide.to_latex()
    assert r"\resizebox" not in Table(COLUMNS, [["a", 1]], "", "tab:a").to_latex()
    text = Table(COLUMNS, [["a", 1]], "Long", "tab:a", long=True).to_latex()
    assert text.count("Policy & {Regret}") == 2  # on the first page and on the others
    assert r"\begin{longtable}" in text
    assert r"\begin{table}" not in text

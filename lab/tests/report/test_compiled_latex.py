"""Tables compiled by a real LaTeX, and the text of the pages."""

# ruff: noqa: RUF001 # it is about characters that look like others

from pathlib import Path
from typing import Any

import pytest

import decoupled as dc
import decoupled_lab as lab
from decoupled.base import tex_text
from decoupled.base.latex import Cell, Column, Row, Table, escape
from decoupled_lab.benchmark.table import to_latex
from decoupled_lab.report.claims import Claim, Measure
from decoupled_lab.report.page import claims_table
from support.made_entries import made_up
from support.tex import compiled, pdflatex_or_skip


@pytest.fixture(scope="module")
def pdflatex() -> str:
    return pdflatex_or_skip()


@pytest.mark.usefixtures("pdflatex")
def test_a_table_shows_its_numbers(tmp_path: Path) -> None:
    columns = [
        Column("Policy", "l"),
        Column("Regret_1", over="α & β"),
        Column("Rest", over="α & β"),
        Column("Text", "c"),
    ]
    rows: list[Row] = [
        ["my_policy(c='x')", Cell(12345.678, 12.3), Cell(-1.5, 0.25, bold=True), "[a]"],
        ["none", Cell(11.25, 0.0), 7, "x"],
        ["*star", Cell(0.25, 0.01, bold=True), None, Cell("bold", bold=True)],
        (),
        ["λ ≤ 2", Cell(1e22), 1e-9, Cell(2.5, 0.5)],
    ]
    text = compiled(tmp_path, Table(columns, rows, "5 % of ±_1", "tab:a").to_latex())
    if not text:
        pytest.skip("no pdftotext here, so the text was NOT read: apt-get install poppler-utils")
    words = " ".join(text.split())
    for part in ("Table 1: 5 % of ± 1", "12,346 ± 12", "−1.50 ± 0.25", "0.250 ± 0.010", "[a]", "none 11.25 ± 0", "*star", "λ≤2", "2.50 ± 0.50"):  # fmt: skip
        assert part.replace(" ", "") in words.replace(" ", ""), part


@pytest.mark.usefixtures("pdflatex")
def test_every_known_character_compiles(tmp_path: Path) -> None:
    known = [*tex_text._SPECIAL, *tex_text._FORMULAS, *tex_text._TEXT, *tex_text._CAPITALS]
    letters = [
        chr(number) for number in [*range(0x20, 0x250), *range(0x370, 0x400), *range(0x2000, 0x2300)]
    ]
    body = "\n".join(f"{escape(each)}\\par" for each in dict.fromkeys([*known, *letters]))
    everything = Table(
        [Column("".join(known), "l")], [["".join(known)]], "".join(known), "tab:a"
    ).to_latex()
    text = compiled(tmp_path, f"{everything}\n{body}")
    assert not text or "α" in text


@pytest.mark.usefixtures("pdflatex")
def test_long_tables_break_over_pages(tmp_path: Path) -> None:
    claim = Claim(
        "a",
        "Section 4",
        r"It is of order $\sqrt{KT}$.",
        "",
        "above 0",
        (Measure("K = 8", 1.0, 0.5, 1.5, 9),),
        "holds",
    )
    text = compiled(tmp_path, claims_table([claim] * 60), "booktabs, longtable")
    if text:
        assert text.count("\f") > 1
        assert text.count("Verdict ") == text.count("\f")  # a head on every page
        assert text.count("claimed: above 0; K = 8") == 60


@pytest.mark.usefixtures("pdflatex")
def test_the_tables_of_a_comparison_compile(tmp_path: Path) -> None:
    worlds: dict[str, Any] = {
        "easy_1, Δ = 0.5": dc.environments.Bernoulli([0.2, 0.7]),
        "punish 100 %": dc.environments.PunishLast(arms=2),
    }
    found = {name: dc.simulate([dc.Ladder(), dc.Exp3()], world, 400, 20) for name, world in worlds.items()}
    lab.compare(found, tmp_path, title="Mine & yours", latex=True)
    tables = (tmp_path / "comparison" / "table.tex").read_text()
    text = compiled(tmp_path, tables, "booktabs, siunitx")
    assert not text or text.count("99th percentile") == 2


@pytest.mark.usefixtures("pdflatex")
def test_the_tables_of_a_benchmark_compile(tmp_path: Path) -> None:
    text = compiled(tmp_path, to_latex(made_up("My_Policy(rate=0.1)")), "booktabs, longtable")
    assert not text or "Drift" in text
    assert "Overfull" not in (tmp_path / "article.log").read_text()  # it fits into the page

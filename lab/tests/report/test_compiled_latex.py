"""Tables and documents compiled by a real LaTeX, and the text of the pages."""

# ruff: noqa: RUF001 # it is about characters that look like others

from pathlib import Path
from typing import Any

import pytest

import decoupled as dc
import decoupled_lab as lab
from decoupled.base import tex_text
from decoupled.base.latex import Cell, Column, Row, Table, escape
from decoupled_lab.report import latex
from decoupled_lab.report.claims import Claim, Measure
from decoupled_lab.report.paper_tables import claims_table
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
    text = compiled(
        tmp_path / "a.tex", latex.document(Table(columns, rows, "5 % of ±_1", "tab:a").to_latex())
    )
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
    text = compiled(tmp_path / "a.tex", latex.document(f"{everything}\n{body}"))
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
    text = compiled(tmp_path / "a.tex", latex.document(claims_table([claim] * 60).to_latex()))
    if text:
        assert text.count("\f") > 1
        assert text.count("Verdict ") == text.count("\f")  # a head on every page
        assert text.count("1.00 (0.500 to 1.50)") == 60


@pytest.mark.usefixtures("pdflatex")
def test_a_comparison_compiles_with_its_figure(tmp_path: Path) -> None:
    worlds: dict[str, Any] = {
        "easy_1, Δ = 0.5": dc.environments.Bernoulli([0.2, 0.7]),
        "punish 100 %": dc.environments.PunishLast(arms=2),
    }
    found = {name: dc.simulate([dc.Ladder(), dc.Exp3()], world, 400, 20) for name, world in worlds.items()}
    lab.compare(found, tmp_path, title="Mine & yours", latex=True)
    made = latex.compile(tmp_path / "report.tex")
    assert made == tmp_path / "report.pdf"
    assert b"/Type3" not in made.read_bytes()
    # The folder has no files of LaTeX beside the document.
    assert not [*tmp_path.glob("report.aux"), *tmp_path.glob("report.log")]


@pytest.mark.usefixtures("pdflatex")
def test_a_table_needs_only_two_packages(tmp_path: Path) -> None:
    results = dc.simulate([dc.Ladder(), dc.Exp3()], dc.environments.Bernoulli([0.2, 0.7]), 400, 20)
    preamble = "\\documentclass{article}\n\\usepackage{booktabs, siunitx}\n\\begin{document}\n"
    text = compiled(tmp_path / "a.tex", f"{preamble}{results.to_latex()}\n\\end{{document}}\n")
    assert not text or "99th percentile" in text


@pytest.mark.usefixtures("pdflatex")
def test_the_first_error_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.tex"
    path.write_text(latex.document("Fine.\n\\nosuchcommand\n\\another"))
    with pytest.raises(
        dc.ParameterError, match=r"Undefined control sequence.* \(line \d+\); correct the document"
    ):
        latex.compile(path)
    assert [each.name for each in tmp_path.iterdir()] == ["a.tex"]


def test_a_machine_without_latex_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert latex.found() is None
    with pytest.raises(dc.UnsupportedError, match="texlive-science"):
        latex.compile(tmp_path / "a.tex")


def test_a_latex_without_siunitx_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("pdflatex", "kpsewhich"):
        (tmp_path / name).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert latex.found() is None

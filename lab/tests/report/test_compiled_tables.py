"""Tables for LaTeX: of a comparison, of claims and of the benchmark, compiled by a real LaTeX."""

from pathlib import Path

import pytest

import decoupled as dc
import decoupled_lab as lab
from decoupled_lab.benchmark.table import to_latex
from decoupled_lab.report.claims import Claim, Measure
from decoupled_lab.report.page import claims_table
from support.made_entries import made_up
from support.tex import compiled, pdflatex_or_skip


@pytest.mark.pages  # drawing the figure takes longest
def test_a_comparison_writes_its_table(tmp_path: Path) -> None:
    results = dc.simulate([dc.Ladder(), dc.FTPL()], dc.environments.Bernoulli([0.2, 0.7]), 400, 20)
    lab.compare({"easy_1": results}, tmp_path, latex=True)
    assert (tmp_path / "comparison" / "table.tex").read_text().startswith(r"\begin{table}")
    assert not (tmp_path / "claims.tex").exists()


@pytest.fixture(scope="module")
def pdflatex() -> str:
    return pdflatex_or_skip()


@pytest.mark.usefixtures("pdflatex")
def test_long_tables_break_over_pages(tmp_path: Path) -> None:
    parts = (Measure("K = 8", 1.0, 0.5, 1.5, 9),)
    claim = Claim("a", "Section 4", r"It is of order $\sqrt{KT}$.", "", "above 0", parts, "holds")
    text = compiled(tmp_path, claims_table([claim] * 60), "booktabs, longtable")
    if text:
        assert text.count("\f") > 1
        assert text.count("Verdict ") == text.count("\f")  # a head on every page
        assert text.count("claimed: above 0; K = 8") == 60


@pytest.mark.usefixtures("pdflatex")
def test_the_tables_of_a_benchmark_compile(tmp_path: Path) -> None:
    text = compiled(tmp_path, to_latex(made_up("My_Policy(rate=0.1)")), "booktabs, longtable")
    assert not text or "Drift" in text
    assert "Overfull" not in (tmp_path / "article.log").read_text()  # it fits into the page

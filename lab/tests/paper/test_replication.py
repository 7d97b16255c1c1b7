"""The replication report: every claim once, counts that agree, the same tables in both forms, slips that are true."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import decoupled as dc
from decoupled.cli.main import app
from decoupled.plots import Panel, Picture, Series
from decoupled_lab import theory
from decoupled_lab.cli.reproduce import print_replication
from decoupled_lab.paper import EXPERIMENTS, GROUPS
from decoupled_lab.paper.base import Scale
from decoupled_lab.paper.replication import slips, write_replication
from decoupled_lab.paper.replication.claims import Judged, sorted_claims
from decoupled_lab.paper.replication.contents import replication
from decoupled_lab.paper.replication.readings import READINGS
from decoupled_lab.paper.runner import rebuild
from decoupled_lab.report import latex
from decoupled_lab.report.claims import Claim, Measure, judged_above, not_judged
from decoupled_lab.report.document import Document, TextTable
from decoupled_lab.report.document.latex import to_latex
from decoupled_lab.report.document.markdown import to_markdown
from decoupled_lab.report.page import counted
from decoupled_lab.report.section import ReportTable, Section
from support.quick_run import Quick, quick_run

NASTY = r"a_b & 5 % of #1 {x} ~ ^ \ < > | * $"


def claim(name: str, low: float, place: str = "Section 4") -> Claim:
    parts = [Measure(each, low + 0.5, low, low + 1.0, 50) for each in ("K = 2", "K = 4")]
    return judged_above(name, place, f"Statement {name}: {NASTY}.", "ratio", parts, 1.0)


def section(name: str, *claims: Claim) -> Section:
    curve = Series("FTPL", np.array([1.0, 2.0]), np.array([1.0, 2.0]))
    picture = Picture(name, f"Regret in {name}", "By round.", (Panel("", (curve,)),))
    rows = tuple((policy, "1.0", "0.5 to 1.5", "0.9", "2.0") for policy in ("FTPL", "EXP3"))
    table = ReportTable("Final regret", ("policy", "mean", "interval", "median", "99th"), rows)
    title, extent = EXPERIMENTS[name].title, "50 runs of 10 rounds for each policy."
    return Section("", claims, (picture,), (table,), name=name, title=title, extent=extent)


SECTIONS = [
    section("adversarial", claim("one", 2.0)),
    section("grid", claim("two", 0.6), claim("three", -1.0)),
    section("conic", claim("four", 2.0), claim("five", 2.0, "ours")),
    section("movielens", not_judged(claim("six", 2.0), "no data")),
    section("tuned", claim("tuned-scale", 0.6, "ours")),
    section("horizon", claim("seven", 2.0, "Theorem 3.2")),
    section("held-out", claim("eight", 2.0, "ours")),
]
BEYOND = {claim.id for each in SECTIONS if each.name in GROUPS["beyond"] for claim in each.claims}


def record(**scale: Any) -> dict[str, Any]:
    return {
        "scale": Scale(**scale)._asdict(),
        "machine": {"platform": "a machine", "processors": 2, "decoupled-bandits": "0.0"},
        "when": "2026-01-02T03:04:05+00:00",
        "experiments": {each.name: {"seconds": 1.0, "load": 0.0} for each in SECTIONS},
    }


@pytest.fixture(scope="module")
def document() -> Document:
    return replication(record(), SECTIONS)


def tables(document: Document) -> Iterator[TextTable]:
    return (block for block in document.blocks if isinstance(block, TextTable))


def verdicts(document: Document) -> dict[str, str]:
    """The verdicts by number, from the tables of claims."""
    found = [row for table in tables(document) if table.head[-1] == "verdict" for row in table.rows]
    numbers = [row[0] for row in found]
    assert len(set(numbers)) == len(numbers)
    return {row[0]: row[-1] for row in found}


def test_every_claim_about_the_paper_is_in_a_table_once(document: Document) -> None:
    cells = [row[1] for table in tables(document) if table.head[-1] == "verdict" for row in table.rows]
    for each in SECTIONS:
        for one in each.claims:
            assert sum(f"Statement {one.id}:" in cell for cell in cells) == (one.id not in BEYOND)
    assert list(verdicts(document)) == ["C1", "C2", "C3", "C4", "C5", "S1", "S2", "S3"]


def test_what_an_experiment_of_ours_judges_is_ours() -> None:
    judged = sorted_claims(SECTIONS)
    assert [each.id for each in judged.all_papers()] == ["one", "two", "three", "four", "six"]
    assert [each.id for each in judged.all_ours()] == ["five", "tuned-scale", "seven"]
    assert {each.id for each in judged.beyond} == BEYOND


def summed(document: Document, row: str) -> dict[str, int]:
    """A row of the summary."""
    summary = next(table for table in tables(document) if table.head[-1] == "in all")
    cells = dict(zip(summary.head, next(each for each in summary.rows if row in each[0]), strict=True))
    return {kind: int(number) for kind, number in cells.items() if kind and number}


def test_the_counts_agree_with_the_claims(document: Document) -> None:
    judged = sorted_claims(SECTIONS)
    for row, claims in (
        ("claims of the paper", judged.all_papers()),
        ("statements of ours", judged.all_ours()),
    ):
        found = summed(document, row)
        assert found.pop("in all") == len(claims)
        assert found == counted(claims)
    assert summed(document, "claims of the paper") == {
        "hold": 2, "fail": 1, "undecided": 1, "not judged": 1, "in all": 5
    }  # fmt: skip
    words = "We state 5 claims of the paper in a form that can be measured: 2 hold, 1 fails, 1 is undecided, and 1 could not be judged."
    assert words in document.abstract
    assert (
        "Of 4 about regret, 1 holds, 1 fails, 1 is undecided, and 1 could not be judged; of 1 about time, 1 holds."
        in document.abstract
    )
    assert "FTPL 1.0 (0.5 to 1.5)" in document.abstract
    assert "judged 1 claim beyond the paper" in to_markdown(document)


def test_both_forms_have_the_same_tables_and_headings(document: Document) -> None:
    markdown, tex = to_markdown(document), to_latex(document)
    assert len(re.findall(r"^\*\*Table \d+\.\*\*", markdown, re.MULTILINE)) == tex.count(
        r"\begin{longtable}"
    )
    assert len(re.findall(r"^!\[", markdown, re.MULTILINE)) == tex.count(r"\includegraphics") > 0
    assert (
        len(re.findall(r"^#{2,3} ", markdown, re.MULTILINE)) == len(re.findall(r"\\(sub)?section", tex)) + 1
    )
    for table in tables(document):
        lines = [line for line in markdown.splitlines() if line.startswith("| ")]
        for row in table.rows:
            assert any(row[0].replace("*", "") in line.replace("*", "") for line in lines)


def test_what_is_special_in_markdown_or_latex_is_escaped(document: Document) -> None:
    markdown, tex = to_markdown(document), to_latex(document)
    statement = next(line for line in markdown.splitlines() if line.startswith("| C1 |"))
    assert r"a\_b & 5 % of #1 {x} \~ ^ \\ \< \> \| \* \$." in statement
    assert len(re.findall(r"(?<!\\)\|", statement)) == 5  # four cells
    assert r"a\_b \& 5\,\% of \#1 \{x\} \textasciitilde{}" in tex
    assert NASTY not in tex


def test_a_quick_run_and_one_that_lacks_experiments_say_so(document: Document) -> None:
    assert "quick version" not in to_markdown(document)
    assert "Some experiments of the paper were not run: Stochastic regime, easy" in to_markdown(document)
    quick = replication(record(quick=True, runs=40), SECTIONS)
    assert quick.abstract.startswith("**Quick version")
    for text in (to_markdown(quick), to_latex(quick)):
        assert "40 runs or fewer where the paper has 1,000" in text
        assert text.index("40 runs or fewer") < text.index("What was repeated")
    assert "These results have 30 runs" in to_markdown(replication(record(runs=30), SECTIONS))


def test_a_claim_that_was_not_judged_shows_no_measurement(document: Document) -> None:
    markdown = to_markdown(document)
    row = next(line for line in markdown.splitlines() if line.startswith("| C5 |"))
    assert "not measured on the data" in row
    assert "not judged: no data" in row
    assert "movielens/movielens.png" not in markdown
    assert "grid/grid.png" in markdown


def test_every_experiment_that_is_not_beyond_the_paper_has_a_reading() -> None:
    assert set(READINGS) == set(EXPERIMENTS) - set(GROUPS["beyond"])


def test_an_empty_run_is_no_error() -> None:
    assert "could not be judged" in to_markdown(replication(record() | {"experiments": {}}, []))
    assert sorted_claims([]) == Judged({}, {}, [])


@pytest.mark.parametrize("slip", slips.SLIPS, ids=lambda slip: slip.place)
def test_the_code_of_a_slip_shows_what_it_says(slip: slips.Slip) -> None:
    names: dict[str, Any] = {"dc": dc, "theory": theory}
    exec("\n".join(slip.code[:-1]), names)
    assert repr(eval(slip.code[-1], names)) == slip.shows


def test_files_named_by_slips_exist() -> None:
    root = Path(__file__).parents[3]
    named = {name for slip in slips.SLIPS for name in re.findall(r"`(tests/[^`]+)`", slip.known)}
    assert named
    assert all((root / name).exists() for name in named)


def test_without_latex_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(latex, "found", lambda: None)
    (tmp_path / "run.json").write_text(json.dumps(record()))
    (tmp_path / "replication.pdf").write_text("of other results")
    print_replication(SECTIONS, tmp_path)
    said = capsys.readouterr().out
    assert "apt-get install texlive" in said
    assert {path.name for path in tmp_path.iterdir()} == {"run.json", "replication.md", "replication.tex"}


def test_a_folder_without_results_is_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["report", str(tmp_path), "--replication"])
    assert done.exit_code == 1
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Quick:
    return quick_run(tmp_path_factory)


def test_a_real_run_becomes_a_document_in_three_forms(quick: Quick, tmp_path: Path) -> None:
    if latex.found() is None:
        pytest.skip(f"no LaTeX is installed, so the replication report was NOT compiled: {latex.HINT}")
    folder = tmp_path / "results"
    shutil.copytree(quick.folder, folder)
    done = CliRunner().invoke(app, ["report", str(folder), "--replication"])
    assert done.exit_code == 0, done.output
    assert (folder / "replication.pdf").read_bytes().startswith(b"%PDF")
    markdown = (folder / "replication.md").read_text()
    for path in re.findall(r"^!\[.*\]\((.*)\)$", markdown, re.MULTILINE):
        assert (folder / path).exists()
    first = {path.name: path.read_bytes() for path in folder.glob("replication.*")}
    write_replication(folder, json.loads((folder / "run.json").read_text()), rebuild(folder))
    assert first == {path.name: path.read_bytes() for path in folder.glob("replication.*")}

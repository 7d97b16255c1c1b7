"""The replication report: every claim once, counts that agree, slips that are true."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import decoupled as dc
from decoupled.cli.main import app
from decoupled.plots import Panel, Picture, Series
from decoupled_lab import theory
from decoupled_lab.cli.reproduce import print_replication
from decoupled_lab.paper import EXPERIMENTS, GROUPS
from decoupled_lab.paper import replication as made
from decoupled_lab.paper.base import Scale
from decoupled_lab.paper.replication import claims_of, replication, sorted_claims, template
from decoupled_lab.paper.runner import rebuild
from decoupled_lab.report.claims import Claim, Measure, judged, not_judged
from decoupled_lab.report.page import ReportTable, Section, counted
from support.quick_run import Quick
from support.tex import latex_has

NASTY = r"a_b & 5 % of #1 {x} ~ ^ \ < > | * $"


def claim(name: str, low: float, place: str = "Section 4") -> Claim:
    parts = [Measure(each, low + 0.5, low, low + 1.0, 50) for each in ("K = 2", "K = 4")]
    return judged(name, place, f"Statement {name}: {NASTY}.", "ratio", parts, 1.0)


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
def document() -> str:
    return replication(record(), SECTIONS)


def rows(document: str, start: str) -> list[list[str]]:
    """The cells of the rows of tables that begin so."""
    lines = [line for line in document.splitlines() if re.match(rf"\| {start}", line)]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def test_every_claim_about_the_paper_is_in_a_table_once(document: str) -> None:
    found = rows(document, r"[CS]\d+ \| Statement")
    for each in SECTIONS:
        for one in each.claims:
            assert sum(f"Statement {one.id}:" in row[1] for row in found) == (one.id not in BEYOND)
    assert [row[0] for row in found] == ["C1", "C2", "C3", "C4", "C5", "S1", "S2", "S3"]


def test_what_an_experiment_of_ours_judges_is_ours() -> None:
    judged = sorted_claims(SECTIONS)
    assert [each.id for each in claims_of(judged.papers.values())] == ["one", "two", "three", "four", "six"]
    assert [each.id for each in claims_of(judged.ours.values())] == ["five", "tuned-scale", "seven"]
    assert {each.id for each in judged.beyond} == BEYOND


def summed(document: str, row: str) -> dict[str, int]:
    """A row of the summary."""
    (head,) = rows(document, " *\\| hold")
    (cells,) = rows(document, rf"\*\*All {row}")
    return {kind: int(number) for kind, number in zip(head[1:], cells[1:], strict=True) if number}


def test_the_counts_agree_with_the_claims(document: str) -> None:
    judged = sorted_claims(SECTIONS)
    for row, claims in (
        ("claims of the paper", claims_of(judged.papers.values())),
        ("statements of ours", claims_of(judged.ours.values())),
    ):
        found = summed(document, row)
        assert found.pop("in all") == len(claims)
        assert found == counted(claims)
    assert summed(document, "claims of the paper") == {
        "hold": 2, "fail": 1, "undecided": 1, "not judged": 1, "in all": 5
    }  # fmt: skip
    for words in (
        "We state 5 claims of the paper in a form that can be measured: 2 hold, 1 fails, 1 is undecided, and 1 could not be judged.",
        "Of 4 about regret, 1 holds, 1 fails, 1 is undecided, and 1 could not be judged; of 1 about time, 1 holds.",
        "FTPL 1.0 (0.5 to 1.5)",
        "judged 1 claim beyond the paper",
    ):
        assert words in document


def test_tables_and_figures_are_numbered_and_nothing_is_left_to_fill_in(document: str) -> None:
    for kind in ("Table", "Figure"):
        numbers = [int(each) for each in re.findall(rf"^\*\*{kind} (\d+)\.\*\*", document, re.MULTILINE)]
        assert numbers == list(range(1, len(numbers) + 1)) != []
    assert not re.search(r"<<|>>|<!--", document)


def test_what_is_special_in_markdown_is_escaped(document: str) -> None:
    statement = next(line for line in document.splitlines() if line.startswith("| C1 |"))
    assert r"a\_b & 5 % of #1 {x} \~ ^ \\ \< \> \| \* \$." in statement
    assert len(re.findall(r"(?<!\\)\|", statement)) == 5  # four cells


def test_it_names_the_authors_the_date_the_commit_and_the_machine(document: str) -> None:
    assert "by Chaiwon Kim, Jongyeong Lee and Min-hwan Oh (ICML 2026)" in document
    version = "on 2 January 2026 with version 0.0 of the Python package `decoupled-bandits`"
    assert f"{version} (commit not recorded)." in document
    known = record() | {"commit": "abc1234"}
    known["machine"] |= {"cpu": "A Chip"}
    assert "(commit `abc1234`), on A Chip." in replication(known, SECTIONS)


def test_every_part_of_what_does_not_simply_hold_is_in_a_table_of_its_own(document: str) -> None:
    parts = [[number, f"K = {arms}"] for number in ("C2", "C3", "S2") for arms in (2, 4)]
    assert [row[:2] for row in rows(document, r"[CS]\d+ \| K")] == parts


def test_a_quick_run_and_one_that_lacks_experiments_say_so(document: str) -> None:
    assert "quick version" not in document
    assert "Some experiments of the paper were not run: Stochastic regime, easy" in document
    quick = replication(record(quick=True, runs=40), SECTIONS)
    assert "## Abstract\n\n**Quick version" in quick
    assert "40 runs or fewer where the paper has 1,000" in quick.partition("What was repeated")[0]
    assert "These results have 30 runs" in replication(record(runs=30), SECTIONS)


def test_a_claim_that_was_not_judged_shows_no_measurement(document: str) -> None:
    (row,) = rows(document, r"C5 \|")
    assert "not measured on the data" in row[2]
    assert "not judged: no data" in row[3]
    assert "movielens/movielens.png" not in document
    assert "grid/grid.png" in document


def test_every_experiment_that_is_not_beyond_the_paper_has_a_reading() -> None:
    assert set(template()[1]) == set(EXPERIMENTS) - set(GROUPS["beyond"]) | {"adversaries"}


def test_an_empty_run_is_no_error() -> None:
    assert "could not be judged" in replication(record() | {"experiments": {}}, [])
    assert sorted_claims([]) == made.Judged({}, {}, [])


SLIPS = re.findall(r"```python\n(.*?)\n# (.*?)\n```", template()[0], re.DOTALL)


@pytest.mark.parametrize(("code", "shows"), SLIPS)
def test_the_code_of_a_slip_shows_what_it_says(code: str, shows: str) -> None:
    *start, last = code.splitlines()
    names: dict[str, Any] = {"dc": dc, "theory": theory}
    exec("\n".join(start), names)
    assert repr(eval(last, names)) == shows


def test_files_named_by_slips_exist() -> None:
    root = Path(__file__).parents[3]
    named = re.findall(r"`(\w+/tests/[^`]+)`", template()[0])
    assert len(SLIPS) == template()[0].count("**Printed:**") > len(named) > 0
    assert all((root / name).exists() for name in named)


@pytest.mark.parametrize("tools", [(), ("pandoc",), ("pandoc", "pdflatex")])
def test_pandoc_makes_the_other_forms_and_without_it_there_is_markdown_alone(
    tools: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder, programs = tmp_path / "results", tmp_path / "programs"
    for each in (folder, programs):
        each.mkdir()
    for tool in tools:
        script = '#!/bin/sh\nfor last; do :; done\n{ echo "$@"; /bin/cat; } > "${last#--output=}"\n'
        (programs / tool).write_text(script)
        (programs / tool).chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    (folder / "run.json").write_text(json.dumps(record()))
    (folder / "replication.pdf").write_text("of other results")
    for name in (each.name for each in SECTIONS if each.pictures):
        (folder / name).mkdir()
        Image.new("RGB", (720, 500)).save(folder / name / f"{name}.png")
    print_replication(SECTIONS, folder)
    assert ("There is no PDF: install pandoc" in capsys.readouterr().out) == (len(tools) < 2)
    forms = {f"replication.{each}" for each in ("md", "tex", "pdf")[: 1 + len(tools)]}
    written = {path.name: path.read_text() for path in folder.iterdir() if path.is_file()}
    assert written.keys() == {"run.json", *forms}
    assert "of other results" not in "".join(written.values())
    for form in written.keys() & {"replication.tex", "replication.pdf"}:
        assert "--metadata=date:2 January 2026" in written[form]
        assert "\n: **Table 1.** The experiments" in written[form]
        figure = r"^!\[\*\*Figure 1\.\*\* .*\]\(adversarial/adversarial\.pdf\)\{width=56%\}$"
        assert re.search(figure, written[form], re.MULTILINE)


def test_a_fault_of_pandoc_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pandoc").write_text("#!/bin/sh\necho no such font >&2\nexit 43\n")
    (tmp_path / "pandoc").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(dc.UnsupportedError, match=r"replication\.tex: no such font"):
        made.write_replication(tmp_path, record(), [])


def test_a_run_becomes_a_document(quick: Quick, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not latex_has("lmodern.sty"):  # pandoc's LaTeX needs it, and Debian's pandoc does not bring it along
        monkeypatch.setattr("shutil.which", {}.get)
    folder = tmp_path / "results"
    shutil.copytree(quick.folder, folder)
    done = CliRunner().invoke(app, ["report", str(folder), "--replication"])
    assert done.exit_code == 0, done.output
    first = (folder / "replication.md").read_text()
    for path in re.findall(r"^!\[.*\]\((.*)\)$", first, re.MULTILINE):
        assert (folder / path).exists()
    made.write_replication(folder, json.loads((folder / "run.json").read_text()), rebuild(folder))
    assert first == (folder / "replication.md").read_text()

"""Every code block of the documentation runs, and prints the output that the page shows."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import decoupled as dc
from decoupled.simulation.toml import read_specification
from decoupled_serve.mirror.config_file import read_config
from support.pages import LANGUAGES, PAGES, ROOT, alike, blocks, draws, shows

MARK = "\x1e"  # printed between blocks
WITH_PYTHON = [page for page in PAGES if blocks(page, "python")]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_is_seen_by_a_test(page: Path) -> None:
    text = page.read_text()
    fences = re.findall(r"^( *)```(.*)\n(.*)", text, re.MULTILINE)
    opening = [fence for fence in fences if fence[1]]
    for indent, language, first in opening:
        # No test runs an indented block or one that includes a file, so the file must have a test of its own.
        included = re.fullmatch(r' *--8<-- "(?:examples/[\w/]+\.py|docs/gallery/\w+\.py:\d+:)"', first)
        assert not indent or included, first
        assert language in LANGUAGES or included, f"{language}: a block that no test runs"
    assert len(opening) * 2 == len(fences), "a block without a language or without an end"


@pytest.mark.parametrize("page", WITH_PYTHON, ids=name_of)
def test_python_blocks_run_and_print_what_the_page_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # One script per page: its blocks share a namespace, as for a reader.
    found = blocks(page, "python")
    script = tmp_path / "page.py"
    script.write_text(f"\nprint({MARK!r})\n".join(block.code for block in found))
    if any(re.search(r"^class ", block.code, re.MULTILINE) for block in found):
        # A class is registered by name, which would disturb other tests, so it gets its own process.
        command = [sys.executable, "-W", "error", str(script)]
        paths = os.pathsep.join((str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")))  # for twins
        env = {**os.environ, "PYTHONPATH": paths}
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=env)
        assert done.returncode == 0, done.stderr
        printed = done.stdout
    else:
        monkeypatch.chdir(tmp_path)
        runpy.run_path(str(script), run_name="__main__")
        printed = capsys.readouterr().out
    so_far = ""
    for block, output in zip(found, printed.split(MARK), strict=True):
        so_far += block.code
        assert block.output is None or shows(block.output, output, so_far), output


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("chance 0.500000", "chance 5.00e-01"),
        ("chance 0.50", "chance 0.5"),
        ("chance 0.000001", "chance 0.000003"),
        ("chance 5.00e-03", "chance 5.00e-04"),
        ("12 of 20", "12 of 20.0"),
        ("mean 100", "mean 130"),
        ("mean 100", "median 100"),
        ("mean 100", "mean 100 110"),
    ],
)
def test_another_number_or_another_form_of_it_is_a_difference(shown: str, printed: str) -> None:
    assert not alike(shown, printed)
    assert alike(shown, shown, drawn=False)


def test_only_numbers_that_follow_draws_may_differ_by_more_than_their_last_digit() -> None:
    assert alike("mean 1.50, p = 2.0e-06", "mean  1.51, p = 2.1e-06", drawn=False)
    assert alike("mean 1.50, -100", "mean 1.60, -110")
    assert not alike("mean 1.50, -100", "mean 1.60, -110", drawn=False)
    assert draws("results = dc.simulate(policies, world, 100, 10)")
    assert not draws("print(lab.theory.weights([0.0, 1.0], eta=1.0))")


MIRRORS = ROOT / "docs" / "mirror.md"


def test_toml_blocks_are_specifications(tmp_path: Path) -> None:
    found = [block.code for page in PAGES if page != MIRRORS for block in blocks(page, "toml")]
    found = [code for code in found if "[serve]" not in code]
    assert len(found) == 1
    for code in found:
        (tmp_path / "spec.toml").write_text(code)
        assert read_specification(tmp_path / "spec.toml")


def test_toml_blocks_of_the_mirror_are_configurations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_KEY", "a")
    monkeypatch.setenv("NEXT_KEY", "b")
    monkeypatch.setenv("HOOK_KEY", "c")
    whole, *parts = [block.code for block in blocks(MIRRORS, "toml")]
    arms = whole[whole.index("[[arm]]") :]
    assert len(parts) == 9
    for code in (whole, *(code if "[[arm]]" in code else code + arms for code in parts)):
        (tmp_path / "mirror.toml").write_text(code)
        assert len(read_config(tmp_path / "mirror.toml").arms) == 2


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_table_of_the_readme_is_what_make_run_prints() -> None:
    # The same seed gives the same numbers on one kind of machine. On another, a digit of a logarithm may
    # differ and change runs, so the means must agree within four standard errors.
    text = (ROOT / "docs" / "reproduce.md").read_text()
    rows = re.findall(
        r"^\| (\S[^|]*?) \| \*{0,2}([\d.]+)\*{0,2} \| ([\d.]+) to ([\d.]+) \|", text, re.MULTILINE
    )
    policies = {
        "FTPL": dc.FTPL(),
        "Tsallis-INF": dc.TsallisINF(),
        "EXP3": dc.Exp3(),
        "Follow the leader": dc.FollowTheLeader(),
    }
    assert [name for name, *_ in rows] == list(policies)
    environment = dc.environments.Alternating(arms=8, gap=0.125)
    summary = dc.simulate(list(policies.values()), environment, 10_000, 1_000, seed=0).summary()
    for name, mean, low, high in rows:
        line = summary.loc[policies[name].label]
        shown = np.array([float(mean), float(low), float(high)])
        assert np.abs(shown - line[["mean", "low", "high"]].to_numpy()).max() < 4 * line["standard_error"]


MARKER = re.compile(r"<!-- m: [^>]*-->")  # of docs/tools/measurements.py


def test_the_readme_is_a_screen_with_doors() -> None:
    text = (ROOT / "README.md").read_text()
    assert max(map(len, text.splitlines())) <= 140
    assert len(re.findall(r"\]\(", text)) <= 25
    assert len(re.findall(r"\d[\d.,]*", MARKER.sub("", text))) <= 25
    assert len(re.findall(r"!\[|<img ", text)) == 2, "an animation and a picture"


def paragraphs() -> list[str]:
    return [
        part
        for page in PAGES
        for part in MARKER.sub("", page.read_text()).split("\n\n")
        if "CHANGELOG" not in page.name
    ]


def test_the_cost_of_a_decision_is_given_for_both_policies() -> None:
    parts = [part for part in paragraphs() if "1 to 2 microseconds" in part]
    assert parts
    for part in parts:
        assert re.search(r"`Ladder\(\)`,? (they cost )?2 to 3\b|2 to 3 with `Ladder\(\)`", part), part


def test_theorems_have_one_numbering() -> None:
    # The paper's numbers have a dot, ours are letters: "theorem 1" would be a third numbering.
    sources = [*ROOT.glob("src/**/*.py"), *(page for page in PAGES if page.name != "CHANGELOG.md")]
    numbered = r"\b[Tt]heorems? \d+(?![.\d])|\b[Tt]heorems? \d\.(?![123])|\b[Cc]orollary \d(?!\.3)"
    assert [path for path in sources if re.search(numbered, path.read_text())] == []


# Formulas in plain text: roots, hats, powers, indices and Greek letters outside code and typeset formulas.
PLAIN = re.compile(
    r"sqrt\(|√|[⁻²³Σηακℓ]|hat_|\^|\b(?:eta|alpha|kappa|zeta|theta) (?:=|in|<)|\b[a-z]_[ijt]\b|gap_min"
)
NOT_PROSE = re.compile(
    r"^```.*?^```$|^::: [^\n]*\n(?: +[^\n]*\n)*|\$\$.*?\$\$|\$[^$\n]+\$|`[^`]*`|\]\([^)]*\)|<[^>]*>",
    re.MULTILINE | re.DOTALL,
)


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "CHANGELOG.md"], ids=name_of)
def test_formulas_are_written_for_typesetting(page: Path) -> None:
    if page.name == "CONTRIBUTING.md":
        return  # its docstring is code
    assert PLAIN.findall(NOT_PROSE.sub("", page.read_text())) == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_forge_typesets_the_formulas_too(page: Path) -> None:
    text = re.sub(r"^```.*?^```$|`[^`]*`", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    formulas = re.findall(r"(?<!\$)\$(?!\$)([^$\n]+)\$(?!\$)", text)
    for formula in formulas:
        # Markdown takes these for its own: spaces at the ends, a bar in a table, a tag.
        assert formula == formula.strip(), formula
        assert not re.search(r"<[a-z/]", formula), formula
    for line in text.splitlines():
        if line.startswith("|"):
            assert not [each for each in re.findall(r"\$([^$]+)\$", line) if "|" in each], line

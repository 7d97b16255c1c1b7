"""Documentation is tested: every Python block runs, every command named exists."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import decoupled as dc

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: Path, *languages: str) -> list[str]:
    return [code for language, code in BLOCK.findall(page.read_text()) if language in languages]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_says_its_language(page: Path) -> None:
    # A block without a language would be run by nobody.
    unknown = [
        code
        for language, code in BLOCK.findall(page.read_text())
        if language not in ("python", "sh", "toml")
    ]
    assert not unknown


@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: page.name
)
def test_python_blocks_run(page: Path, tmp_path: Path) -> None:
    # One process per page: its blocks share a namespace, as a reader would have it.
    script = tmp_path / "page.py"
    script.write_text("\n".join(blocks(page, "python")))
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def shell_lines() -> list[str]:
    return [
        line.split("#")[0].strip()
        for page in PAGES
        for code in blocks(page, "sh")
        for line in code.splitlines()
        if line.strip()
    ]


@pytest.mark.parametrize("line", sorted({line for line in shell_lines() if line.startswith("make ")}))
def test_make_targets_exist(line: str) -> None:
    target = line.split()[1]
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_table_of_the_readme_is_what_make_run_prints() -> None:
    # The same seed gives the same numbers on one kind of machine; elsewhere a digit of a logarithm may
    # differ and runs with it, so the means are held to four standard errors.
    text = (ROOT / "README.md").read_text()
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
        told = np.array([float(mean), float(low), float(high)])
        assert np.abs(told - line[["mean", "low", "high"]].to_numpy()).max() < 4 * line["standard_error"]

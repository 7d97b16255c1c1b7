"""Every code block of the documentation runs, and prints the output that the page shows."""

import os
import re
import runpy
from pathlib import Path

import pytest

from decoupled.simulation.toml import read_specification
from decoupled_serve.mirror.config_file import read_config
from support.pages import LANGUAGES, PAGES, ROOT, alike, blocks, draws, shows
from support.plain_python import ran

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
        included = re.fullmatch(
            r' *--8<-- "(?:examples/[\w/]+\.(?:py|toml)|docs/gallery/\w+\.py:\d+:)"', first
        )
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
        paths = os.pathsep.join(
            (str(ROOT / "tests"), os.environ.get("PYTHONPATH", ""))
        )  # for twins
        printed = ran("-W", "error", script, cwd=tmp_path, PYTHONPATH=paths)
    else:
        monkeypatch.chdir(tmp_path)
        runpy.run_path(str(script), run_name="__main__")
        printed = capsys.readouterr().out
    so_far = ""
    for block, output in zip(found, printed.split(MARK), strict=True):
        so_far += block.code
        assert block.output is None or shows(block.output, output, so_far), output


def test_only_numbers_that_follow_draws_may_differ_by_more_than_their_last_digit() -> None:
    assert alike("mean 1.50, p = 2.0e-06", "mean  1.51, p = 2.1e-06", drawn=False)
    assert alike("mean 1.50, -100", "mean 1.60, -110")
    assert not alike("mean 1.50, -100", "mean 1.60, -110", drawn=False)
    assert not alike("chance 0.50", "chance 0.5"), "another form of a number"
    assert not alike("mean 100", "mean 130")
    assert not alike("mean 100", "median 100")
    assert draws("results = dc.simulate(policies, world, 100, 10)")
    assert not draws("print(lab.theory.weights([0.0, 1.0], eta=1.0))")


MIRRORS = ROOT / "docs" / "mirror.md"


def test_toml_blocks_and_links_between_pages_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_KEY", "a")
    monkeypatch.setenv("NEXT_KEY", "b")
    monkeypatch.setenv("HOOK_KEY", "c")
    whole, *parts = [block.code for block in blocks(MIRRORS, "toml")]
    arms = whole[whole.index("[[arm]]") :]
    assert len(parts) == 11
    for code in (whole, *(code if "[[arm]]" in code else code + arms for code in parts)):
        (tmp_path / "mirror.toml").write_text(code)
        assert len(read_config(tmp_path / "mirror.toml").arms) == 2
    found = [block.code for page in PAGES if page != MIRRORS for block in blocks(page, "toml")]
    found = [code for code in found if "[serve]" not in code and "--8<--" not in code]
    assert len(found) == 1
    for code in found:
        (tmp_path / "spec.toml").write_text(code)
        assert read_specification(tmp_path / "spec.toml")
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"

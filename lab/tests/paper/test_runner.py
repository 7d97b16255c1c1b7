"""`decoupled reproduce` from the command line, and its report in a real browser."""

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from decoupled.cli.main import app
from decoupled.errors import StorageError
from decoupled.simulation import Results
from decoupled_lab.paper import EXPERIMENTS
from decoupled_lab.paper.base import ORDER_FILE, PaperExperiment, Scale
from decoupled_lab.paper.runner import begin, load, section_of
from decoupled_lab.report.page import Section
from support.browser import chromium
from support.quick_run import RUNS, Quick


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "decoupled", *arguments]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*arguments), capture_output=True, text=True)


# The same within this process, which avoids loading the package again.
run_here = partial(CliRunner().invoke, app)


def test_every_section_says_how_much_was_run_for_it(quick: Quick) -> None:
    page = (quick.folder / "report.html").read_text()
    lead = page[page.index("<h1>") : page.index("<figure")]  # its caption counts its own runs
    assert not re.search(r"\d runs", lead), "sections differ, so no number of runs applies to all"
    names = [name for name, each in EXPERIMENTS.items() if each.in_quick]
    extents = {name: extent_of(page, name) for name in names}
    for name in names:
        if name in ("grid", "horizon"):  # two thirds of all files
            continue
        results = {path: Results.load(path) for path in (quick.folder / name).rglob("results.nc")}
        kept = {(each.data.sizes["run"], each.horizon) for each in results.values()}
        found = re.findall(r"([\d,]+) runs of ([\d,]+) rounds", extents[name])
        assert {(number(runs), number(rounds)) for runs, rounds in found} == kept
    assert extents["adversarial"] == f"{RUNS} runs of 10,000 rounds for each policy."
    assert f"{RUNS} runs of 100,000 rounds" in extents["horizon"]
    assert re.match(r"3 repetitions, each of 2,000 compiled", extents["runtime"])
    assert re.match(r"8 sampled rounds by the conic solver|Nothing was run", extents["conic"])


def extent_of(page: str, name: str) -> str:
    """The line under a section's heading that gives its runs."""
    section = page[page.index(f'<h2 id="{name}">') :]
    found = re.search(r'<p class="extent[^"]*">(.*?)</p>', section[: section.index("</section>")])
    assert found, f"{name} does not say how much was run for it"
    return found[1]


def number(text: str) -> int:
    return int(text.replace(",", ""))


def test_every_picture_is_there_in_every_format(quick: Quick) -> None:
    page = (quick.folder / "report.html").read_text()
    linked = re.findall(r'href="([a-z-]+/[a-z-]+\.(?:png|svg|pdf|csv))"', page)
    assert len(linked) >= 4 * 10
    for name in linked:
        assert (quick.folder / name).stat().st_size > 100, name


def test_the_page_is_one_file_of_moderate_size_that_names_no_other_host(quick: Quick) -> None:
    page = (quick.folder / "report.html").read_text()
    assert len(page.encode()) < 6_000_000
    assert not re.search(r'<(script|link|img)[^>]+(src|href)="(?!data:)', page)


def keep_only(folder: Path, *names: str) -> None:
    """Keep only some experiments of a folder, which are faster to draw."""
    record = json.loads((folder / "run.json").read_text())
    record["experiments"] = {name: record["experiments"][name] for name in names}
    (folder / "run.json").write_text(json.dumps(record))


def test_report_rebuilds_the_same_page_without_running(quick: Quick, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(quick.folder, folder)
    keep_only(folder, "stochastic-easy")
    assert run_here(["report", str(folder), "--latex"]).exit_code == 0
    assert "Policy & {Mean regret}" in (folder / "stochastic-easy" / "table.tex").read_text()
    assert r"\textbackslash" not in (folder / "claims.tex").read_text()  # formulas are kept
    page, claims = (folder / "report.html").read_bytes(), (folder / "claims.json").read_bytes()
    results = {path: path.stat().st_mtime_ns for path in folder.rglob("results.nc")}
    for name in ("report.html", "claims.json", "stochastic-easy/stochastic-easy.png"):
        (folder / name).unlink()
    done = run("report", str(folder))
    assert done.returncode == 0, done.stderr
    assert (folder / "report.html").read_bytes() == page
    assert (folder / "claims.json").read_bytes() == claims
    assert (folder / "stochastic-easy" / "stochastic-easy.png").exists()
    assert results == {path: path.stat().st_mtime_ns for path in folder.rglob("results.nc")}
    # A report describes its own contents.
    assert "Every figure of the paper" in (quick.folder / "report.html").read_text()
    assert b"Every figure of the paper" not in page


def test_verdicts_follow_the_numbers(quick: Quick, tmp_path: Path) -> None:
    # Make the saved regret of FTPL worse: its claim must change, and no other.
    import xarray as xr

    folder = tmp_path / "altered"
    shutil.copytree(quick.folder, folder)
    keep_only(folder, "adversarial", "stochastic-easy")
    before = claims_of(quick.folder, "adversarial", "stochastic-easy")
    path = folder / "adversarial" / "alternating" / "results.nc"
    data = xr.load_dataset(path, engine="h5netcdf")
    data["final_regret"].loc[{"policy": "FTPL"}] += 1e4
    data.to_netcdf(path, engine="h5netcdf")
    assert run_here(["report", str(folder)]).exit_code == 0
    after = json.loads((folder / "claims.json").read_text())
    assert before[0]["id"] == after[0]["id"] == "adversarial-lowest"
    assert before[0]["verdict"] != "fails"
    assert after[0]["verdict"] == "fails"
    assert before[1:] == after[1:]


def claims_of(folder: Path, *names: str) -> list[dict[str, Any]]:
    """The claims of these experiments, from those of a whole run."""
    own = {claim.id for name in names for claim in load(name).section(folder / name).claims}
    return [
        claim for claim in json.loads((folder / "claims.json").read_text()) if claim["id"] in own
    ]


def results_of(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("results.nc"))
    }


def test_a_killed_run_resumes_to_the_same_bits(quick: Quick, tmp_path: Path) -> None:
    # Experiments are independent of each other, so the run of all of them has the expected results of these two.
    names = ("stochastic-easy", "baseline")
    options = (*names, "--quick", "--runs", RUNS, "--out", str(tmp_path))
    process = subprocess.Popen(command("reproduce", *options), stdout=subprocess.DEVNULL)
    while not list((tmp_path / "baseline").rglob("*.npz")) and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, "it was finished before it could be killed"
    assert (tmp_path / "run.json").exists()  # the first experiment is done, the second is not
    assert len(results_of(tmp_path)) < 6
    again = run_here(["reproduce", *options, "--resume"])
    assert again.exit_code == 0, again.output
    assert len(results_of(tmp_path)) == 6
    for name in names:
        assert results_of(tmp_path / name) == results_of(quick.folder / name)
    assert json.loads((tmp_path / "claims.json").read_text()) == claims_of(quick.folder, *names)
    assert not list(tmp_path.rglob("blocks"))


def test_resuming_with_other_options_is_refused(quick: Quick) -> None:
    before = results_of(quick.folder)
    options = ["--quick", "--runs", "13", "--out", str(quick.folder), "--resume"]
    done = run_here(["reproduce", "adversarial", *options])
    assert done.exit_code == 1
    assert "holds a run with" in done.stderr
    assert results_of(quick.folder) == before


def test_results_of_another_machine_or_version_are_not_mixed_in(tmp_path: Path) -> None:
    ran = {"grid": {"seconds": 1.0}}
    record = begin(tmp_path, Scale(), resume=False) | {"experiments": ran}
    (tmp_path / "run.json").write_text(json.dumps(record))
    assert begin(tmp_path, Scale(), resume=True)["experiments"] == ran
    record["machine"]["numpy"] = "1.0"
    (tmp_path / "run.json").write_text(json.dumps(record))
    assert begin(tmp_path, Scale(), resume=False)["experiments"] == {}
    with pytest.raises(StorageError, match=r"'numpy': '1\.0'.* on the same machine"):
        begin(tmp_path, Scale(), resume=True)


RUN = {
    "scale": Scale()._asdict(),
    "machine": {"processors": 2},
    "when": "now",
    "experiments": {"adversarial": {"seconds": 1.0, "load": 0.0}},
}


WRONG: list[dict[str, Any]] = [
    RUN | {name: value}
    for name in ("scale", "machine", "experiments")
    for value in (None, 7, {"x": 1})
]
WRONG += [RUN | {"experiments": {"adversarial": {"seconds": "x"}}}]


@pytest.mark.parametrize("wrong", ["[]", "7", '{"scale": {}}', "\0", "{", *map(json.dumps, WRONG)])
def test_a_report_of_a_run_that_was_changed_names_the_file(tmp_path: Path, wrong: str) -> None:
    (tmp_path / "run.json").write_text(wrong)
    ended = run_here(["report", str(tmp_path)])
    assert ended.exit_code == 1
    assert isinstance(ended.exception, SystemExit)
    assert re.search(
        r"error: .*(run.json: is not readable|: cannot be drawn|No such file)", ended.output
    )


@pytest.mark.parametrize("wrong", ["", "[]", "{}", '{"plan": 7}', '{"plan": {"runs": "x"}}'])
def test_a_report_of_a_plan_that_was_changed_names_its_folder(tmp_path: Path, wrong: str) -> None:
    (tmp_path / "run.json").write_text(json.dumps(RUN))
    place = tmp_path / "adversarial" / "one"
    place.mkdir(parents=True)
    (place.parent / ORDER_FILE).write_text('["one"]')
    (place / "plan.json").write_text(wrong)
    ended = run_here(["report", str(tmp_path)])
    assert ended.exit_code == 1
    assert isinstance(ended.exception, SystemExit)
    assert "cannot be drawn from its files" in ended.output
    assert "run decoupled reproduce adversarial again" in ended.output


def test_a_folder_without_a_run_and_an_unknown_experiment_are_refused(tmp_path: Path) -> None:
    for arguments, code, said in (
        (["report", str(tmp_path)], 1, "give a folder that decoupled reproduce wrote"),
        (["reproduce", "gird"], 2, "did you mean 'grid'"),
    ):
        done = run_here(arguments)
        assert (done.exit_code, said in done.stderr) == (code, True), done.stderr


class Watched:
    """An open page, with its console messages and its requests."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.messages: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self.messages.append(message.text))
        page.on("pageerror", lambda error: self.messages.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))

    def open(self, path: Path) -> None:
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("html[data-drawn]", timeout=60_000)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    yield from chromium()


# Drawing the page is slower than all the tests on it, so they share it and restore what they change.
@pytest.fixture(
    scope="module", params=[(1200, "light"), (390, "dark")], ids=["desk", "phone in the dark"]
)
def shown(request: pytest.FixtureRequest, browser: Any, quick: Quick) -> Iterator[Watched]:
    width, scheme = request.param
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    watched = Watched(page)
    watched.open(quick.folder / "report.html")
    yield watched
    page.close()


def test_the_console_is_empty_and_nothing_is_fetched(shown: Watched) -> None:
    assert shown.messages == []
    assert [url for url in shown.requests if not url.startswith(("file:", "data:", "blob:"))] == []
    assert len([url for url in shown.requests if url.startswith("file:")]) == 1


def test_every_figure_is_drawn_within_the_page(shown: Watched) -> None:
    figures = shown.page.locator("figure")
    assert figures.count() >= 10
    for number in range(figures.count()):
        assert figures.nth(number).locator(".scatterlayer .trace").count() > 0
    width = shown.page.evaluate("document.documentElement.scrollWidth")
    assert width <= shown.page.viewport_size["width"]


def test_a_click_on_the_legend_hides_a_policy_in_every_panel(shown: Watched) -> None:
    data = "document.querySelector('#figure-grid .plot').data"
    visible = f"{data}.map(t => t.visible !== 'legendonly')"
    assert all(shown.page.evaluate(visible))
    shown.page.locator("#figure-grid .legendtoggle").first.click()
    shown.page.wait_for_function(f"{data}.some(t => t.visible === 'legendonly')")
    # The curve and the band of one of three policies, in sixteen panels.
    assert shown.page.evaluate(visible).count(False) == 32
    hidden = f"{data}.filter(t => t.visible === 'legendonly').map(t => t.name)"
    assert set(shown.page.evaluate(hidden)) == {"FTPL"}
    shown.page.locator("#figure-grid .legendtoggle").first.click()
    shown.page.wait_for_function(f"{data}.every(t => t.visible !== 'legendonly')")


def test_buttons_switch_axes_and_bands(shown: Watched) -> None:
    plot = "document.querySelector('#figure-adversarial .plot')"
    assert shown.page.evaluate(f"{plot}.layout.yaxis.type") == "linear"
    shown.page.locator("#figure-adversarial button[data-what=logY]").click()
    assert shown.page.evaluate(f"{plot}.layout.yaxis.type") == "log"
    assert shown.page.evaluate(f"{plot}.data.length") == 6
    shown.page.locator("#figure-adversarial button[data-what=bands]").click()
    assert shown.page.evaluate(f"{plot}.data.length") == 3
    shown.page.locator("#figure-adversarial button[data-what=bands]").click()
    shown.page.locator("#figure-adversarial button[data-what=logY]").click()
    assert shown.page.evaluate(f"{plot}.data.length") == 6
    assert shown.page.evaluate(f"{plot}.layout.yaxis.type") == "linear"


def test_times_measured_on_a_busy_machine_have_a_warning(tmp_path: Path) -> None:
    class Made(PaperExperiment):
        def section(self, folder: Path) -> Section:
            return Section("", (), ())

        def extent(self, folder: Path) -> str:
            return "3 repetitions."

    def warnings(times: bool, **load: float) -> tuple[str, ...]:
        Made.times = times
        record = {
            "experiments": {"runtime": {"seconds": 1.0, **load}},
            "machine": {"processors": 2},
        }
        return section_of("runtime", Made(), tmp_path, record).warnings

    (warned,) = warnings(True, load=9.0)
    assert "load 9.0 on 2 cores" in warned
    assert warnings(False, load=9.0) == warnings(True, load=2.0) == warnings(True) == ()

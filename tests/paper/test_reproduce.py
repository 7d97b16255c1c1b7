"""`decoupled reproduce`, as a user would call it, and its report in a real browser."""

import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from decoupled.paper.reproduce import EXPERIMENTS

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
]


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "decoupled", *arguments]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*arguments), capture_output=True, text=True)


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The quick version of everything: its folder, and what the user saw. One process of the test run makes it."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    folder, seen = shared / "quick", shared / "quick.txt"
    with open(shared / "quick.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not seen.exists():
            done = run("reproduce", "--quick", "--runs", "12", "--out", str(folder))
            assert done.returncode == 0, done.stderr
            seen.write_text(done.stdout)
    return folder, seen.read_text()


@pytest.fixture(scope="module")
def claims(quick: tuple[Path, str]) -> dict[str, dict[str, Any]]:
    return {claim["id"]: claim for claim in json.loads((quick[0] / "claims.json").read_text())}


def test_it_ends_with_the_claims_the_report_and_what_to_do_next(quick: tuple[Path, str]) -> None:
    folder, output = quick
    assert all(f"] {name}:" in output for name, each in EXPERIMENTS.items() if each.in_quick)
    tail = output[output.index("What the paper says") :]
    assert str(folder / "report.html") in tail
    assert "make paper" in tail


def test_claims_have_all_that_readers_need(claims: dict[str, dict[str, Any]]) -> None:
    for claim in claims.values():
        assert {
            "id",
            "place",
            "statement",
            "statistic",
            "threshold",
            "measured",
            "interval",
            "verdict",
        } <= set(claim)
        assert re.match("holds|fails|undecided|not judged", claim["verdict"])
        low, high = claim["interval"]
        assert low <= claim["measured"] <= high


def test_at_least_these_claims_are_judged(claims: dict[str, dict[str, Any]]) -> None:
    wanted = {
        "adversarial-lowest",
        "stochastic-easy-lowest",
        "stochastic-hard-lowest",
        "stochastic-flattens",
        "grid-lowest",
        "movielens-lowest",
        "runtime-slope",
        "runtime-slope-sorting",
        "conic-compiled",
        "conic-textbook",
        "tuned-lowest",
        "baseline-wins",
        "baseline-collapses",
        "horizon-constant",
        "horizon-root",
        "less-regret-alternating",
        "less-regret-grid",
        "less-regret-tail",
        "many-arms-learned",
    }
    assert wanted <= set(claims)
    assert len(claims["grid-lowest"]["parts"]) == 32
    assert len(claims["movielens-lowest"]["parts"]) == 8


def test_every_picture_is_there_in_every_format(quick: tuple[Path, str]) -> None:
    page = (quick[0] / "report.html").read_text()
    linked = re.findall(r'href="([a-z-]+/[a-z-]+\.(?:png|svg|pdf|csv))"', page)
    assert len(linked) >= 4 * 10
    for name in linked:
        assert (quick[0] / name).stat().st_size > 100, name


def test_the_page_is_one_file_of_moderate_size_that_names_no_other_host(quick: tuple[Path, str]) -> None:
    page = (quick[0] / "report.html").read_text()
    assert len(page.encode()) < 6_000_000
    assert not re.search(r'<(script|link|img)[^>]+(src|href)="(?!data:)', page)


def keep_only(folder: Path, *names: str) -> None:
    """Make it a folder of fewer experiments, which is quicker to draw."""
    record = json.loads((folder / "run.json").read_text())
    record["experiments"] = {name: record["experiments"][name] for name in names}
    (folder / "run.json").write_text(json.dumps(record))


def test_report_rebuilds_the_same_page_without_running(quick: tuple[Path, str], tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(quick[0], folder)
    keep_only(folder, "stochastic-easy", "grid", "runtime")
    assert run("report", str(folder)).returncode == 0
    page, claims = (folder / "report.html").read_bytes(), (folder / "claims.json").read_bytes()
    results = {path: path.stat().st_mtime_ns for path in folder.rglob("results.nc")}
    for name in ("report.html", "claims.json", "grid/grid.png"):
        (folder / name).unlink()
    done = run("report", str(folder))
    assert done.returncode == 0, done.stderr
    assert (folder / "report.html").read_bytes() == page
    assert (folder / "claims.json").read_bytes() == claims
    assert (folder / "grid" / "grid.png").exists()
    assert results == {path: path.stat().st_mtime_ns for path in folder.rglob("results.nc")}


def test_verdicts_follow_the_numbers(quick: tuple[Path, str], tmp_path: Path) -> None:
    # Make the saved regret of FTPL worse: the claim must turn with it, and no other.
    import xarray as xr

    folder = tmp_path / "altered"
    shutil.copytree(quick[0], folder)
    keep_only(folder, "adversarial", "stochastic-easy")
    assert run("report", str(folder)).returncode == 0
    before = json.loads((folder / "claims.json").read_text())
    path = folder / "adversarial" / "alternating" / "results.nc"
    data = xr.load_dataset(path, engine="h5netcdf")
    data["final_regret"].loc[{"policy": "FTPL"}] += 1e4
    data.to_netcdf(path, engine="h5netcdf")
    assert run("report", str(folder)).returncode == 0
    after = json.loads((folder / "claims.json").read_text())
    assert before[0]["id"] == after[0]["id"] == "adversarial-lowest"
    assert before[0]["verdict"] != "fails"
    assert after[0]["verdict"] == "fails"
    assert before[1:] == after[1:]


def results_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("results.nc"))}


def test_a_killed_run_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    options = ("stochastic-easy", "tuned", "--quick", "--runs", "40")
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert run("reproduce", *options, "--out", str(whole)).returncode == 0
    process = subprocess.Popen(
        command("reproduce", *options, "--out", str(killed)), stdout=subprocess.DEVNULL
    )
    while not (killed / "run.json").exists() and process.poll() is None:
        time.sleep(0.05)
    time.sleep(0.3)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, "it was finished before it could be killed"
    assert not (killed / "report.html").exists()
    again = run("reproduce", *options, "--out", str(killed), "--resume")
    assert again.returncode == 0, again.stderr
    assert len(results_of(whole)) == 7
    assert results_of(killed) == results_of(whole)
    assert (killed / "claims.json").read_bytes() == (whole / "claims.json").read_bytes()
    assert not list(killed.rglob("blocks"))


def test_resuming_with_other_options_is_refused(quick: tuple[Path, str]) -> None:
    before = results_of(quick[0])
    done = run("reproduce", "adversarial", "--quick", "--runs", "13", "--out", str(quick[0]), "--resume")
    assert done.returncode == 2
    assert "holds a run with" in done.stderr
    assert results_of(quick[0]) == before


def test_an_unknown_experiment_is_named() -> None:
    done = run("reproduce", "gird")
    assert done.returncode == 2
    assert "did you mean 'grid'" in done.stderr


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    done = run("report", str(tmp_path))
    assert done.returncode == 2
    assert "give a folder that decoupled reproduce filled" in done.stderr


# The page in a browser


class Watched:
    """An open page, with all that it complained of and asked for."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))

    def open(self, path: Path) -> None:
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("html[data-drawn]", timeout=60_000)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed, so the report was not looked at in a browser")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture(params=[(1200, "light"), (390, "dark")], ids=["desk", "phone in the dark"])
def shown(request: pytest.FixtureRequest, browser: Any, quick: tuple[Path, str]) -> Iterator[Watched]:
    width, scheme = request.param
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    watched = Watched(page)
    watched.open(quick[0] / "report.html")
    yield watched
    page.close()


def test_nothing_is_complained_of_and_nothing_fetched(shown: Watched) -> None:
    assert shown.complaints == []
    assert [url for url in shown.requests if not url.startswith(("file:", "data:", "blob:"))] == []
    assert len([url for url in shown.requests if url.startswith("file:")]) == 1


def test_every_figure_is_drawn_within_the_page(shown: Watched) -> None:
    figures = shown.page.locator("figure")
    assert figures.count() >= 10
    for number in range(figures.count()):
        assert figures.nth(number).locator(".scatterlayer .trace").count() > 0
    width = shown.page.evaluate("document.documentElement.scrollWidth")
    assert width <= shown.page.viewport_size["width"]


def visible(shown: Watched, figure: str) -> list[bool]:
    script = f"document.querySelector('#figure-{figure} .plot').data.map(t => t.visible !== 'legendonly')"
    found: list[bool] = shown.page.evaluate(script)
    return found


def test_a_click_on_the_legend_hides_a_policy_in_every_panel(shown: Watched) -> None:
    assert all(visible(shown, "grid"))
    shown.page.locator("#figure-grid .legendtoggle").first.click()
    shown.page.wait_for_function(
        "document.querySelector('#figure-grid .plot').data.some(t => t.visible === 'legendonly')"
    )
    # Curve and band of one policy of three, in sixteen panels.
    assert visible(shown, "grid").count(False) == 32
    names = "document.querySelector('#figure-grid .plot').data.filter(t => t.visible === 'legendonly').map(t => t.name)"
    assert set(shown.page.evaluate(names)) == {"FTPL"}


def test_buttons_switch_axes_and_bands(shown: Watched) -> None:
    plot = "document.querySelector('#figure-adversarial .plot')"
    assert shown.page.evaluate(f"{plot}.layout.yaxis.type") == "linear"
    shown.page.locator("#figure-adversarial button[data-what=logY]").click()
    assert shown.page.evaluate(f"{plot}.layout.yaxis.type") == "log"
    assert shown.page.evaluate(f"{plot}.data.length") == 6
    shown.page.locator("#figure-adversarial button[data-what=bands]").click()
    assert shown.page.evaluate(f"{plot}.data.length") == 3


def test_hovering_tells_the_value(shown: Watched) -> None:
    shown.page.locator("#figure-adversarial").scroll_into_view_if_needed()
    box = shown.page.locator("#figure-adversarial .nsewdrag").first.bounding_box()
    point = shown.page.evaluate(
        "(() => { const p = document.querySelector('#figure-adversarial .plot'), t = p.data.at(-1), i = 50,"
        " l = p._fullLayout; return [l.xaxis.d2p(t.x[i]), l.yaxis.d2p(t.y[i]), t.name]; })()"
    )
    shown.page.mouse.move(box["x"] + point[0], box["y"] + point[1])
    hover = shown.page.locator("#figure-adversarial .hovertext")
    hover.first.wait_for(timeout=5_000)
    assert point[2] in hover.first.text_content()


def test_dark_mode_is_dark_and_text_can_be_read(shown: Watched) -> None:
    def luminance(colour: str) -> float:
        channels = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    style = "getComputedStyle(document.querySelector('{}')).{}"
    paper = luminance(shown.page.evaluate(style.format("body", "backgroundColor")))
    dark = shown.page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    assert (paper < 0.1) == dark
    texts = ("p", ".verdict", ".faint", "figcaption", "td")
    for place in texts:
        ink = luminance(shown.page.evaluate(style.format(place, "color")))
        contrast = (max(ink, paper) + 0.05) / (min(ink, paper) + 0.05)
        assert contrast > 4.5, f"{place}: {contrast}"  # the web's accessibility guidelines, level AA
    axis = shown.page.evaluate(
        "getComputedStyle(document.querySelector('#figure-adversarial .xtick text')).fill"
    )
    assert abs(luminance(axis) - paper) > 0.3


def test_it_prints_in_light_colours_without_buttons(browser: Any, quick: tuple[Path, str]) -> None:
    page = browser.new_page(color_scheme="dark")
    watched = Watched(page)
    watched.open(quick[0] / "report.html")
    page.emulate_media(media="print")
    assert not page.locator(".toolbar").first.is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert len(page.pdf()) > 50_000
    page.close()

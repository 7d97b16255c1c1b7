"""Takes the screenshots of `console.md` in a browser, with a service that it starts.

    python docs/figures/console.py                   # into docs/figures; needs Chromium
    python docs/figures/console.py --out elsewhere

Each screenshot stores the words that are visible in it, without those that depend on the numbers. A test opens the same
pages again and compares the words, so that a change to the console requires new screenshots.
"""

import argparse
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image
from PIL.PngImagePlugin import PngInfo

from decoupled.client import Client, Undelivered

ARMS = ["control", "larger-photos", "short-form", "one-page", "guest-first"]
MEANS = [0.6, 0.3, 0.5, 0.7, 0.6]
# Shown instead on a phone, where the text of the large one could not be read.
PHONE = {"width": 390, "height": 1400}
BATCH, PAUSE = 30, 250  # decisions, and the milliseconds between them
WORDS = """() => {
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!node.closest("svg, noscript, option, .skip, [data-varies]") && node.checkVisibility()) found.push(walker.currentNode.textContent);
  }
  return found.join(" ");
}"""


def experiment(page: Any, url: str, seconds: float) -> None:
    """An experiment in use."""
    luck = random.Random(1)
    with Client(url) as client:
        client.create(
            "checkout",
            policy={"name": "Ladder"},
            arms=ARMS,
            deadline_seconds=20.0,
            seed=1,
            guardrails={"floors": {"control": 0.05}},
            budget={"rate": (9_000, 3_600), "cost": 0.002, "total": 20.0},
        )
        page.set_viewport_size({"width": 1280, "height": 2240})
        page.goto(f"{url}/#experiments/checkout")
        page.locator("table.arms tbody tr").first.wait_for()
        batches = max(2, int(1000 * seconds / PAUSE))
        for _ in range(batches):
            decisions = client.decide("checkout", count=BATCH)
            items = [
                Undelivered(
                    each.id, loss=float(luck.random() < MEANS[ARMS.index(str(each.explore))])
                )
                for each in decisions
                if each.explore is not None and luck.random() < 0.95
            ]
            client.feedback_many(items)
            page.wait_for_timeout(PAUSE)
    page.locator("#regret", has_text="however often you look").wait_for()
    page.locator("#share-chart svg").wait_for()
    page.locator("#loss-chart svg").wait_for()


PICTURES: dict[str, Callable[[Any, str, float], None]] = {"console-experiment": experiment}


def take(name: str, browser: Any, url: str, folder: Path, seconds: float = 26.0) -> Path:
    """Take one screenshot, and one for phones, after up to `seconds` of traffic, and return the file of the first."""
    page = browser.new_page(color_scheme="light", device_scale_factor=2)  # as phones have
    file = folder / f"{name}.png"
    try:
        PICTURES[name](page, url, seconds)
        page.evaluate("scrollTo(0, 0)")
        words = page.evaluate(WORDS)
        page.screenshot(path=file, scale="css")
        page.set_viewport_size(PHONE)
        page.wait_for_timeout(PAUSE)  # for the charts, which are drawn anew
        page.screenshot(path=on_phone(file))
    finally:
        page.close()
    about = PngInfo()
    about.add_text("Description", without_numbers(words))
    for each in (file, on_phone(file)):
        with Image.open(each) as picture:
            picture.convert("RGB").quantize(256).save(each, pnginfo=about, optimize=True)
    return file


def on_phone(file: Path) -> Path:
    """The file of the same page at the width of a phone."""
    return file.with_stem(f"{file.stem}-phone")


def without_numbers(words: str) -> str:
    """The words with every number replaced by 0, because each run has other numbers."""
    return " ".join(re.sub(r"(< )?\u2212?\d[\d,.:/]*%?", "0", words).split())


def words_in(file: Path) -> str:
    """The words stored in a screenshot."""
    with Image.open(file) as picture:
        return str(picture.info["Description"])


@contextmanager
def service() -> Iterator[str]:
    """A service with an empty store, for the duration of the block."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["serve", "--store", f"{folder}/decisions.db", "--port", "0"]
        process = subprocess.Popen(
            [sys.executable, "-m", "decoupled", *command], stdout=subprocess.PIPE, text=True
        )
        try:
            assert process.stdout is not None
            found = re.search(r"http\S+", process.stdout.readline())
            assert found is not None, "the service did not start"
            yield found[0]
        finally:
            process.terminate()
            process.communicate()


def main() -> None:
    """Take all screenshots."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description="Take the screenshots of the console.")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    folder: Path = parser.parse_args().out
    folder.mkdir(parents=True, exist_ok=True)
    chromium = (
        shutil.which("chromium")
        or shutil.which("chromium-browser")
        or shutil.which("google-chrome")
    )
    flags = ["--no-sandbox", "--disable-dev-shm-usage"]
    with service() as url, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=flags)
        for name in PICTURES:
            print(take(name, browser, url, folder))
        browser.close()


if __name__ == "__main__":
    main()

"""The animation of the README is the one that `docs/figures/demo.py` draws, and readers can do without its motion."""

import re
import runpy
from xml.etree import ElementTree

from support.pages import ROOT

DEMO = runpy.run_path(str(ROOT / "docs" / "figures" / "demo.py"))
FILE = ROOT / "docs" / "figures" / "demo.svg"


def test_the_committed_animation_is_up_to_date() -> None:
    assert DEMO["picture"](DEMO["played"]()) == FILE.read_text(encoding="utf-8")
    assert FILE.stat().st_size < 100_000


def test_it_stands_still_for_those_who_prefer_that() -> None:
    text = FILE.read_text(encoding="utf-8")
    ElementTree.fromstring(text)
    before, motion = text.split("@media (prefers-reduced-motion: no-preference)")
    assert "animation:" in motion
    assert "animation:" not in before
    assert "<script" not in text


def test_its_text_can_be_read_on_a_phone_and_by_those_who_do_not_see_it() -> None:
    sizes = [float(size) for size in re.findall(r"font: (\d+)px", FILE.read_text(encoding="utf-8"))]
    assert min(sizes) * 358 / DEMO["WIDTH"] >= 9.0
    assert re.search(
        r'<img alt="[^"]{60,}"\s+src="docs/figures/demo.svg"', (ROOT / "README.md").read_text()
    )

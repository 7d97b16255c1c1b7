"""Site, console, report and animation have the same colours and the same mark."""

import re

import pytest

from support.pages import ROOT

CONSOLE = ROOT / "serve/src/decoupled_serve/service/console"
REPORT = ROOT / "lab/src/decoupled_lab/report"


def palettes(css: str) -> list[dict[str, str]]:
    """The colours by name, of the light scheme and of the dark one: the first two blocks that define `--ink`."""
    blocks = [block for block in re.findall(r"\{([^{}]*)\}", css) if "--ink" in block]
    return [dict(re.findall(r"--([\w-]+):\s*(#[0-9a-f]{6})", block)) for block in blocks[:2]]


OURS = palettes((CONSOLE / "console.css").read_text())


@pytest.mark.parametrize(
    "file", [REPORT / "page.css", ROOT / "docs/figures/demo.svg"], ids=lambda file: file.name
)
def test_the_colours_are_those_of_the_console(file: object) -> None:
    own = palettes(file.read_text())  # type: ignore[attr-defined]
    assert len(own) == 2
    for known, scheme in zip(OURS, own, strict=True):
        ground = {"ground": known["card"]} if scheme["ground"] == known["card"] else {}
        assert len(scheme) >= 6
        assert scheme == {name: (known | ground)[name] for name in scheme}


def test_the_site_has_the_accents_of_the_console() -> None:
    css = (ROOT / "docs/assets/site.css").read_text()
    for known, scheme in zip(OURS, ("default", "slate"), strict=True):
        found = re.search(rf'\[data-md-color-scheme="{scheme}"\] \{{([^}}]*)\}}', css)
        assert found is not None
        colours = dict(re.findall(r"(--md-[\w-]+):\s*(#[0-9a-f]{6})", found[1]))
        assert colours["--md-typeset-a-color"] == known["accent"]
        assert colours["--md-accent-fg-color"] == known["try"]
        assert colours["--md-primary-fg-color"] == OURS[0]["accent"]


def circles(svg: str) -> list[tuple[str, ...]]:
    """The places and sizes of the circles of a mark."""
    return [
        tuple(re.findall(rf'\b{name}="([\d.]+)"', circle)[0] for name in ("cx", "cy", "r"))
        for circle in re.findall(r"<circle[^>]*>", svg)
    ]


def test_the_mark_is_the_same_everywhere() -> None:
    icon = circles((CONSOLE / "icon.svg").read_text())
    assert len(icon) == 2
    for file in (ROOT / "docs/assets/logo.svg", ROOT / "docs/assets/favicon.svg", REPORT / "mark.svg"):
        assert circles(file.read_text()) == icon, file

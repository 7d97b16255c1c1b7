"""Every figure can be drawn, is small, and is shown on the page."""

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.text import Text

from decoupled_lab import theory

PLAIN = [
    "plot_event",
    "plot_exponent",
    "plot_slope",
    "plot_stability_step",
    "plot_tail",
    "plot_tuning",
]
NAMES = [
    *(f"theory.{name}" for name in theory.__all__ if not inspect.ismodule(getattr(theory, name))),
    *(f"bounds.{name}" for name in theory.bounds.__all__),
    *(f"figures.{name}" for name in theory.figures.__all__),
]

PAGE = 358.0  # pixels: the width of a page on a phone that is 390 wide
SMALLEST = 9.0  # pixels: the least height of text that can be read


def smallest_on_a_phone(figure: Any) -> float:
    """The size of a figure's smallest text, in pixels, if the figure is as wide as the page."""
    shown = [
        text for text in figure.findobj(Text) if text.get_text().strip() and text.get_visible()
    ]
    smallest = min(float(text.get_fontsize()) for text in shown)
    return smallest / 72.0 * PAGE / float(figure.get_figwidth())


@pytest.mark.parametrize("name", PLAIN)
def test_a_picture_is_written(name: str, tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "picture.png"
    assert smallest_on_a_phone(getattr(theory.figures, name)(path)) >= SMALLEST
    assert path.read_bytes().startswith(b"\x89PNG")


def test_a_violation_is_drawn_right_of_the_line(tmp_path: Path) -> None:
    report = theory.inspect([50.0, 0.0], eta=1.0)
    axes = theory.figures.plot_tightness(report, tmp_path / "tightness.png").axes[0]
    (failing,) = [line for line in axes.get_lines() if line.get_label() == "as printed"]
    assert np.max(np.asarray(failing.get_xdata(), float)) > 1.0
    (holding,) = [line for line in axes.get_lines() if line.get_label() == "claimed"]
    assert np.max(np.asarray(holding.get_xdata(), float)) <= 1.0 + 1e-9


def test_public_names_have_an_example() -> None:
    for name in NAMES:
        module, _, attribute = name.partition(".")
        home = theory if module == "theory" else getattr(theory, module)
        assert ">>>" in (inspect.getdoc(getattr(home, attribute)) or ""), name

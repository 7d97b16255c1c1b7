"""The text of a figure as it is on a phone."""

from typing import Any

from matplotlib.text import Text

PAGE = 358.0  # pixels: the width of a page on a phone that is 390 wide
SMALLEST = 9.0  # pixels: the least height of text that can be read


def smallest_on_a_phone(figure: Any) -> float:
    """The size of a figure's smallest text, in pixels, if the figure is as wide as the page."""
    shown = [text for text in figure.findobj(Text) if text.get_text().strip() and text.get_visible()]
    smallest = min(float(text.get_fontsize()) for text in shown)
    return smallest / 72.0 * PAGE / float(figure.get_figwidth())

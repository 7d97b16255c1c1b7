"""Shows a figure's dark version to readers of the dark scheme, where there is one: `name-dark.png` beside `name.png`.

Pages link the light one only, so that they read well as plain Markdown. All other figures are turned dark by `site.css`.
"""

import re
from pathlib import Path
from typing import Any

FIGURES = Path(__file__).parents[1] / "figures"
LINK = re.compile(r"(!\[[^\]]*\]\((?:\.\./)*figures/([\w-]+))\.png\)")


def on_page_markdown(markdown: str, /, *, page: Any, config: Any, files: Any) -> str:
    """Replace each link to a figure with two versions by a link to both."""
    return LINK.sub(both, markdown)


def both(link: re.Match[str]) -> str:
    """The links to both versions, of which the theme shows one; the same link if there is only one version."""
    if not (FIGURES / f"{link[2]}-dark.png").exists():
        return link[0]
    return f"{link[1]}.png#only-light){link[1]}-dark.png#only-dark)"

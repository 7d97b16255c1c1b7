"""Shows the version of a figure that suits the reader, where there is one: `name-dark.png` or `name-phone.png`.

Pages link `name.png` only, so that they read well as plain Markdown. `site.css` turns all other figures dark, and hides
the version for other widths.
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
    """The links to both versions, of which the page shows one; the same link if there is only one version."""
    if (FIGURES / f"{link[2]}-dark.png").exists():
        return f"{link[1]}.png#only-light){link[1]}-dark.png#only-dark)"
    if (FIGURES / f"{link[2]}-phone.png").exists():
        return f"{link[1]}.png){{ .on-wide-screens }}{link[1]}-phone.png){{ .on-phones }}"
    return link[0]

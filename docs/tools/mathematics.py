"""Loads KaTeX on the pages that have formulas, and on no other: it weighs 430 kB.

KaTeX 0.16.22 is in `docs/assets/katex`, from the package `katex` of npm, with its licence. Of its fonts only those in
use are there, in one format; the other entries are left out of its style sheet.
"""

from typing import Any

from mkdocs.utils import get_relative_url

FOLDER = "assets/katex"
SCRIPTS = ("katex.min.js", "start.js")


def on_post_page(output: str, /, *, page: Any, config: Any) -> str:
    """Add the style sheet and the scripts to a page with formulas."""
    if 'class="arithmatex"' not in output:
        return output
    style = get_relative_url(f"{FOLDER}/katex.min.css", page.url)
    scripts = (get_relative_url(f"{FOLDER}/{name}", page.url) for name in SCRIPTS)
    output = output.replace("</head>", f'<link rel="stylesheet" href="{style}"></head>', 1)
    tags = "".join(f'<script src="{url}"></script>' for url in scripts)
    return output.replace("</body>", f"{tags}</body>", 1)

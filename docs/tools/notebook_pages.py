"""Adds a page for each notebook to the site: its text, its code, and what that prints and draws.

Pages link the notebook in the repository, where a forge shows it. On the site such a link leads to the page. The
notebooks are executed when the site is built, unless EXECUTED_NOTEBOOKS names a folder that has them with outputs.
"""

import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
from mkdocs.structure.files import File
from notebooks import NOTEBOOKS, executed, pictures

LINK = re.compile(r"\]\(((?:\.\./)*)\.\./notebooks/(\w+)\.ipynb\)")
TO_PAGE, TO_NOTEBOOK = "](../docs/", re.compile(r"\]\((\w+)\.ipynb\)")  # as notebooks link them
NOTE = """\
This page is a notebook, run from the top when this site was built. [Download it]({name}.ipynb) to change and run it
yourself: [how to open it](../notebooks.md#open-them)."""


def on_files(files: Any, /, *, config: Any) -> Any:
    """Called by MkDocs with the files of the site: add pages, pictures and the notebooks themselves."""
    with ThreadPoolExecutor() as pool:
        found = pool.map(lambda path: with_outputs(path, path.read_text()), NOTEBOOKS)
    for path, notebook in zip(NOTEBOOKS, found, strict=True):
        for uri, content in generated(path.stem, notebook).items():
            files.append(File.generated(config, uri, content=content))
        files.append(File.generated(config, f"notebooks/{path.name}", content=path.read_bytes()))
    return files


@cache  # `mkdocs serve` builds the site again after every edit of a page
def with_outputs(path: Path, text: str) -> Any:
    """The executed notebook, whose text is part of the key."""
    folder = os.environ.get("EXECUTED_NOTEBOOKS")
    return nbformat.read(Path(folder) / path.name, as_version=4) if folder else executed(path)


def generated(name: str, notebook: Any) -> dict[str, str | bytes]:
    """The page of an executed notebook and its pictures, by their places in the site."""
    files: dict[str, str | bytes] = {}
    parts = []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            parts.append(TO_NOTEBOOK.sub(r"](\1.md)", cell["source"].replace(TO_PAGE, "](../")))
            continue
        parts += [f"```python\n{cell['source']}\n```", *printed(cell)]
        for number, picture in enumerate(pictures(cell)):
            uri = f"figures/notebooks/{name}-{cell['id']}-{number}.png"
            files[uri] = picture
            parts.append(f'![{cell["metadata"]["alt"]}](../{uri}){{ width="560" }}')
    parts.insert(1, NOTE.format(name=name))  # after the first cell, which says what the notebook is
    return {f"notebooks/{name}.md": "\n\n".join(parts) + "\n", **files}


def printed(cell: Any) -> Iterator[str]:
    """What a cell printed, and the value of its last line if that is no picture."""
    for output in cell["outputs"]:
        data = output.get("data", {})
        text = output.get("text") or ("" if "image/png" in data else data.get("text/plain", ""))
        if text:
            yield f"```text\n{text.rstrip()}\n```"


def on_page_markdown(markdown: str, /, **_: Any) -> str:
    """Called by MkDocs for every page: lead to the pages of notebooks, not to the files."""
    return LINK.sub(r"](\1notebooks/\2.md)", markdown)

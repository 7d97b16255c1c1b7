"""Keeps the notebooks in one form, executes them, and draws the pictures of `notebooks.md`.

    python docs/tools/notebooks.py                # after an edit: strip outputs, number the cells
    python docs/tools/notebooks.py --pictures     # execute them, and write docs/figures/notebook-*.png

In the repository a notebook has no outputs, so that a change of it can be read. Its picture is that of the cell with
the tag `cover`.
"""

import argparse
import base64
import io
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from PIL import Image
from traitlets.config import Config

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
FIGURES = ROOT / "docs" / "figures"
COVER = "cover"
WIDE = 720  # pixels

METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
# Of a cell's metadata: what its picture shows, for those who cannot see it, and whether it is the cover.
KEPT = ("alt", "tags")


def canonical(notebook: Any) -> str:
    """A notebook as it is kept: numbered cells, nothing that an execution leaves behind.

    >>> cell = {"cell_type": "code", "source": ["1 + 1"], "outputs": ["2"], "execution_count": 7, "metadata": {"a": 1}}
    >>> text = canonical({"cells": [cell], "metadata": {}})
    >>> json.loads(text)["cells"]
    [{'cell_type': 'code', 'execution_count': None, 'id': '01', 'metadata': {}, 'outputs': [], 'source': ['1 + 1']}]
    """
    cells = [_bare(cell, number) for number, cell in enumerate(notebook["cells"], 1)]
    whole = {"cells": cells, "metadata": METADATA, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _bare(cell: Any, number: int) -> dict[str, Any]:
    source = "".join(cell["source"]).strip("\n")
    metadata = {name: cell["metadata"][name] for name in KEPT if name in cell["metadata"]}
    kept = {"cell_type": cell["cell_type"], "id": f"{number:02}", "metadata": metadata}
    kept["source"] = source.splitlines(keepends=True)
    return (
        kept if cell["cell_type"] == "markdown" else kept | {"execution_count": None, "outputs": []}
    )


def executed(path: Path) -> Any:
    """The notebook with its outputs, run from the top by a kernel of its own in an empty folder."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder, "work")
        work.mkdir()
        # By sockets of files: over the network, a kernel warns that others could read along.
        kernel = Config(KernelManager={"transport": "ipc", "ip": str(Path(folder, "kernel"))})
        resources = {"metadata": {"path": str(work)}}
        client = NotebookClient(
            notebook, config=kernel, timeout=300, startup_timeout=300, resources=resources
        )
        # Neither the settings nor the history of whoever runs this.
        client.execute(env={**os.environ, "IPYTHONDIR": folder})
    return notebook


def pictures(cell: Any) -> list[bytes]:
    """The pictures that an executed cell has drawn, as PNG."""
    shown = (output.get("data", {}).get("image/png") for output in cell.get("outputs", ()))
    return [base64.b64decode(each) for each in shown if each]


def cover(notebook: Any) -> Image.Image:
    """The picture of an executed notebook, as wide as the figures of other pages."""
    (picture,) = [
        each
        for cell in notebook["cells"]
        if COVER in cell["metadata"].get("tags", ())
        for each in pictures(cell)
    ]
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    return image.resize((WIDE, round(image.height * WIDE / image.width)), Image.Resampling.LANCZOS)


def main() -> None:
    """Write the notebooks anew, or their pictures."""
    parser = argparse.ArgumentParser(description="Strip the notebooks, or draw their pictures.")
    parser.add_argument(
        "--pictures", action="store_true", help="execute them and write docs/figures"
    )
    options = parser.parse_args()
    for path in NOTEBOOKS:
        if options.pictures:
            file = FIGURES / f"notebook-{path.stem}.png"
            cover(executed(path)).save(file, optimize=True)
            print(file.relative_to(ROOT))
        else:
            path.write_text(canonical(json.loads(path.read_text())))


if __name__ == "__main__":
    main()

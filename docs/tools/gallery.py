"""Runs the programs of the gallery, and writes their pictures, their thumbnails and the page with all of them.

    python docs/tools/gallery.py                     # everything
    python docs/tools/gallery.py --only punished     # the picture of one program, and the page
    python docs/tools/gallery.py --out elsewhere     # the pictures, into another folder

A program of `docs/gallery` is an ordinary script that draws one figure. The first line of its docstring is its title,
and the rest its text. `docs/gallery/contents.toml` has the order, a description of each picture for those who cannot
see it, and what to read next. As a hook of the site, this file adds a page for each program. Pages link the program,
which a forge shows; on the site such a link leads to its page.
"""

import argparse
import ast
import io
import re
import runpy
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from mkdocs.structure.files import File

from decoupled.plots import COLOURS, DOTS_PER_INCH, SMALL, WIDTH

sys.path.insert(0, str(Path(__file__).parent))
from shown import KEY, shown

LINK = re.compile(r"\]\(((?:\.\./)*)gallery/(\w+)\.py\)")
PROGRAM = re.compile(r"\]\((\w+)\.py\)")
GALLERY = Path(__file__).resolve().parents[1] / "gallery"
FIGURES = GALLERY / "figures"
HEIGHT = 0.75 * WIDTH
THUMBNAIL = (400, 300)  # pixels
STYLE: dict[str, Any] = {
    "figure.figsize": (WIDTH, HEIGHT),
    "figure.constrained_layout.use": True,
    "font.size": SMALL,
    "axes.titlesize": SMALL + 1.0,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.alpha": 0.3,
    "legend.fontsize": SMALL,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.0,
    "errorbar.capsize": 3.0,
    "patch.linewidth": 0.0,
}


class Example(NamedTuple):
    """A program of the gallery, and what its page says."""

    name: str
    alt: str
    more: dict[str, str]

    @property
    def program(self) -> Path:
        """The file of the program."""
        return GALLERY / f"{self.name}.py"

    @property
    def docstring(self) -> tuple[str, str]:
        """The title and the text."""
        title, _, text = (ast.get_docstring(ast.parse(self.program.read_text())) or "").partition(
            "\n"
        )
        return title, text.strip()

    @property
    def first_line(self) -> int:
        """The number of the first line of code after the docstring."""
        lines = self.program.read_text().splitlines()
        end = ast.parse("\n".join(lines)).body[0].end_lineno or 0
        return next(number for number, line in enumerate(lines, 1) if number > end and line)


class Part(NamedTuple):
    """Examples under one heading."""

    title: str
    examples: tuple[Example, ...]


def contents() -> list[Part]:
    """What the gallery shows, in order."""
    read = tomllib.loads((GALLERY / "contents.toml").read_text())
    return [
        Part(part["title"], tuple(Example(**each) for each in part["example"]))
        for part in read["part"]
    ]


def examples() -> list[Example]:
    """All examples, in order."""
    return [example for part in contents() for example in part.examples]


# Pictures


@contextmanager
def drawn(program: Path) -> Iterator[Any]:
    """Run a program in a namespace of its own, in the style of the site, and give the one figure that it draws."""
    import matplotlib
    from matplotlib import pyplot

    matplotlib.use("Agg")
    dashes = ("-", "--", "-.", ":", "-", "--", "-.")
    cycle = matplotlib.cycler(color=COLOURS) + matplotlib.cycler(linestyle=dashes)
    with matplotlib.rc_context({**STYLE, "axes.prop_cycle": cycle}), patch.object(pyplot, "show"):
        try:
            runpy.run_path(str(program), run_name="__main__")
            numbers = pyplot.get_fignums()
            if len(numbers) != 1:
                raise ValueError(
                    f"{program.name}: draws {len(numbers)} figures; draw one with plt.subplots()"
                )
            yield pyplot.figure(numbers[0])
        finally:
            pyplot.close("all")


def save(figure: Any, name: str, folder: Path) -> None:
    """Write a figure as `name.png` and its thumbnail as `thumbs/name.png`; the same figure gives the same bytes."""
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

    (folder / "thumbs").mkdir(parents=True, exist_ok=True)
    raw = io.BytesIO()
    figure.savefig(raw, dpi=DOTS_PER_INCH, metadata={"Software": None})
    whole = Image.open(raw).convert("RGB")
    small = whole.resize(THUMBNAIL, Image.Resampling.LANCZOS)
    about = PngInfo()
    about.add_text(KEY, shown(figure), zip=True)
    # A palette makes files three times as small, and nobody sees it: figures have few colours.
    for image, file in (
        (whole, folder / f"{name}.png"),
        (small, folder / "thumbs" / f"{name}.png"),
    ):
        image.quantize(128, dither=Image.Dither.NONE).save(file, optimize=True, pnginfo=about)


# Pages


def index_page() -> str:
    """The page with all thumbnails. It reads well as plain Markdown, too."""
    parts = [INTRODUCTION]
    for part in contents():
        cards = (
            f"- [![](figures/thumbs/{each.name}.png)<br>{each.docstring[0]}]({each.name}.py)"
            for each in part.examples
        )
        listed = "\n".join(cards)
        parts.append(f'## {part.title}\n\n<div class="gallery" markdown>\n\n{listed}\n\n</div>\n')
    return "\n".join(parts)


INTRODUCTION = """# Gallery

Choose a picture to see the short program that draws it. It uses public names only, and runs as it is with the extras `simulate` and `plots`.
Everything is seeded, so you get the same curves, in Matplotlib's own style. The programs have few runs, so that you need not wait.
[The reproduction](../reproduce.md) and [beyond the paper](../beyond.md) have far more.
"""


def example_page(example: Example) -> str:
    """The page of one example: title, text, picture, program, and what to read next."""
    title, text = example.docstring
    more = ", ".join(f"[{name}](../{target})" for name, target in example.more.items())
    return f"""# {title}

{text}

![{example.alt}](figures/{example.name}.png)

The program: [{example.name}.py]({example.name}.py)

```{{.python}}
--8<-- "docs/gallery/{example.name}.py:{example.first_line}:"
```

Read more: {more}
"""


def on_files(files: Any, /, *, config: Any) -> Any:
    """Called by MkDocs with the files of the site: add a page for each program."""
    for each in examples():
        files.append(File.generated(config, f"gallery/{each.name}.md", content=example_page(each)))
    return files


def on_page_markdown(markdown: str, /, *, page: Any, config: Any, files: Any) -> str:
    """Called by MkDocs for every page: let links to programs lead to their pages, except on those pages."""
    if page.file.src_uri == "gallery/index.md":
        return PROGRAM.sub(r"](\1.md)", markdown)
    return LINK.sub(r"](\1gallery/\2.md)", markdown)


def on_config(config: Any) -> Any:
    """Called by MkDocs before it reads the navigation: put the pages of the examples under that of the gallery."""
    parts = [
        {part.title: [f"gallery/{each.name}.md" for each in part.examples]} for part in contents()
    ]
    for item in config.nav:
        if item.get("Gallery") == "gallery/index.md":
            item["Gallery"] = [{"All examples": "gallery/index.md"}, *parts]
    return config


def main() -> None:
    """Draw the pictures and write the page with all of them."""
    parser = argparse.ArgumentParser(
        description="Draw the pictures of the gallery and write its page."
    )
    parser.add_argument(
        "--only", nargs="+", choices=[each.name for each in examples()], help="draw these"
    )
    parser.add_argument(
        "--out", type=Path, default=FIGURES, help="draw into another folder, and write no page"
    )
    options = parser.parse_args()
    for example in examples():
        if options.only is None or example.name in options.only:
            with drawn(example.program) as figure:
                save(figure, example.name, options.out)
            print(options.out / f"{example.name}.png")
    if options.out == FIGURES:
        (GALLERY / "index.md").write_text(index_page())


if __name__ == "__main__":
    main()

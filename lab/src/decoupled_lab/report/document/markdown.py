"""Writes a document as Markdown, in the dialect of the forges: tables with pipes, formulas between dollars."""

import re
from collections.abc import Iterable
from itertools import count

from . import (
    Block,
    Document,
    Drawing,
    Heading,
    Included,
    Items,
    Listing,
    Notice,
    Paragraph,
    TextTable,
    spans,
)

_SPECIAL = re.compile(r"([\\*_<>$~])")
# A bar would end a cell of a table, where `\|` means another sign; a bracket might begin an element of HTML.
_IN_FORMULAS = {"|": r"\vert ", "<": r"\lt ", ">": r"\gt "}


def to_markdown(document: Document) -> str:
    """The document as Markdown."""
    lines = [f"# {inline(document.title)}", f"{inline(document.author)}, {inline(document.date)}"]
    lines += ["## Abstract", inline(document.abstract)]
    writer = _Writer()
    return "\n\n".join([*lines, *map(writer.block, document.blocks)]) + "\n"


def inline(text: str) -> str:
    r"""A text with its marks, in Markdown.

    >>> inline("EB-TC_eps has `a_b` and $x_1<2$")
    'EB-TC\\_eps has `a_b` and $x_1\\lt 2$'
    """
    return "".join(_span(kind, content) for kind, content in spans(text))


def _span(kind: str, content: str) -> str:
    if kind == "code":
        return f"`{content}`"
    if kind == "formula":
        for sign, command in _IN_FORMULAS.items():
            content = content.replace(sign, command)
        return f"${content}$"
    escaped = _SPECIAL.sub(r"\\\1", content)
    return f"**{escaped}**" if kind == "bold" else escaped


class _Writer:
    """Writes one block after the other, and numbers headings, tables and figures as LaTeX does."""

    def __init__(self) -> None:
        self.sections = [0, 0, 0]
        self.tables, self.figures = count(1), count(1)

    def block(self, block: Block) -> str:
        match block:
            case Heading():
                return self.heading(block)
            case Paragraph(text):
                return inline(text)
            case Notice(text):
                return f"> **Note.** {inline(text)}"
            case Items(items, numbered):
                marks = [f"{number}." if numbered else "-" for number in range(1, len(items) + 1)]
                return "\n".join(f"{mark} {inline(item)}" for mark, item in zip(marks, items, strict=True))
            case TextTable():
                return self.table(block)
            case Drawing(path, title, caption):
                words = f"**Figure {next(self.figures)}.** {inline(f'{title}. {caption}')}"
                return f"![{inline(title)}]({path}.png)\n\n{words}"
            case Listing(lines, language):
                return "\n".join([f"```{language}", *lines, "```"])
            case Included(path):
                return f"[{path}]({path})"

    def heading(self, heading: Heading) -> str:
        marks = "#" * (heading.level + 1)
        if not heading.numbered:
            return f"{marks} {inline(heading.text)}"
        self.sections[heading.level - 1] += 1
        self.sections[heading.level :] = [0] * (len(self.sections) - heading.level)
        number = ".".join(str(each) for each in self.sections[: heading.level])
        return f"{marks} {number} {inline(heading.text)}"

    def table(self, table: TextTable) -> str:
        def line(cells: Iterable[str]) -> str:
            return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"

        caption = f"**Table {next(self.tables)}.** {inline(table.caption)}"
        lines = [line(map(inline, row)) for row in (table.head, *table.rows)]
        return "\n".join([caption, "", lines[0], line("---" for _ in table.head), *lines[1:]])

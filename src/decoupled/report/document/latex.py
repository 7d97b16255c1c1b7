"""Writes a document as LaTeX, which stock pdflatex compiles."""

import re
from itertools import count

from .. import latex
from . import Block, Document, Drawing, Heading, Items, Listing, Notice, Paragraph, TextTable, spans

_NEGATIVE = re.compile(r"(?<![\w).])-(?=\d)")  # a hyphen that stands for a minus
_LEVELS = ("section", "subsection", "subsubsection")
# Most of a page may be figures, so that they stay near their text. Long words in typewriter may stretch a line.
_START = r"""\renewcommand{\topfraction}{0.9}\renewcommand{\bottomfraction}{0.8}
\renewcommand{\textfraction}{0.07}\renewcommand{\floatpagefraction}{0.75}
\setlength{\emergencystretch}{3em}"""


def to_latex(document: Document) -> str:
    """The document as a complete file."""
    by = rf"\begin{{center}}{inline(document.author)}\\{inline(document.date)}\end{{center}}"
    abstract = rf"\begin{{abstract}}{inline(document.abstract)}\end{{abstract}}"
    writer = _Writer()
    body = [_START, by, abstract, *map(writer.block, document.blocks)]
    return latex.document("\n\n".join(body), document.title)


def inline(text: str) -> latex.Markup:
    r"""A text with its marks, in LaTeX.

    >>> inline("**5 %** of $K^2$ in `a_b`")
    '\\textbf{5 \\%} of $K^2$ in \\texttt{a\\_b}'
    """
    return latex.Markup("".join(_span(kind, content) for kind, content in spans(text)))


def _span(kind: str, content: str) -> str:
    if kind == "formula":
        return f"${content}$"
    marks = {"code": "texttt", "bold": "textbf"}
    escaped = latex.escape(content if kind == "code" else _NEGATIVE.sub("\u2212", content))
    return rf"\{marks[kind]}{{{escaped}}}" if kind in marks else escaped


class _Writer:
    """Writes one block after the other, and labels the tables."""

    def __init__(self) -> None:
        self.tables = count(1)

    def block(self, block: Block) -> str:
        match block:
            case Heading(text, level, numbered):
                return rf"\{_LEVELS[level - 1]}{'' if numbered else '*'}{{{inline(text)}}}"
            case Paragraph(text):
                return inline(text)
            case Notice(text):
                box = rf"\parbox{{0.95\linewidth}}{{\textbf{{Note.}} {inline(text)}}}"
                return rf"\begin{{center}}\fbox{{{box}}}\end{{center}}"
            case Items(items, numbered):
                kind = "enumerate" if numbered else "itemize"
                lines = [rf"\item {inline(item)}" for item in items]
                return "\n".join([rf"\begin{{{kind}}}", *lines, rf"\end{{{kind}}}"])
            case TextTable():
                return self.table(block)
            case Drawing(path, title, caption, width):
                size = rf"width={width:g}\linewidth,height=0.8\textheight,keepaspectratio"
                lines = [r"\begin{figure}[htbp]", r"\centering", rf"\includegraphics[{size}]{{{path}.pdf}}"]
                words = rf"\caption{{{inline(f'{title}. {caption}')}}}"
                return "\n".join([*lines, words, r"\end{figure}"])
            case Listing(lines):
                whole = [r"{\small\begin{verbatim}", *lines, r"\end{verbatim}}"]
                return "\n".join(whole)

    def table(self, table: TextTable) -> str:
        aligns = ["l", *("r" for _ in table.head[1:])]
        columns = [
            latex.Column(inline(head), align, width=width)
            for head, align, width in zip(
                table.head, aligns, table.widths or [None] * len(aligns), strict=True
            )
        ]
        rows = [[inline(cell) for cell in row] for row in table.rows]
        # A long table stays where it is written; a floating one might pass the next heading.
        return latex.Table(
            columns, rows, inline(table.caption), f"table:{next(self.tables)}", long=True
        ).to_latex()

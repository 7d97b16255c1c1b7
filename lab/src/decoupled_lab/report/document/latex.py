"""Writes a document as LaTeX, which stock pdflatex compiles."""

import re
from itertools import count

from decoupled.base.latex import Column, Markup, Table, escape

from .. import latex
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

_MINUS = re.compile(r"(?<![\w).])-(?=\d)|(?<= )-(?= )")  # a hyphen that stands for it
_LEVELS = ("section", "subsection", "subsubsection")
# Figures stay where they are written, like long tables: floats and long tables overprint each other.
# Long words in typewriter may stretch a line. Without the empty id, the folder of LaTeX's own files would be in the PDF.
_START = r"""\ifdefined\pdftrailerid\pdftrailerid{}\fi
\makeatletter\newcommand{\infigure}{\def\@captype{figure}}\makeatother
\setlength{\emergencystretch}{3em}\setlength{\LTcapwidth}{\linewidth}"""


def to_latex(document: Document) -> str:
    """The document as a complete file."""
    # The title of an article leaves room for affiliations.
    below = r"\\".join(inline(each) for each in (document.author, document.date) if each)
    title = rf"{{\LARGE {inline(document.title)}\par}}\bigskip {below}"
    body = [_START, rf"\begin{{center}}{title}\end{{center}}"]
    if document.abstract:
        body.append(rf"\begin{{abstract}}{inline(document.abstract)}\end{{abstract}}")
    return latex.document("\n\n".join([*body, *map(_Writer().block, document.blocks)]))


def inline(text: str) -> Markup:
    r"""A text with its marks, in LaTeX.

    >>> inline("**5 %** of $K^2$ in `a_b`")
    '\\textbf{5\\,\\%} of $K^2$ in \\texttt{a\\_\\allowbreak{}b}'
    """
    return Markup("".join(_span(kind, content) for kind, content in spans(text)))


def _span(kind: str, content: str) -> str:
    if kind == "formula":
        return f"${content}$"
    if kind == "code":  # a path may be broken into lines
        broken = re.sub(r"(?<=[/_])", r"\\allowbreak{}", escape(content))
        return rf"\texttt{{{broken}}}"
    escaped = escape(_MINUS.sub("\u2212", content))
    return rf"\textbf{{{escaped}}}" if kind == "bold" else escaped


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
                start = rf"\begin{{{kind}}}\setlength{{\itemsep}}{{2pt}}\setlength{{\parskip}}{{0pt}}"
                return "\n".join([start, *lines, rf"\end{{{kind}}}"])
            case TextTable():
                return self.table(block)
            case Drawing(path, title, caption, width):
                size = rf"width={width:g}\linewidth,height=0.65\textheight,keepaspectratio"
                words = rf"\caption{{{inline(f'{title}. {caption}')}}}"
                lines = [rf"\includegraphics[{size}]{{{path}.pdf}}", words, r"\end{minipage}\end{center}"]
                return "\n".join([r"\begin{center}\begin{minipage}{\linewidth}\centering\infigure", *lines])
            case Listing(lines):
                whole = [
                    r"\noindent\begin{minipage}{\linewidth}\small\begin{verbatim}",
                    *lines,
                    r"\end{verbatim}\end{minipage}",
                ]
                return "\n".join(whole)
            case Included(path):  # its floats must not pass what follows
                return rf"\input{{{path}}}\clearpage"

    def table(self, table: TextTable) -> str:
        aligns = ["l", *("r" for _ in table.head[1:])]
        columns = [
            Column(inline(head), align, width=width or None)
            for head, align, width in zip(
                table.head, aligns, table.widths or [0.0] * len(aligns), strict=True
            )
        ]
        rows = [[inline(cell) for cell in row] for row in table.rows]
        if table.ruled:
            rows = [each for row in rows for each in ([], row)][1:]
        # A long table stays where it is written; a floating one might pass the next heading.
        return Table(
            columns, rows, inline(table.caption), f"table:{next(self.tables)}", long=True
        ).to_latex()

"""The texts and tables of a report: as HTML with MathML, as plain characters and LaTeX.

Texts are plain, except for `$...$` (a formula in a small part of TeX), backticks (code) and `**...**` (bold). All else
is escaped.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape

from decoupled.errors import ParameterError

# As on a forge: no space inside the dollars, and a price such as "$5 or $6" is no formula.
FORMULA = re.compile(r"\$(?!\s)(?P<formula>[^$\n]+?)(?<!\s)\$(?!\d)")
_TOKEN = re.compile(r"\\[A-Za-z]+|\\,|\d[\d,.]*\d|\d|&\w+;|\S")
_GREEK = (
    *("alpha", "beta", "gamma", "zeta", "eta", "kappa", "lambda", "mu", "sigma", "phi"),
    *("Delta", "ell", "infty"),
)
_LETTERS = dict(zip(_GREEK, "αβγζηκλμσφΔℓ∞", strict=True))
_SIGNS = {
    "le": "≤",
    "ge": "≥",
    "ne": "≠",
    "simeq": "≃",
    "approx": "≈",
    "times": "×",  # noqa: RUF001
    "cdot": "·",
    "sum": "∑",
    "prod": "∏",
    "int": "∫",
    "lfloor": "⌊",
    "rfloor": "⌋",
}
SYMBOLS = _LETTERS | _SIGNS
_POWERS = "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"
RAISED, _LOWERED = str.maketrans("-0123456789", _POWERS), str.maketrans(_POWERS, "-0123456789")
_BRACKETS = "()[]⌊⌋"
_WORDS = ("log", "min", "max", "exp")
_RELATIONS = {"lt": "&lt;", "gt": "&gt;", "mid": "|"}  # HTML has signs of its own for them
_RELATION_ELEMENTS = frozenset(f"<mo>{sign}</mo>" for sign in "=≤≥≠≃≈")
LONGEST_UNBROKEN = 40  # tokens; some 300 pixels, and a phone is 360 pixels wide or more
_ROOT = re.compile(r"\\sqrt(?:\{([^{}]*)\}|\s*(\w))")
_COMMAND = re.compile(r"\\([A-Za-z]+)")


def typeset(text: str) -> str:
    r"""Replace the formulas in a piece of HTML with MathML.

    >>> typeset("of order $K^2$")
    'of order <math><msup><mi>K</mi><mn>2</mn></msup></math>'
    >>> typeset("for $5 or $6")
    'for $5 or $6'
    """
    return FORMULA.sub(_typeset, text)


def _typeset(found: re.Match[str]) -> str:
    tokens = _TOKEN.findall(found[1])
    try:
        row = _row(iter(tokens))
    except (IndexError, RuntimeError, StopIteration):
        rule = "is not whole, as a formula"
        raise ParameterError.of("formula", found[0], rule, "leave its dollars out") from None
    lines = _lines(row) if len(tokens) > LONGEST_UNBROKEN else [row]
    return " ".join(f"<math>{''.join(line)}</math>" for line in lines)


def _lines(row: list[str]) -> list[list[str]]:
    """The parts between which a browser may break a formula: each but the first begins with a relation.

    >>> _lines(["<mi>a</mi>", "<mo>≤</mo>", "<mi>b</mi>"])
    [['<mi>a</mi>'], ['<mo>≤</mo>', '<mi>b</mi>']]
    """
    lines: list[list[str]] = [[]]
    for element in row:
        if element in _RELATION_ELEMENTS and lines[-1]:
            lines.append([])
        lines[-1].append(element)
    return lines


def marked_as_html(text: str) -> str:
    """A text with its marks in HTML; its formulas keep their dollars, for `typeset`.

    >>> marked_as_html("**no** `code` < $x$")
    '<b>no</b> <code>code</code> &lt; $x$'
    """
    forms = {"plain": "{}", "code": "<code>{}</code>", "formula": "${}$", "bold": "<b>{}</b>"}
    return "".join(
        forms[kind].format(escape(content, quote=False)) for kind, content in spans(text)
    )


def readable(text: str) -> str:
    r"""Replace the formulas in a text with plain characters, for files and terminals.

    >>> readable(r"at most $\sqrt{KT}$ for $\eta \le 3$")
    'at most √(KT) for η ≤ 3'
    """
    return FORMULA.sub(lambda found: _readable(found[1]), text)


def _readable(formula: str) -> str:
    rooted = _ROOT.sub(lambda found: f"√({found[1]})" if found[1] else f"√{found[2]}", formula)
    plain = _COMMAND.sub(lambda found: SYMBOLS.get(found[1], found[1]), rooted)
    return plain.replace("{", "").replace("}", "")


def _row(tokens: Iterator[str], end: str = "") -> list[str]:
    """The elements up to a closing brace, with powers and indices attached."""
    row: list[str] = []
    for token in tokens:
        if token == end:
            return row
        if token in "^_":
            kind = "msup" if token == "^" else "msub"
            row.append(f"<{kind}>{row.pop()}{_element(next(tokens), tokens)}</{kind}>")
        else:
            row.append(_element(token, tokens))
    return row


def _element(token: str, tokens: Iterator[str]) -> str:
    if token == "{":
        return f"<mrow>{''.join(_row(tokens, '}'))}</mrow>"
    if token == r"\sqrt":
        return f"<msqrt>{_element(next(tokens), tokens)}</msqrt>"
    if token == r"\hat":
        return f'<mover accent="true">{_element(next(tokens), tokens)}<mo>^</mo></mover>'
    if token == r"\underline":
        return f"<munder>{_element(next(tokens), tokens)}<mo>_</mo></munder>"
    if token == r"\mathrm":
        return _element(next(tokens), tokens)
    if token == r"\,":
        return '<mspace width="0.17em"/>'
    if token == r"\frac":
        return f"<mfrac>{_element(next(tokens), tokens)}{_element(next(tokens), tokens)}</mfrac>"
    if token.startswith("\\"):
        return _command(token[1:])
    if token[0].isdigit():
        return f"<mn>{token}</mn>"
    return f"<mi>{token}</mi>" if token.isalpha() else _sign(token.replace("-", "−"))  # noqa: RUF001


def _sign(sign: str) -> str:
    # A bracket with a power belongs to the power, so it would not grow like its partner.
    return f'<mo stretchy="false">{sign}</mo>' if sign in _BRACKETS else f"<mo>{sign}</mo>"


def _command(name: str) -> str:
    if name in _LETTERS:
        return f"<mi>{_LETTERS[name]}</mi>"
    if name in _SIGNS:
        return _sign(_SIGNS[name])
    if name in _RELATIONS:
        return f"<mo>{_RELATIONS[name]}</mo>"
    if name in _WORDS:
        return f"<mi>{name}</mi><mo>&#8289;</mo>"
    known = ", ".join(
        ("sqrt", "frac", "hat", "underline", "mathrm", *SYMBOLS, *_RELATIONS, *_WORDS)
    )
    rule = "must use only the commands that a report typesets"
    raise ParameterError.of("formula", f"\\{escape(name)}", rule, f"use one of {known}")


_MARKED = re.compile(rf"`(?P<code>[^`]+)`|{FORMULA.pattern}|\*\*(?P<bold>.+?)\*\*")

_IN_LATEX = {
    "\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": "$<$", ">": "$>$", "|": "$|$",
    "±": r"$\pm$", "→": r"$\to$", "−": "$-$", "“": "``", "”": "''",  # noqa: RUF001
    **{each: rf"\{each}" for each in "{}$&%#_"},
    # After the end of a row a bracket or a star would be an argument.
    **{each: f"{{{each}}}" for each in "[]*"},
    **{sign: rf"$\{command}$" for command, sign in SYMBOLS.items()},
}  # fmt: skip
_MINUS = re.compile(r"(?<![\w).])-(?=\d)|(?<= )-(?= )")  # a hyphen that stands for it


def spans(text: str) -> Iterator[tuple[str, str]]:
    """The pieces of a text with their kinds: "plain", "code", "formula" or "bold".

    >>> list(spans("at **most** $K^2$"))
    [('plain', 'at '), ('bold', 'most'), ('plain', ' '), ('formula', 'K^2')]
    """
    start = 0
    for found in _MARKED.finditer(text):
        if found.start() > start:
            yield "plain", text[start : found.start()]
        kind = str(found.lastgroup)
        yield kind, found[kind]
        start = found.end()
    if start < len(text):
        yield "plain", text[start:]


def _raised(text: str) -> str:
    """Raised digits as a formula, because few fonts of LaTeX have them."""
    return re.sub(f"[{_POWERS}]+", lambda found: f"$^{{{found[0].translate(_LOWERED)}}}$", text)


def latex(text: str) -> str:
    r"""A text with its marks in LaTeX. Letters that LaTeX does not know, such as Chinese ones, stay as they are.

    >>> latex("**5 %** of $K^2$ in `a_b`")
    '\\textbf{5\\,\\%} of $K^2$ in \\texttt{a\\_b}'
    """

    def written(kind: str, content: str) -> str:
        if kind == "formula":
            return f"${content}$"
        plain = content if kind == "code" else _MINUS.sub("−", content)  # noqa: RUF001
        escaped = "".join(_IN_LATEX.get(each, each) for each in plain)
        escaped = _raised(re.sub(r"(?<=\d) \\%", r"\\,\\%", escaped))  # a line must not break here
        return (
            escaped if kind == "plain" else rf"\text{'tt' if kind == 'code' else 'bf'}{{{escaped}}}"
        )

    return "".join(written(*each) for each in spans(text))


def latex_table(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    caption: str,
    label: str,
    widths: Sequence[float] = (),
) -> str:
    r"""A table that may break over pages, for a document with the packages booktabs and longtable.

    Args:
        head: the words above the columns.
        rows: the cells, as texts.
        caption: the text above the table.
        label: what the text refers to it by.
        widths: shares of the page, for columns that need several lines.

    >>> print(latex_table(["", "mean"], [["a_b", "**1**"], ["c", ""]], "My 5 %.", "tab:my table"))
    {\footnotesize\setlength{\tabcolsep}{3pt}\setlength{\LTcapwidth}{\linewidth}
    \begin{longtable}{l r}
    \caption{My 5\,\%.}\label{tab:my-table} \\
    \toprule
     & mean \\
    \midrule
    \endhead
    a\_b & \textbf{1} \\
    c & -- \\
    \bottomrule
    \end{longtable}}
    <BLANKLINE>
    """

    def line(cells: Sequence[str], empty: str = "--") -> str:
        return " & ".join(latex(cell) or empty for cell in cells) + r" \\"

    aligned = [rf"p{{{width:g}\linewidth}}" for width in widths] or ["l", *("r" for _ in head[1:])]
    start = [
        r"{\footnotesize\setlength{\tabcolsep}{3pt}\setlength{\LTcapwidth}{\linewidth}",
        rf"\begin{{longtable}}{{{' '.join(aligned)}}}",
        rf"\caption{{{latex(caption)}}}\label{{{re.sub(r'[^A-Za-z0-9:.-]+', '-', label)}}} \\",
        r"\toprule",
        line(head, empty=""),
        r"\midrule",
        r"\endhead",
    ]
    return "\n".join([*start, *map(line, rows), r"\bottomrule", r"\end{longtable}}"]) + "\n"

"""Typesets the formulas of a report: `$...$` in a small part of TeX, as MathML, which browsers show by themselves."""

import re
from collections.abc import Iterator
from html import escape

from decoupled.errors import ParameterError

# As on a forge: no space inside the dollars, and a price such as "$5 or $6" is no formula.
FORMULA = re.compile(r"\$(?!\s)(?P<formula>[^$\n]+?)(?<!\s)\$(?!\d)")
_TOKEN = re.compile(r"\\[A-Za-z]+|\d[\d,.]*\d|\d|&\w+;|\S")
_GREEK = ("alpha", "beta", "gamma", "eta", "kappa", "lambda", "mu", "Delta", "infty")
_LETTERS = dict(zip(_GREEK, "αβγηκλμΔ∞", strict=True))
_SIGNS = {"le": "≤", "ge": "≥", "times": "×", "cdot": "·", "sum": "∑", "lfloor": "⌊", "rfloor": "⌋"}  # noqa: RUF001
SYMBOLS = _LETTERS | _SIGNS
_BRACKETS = "()[]⌊⌋"
_WORDS = ("log", "min", "max", "exp")
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
    try:
        return f"<math>{''.join(_row(_tokens(found[1])))}</math>"
    except (IndexError, RuntimeError, StopIteration):
        rule = "is not whole, as a formula"
        raise ParameterError.of("formula", found[0], rule, "leave its dollars out") from None


def readable(text: str) -> str:
    r"""Replace the formulas in a text with plain characters, for files and terminals.

    >>> readable(r"at most $\sqrt{KT}$ for $\eta \le 3$")
    'at most √(KT) for η ≤ 3'
    """
    return FORMULA.sub(lambda found: _plain(found[1]), text)


def _plain(formula: str) -> str:
    rooted = _ROOT.sub(lambda found: f"√({found[1]})" if found[1] else f"√{found[2]}", formula)
    return (
        _COMMAND.sub(lambda found: SYMBOLS.get(found[1], found[1]), rooted)
        .replace("{", "")
        .replace("}", "")
    )


def _tokens(formula: str) -> Iterator[str]:
    return iter(_TOKEN.findall(formula))


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
    if name in _WORDS:
        return f"<mi>{name}</mi><mo>&#8289;</mo>"
    known = ", ".join(("sqrt", "frac", *SYMBOLS, *_WORDS))
    rule = "must use only the commands that a report typesets"
    raise ParameterError.of("formula", f"\\{escape(name)}", rule, f"use one of {known}")

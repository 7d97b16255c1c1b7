"""Turns any text into LaTeX that stock pdflatex typesets, whatever fonts and encodings the document uses."""

# ruff: noqa: RUF001, RUF002 # it is about characters that look like others

import re
import unicodedata

_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "%": r"\%", "#": r"\#", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}",
    "<": r"\ensuremath{<}", ">": r"\ensuremath{>}", "|": r"\ensuremath{|}",
    # After the end of a row a bracket or a star would be an argument.
    "[": "{[}", "]": "{]}", "*": "{*}",
    # The fonts for text have this one only as a closing quote.
    '"': r"{\ttfamily\char34}",
    "\t": " ", "\n": " ", "\r": " ",
}  # fmt: skip
_UNLIKE = {"lamda": r"\lambda", "omicron": "o"}  # whose command differs from its name in Unicode
# Capitals that look like Latin ones have no command of their own.
_CAPITALS = dict(zip("ΑΒΕΖΗΙΚΜΝΟΡΤΧ", "ABEZHIKMNOPTX", strict=True))
_FORMULAS = {
    "≤": r"\le", "≥": r"\ge", "≠": r"\ne", "≈": r"\approx", "≡": r"\equiv", "∝": r"\propto", "∼": r"\sim",
    "×": r"\times", "÷": r"\div", "±": r"\pm", "∓": r"\mp", "−": "-", "·": r"\cdot", "∙": r"\cdot", "⋅": r"\cdot", "∗": "*",
    "√": r"\surd", "∞": r"\infty", "∑": r"\sum", "∏": r"\prod", "∫": r"\int", "∂": r"\partial", "∇": r"\nabla",
    "∈": r"\in", "∉": r"\notin", "∅": r"\emptyset", "∪": r"\cup", "∩": r"\cap", "⊂": r"\subset", "⊆": r"\subseteq",
    "∀": r"\forall", "∃": r"\exists", "¬": r"\neg", "∧": r"\wedge", "∨": r"\vee", "⊥": r"\perp", "∥": r"\|",
    "←": r"\leftarrow", "→": r"\rightarrow", "↑": r"\uparrow", "↓": r"\downarrow", "↔": r"\leftrightarrow",
    "⇐": r"\Leftarrow", "⇒": r"\Rightarrow", "⇔": r"\Leftrightarrow", "↦": r"\mapsto",
    "⌊": r"\lfloor", "⌋": r"\rfloor", "⌈": r"\lceil", "⌉": r"\rceil", "⟨": r"\langle", "⟩": r"\rangle",
    "µ": r"\mu", "∆": r"\Delta", "ℓ": r"\ell", "ς": r"\varsigma", "ϵ": r"\epsilon", "ϕ": r"\phi", "ϑ": r"\vartheta", "′": "'", "″": "''", "°": r"^\circ",
    "•": r"\bullet", "†": r"\dagger", "‡": r"\ddagger", "★": r"\star", "½": r"\frac12", "¼": r"\frac14", "¾": r"\frac34",
    # In text they come from a font that is often a bitmap.
    "§": r"\mathsection", "¶": r"\mathparagraph", "£": r"\mathsterling",
}  # fmt: skip
_TEXT = {
    "–": "--", "—": "---", "‐": "-", "‑": "-", "…": r"\dots{}", "‘": "`", "’": "'", "“": "``", "”": "''",
    "«": r"\ensuremath{\ll}", "»": r"\ensuremath{\gg}", "\u00a0": "~", "\u202f": r"\,", "\u2009": r"\,", "\u200a": r"\,",
    "\u00ad": r"\-", "\u200b": r"\hspace{0pt}", "\u200d": "", "\ufe0f": "", "ß": r"\ss{}", "æ": r"\ae{}", "Æ": r"\AE{}",
    "œ": r"\oe{}", "Œ": r"\OE{}", "ø": r"\o{}", "Ø": r"\O{}", "ł": r"\l{}", "Ł": r"\L{}", "ı": r"\i{}",
    "©": r"\copyright{}", "¿": "?`", "¡": "!`",
}  # fmt: skip
_ACCENTS = {
    "\u0300": "`", "\u0301": "'", "\u0302": "^", "\u0303": "~", "\u0304": "=", "\u0306": "u", "\u0307": ".",
    "\u0308": '"', "\u030a": "r", "\u030b": "H", "\u030c": "v", "\u0323": "d", "\u0327": "c", "\u0331": "b",
}  # fmt: skip
_DOTLESS = {"i": r"\i", "j": r"\j"}
# Characters that fonts join with their neighbour to another one.
_JOINED = re.compile(r"(?<=-)(?=-)|(?<=')(?=')|(?<=`)(?=`)|(?<=[?!])(?=`)|(?<=,)(?=,)")

_PERCENT = re.compile(r"(?<=\d) %")  # a line must not break here


class Markup(str):
    """A text that is LaTeX already, so that `escape` leaves it alone."""


def escape(text: str) -> str:
    r"""A text as LaTeX for a document, a caption or a cell.

    Greek letters and signs become formulas, and letters with accents the commands for them. A character that the stock
    fonts do not have, such as a Chinese one, is shown by its number: nothing is left out.

    >>> print(escape("my_policy: 95 % & α ≤ 2 ± é"))
    my\_policy: 95\,\% \& \ensuremath{\alpha} \ensuremath{\le} 2 \ensuremath{\pm} \'{e}
    >>> print(escape("中"))
    {[}U+4E2D{]}
    """
    if isinstance(text, Markup):
        return text
    kept = _PERCENT.sub("\u202f%", _JOINED.sub("\u200c", unicodedata.normalize("NFC", text)))
    return "".join(_escaped(each) for each in kept)


def _escaped(character: str) -> str:
    if character == "\u200c":  # keeps two characters apart
        return "{}"
    if character in _SPECIAL:
        return _SPECIAL[character]
    if " " <= character <= "~":
        return character
    if character in _TEXT:
        return _TEXT[character]
    formula = _FORMULAS.get(character) or _greek(character)
    return rf"\ensuremath{{{formula}}}" if formula else _accented(character)


def _greek(character: str) -> str | None:
    if character in _CAPITALS:
        return rf"\mathrm{{{_CAPITALS[character]}}}"
    found = re.fullmatch(r"GREEK (SMALL|CAPITAL) LETTER (\w+)", unicodedata.name(character, ""))
    if found is None or not "Α" <= character <= "ω":
        return None
    name = found[2].lower()
    command = _UNLIKE.get(name, rf"\{name}")
    return command if found[1] == "SMALL" else command[:1] + command[1:].capitalize()


def _accented(character: str) -> str:
    """A letter with an accent, a raised or lowered digit, or the character's number."""
    kind, _, parts = unicodedata.decomposition(character).rpartition("> ")
    codes = [chr(int(each, 16)) for each in parts.split()]
    if len(codes) == 2 and not kind and codes[1] in _ACCENTS:
        return rf"\{_ACCENTS[codes[1]]}{{{_DOTLESS.get(codes[0]) or _escaped(codes[0])}}}"
    plain = "".join(codes).replace("−", "-")
    if kind in ("<super", "<sub") and plain.isascii():
        return rf"\ensuremath{{{'^' if kind == '<super' else '_'}{{{plain}}}}}"
    if kind == "<wide" and len(codes) == 1:
        return _escaped(codes[0])
    return escape(f"[U+{ord(character):04X}]")

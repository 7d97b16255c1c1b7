"""A table of final regret for a paper, and the names that a user gives to policies in it or in a figure.

It has booktabs rules and siunitx columns, and the significantly lowest mean is bold.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from ..base.arrays import Floats
from ..errors import ParameterError
from .intervals import interval

# By policy or label, or in order. A mapping's keys are invariant: a dictionary by FTPL is none by Policy.
Labels: TypeAlias = Mapping[Any, str] | Sequence[str]
"""Names of policies in figures: by policy or by label, or one for each in order."""


def renamed(names: dict[str, str], labels: Labels | None, known: Mapping[Any, str]) -> list[str]:
    """The names by label, with those replaced that `labels` gives; `known` has the label of each of its keys."""
    if labels is None:
        return list(names.values())
    if isinstance(labels, Mapping):
        chosen = list((names | {known[key]: name for key, name in labels.items()}).values())
    elif isinstance(labels, str) or not isinstance(labels, Sequence) or len(labels) != len(names):
        rule = f"must be a dictionary, or a list of {len(names)} names"
        raise ParameterError.of("labels", labels, rule, f"the policies are {[*names]}, in this order")
    else:
        chosen = list(labels)
    for name in chosen:
        if not isinstance(name, str):
            raise ParameterError.of("labels", name, "must be text", 'such as "ours"')
        if chosen.count(name) > 1:
            rule = "must name one policy only"
            raise ParameterError.of("labels", name, rule, "give each policy its own name")
    return chosen


Spread: TypeAlias = Literal["error", "interval"]
"""What follows ± in a table: the standard error, or half the interval of the mean."""

_FEW = 2  # decimals where one run leaves no error to choose them by
_ALIKE = 2  # a column has as many decimals everywhere, if its errors differ by no more than so many
_WIDE = 70  # characters, of about 75 on a line
_SHRUNK = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"  # only if it is too wide; needs graphicx
# All of it is local to the table, so a document needs only the packages.
_SETUP = r"""\sisetup{detect-weight = true, mode = text, separate-uncertainty = true, table-align-uncertainty = true, retain-zero-uncertainty = true,
  group-digits = integer, group-minimum-digits = 4, group-separator = {,}}
% The signs of formulas: those of text fonts are often bitmaps. And a bold series with digits as wide as the plain ones.
\def\textminus{\ensuremath{-}}\def\textpm{\ensuremath{\pm}}
\protected\def\tablebold{\fontseries{b}\selectfont}"""
_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "%": r"\%", "#": r"\#", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\ensuremath{<}", ">": r"\ensuremath{>}",
    # After the end of a row a bracket or a star would be an argument.
    "|": r"\ensuremath{|}", "[": "{[}", "]": "{]}", "*": "{*}", '"': r"{\ttfamily\char34}",
    "±": r"\ensuremath{\pm}", "…": r"\dots{}", "\n": " ",
}  # fmt: skip


def escape(text: str) -> str:
    r"""A text as LaTeX. Letters beyond ASCII stay: LaTeX reads UTF-8, and a document's fonts decide what it can show.

    >>> print(escape("my_policy: 95 % & ± é"))
    my\_policy: 95\,\% \& \ensuremath{\pm} é
    """
    return re.sub(r"(?<=\d) \\%", r"\\,\\%", "".join(_SPECIAL.get(each, each) for each in text))


def lowest(regrets: Sequence[Floats], level: float = 0.95) -> int | None:
    """The policy whose regret is significantly lower than that of every other; None if there is none.

    The mean difference from each other policy, run by run, has an interval (Student's t) at the level that Bonferroni's
    correction asks for, and all of them lie below zero. A policy that is no better than another passes only if its
    interval against the best of the others is wrong, so the chance that one passes is at most 1 - `level`. This needs
    runs that are independent of each other. It is right against adversaries, too, where two policies share only seeds.
    """
    if len(regrets) < 2:
        return None
    best = min(range(len(regrets)), key=lambda number: float(regrets[number].mean()))
    joint = 1.0 - (1.0 - level) / (len(regrets) - 1)
    # With one run the ends are NaN, and so no comparison holds.
    others = [each for number, each in enumerate(regrets) if number != best]
    return best if all(interval(regrets[best] - each, joint)[3] < 0.0 for each in others) else None


def regret_table(
    rows: Mapping[str, Mapping[str, float]],
    heads: Mapping[str, str],
    best: int | None,
    *,
    spread: Spread = "error",
    caption: str,
    label: str,
) -> str:
    """The table in LaTeX: `rows` are the statistics by the names to show, and `heads` the heads of those beside the mean.

    The policy in the place `best` is bold. The text refers to the table by `label`.
    """
    plain = spread == "error"
    errors = [row["standard_error"] if plain else row["high"] - row["mean"] for row in rows.values()]
    needed = [each for each in map(decimals_of, errors) if each is not None]
    finest = max(needed, default=_FEW)
    alike = not needed or finest - min(needed) <= _ALIKE
    means, shown = [], []
    for number, (row, error) in enumerate(zip(rows.values(), errors, strict=True)):
        own = decimals_of(error)
        decimals = finest if alike or own is None else own
        digits = [f"{each:z.{decimals}f}" for each in (row["mean"], error) if math.isfinite(each)]
        means.append(digits)
        shown.append((r"\tablebold " if number == best else "") + r" \pm ".join(digits))
    others = [[f"{row[key]:z.{finest}f}" for row in rows.values()] for key in heads]
    formats = [_room(means), *(_room([[each] for each in column]) for column in others)]
    columns = " ".join(["l", *(f"S[table-format = {each}]" for each in formats)])
    head = ["Policy", "{Mean regret}", *(f"{{{escape(each)}}}" for each in heads.values())]
    body = [
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        " & ".join(head) + r" \\",
        r"\midrule",
        *(" & ".join(row) + r" \\" for row in zip(map(escape, rows), shown, *others, strict=True)),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    if max(map(len, body[2:-2])) > _WIDE:
        body = [_SHRUNK, *body, "}"]
    label = re.sub(r"[^A-Za-z0-9:.-]+", "-", label)
    start = [r"\begin{table}[htbp]", r"\centering", r"\setlength{\belowcaptionskip}{6pt}"]
    title = rf"\caption{{{escape(caption)}}}\label{{{label}}}"
    return "\n".join([*start, title, r"\small", _SETUP, *body, r"\end{table}"]) + "\n"


def decimals_of(error: float) -> int | None:
    """The decimals that show two digits of an error; None if it has none.

    >>> decimals_of(0.678), decimals_of(0.0996), decimals_of(432.1), decimals_of(0.0)
    (2, 2, 0, None)
    """
    if not (math.isfinite(error) and error > 0.0):
        return None
    return max(0, 1 - int(f"{error:.1e}".partition("e")[2]))


def _room(cells: Sequence[Sequence[str]]) -> str:
    """The room that siunitx keeps in a column: a sign, digits before and after the point, digits of the error."""
    sign = "-" if any(cell[0].startswith("-") for cell in cells) else ""
    halves = [cell[0].lstrip("-").partition(".") for cell in cells]
    whole, part = max(len(each[0]) for each in halves), max(len(each[2]) for each in halves)
    errors = max((len(cell[1].replace(".", "")) for cell in cells if len(cell) > 1), default=0)
    return f"{sign}{whole}.{part}" + (f"({errors})" if errors else "")

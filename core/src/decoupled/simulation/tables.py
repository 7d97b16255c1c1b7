"""A table of final regret for a paper, and the names of policies in it or in a figure.

A user may give these names. The table has booktabs rules and siunitx columns, and the significantly
lowest mean is bold.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from ..base.arrays import Floats
from ..base.extras import needed_for
from ..errors import ParameterError
from .intervals import interval

# By policy or label, or in order. A mapping's keys are invariant: a dictionary by FTPL is none by
# Policy.
Labels: TypeAlias = Mapping[Any, str] | Sequence[str]
"""Names of policies in figures: by policy or by label, or one for each in order."""


def renamed(names: dict[str, str], labels: Labels | None, label_of: Mapping[Any, str]) -> list[str]:
    """The names by label, with those replaced that `labels` gives.

    `label_of` has the label of each of its keys.
    """
    if labels is None:
        return list(names.values())
    if isinstance(labels, Mapping):
        replaced = dict(names)
        for key, name in labels.items():
            replaced[label_of[key]] = name
        chosen = list(replaced.values())
    elif isinstance(labels, str) or not isinstance(labels, Sequence) or len(labels) != len(names):
        rule = f"must be a dictionary, or a list of {len(names)} names"
        raise ParameterError.of(
            "labels", labels, rule, f"the policies are {[*names]}, in this order"
        )
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
# Only if it is too wide; needs graphicx.
_SHRUNK = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"
# All of it is local to the table, so a document needs only the packages.
_SETUP = r"""\small
\sisetup{detect-weight = true, mode = text, separate-uncertainty = true,
  table-align-uncertainty = true, retain-zero-uncertainty = true,
  group-digits = integer, group-minimum-digits = 4, group-separator = {,}}
% The signs of formulas: those of text fonts are often bitmaps.
\def\textminus{\ensuremath{-}}\def\textpm{\ensuremath{\pm}}
% A bold series with digits as wide as the plain ones.
\protected\def\tablebold{\fontseries{b}\selectfont}
"""
_BOLD = "tablebold: ;"  # the command above, as pandas names it
_SPECIAL = {
    **{sign: "\\" + sign for sign in "{}$&%#_"},
    **{sign: rf"\ensuremath{{{sign}}}" for sign in "<>|"},
    **{sign: f"{{{sign}}}" for sign in "[]*"},  # an argument after the end of a row
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    '"': r"{\ttfamily\char34}",
    "±": r"\ensuremath{\pm}",
    "…": r"\dots{}",
    "\n": " ",
}


def escape(text: str) -> str:
    r"""A text as LaTeX.

    Letters beyond ASCII stay: LaTeX reads UTF-8, and a document's fonts decide what it can show.

    >>> print(escape("my_policy: 95 % & ± é"))
    my\_policy: 95\,\% \& \ensuremath{\pm} é
    """
    escaped = "".join(_SPECIAL.get(character, character) for character in text)
    return re.sub(r"(?<=\d) \\%", r"\\,\\%", escaped)


def lowest(regrets: Sequence[Floats], level: float = 0.95) -> int | None:
    """The policy whose regret is significantly lower than that of every other, or None.

    The mean difference from each other policy, run by run, has an interval (Student's t) at the
    level that Bonferroni's correction asks for, and all of them lie below zero. A policy that is no
    better than another passes only if its interval against the best of the others is wrong, so the
    chance that one passes is at most 1 - `level`. This needs runs that are independent of each
    other. It is right against adversaries, too, where two policies share only seeds.
    """
    if len(regrets) < 2:
        return None
    best = min(range(len(regrets)), key=lambda number: float(regrets[number].mean()))
    joint = 1.0 - (1.0 - level) / (len(regrets) - 1)
    # With one run the ends are NaN, and so no comparison holds.
    others = [regret for number, regret in enumerate(regrets) if number != best]
    is_lowest = all(interval(regrets[best] - other, joint).high < 0.0 for other in others)
    return best if is_lowest else None


def regret_table(
    rows: Mapping[str, Mapping[str, float]],
    heads: Mapping[str, str],
    best: int | None,
    *,
    spread: Spread = "error",
    caption: str,
    label: str,
) -> str:
    """The table in LaTeX, with the styles of pandas.

    The policy in the place `best` is bold. The text refers to the table by `label`.

    Args:
        rows: the statistics, by the names to show.
        heads: the heads of the statistics beside the mean, by their keys.
        best: the place of the policy in bold, or None.
        spread: what follows ± after the mean.
        caption: the caption.
        label: what the text refers to the table by.
    """
    with needed_for("to_latex()"):
        import jinja2  # noqa: F401 # pandas writes LaTeX with it
        import pandas as pd
    errors = [_error_of(row, spread) for row in rows.values()]
    needed = [decimals for decimals in map(decimals_of, errors) if decimals is not None]
    finest = max(needed, default=_FEW)
    are_alike = not needed or finest - min(needed) <= _ALIKE
    means = []
    for row, error in zip(rows.values(), errors, strict=True):
        own = decimals_of(error)
        decimals = finest if are_alike or own is None else own
        finite = [number for number in (row["mean"], error) if math.isfinite(number)]
        means.append([f"{number:z.{decimals}f}" for number in finite])
    columns = {"{Mean regret}": [r" \pm ".join(numbers) for numbers in means]}
    widths = [_width(means)]
    for key, head in heads.items():
        cells = [f"{row[key]:z.{finest}f}" for row in rows.values()]
        columns[f"{{{escape(head)}}}"] = cells
        widths.append(_width([[cell] for cell in cells]))
    table = pd.DataFrame(columns, index=pd.Index([escape(name) for name in rows]))
    table.columns.name = "Policy"
    styles = pd.DataFrame("", index=table.index, columns=table.columns)
    if best is not None:
        styles.iloc[best, 0] = _BOLD
    text: str = table.style.apply(lambda _: styles, axis=None).to_latex(
        hrules=True,
        column_format=" ".join(["l", *(f"S[table-format = {width}]" for width in widths)]),
        caption=escape(caption),
        label=re.sub(r"[^A-Za-z0-9:.-]+", "-", label),
        position="htbp",
        position_float="centering",
    )
    is_wide = max(map(len, text.partition(r"\toprule")[2].splitlines())) > _WIDE
    start = r"\begin{tabular}"
    end = r"\end{tabular}"
    if is_wide:
        text = text.replace(end, f"{end}\n}}")
    before = f"{_SETUP}{_SHRUNK}\n" if is_wide else _SETUP
    text = text.replace(r"\caption", r"\setlength{\belowcaptionskip}{6pt}" + "\n" + r"\caption", 1)
    return text.replace(start, before + start, 1)


def _error_of(row: Mapping[str, float], spread: Spread) -> float:
    """What follows ± after the mean of a policy."""
    if spread == "error":
        return row["standard_error"]
    return row["high"] - row["mean"]


def decimals_of(error: float) -> int | None:
    """The decimals that show two digits of an error; None if it has none.

    >>> decimals_of(0.678), decimals_of(0.0996), decimals_of(432.1), decimals_of(0.0)
    (2, 2, 0, None)
    """
    if not (math.isfinite(error) and error > 0.0):
        return None
    return max(0, 1 - int(f"{error:.1e}".partition("e")[2]))


def _width(cells: Sequence[Sequence[str]]) -> str:
    """The `table-format` of siunitx: sign, digits before and after the point, and of the error."""
    sign = "-" if any(cell[0].startswith("-") for cell in cells) else ""
    before = max(len(cell[0].lstrip("-").partition(".")[0]) for cell in cells)
    after = max(len(cell[0].partition(".")[2]) for cell in cells)
    errors = [len(cell[1].replace(".", "")) for cell in cells if len(cell) > 1]
    return f"{sign}{before}.{after}" + (f"({max(errors)})" if errors else "")

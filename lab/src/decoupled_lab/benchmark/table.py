"""An entry as tables: ratios by group, and paired differences by task, in Markdown and in LaTeX."""

import math
from collections.abc import Iterator, Mapping, Sequence
from string import ascii_lowercase
from typing import Any, NamedTuple

from ..report.text import latex_table
from . import statistics
from .statistics import SMOOTHING
from .suite import SUITE

RATIOS = (
    f"geometric means over the tasks of a group, after {SMOOTHING} sqrt(K T) is added to every mean"
)
BOLD = "bold: its 95 % interval lies below {} (not corrected for the number of cells)"


def to_markdown(entry: Mapping[str, Any]) -> str:
    """Both tables, with what was run; the columns are aligned, so that they can be read in a terminal."""
    needed = any(task["data"] for task in entry["tasks"])
    data = "" if needed else " Tasks that need recorded data did not run."
    return f"""# {entry["policy"]["name"]}

{_made(entry)}{data}

Regret as a multiple of each reference's: {RATIOS}, with 95 % intervals.
Below 1 is better; {BOLD.format(1)}.

{groups_to_markdown(entry)}

Means over runs by task, and by how much they differ from each reference's, run by run, with 95 % intervals.
Below 0 is better; {BOLD.format(0)}.

{tasks_to_markdown(entry)}

Units: {_units_told(entry)}.
"""


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table whose columns are aligned: the first to the left, the others to the right.

    >>> print(aligned([("task", "regret"), ("a", "1.5")]))
    | task | regret |
    |:-----|-------:|
    | a    |    1.5 |
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rule = [":" + "-" * (widths[0] + 1), *("-" * (width + 1) + ":" for width in widths[1:])]
    padded = [[row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])] for row in rows]
    head, *lines = (f"| {' | '.join(cells)} |" for cells in padded)
    return "\n".join((head, f"|{'|'.join(rule)}|", *lines))


def tasks_to_markdown(entry: Mapping[str, Any]) -> str:
    """The second table alone."""
    minus = (f"minus `{name}`" for name in SUITE.references)
    rows = [("task", "K", "T", "runs", "unit", "mean", *minus)]
    for head, (own, *found) in _tasks(entry):
        rows.append((*head, own.number, *(each.markdown() for each in found)))
    return aligned(rows)


def groups_to_markdown(entry: Mapping[str, Any], *, intervals: bool = True) -> str:
    """The first table alone; without intervals it fits into a terminal."""
    rows = [("group", *(f"`{name}`" for name in SUITE.references))]
    for title, found in _groups(entry):
        rows.append((title, *(each.markdown() if intervals else each.number for each in found)))
    return aligned(rows)


class Shown(NamedTuple):
    """A number with its interval, as the tables show it.

    >>> Shown(-7.84, -9.0, -6.7, decimals=1, bold=True).markdown()
    '**-7.8** (-9.0 to -6.7)'
    """

    value: float
    low: float
    high: float
    decimals: int
    bold: bool

    @property
    def number(self) -> str:
        """The number alone."""
        return f"**{self.digits(self.value)}**" if self.bold else self.digits(self.value)

    def markdown(self) -> str:
        """The number and its interval."""
        return f"{self.number} ({self.digits(self.low)} to {self.digits(self.high)})"

    def digits(self, value: float) -> str:
        """A number with as many decimals; 0 has no sign."""
        return f"{value:z,.{self.decimals}f}"


def ratio_shown(found: statistics.Ratio) -> Shown:
    """A ratio with its interval, in bold if that lies below 1.

    >>> ratio_shown(statistics.Ratio(0.5, 0.4, 0.62)).markdown(), ratio_shown(statistics.Ratio(12.0, 9.0, 15.0)).markdown()
    ('**0.50** (0.40 to 0.62)', '12.0 (9.0 to 15.0)')
    """
    return Shown(*found, 2 if found.ratio < 10.0 else 1, found.verdict == "better")


def decimals_for(error: float) -> int:
    """How many decimals a number with this standard error deserves: the error's first digit, at most three.

    >>> decimals_for(12.0), decimals_for(0.4), decimals_for(0.0)
    (0, 1, 0)
    """
    return min(3, max(0, -math.floor(math.log10(error)))) if error > 0.0 else 0


def _groups(entry: Mapping[str, Any]) -> Iterator[tuple[str, list[Shown]]]:
    for group in entry["groups"]:
        ratios = (statistics.of_group(group, name) for name in SUITE.references)
        yield group["title"], list(map(ratio_shown, ratios))


def _tasks(entry: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], list[Shown]]]:
    """The name, K, T, runs and unit of each task, then its mean and its differences."""
    units = _units(entry)
    for task in entry["tasks"]:
        sizes = (f"{task[name]:,}" for name in ("arms", "rounds", "runs"))
        mean, error = task["regret"]["mean"], task["regret"]["standard_error"]
        own = Shown(mean, mean, mean, decimals_for(error), bold=False)
        shown = [own]
        for name in SUITE.references:
            apart, low, high = (task["differences"][name][each] for each in ("mean", "low", "high"))
            shown.append(Shown(apart, low, high, decimals_for((high - low) / 4.0), bold=high < 0.0))
        yield (task["name"], *sizes, units[task["unit"]]), shown


def _units(entry: Mapping[str, Any]) -> dict[str, str]:
    """A letter for each thing that is counted: the whole names would not fit."""
    return dict(
        zip(dict.fromkeys(task["unit"] for task in entry["tasks"]), ascii_lowercase, strict=False)
    )


def _units_told(entry: Mapping[str, Any]) -> str:
    return "; ".join(f"{letter}: {unit}" for unit, letter in _units(entry).items())


def to_latex(entry: Mapping[str, Any]) -> str:
    """Both tables in LaTeX, for a paper that loads booktabs and longtable.

    Below each number is its interval, or half its width, so that the tables fit into a page.
    """
    name, made = entry["policy"]["name"], _made(entry)
    groups: list[tuple[str, ...]] = []
    for title, found in _groups(entry):
        groups.append((title, *(each.number for each in found)))
        groups.append(
            (" ", *(f"{each.digits(each.low)} to {each.digits(each.high)}" for each in found))
        )
    tasks: list[tuple[str, ...]] = []
    for (task, arms, rounds, runs, unit), (own, *found) in _tasks(entry):
        tasks.append((task, own.number, *(each.number for each in found)))
        halves = (f"± {each.digits((each.high - each.low) / 2.0)}" for each in found)
        tasks.append((f"K = {arms}, T = {rounds}, {runs} runs; {unit}", " ", *halves))
    of_groups = (
        f"Regret of {name} as a multiple of each reference's: {RATIOS}, with 95 % intervals. "
        f"Below 1 is better; {BOLD.format(1)}. {made}"
    )
    of_tasks = (
        f"Means of {name} over runs, and by how much they differ from the references', run by run, with half the width of "
        f"their 95 % intervals. Below 0 is better; {BOLD.format(0)}. Units: {_units_told(entry)}. {made}"
    )
    first = latex_table(("group", *SUITE.references), groups, of_groups, "tab:benchmark-groups")
    return f"{first}\n{latex_table(('task', 'mean', *SUITE.references), tasks, of_tasks, 'tab:benchmark-tasks')}"


def _made(entry: Mapping[str, Any]) -> str:
    """What made the numbers."""
    about, runs = entry["environment"], sorted({task["runs"] for task in entry["tasks"]})
    return (
        f"Suite {entry['suite']}, {entry['size']} size, {' or '.join(map(str, runs))} runs, seed {entry['seed']}; "
        f"decoupled {about['decoupled']}, {about['architecture']}."
    )

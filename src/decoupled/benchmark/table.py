"""An entry as tables: ratios by group, and paired differences by task, in Markdown and in LaTeX."""

import math
from collections.abc import Mapping, Sequence
from string import ascii_lowercase
from typing import Any

from ..base.latex import Cell, Column, Row, Table
from . import ratios
from .statistics import SMOOTHING
from .suite import REFERENCES

RATIOS = f"geometric means over the tasks of a group, after {SMOOTHING} sqrt(K T) is added to every mean"


def to_markdown(entry: Mapping[str, Any]) -> str:
    """Both tables, with what was run; the columns are aligned, so that they can be read in a terminal."""
    data = (
        ""
        if any(task["data"] for task in entry["tasks"])
        else " Tasks that need recorded data did not run."
    )
    return "\n".join(
        (
            f"# {entry['policy']['name']}",
            "",
            f"{_made(entry)}{data}",
            "",
            f"Regret as a multiple of each reference's: {RATIOS}, with 95 % intervals.",
            "Below 1 is better; bold: better, beyond chance.",
            "",
            groups_to_markdown(entry),
            "",
            "Mean regret by task, and by how much it differs from each reference's, run by run, with 95 % intervals.",
            "Below 0 is better; bold: better, beyond chance.",
            "",
            aligned(_task_rows(entry)),
            "",
            "; ".join(f"{letter}: {unit}" for unit, letter in _units(entry).items()) + ".",
            "",
        )
    )


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


def groups_to_markdown(entry: Mapping[str, Any], *, intervals: bool = True) -> str:
    """The first table alone; without intervals it fits into a terminal."""
    rows = [("group", *(f"`{name}`" for name in REFERENCES))]
    for group in entry["groups"]:
        cells = [ratio_cell(ratios.of_group(group, name)) for name in REFERENCES]
        rows.append((group["title"], *(cell if intervals else cell.partition(" ")[0] for cell in cells)))
    return aligned(rows)


def ratio_cell(found: ratios.Ratio) -> str:
    """A ratio with its interval, in bold if it is better beyond chance.

    >>> ratio_cell(ratios.Ratio(0.5, 0.4, 0.62)), ratio_cell(ratios.Ratio(12.0, 9.0, 15.0))
    ('**0.50** (0.40 to 0.62)', '12.0 (9.0 to 15.0)')
    """
    decimals = 2 if found.ratio < 10.0 else 1
    return _cell(found.ratio, found.low, found.high, decimals, bold=found.verdict == "better")


def _task_rows(entry: Mapping[str, Any]) -> list[tuple[str, ...]]:
    units = _units(entry)
    rows = [("task", "K", "T", "runs", "unit", "mean", *(f"minus `{name}`" for name in REFERENCES))]
    for task in entry["tasks"]:
        mean, error = task["regret"]["mean"], task["regret"]["standard_error"]
        sizes = (f"{task['arms']:,}", f"{task['rounds']:,}", f"{task['runs']:,}")
        differences = (difference_cell(task["differences"][name]) for name in REFERENCES)
        rows.append(
            (task["name"], *sizes, units[task["unit"]], f"{mean:,.{decimals_for(error)}f}", *differences)
        )
    return rows


def _units(entry: Mapping[str, Any]) -> dict[str, str]:
    """A letter for each thing that is counted: the whole names would not fit."""
    return dict(zip(dict.fromkeys(task["unit"] for task in entry["tasks"]), ascii_lowercase, strict=False))


def difference_cell(found: Mapping[str, float]) -> str:
    """A difference with its interval, in bold if it is below 0 beyond chance.

    >>> difference_cell({"mean": -7.84, "low": -9.0, "high": -6.7})
    '**-7.8** (-9.0 to -6.7)'
    """
    low, high = found["low"], found["high"]
    return _cell(found["mean"], low, high, decimals_for((high - low) / 4.0), bold=high < 0.0)


def _cell(value: float, low: float, high: float, decimals: int, *, bold: bool) -> str:
    shown, *ends = (f"{round(each, decimals) + 0.0:,.{decimals}f}" for each in (value, low, high))
    return f"{f'**{shown}**' if bold else shown} ({ends[0]} to {ends[1]})"


def decimals_for(error: float) -> int:
    """How many decimals a number with this standard error deserves: the error's first digit, at most three.

    >>> decimals_for(12.0), decimals_for(0.4), decimals_for(0.0)
    (0, 1, 0)
    """
    return min(3, max(0, -math.floor(math.log10(error)))) if error > 0.0 else 0


def to_latex(entry: Mapping[str, Any]) -> str:
    """Both tables in LaTeX, for a paper that loads booktabs, longtable and siunitx."""
    return f"{_groups_in_latex(entry).to_latex()}\n{_tasks_in_latex(entry).to_latex()}"


def _groups_in_latex(entry: Mapping[str, Any]) -> Table:
    columns = [Column("group", "l", width=0.2)]
    for name in REFERENCES:
        columns += [Column("ratio", decimals=2, over=name), Column("95 %", "c", over=name)]
    rows: list[Row] = []
    for group in entry["groups"]:
        row: list[Cell | str] = [group["title"]]
        for name in REFERENCES:
            found = ratios.of_group(group, name)
            row.append(Cell(found.ratio, bold=found.verdict == "better"))
            row.append(f"{found.low:.2f}, {found.high:.2f}")
        rows.append(row)
    caption = f"Regret of {entry['policy']['name']} as a multiple of each reference's: {RATIOS}, with 95 % intervals. Below 1 is better; bold: better beyond chance. {_made(entry)}"
    return Table(columns, rows, caption, "tab:benchmark-groups")


def _tasks_in_latex(entry: Mapping[str, Any]) -> Table:
    columns = [Column("task", "l"), Column("mean"), *(Column(name, over="minus") for name in REFERENCES)]
    rows: list[Row] = []
    for task in entry["tasks"]:
        regret = task["regret"]
        row: list[Cell | str] = [task["name"], Cell(regret["mean"], regret["standard_error"])]
        for name in REFERENCES:
            found = task["differences"][name]
            half = (found["high"] - found["low"]) / 2.0
            row.append(Cell(found["mean"], half, bold=found["high"] < 0.0))
        rows.append(row)
    caption = (
        f"Mean regret of {entry['policy']['name']} with its standard error, and its differences from the references', run "
        f"by run, with half the width of their 95 % intervals. Below 0 is better; "
        f"bold: better beyond chance. {_made(entry)}"
    )
    return Table(columns, rows, caption, "tab:benchmark-tasks", long=True)


def _made(entry: Mapping[str, Any]) -> str:
    """What made the numbers."""
    about, runs = entry["environment"], sorted({task["runs"] for task in entry["tasks"]})
    return (
        f"Suite {entry['suite']}, {entry['size']} size, {' or '.join(map(str, runs))} runs, seed {entry['seed']}; "
        f"decoupled {about['decoupled']}, {about['architecture']}."
    )

"""Tables of final regret for a paper: policies and environments, with the significantly lowest in bold."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from .. import __version__
from ..base.arrays import Floats
from ..base.latex import Cell, Column, Row, Table, decimals_of
from ..base.validation import number_in, one_of
from .intervals import interval

if TYPE_CHECKING:
    from .results import Results

Spread: TypeAlias = Literal["error", "interval"]
"""What follows ± in a table: the standard error, or half the interval of the mean."""
_FEW = 2  # decimals where one run leaves no error to choose them by
_ALIKE = 2  # a column has as many decimals everywhere, if its errors differ by no more than so many


def lowest(regrets: Sequence[Floats], level: float = 0.95) -> int | None:
    """The policy whose regret is significantly lower than that of every other; None if there is none.

    The mean difference from each other policy, run by run, has an interval (Student's t) at the level that Bonferroni's
    correction asks for, and all of them lie below zero. A policy that is no better than another passes only if its
    interval against the best of the others is wrong, so the chance that one passes is at most 1 - `level`. This needs
    runs that are independent of each other. It is right against adversaries, too, where two policies share only seeds.

    >>> import numpy as np
    >>> lowest([np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.1, 5.9])]), lowest([np.array([1.0, 2.0]), np.array([1.1, 1.9])])
    (0, None)
    """
    if len(regrets) < 2:
        return None
    best = min(range(len(regrets)), key=lambda number: float(regrets[number].mean()))
    joint = 1.0 - (1.0 - level) / (len(regrets) - 1)
    # With one run the ends are NaN, and so no comparison holds.
    ends = [
        interval(regrets[best] - each, joint)[3] for number, each in enumerate(regrets) if number != best
    ]
    return best if all(end < 0.0 for end in ends) else None


def regret_table(
    cells: Mapping[str, "Results"],
    names: Mapping[str, Sequence[str]] | None = None,
    *,
    spread: Spread = "error",
    level: float = 0.95,
    caption: str | None = None,
    label: str = "tab:regret",
) -> Table:
    """The table of one environment with medians and 99th percentiles, or of several with one mean in each place.

    Args:
        cells: results by the name of their environment.
        names: the names of the policies in each of them, in order; None for `Results.names`.
        spread: what follows ±.
        level: the level of the intervals, and of the rule for bold.
        caption: None for one that says what was run, and how to read the table.
        label: what the text refers to the table by.
    """
    one_of("spread", spread, ("error", "interval"))
    level = number_in("level", level, 0.0, 1.0, remedy="the default is 0.95")
    called = {cell: results.names() if names is None else names[cell] for cell, results in cells.items()}
    means = {cell: _means(results, spread, level) for cell, results in cells.items()}
    if caption is None:
        caption = _caption(cells, spread, level)
    if len(cells) == 1:
        (results,), (shown,), (found,) = cells.values(), called.values(), means.values()
        columns, rows = _alone(results, shown, found)
    else:
        columns, rows = _together(_rows(called, cells), means)
    return Table(columns, rows, caption, label)


def _means(results: "Results", spread: Spread, level: float) -> dict[str, Cell]:
    """The mean of every policy by its label, in bold if it is significantly the lowest."""
    best = lowest([results.final_regret(label) for label in results.labels], level)
    cells = {}
    for number, (label, line) in enumerate(results.statistics(level=level).items()):
        error = line["standard_error"] if spread == "error" else line["high"] - line["mean"]
        cells[label] = Cell(line["mean"], error, number == best)
    return cells


def _alone(
    results: "Results", names: Sequence[str], means: Mapping[str, Cell]
) -> tuple[list[Column], list[Row]]:
    others = {"median": "Median", "p99": "99th percentile"}
    others |= {"switches": "Switches of a key"} if results.has_switches else {}
    others |= {"gain": "Gain", "segment_regret": "Regret against segments"} if results.has_segments else {}
    mean = _column("Mean regret", list(means.values()))
    columns = [Column("Policy", "l"), mean]
    columns += [Column(head, decimals=_finest(means.values())) for head in others.values()]
    rows: list[Row] = [
        [name, means[label], *(line[key] for key in others)]
        for name, (label, line) in zip(names, results.statistics().items(), strict=True)
    ]
    return columns, rows


def _together(
    policies: Mapping[str, str], means: Mapping[str, Mapping[str, Cell]]
) -> tuple[list[Column], list[Row]]:
    """Policies and environments; there are more rows than columns, because a page is higher than it is wide."""
    grid = {name: {cell: means[cell].get(label) for cell in means} for label, name in policies.items()}
    if len(means) <= len(policies):
        columns = [_column(cell, [row[cell] for row in grid.values()]) for cell in means]
        return [Column("Policy", "l"), *columns], [[name, *row.values()] for name, row in grid.items()]
    everything = [cell for row in grid.values() for cell in row.values()]  # a reader compares within a row
    columns = [_column(name, everything) for name in grid]
    rows: list[Row] = [[cell, *(row[cell] for row in grid.values())] for cell in means]
    return [Column("Environment", "l"), *columns], rows


def _rows(called: Mapping[str, Sequence[str]], cells: Mapping[str, "Results"]) -> dict[str, str]:
    """The name of every policy by its label; if two have the same in different environments, their labels."""
    found: dict[str, str] = {}
    for cell, results in cells.items():
        for label, name in zip(results.labels, called[cell], strict=True):
            found.setdefault(label, name)
    shown = list(found.values())
    return {label: name if shown.count(name) == 1 else label for label, name in found.items()}


def _column(head: str, cells: Sequence[Cell | None]) -> Column:
    """A column of means: all with two digits of the smallest error among `cells`, or of their own if errors differ much."""
    needed = [decimals for cell in cells if (decimals := _decimals(cell)) is not None]
    alike = not needed or max(needed) - min(needed) <= _ALIKE
    return Column(head, decimals=_finest(cells) if alike else None)


def _finest(cells: Iterable[Cell | None]) -> int:
    return max((decimals for cell in cells if (decimals := _decimals(cell)) is not None), default=_FEW)


def _decimals(cell: Cell | None) -> int | None:
    return None if cell is None or cell.error is None else decimals_of(cell.error)


def _caption(cells: Mapping[str, "Results"], spread: Spread, level: float) -> str:
    """What was run, what is shown, and what bold means."""
    single = all(results.runs < 2 for results in cells.values())
    percent = f"{100 * level:g} %"
    sizes = {
        cell: f"{each.runs:,} run{'s' if each.runs > 1 else ''} of {each.horizon:,} rounds, seed {each.specification['seed']}"
        for cell, each in cells.items()
    }
    where = f" on {next(iter(cells.values())).world}" if len(cells) == 1 else ""
    around = "standard error" if spread == "error" else f"half-width of its {percent} interval"
    what = "" if single else f"mean ± {around} over "
    extent = "; ".join(f"{cell}: {size}" for cell, size in sizes.items())
    if len(set(sizes.values())) == 1:
        extent = next(iter(sizes.values()))
    elif not single:
        extent = f"the runs ({extent})"
    parts = [f"Final regret{where}: {what}{extent}."]
    if not single and any(len(each.labels) > 1 for each in cells.values()):
        there = " in that environment" if len(cells) > 1 else ""
        rule = f"paired by run, {percent} intervals with Bonferroni's correction"
        parts.append(f"Bold: significantly lower than every other policy{there} ({rule}).")
    return " ".join([*parts, f"Made with decoupled {__version__}."])

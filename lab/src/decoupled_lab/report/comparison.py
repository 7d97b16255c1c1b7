"""A report on your own simulations: policies and environments on one page."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from decoupled import simulation
from decoupled.errors import ParameterError, near_name
from decoupled.plots import Panel, Picture
from decoupled.policies import Policy
from decoupled.simulation import Band, Labels, Results

from .page import ReportTable, Section, write_report


def compare(
    results: Mapping[str, Results],
    out: str | os.PathLike[str],
    title: str = "Comparison",
    *,
    band: Band = "mean",
    labels: Labels | None = None,
    against: Policy | str | None = None,
    latex: bool = False,
) -> Path:
    """Write a folder with report.html, the figure in every format and its data; return the path of the page.

    The table has the mean regret of every policy with its interval, and the paired difference from one of them: the
    first, unless you name another. Against an adversary no difference is paired, because it reacts to each policy.

    Args:
        results: the results of `simulate`, by the name of their environment.
        out: the folder to write to.
        title: the heading of the page.
        band: what the bands around the curves show, as in `Results.plot`.
        labels: names of the policies, as in `Results.plot`.
        against: the policy, or its label, that the others are compared with run by run.
        latex: whether to write a table of each environment for LaTeX as well: comparison/table.tex.

    >>> import decoupled as dc, tempfile
    >>> import decoupled_lab as lab
    >>> worlds = {"easy": dc.environments.Bernoulli([0.2, 0.7]), "hard": dc.environments.Bernoulli([0.5, 0.6])}
    >>> found = {name: dc.simulate([dc.FTPL(), dc.Exp3()], world, 100, 20) for name, world in worlds.items()}
    >>> lab.compare(found, tempfile.mkdtemp()).name
    'report.html'
    """
    if not (
        isinstance(results, Mapping)
        and results
        and all(isinstance(each, Results) for each in results.values())
        and all(isinstance(name, str) for name in results)
    ):
        rule = "must be a dictionary of one or more Results by the names of their environments"
        raise ParameterError.of("results", results, rule, "give {'my world': dc.simulate(...)}")
    _check_known("labels", labels if isinstance(labels, Mapping) else (), results)
    _check_known("against", () if against is None else (against,), results)
    what = {
        name: simulation.described(simulation.checked_band(band), each.runs)
        for name, each in results.items()
    }
    panels = tuple(
        Panel(name, each.series(_labels_of(each, labels), band), y_label=what[name])
        for name, each in results.items()
    )
    caption = f"By round: {'; '.join(dict.fromkeys(what.values()))}."
    picture = Picture("comparison", title, caption, panels, columns=min(3, len(panels)))
    shown = (
        "{0.setting}: {0.runs:,} runs of {0.horizon:,} rounds, seed {0.specification[seed]}".format
    )
    facts = {name: shown(each) for name, each in results.items()}
    table = regret_table("Final regret", results, labels, _rivals(results, against))
    section = Section("", (), (picture,), (table,), name="comparison", title=title)
    return write_report(Path(out), title, _what_was_met(results), facts, [section], latex=latex)


def regret_table(
    title: str,
    cells: Mapping[str, Results],
    labels: Labels | None = None,
    rivals: Mapping[str, str] | None = None,
) -> ReportTable:
    """The final regret of every policy: mean with interval, median and 99th percentile.

    If all cells have contexts, two columns have the gain over the best single arm and the regret against segments. Where a cell has a rival, the label of one of its policies, two columns have the paired difference from it.
    """
    names = {cell: results.names(_labels_of(results, labels)) for cell, results in cells.items()}
    segments = all(results.has_segments for results in cells.values())
    rows = [
        row
        for cell, results in cells.items()
        for row in simulation.regret_rows(
            results,
            [f"{cell}: {name}" if cell else name for name in names[cell]],
            (rivals or {}).get(cell),
            segments=segments,
            paired=bool(rivals),
        )
    ]
    head = simulation.REGRET_HEAD + (simulation.SEGMENT_HEAD if segments else ())
    head += _heads(cells, labels, rivals) if rivals else ()

    def latex(label: str) -> str:
        numbered = enumerate(cells.items(), 1)
        return "\n".join(
            each.to_latex(labels=names[cell], label=f"{label}-{at}")
            for at, (cell, each) in numbered
        )

    return ReportTable(title, head, tuple(rows), latex)


def _heads(
    cells: Mapping[str, Results], labels: Labels | None, rivals: Mapping[str, str]
) -> tuple[str, str]:
    """The heads of the two columns, with the name of the rival if all cells have the same."""
    names = set()
    for cell, label in rivals.items():
        results = cells[cell]
        names.add(results.names(_labels_of(results, labels))[results.labels.index(label)])
    of = names.pop() if len(names) == 1 else "the first policy"
    return f"difference from {of}", "95 % interval, paired"


def _rivals(results: Mapping[str, Results], against: Policy | str | None) -> dict[str, str]:
    """The policy that others are compared with, in each cell that has others and where runs are paired."""
    rivals = {}
    for name, each in results.items():
        rival = each.labels[0] if against is None else _label(against)
        if each.same_losses and len(each.labels) > 1 and rival in each.labels:
            rivals[name] = rival
    return rivals


def _what_was_met(results: Mapping[str, Results]) -> str:
    reacting = [name for name, each in results.items() if not each.same_losses]
    if not reacting:
        return "Every policy met the same losses in the same run."
    if len(reacting) == len(results):
        return "The environment reacts to what is played, so each policy met losses of its own."
    return (
        f"Every policy met the same losses in the same run, except in {', '.join(reacting)}: "
        "there the environment reacts to what is played, so each policy met losses of its own."
    )


def _labels_of(results: Results, labels: Labels | None) -> Labels | None:
    """The names of the policies that are among these results: other cells may have other policies."""
    if not isinstance(labels, Mapping):
        return labels
    return {label: name for key, name in labels.items() if (label := _label(key)) in results.labels}


def _check_known(
    argument: str, named: Iterable[Policy | str], results: Mapping[str, Results]
) -> None:
    known = [label for each in results.values() for label in each.labels]
    for label in map(_label, named):
        if label not in known:
            rule = "names a policy that is not among the results"
            raise ParameterError.of(argument, label, rule, near_name(label, known))


def _label(policy: Policy | str) -> str:
    return policy.label if isinstance(policy, Policy) else policy

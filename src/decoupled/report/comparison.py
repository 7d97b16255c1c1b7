"""A report on your own simulations: policies and environments on one page."""

import os
from collections.abc import Mapping
from pathlib import Path

from ..errors import ParameterError, invalid_value, near_name
from ..plots import Panel, Picture
from ..policies import Policy
from ..simulation import Results
from ..simulation.bands import Band, checked_band, described
from ..simulation.naming import Labels
from .folder import write_report
from .section import Section, Table


def compare(
    results: Mapping[str, Results],
    out: str | os.PathLike[str],
    title: str = "Comparison",
    *,
    band: Band = "mean",
    labels: Labels | None = None,
) -> Path:
    """Write a folder with report.html, the figure in every format and its data; return the path of the page.

    Args:
        results: the results of `simulate`, by the name of their environment.
        out: the folder to write to.
        title: the heading of the page.
        band: what the bands around the curves show, as in `Results.plot`.
        labels: names of the policies, as in `Results.plot`.

    >>> import decoupled as dc, tempfile
    >>> worlds = {"easy": dc.environments.Bernoulli([0.2, 0.7]), "hard": dc.environments.Bernoulli([0.5, 0.6])}
    >>> found = {name: dc.simulate([dc.FTPL(), dc.Exp3()], world, 100, 20) for name, world in worlds.items()}
    >>> dc.compare(found, tempfile.mkdtemp()).name
    'report.html'
    """
    if not results or not all(isinstance(each, Results) for each in results.values()):
        rule = "must be a dictionary of one or more Results"
        raise ParameterError(invalid_value("results", results, rule, "give {'my world': dc.simulate(...)}"))
    _check_known(labels, results)
    panels = tuple(
        Panel(name, each.series(_labels_of(each, labels), band)) for name, each in results.items()
    )
    what = {described(checked_band(band), each.runs): None for each in results.values()}
    caption = f"By round: {'; '.join(what)}."
    picture = Picture("comparison", title, caption, panels, columns=min(3, len(panels)))
    facts = {
        name: f"{each.world}: {each.runs:,} runs of {each.horizon:,} rounds, "
        f"seed {each.specification['seed']}"
        for name, each in results.items()
    }
    section = Section(
        "comparison", title, "", (), (picture,), (regret_table("Final regret", results, labels),)
    )
    return write_report(Path(out), title, "Every policy met the same losses.", facts, [section])


def regret_table(title: str, cells: Mapping[str, Results], labels: Labels | None = None) -> Table:
    """The final regret of every policy: mean with interval, median and 99th percentile."""
    rows = []
    for cell, results in cells.items():
        names = results.names(_labels_of(results, labels))
        for name, line in zip(names, results.statistics().values(), strict=True):
            mean, low, high, median, p99 = (
                f"{line[key]:,.1f}" for key in ("mean", "low", "high", "median", "p99")
            )
            rows.append((f"{cell}: {name}" if cell else name, mean, f"{low} to {high}", median, p99))
    head = ("policy", "mean regret", "95 % interval", "median", "99th percentile")
    return Table(title, head, tuple(rows))


def _labels_of(results: Results, labels: Labels | None) -> Labels | None:
    """The names of the policies that are among these results: other cells may have other policies."""
    if not isinstance(labels, Mapping):
        return labels
    return {label: name for key, name in labels.items() if (label := _label(key)) in results.labels}


def _check_known(labels: Labels | None, results: Mapping[str, Results]) -> None:
    known = [label for each in results.values() for label in each.labels]
    for label in map(_label, labels) if isinstance(labels, Mapping) else ():
        if label not in known:
            rule = "names a policy that is not among the results"
            raise ParameterError(invalid_value("labels", label, rule, near_name(label, known)))


def _label(policy: Policy | str) -> str:
    return policy.label if isinstance(policy, Policy) else policy

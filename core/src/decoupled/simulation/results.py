"""Labelled results: summaries, tables, plots, saving and loading."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from .. import __version__
from ..base.arrays import Floats
from ..base.extras import needed_for, require
from ..base.files import replacing
from ..base.names import short_labels
from ..base.validation import check_number, one_of
from ..environments import ContextTable, Environment
from ..environments.base import Adversary
from ..errors import ParameterError, StorageError, UnsupportedError, near_name
from ..plots import DOTS_PER_INCH, EMBEDDED, NAMES, Panel, Picture, Series, draw, fill, styles
from ..policies import Policy
from .cpu import BlockResult
from .intervals import (
    Band,
    between_quantiles,
    checked_band,
    described,
    half_width,
    interval,
    paired,
)
from .labelled import CurveMoments, Labelled
from .plan import Block, Plan, policy_of
from .tables import Labels, Spread, lowest, regret_table, renamed
from .traffic import traffic_of

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMAT = "decoupled-results"
VERSION = 1
_WRITTEN = "give a file that Results.save wrote"


class Results:
    """The results of a simulation, as a labelled data set (`results.data`, an xarray Dataset).

    It holds `final_regret` (policy x run), `regret_mean` and `regret_std` (policy x round) and
    `plays` (policy x role x arm, counted over all runs). Unless you leave it out to save memory, it
    also holds `regret` (policy x run x round). Rounds are the checkpoints. On a `ContextTable` it
    holds `available` (run): what the best arm for each segment gains over the best single arm.

    Args:
        data: the measured values: call `simulate` or `Results.load` to get them.

    >>> import decoupled as dc
    >>> easy = dc.environments.Bernoulli(rewards=[0.2, 0.7])
    >>> results = dc.simulate([dc.FTPL(), dc.Exp3()], easy, horizon=100, runs=20, seed=0)
    >>> results.final_regret(dc.FTPL()).shape, results.labels
    ((20,), ['FTPL', 'Exp3'])
    """

    def __init__(self, data: "xr.Dataset | Labelled") -> None:
        self._data = data

    def __repr__(self) -> str:
        return f"<Results of {', '.join(self.labels)}: {self.runs} runs, {self.horizon} rounds>"

    @property
    def data(self) -> "xr.Dataset":
        """The results as an xarray data set."""
        if isinstance(self._data, Labelled):
            with needed_for("results.data"):
                import xarray as xr
            self._data = xr.Dataset(self._data.variables, attrs=self._data.attrs)
        return self._data

    def _values(self, name: str) -> Any:
        """The values of a variable, without loading xarray for them."""
        if isinstance(self._data, Labelled):
            return self._data.values(name)
        return self._data[name].values

    @property
    def labels(self) -> list[str]:
        """The policies' labels, in order: what `final_regret` takes, and the index of `summary`."""
        return [str(label) for label in self._values("policy")]

    @property
    def short_labels(self) -> list[str]:
        """The labels of the policies in order; a long one keeps the first parameters that fit.

        >>> import decoupled as dc
        >>> easy = dc.environments.Bernoulli(rewards=[0.2, 0.7])
        >>> tuned = dc.Ladder(mean_rate=0.5, hedge_rate=0.25, uniform_share=0.125)
        >>> dc.simulate([dc.FTPL(), tuned], easy, horizon=100, runs=20, seed=0).short_labels
        ['FTPL', 'Ladder(hedge_rate=0.25, …)']
        """
        try:
            return short_labels([policy_of(entry) for entry in self.specification["policies"]])
        except ParameterError:  # a user's policy that this process does not know
            return self.labels

    @property
    def runs(self) -> int:
        """The number of runs of each policy."""
        return self._data.sizes["run"]

    @property
    def horizon(self) -> int:
        """The number of rounds in a run."""
        return int(self._values("round")[-1])

    @property
    def environment(self) -> str:
        """The label of the environment."""
        return str(self._data.attrs["environment"])

    @property
    def specification(self) -> dict[str, Any]:
        """The plan these results came from, as plain values."""
        plan: dict[str, Any] = json.loads(self._data.attrs["plan"])
        return plan

    @property
    def setting(self) -> str:
        """The environment, and what traffic did to feedback if it was not direct: for titles.

        >>> import decoupled as dc
        >>> easy = dc.environments.Bernoulli(rewards=[0.2, 0.7])
        >>> traffic = dc.Traffic(delay=10, missing=0.5)
        >>> dc.simulate(dc.FTPL(), easy, horizon=100, runs=20, seed=0, traffic=traffic).setting
        'Bernoulli(rewards=(0.2, 0.7)), delay 10, missing 0.5'
        """
        return ", ".join(filter(None, (self.environment, traffic_of(self.specification).label)))

    @property
    def same_losses(self) -> bool:
        """Whether all policies met the same losses in each run, so that differences are paired.

        An adversary reacts to each policy, so there the runs share only their seeds. It is also
        false if this process does not know the environment, such as one that was defined in another
        script.

        >>> import decoupled as dc
        >>> easy = dc.environments.Bernoulli([0.2, 0.7])
        >>> dc.simulate(dc.FTPL(), easy, horizon=100, runs=2, seed=0).same_losses
        True
        >>> adversary = dc.environments.PunishLast(arms=2)
        >>> dc.simulate(dc.FTPL(), adversary, horizon=100, runs=2, seed=0).same_losses
        False
        """
        try:
            environment = Environment.from_dict(self.specification["environment"])
        except ParameterError:
            return False
        return not isinstance(environment, Adversary)

    def _label(self, policy: Policy | str) -> str:
        label = policy.label if isinstance(policy, Policy) else policy
        if label not in self.labels:
            rule = "is not among these results"
            raise ParameterError.of("policy", label, rule, near_name(label, self.labels))
        return label

    def final_regret(self, policy: Policy | str) -> Floats:
        """The regret of every run at the horizon, for a policy or its label.

        Args:
            policy: the policy, or its label.
        """
        return np.array(self._values("final_regret")[self.labels.index(self._label(policy))])

    def _has(self, name: str) -> bool:
        return name in (self._data.variables if isinstance(self._data, Labelled) else self._data)

    @property
    def has_segments(self) -> bool:
        """Whether rounds had a context, so that there is a best arm for each segment."""
        return self._has("available")

    def segment_regret(self, policy: Policy | str) -> Floats:
        """The regret at the horizon against the best arm of each segment of the `ContextTable`.

        Args:
            policy: the policy, or its label.

        >>> import decoupled as dc
        >>> losses, subjects = [[0.1, 0.9], [0.8, 0.2]] * 50, ["law", "art"] * 50
        >>> table = dc.environments.ContextTable(losses, {"subject": subjects})
        >>> results = dc.simulate(dc.Ladder(), table, horizon=100, runs=4)
        >>> (results.segment_regret("Ladder") - results.final_regret("Ladder")).round(6).tolist()
        [30.0, 30.0, 30.0, 30.0]
        """
        if not self.has_segments:
            rule = "rounds had no context in these results; simulate with environments.ContextTable"
            raise UnsupportedError(f"segment_regret: {rule}")
        regret: Floats = self.final_regret(policy) + self._values("available")
        return regret

    def summary(self, against: Policy | str | None = None, level: float = 0.95) -> "pd.DataFrame":
        """A table of final regret, one row per policy.

        The columns are `mean`, `standard_error`, the interval of the mean from `low` to `high` at
        the given level (Student's t), `median`, and `p99`, the 99th percentile over runs. With
        `against`, further columns compare each policy with that one, run by run: the mean
        difference, its interval, and the p-value of a paired t test; see `same_losses`. On a
        `ContextTable`, `gain` is the loss that a policy saves over the best single arm, -`mean`,
        and `segment_regret` is its mean regret against the best arm for each segment.

        Args:
            against: the policy to compare each with, or its label; None compares nothing.
            level: the level of the intervals, in (0, 1).

        >>> import decoupled as dc
        >>> easy = dc.environments.Bernoulli(rewards=[0.2, 0.7])
        >>> results = dc.simulate([dc.FTPL(), dc.Exp3()], easy, horizon=100, runs=20, seed=0)
        >>> columns = list(results.summary(against="Exp3").columns)
        >>> columns[:6]
        ['mean', 'standard_error', 'low', 'high', 'median', 'p99']
        >>> columns[6:]
        ['difference', 'difference_low', 'difference_high', 'p_value']
        """
        with needed_for("summary()"):
            import pandas as pd
        table = pd.DataFrame.from_dict(self.statistics(against, level), orient="index")
        table.index.name = "policy"
        table.attrs["interval"] = f"{float(level):.0%} interval of the mean, Student's t"
        return table

    def statistics(
        self, against: Policy | str | None = None, level: float = 0.95
    ) -> dict[str, dict[str, float]]:
        """The rows of `summary` as plain numbers, by the policies' labels.

        Args:
            against: the policy to compare each with, or its label; None compares nothing.
            level: the level of the intervals, in (0, 1).

        >>> import decoupled as dc
        >>> easy = dc.environments.Bernoulli(rewards=[0.2, 0.7])
        >>> results = dc.simulate(dc.FTPL(), easy, horizon=100, runs=20, seed=0)
        >>> results.statistics()["FTPL"]["mean"] == results.summary()["mean"]["FTPL"]
        np.True_
        """
        level = check_number("level", level, "the default is 0.95", above=0.0, below=1.0)
        rival = None if against is None else self.final_regret(against)
        rows = {}
        for label in self.labels:
            regret = self.final_regret(label)
            mean, error, low, high = interval(regret, level)
            row = {
                "mean": mean,
                "standard_error": error,
                "low": low,
                "high": high,
                "median": float(np.median(regret)),
                "p99": float(np.quantile(regret, 0.99)),
            }
            if rival is not None:
                row.update(paired(regret - rival, level))
            if self.has_segments:
                row["gain"] = -mean
                row["segment_regret"] = float(self.segment_regret(label).mean())
            rows[label] = row
        return rows

    def to_latex(
        self,
        *,
        spread: Spread = "error",
        level: float = 0.95,
        labels: Labels | None = None,
        caption: str | None = None,
        label: str = "tab:regret",
    ) -> str:
        r"""The table of final regret in LaTeX, with booktabs, siunitx, and graphicx if it is wide.

        The columns are the mean, the median and the 99th percentile. The lowest mean is bold if it
        is significant: the mean difference from every other policy, run by run, has an interval
        below zero, with Bonferroni's correction for the number of others. A column shows two digits
        of its smallest standard error.

        Args:
            spread: what follows ±: "error" for the standard error, "interval" for half the interval
                of the mean.
            level: the level of the intervals, in (0, 1).
            labels: names of the policies, as in `plot`.
            caption: None for one with environment, runs, rounds, seed, the rule for bold and the
                version.
            label: what the text refers to the table by.

        >>> import decoupled as dc
        >>> easy = dc.environments.Bernoulli(rewards=[0.2, 0.7])
        >>> results = dc.simulate([dc.Ladder(), dc.Exp3()], easy, horizon=1_000, runs=20, seed=0)
        >>> table = results.to_latex()
        >>> print(table.partition(r"\toprule")[2].partition(r"\bottomrule")[0].strip())
        Policy & {Mean regret} & {Median} & {99th percentile} \\
        \midrule
        Ladder & \tablebold 1.20 \pm 0.39 & 0.50 & 6.00 \\
        EXP3 & 3.85 \pm 0.55 & 4.25 & 8.62 \\
        >>> "20 runs of 1,000 rounds, seed 0" in table
        True
        """
        one_of("spread", spread, ("error", "interval"))
        lines = self.statistics(level=level)
        best = lowest([self.final_regret(label) for label in self.labels], level)
        heads = {"median": "Median", "p99": "99th percentile"}
        if self.has_segments:
            heads["gain"] = "Gain"
            heads["segment_regret"] = "Regret against segments"
        rows = dict(zip(self.names(labels), lines.values(), strict=True))
        text = self._caption(spread, level) if caption is None else caption
        return regret_table(rows, heads, best, spread=spread, caption=text, label=label)

    def _caption(self, spread: Spread, level: float) -> str:
        """What was run, what is shown, and what bold means."""
        percent = f"{100 * level:g} %"
        single = self.runs < 2
        around = "standard error" if spread == "error" else f"half-width of its {percent} interval"
        what = "1 run" if single else f"mean ± {around} over {self.runs:,} runs"
        seed = self.specification["seed"]
        parts = [f"Final regret on {self.setting}: {what} of {self.horizon:,} rounds, seed {seed}."]
        if not single and len(self.labels) > 1:
            rule = f"paired by run, {percent} intervals with Bonferroni's correction"
            parts.append(f"Bold: significantly lower than every other policy ({rule}).")
        return " ".join([*parts, f"Made with decoupled {__version__}."])

    def plot(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        log: bool = False,
        band: Band = "mean",
        ax: "Axes | None" = None,
        labels: Labels | None = None,
        title: str | None = None,
    ) -> "Figure":
        """Plot the mean regret by round with a band around it.

        The label of the axis says what the band is.

        Args:
            path: the file to save the figure to, such as "regret.png" or "regret.pdf".
            log: whether the rounds are on a logarithmic scale.
            band: "mean" for the 95 % interval of the mean (Student's t), "std" for one standard
                deviation over runs, two quantiles of the runs such as (0.05, 0.95), or None for no
                band. Quantiles need the curve of every run: see `simulate(curves=...)`.
            ax: Matplotlib axes to draw into. Their title is left alone.
            labels: names for the legend, one for each policy in order or by policy. Others have
                their `short_labels`.
            title: the title; None for the environment and the number of runs. With `ax`, it is not
                used.

        >>> import decoupled as dc
        >>> easy = dc.environments.Bernoulli(rewards=[0.2, 0.7])
        >>> results = dc.simulate([dc.Ladder(), dc.FTPL()], easy, horizon=100, runs=20, seed=0)
        >>> figure = results.plot(band=(0.05, 0.95), labels={dc.FTPL(): "the paper's FTPL"})
        >>> figure.axes[0].get_ylabel()
        'mean regret, 5 % to 95 % of runs'
        >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
        ['Ladder', "the paper's FTPL"]
        """
        series = self.series(labels, band)
        traffic = traffic_of(self.specification).label if ax is None else ""
        what = described(checked_band(band), self.runs)
        panel = Panel(traffic, series, y_label=what, log_x=log)
        if ax is None:
            # Without traffic: both together are too wide.
            heading = f"{self.environment}, {self.runs:,} runs" if title is None else title
            figure = draw(Picture("regret", heading, "", (panel,)))
        else:
            fill(ax, panel)
            ax.legend(frameon=False)
            figure = cast("Figure", ax.get_figure(root=True))
        if path is not None:
            from matplotlib import rc_context

            Path(path).parent.mkdir(parents=True, exist_ok=True)
            with rc_context(EMBEDDED):
                figure.savefig(path, dpi=DOTS_PER_INCH)
        return figure

    def series(self, labels: Labels | None = None, band: Band = "mean") -> tuple[Series, ...]:
        """The mean regret of each policy by round, with a band and a label as in `plot`.

        Args:
            labels: names of the policies, as in `plot`; None for their `short_labels`.
            band: what the band shows, as in `plot`.

        >>> import decoupled as dc
        >>> easy = dc.environments.Bernoulli(rewards=[0.2, 0.7])
        >>> dc.simulate(dc.FTPL(), easy, horizon=100, runs=20, seed=0).series(["mine"])[0].label
        'mine'
        """
        rounds = np.asarray(self._values("round"), np.float64)
        means = self._values("regret_mean")
        bands = self._bands(checked_band(band))
        columns = zip(self.names(labels), means, bands, styles(self.labels), strict=True)
        return tuple(
            Series(name, rounds, mean, band_around, style)
            for name, mean, band_around, style in columns
        )

    def names(self, labels: Labels | None = None) -> list[str]:
        """The names of the policies in a figure or a table: those in `labels`, and the field's or
        `short_labels` for the others.

        Args:
            labels: names of the policies, as in `plot`; None for their `short_labels`.

        >>> import decoupled as dc
        >>> easy = dc.environments.Bernoulli(rewards=[0.2, 0.7])
        >>> results = dc.simulate([dc.FTPL(), dc.Exp3()], easy, horizon=100, runs=20, seed=0)
        >>> results.names({"FTPL": "the paper's"})
        ["the paper's", 'EXP3']
        """
        label_of: dict[Any, str] = {}
        if isinstance(labels, Mapping):
            label_of = {key: self._label(key) for key in labels}
        short = zip(self.labels, self.short_labels, strict=True)
        names = {label: NAMES.get(label, name) for label, name in short}
        return renamed(names, labels, label_of)

    def _bands(self, band: Band) -> "Floats | Sequence[Floats | None]":
        """The band of every policy, one after the other."""
        if band is None:
            return [None] * len(self.labels)
        if isinstance(band, str):
            return half_width(band, self._values("regret_std"), self.runs)
        if not self._has("regret"):
            rule = (
                "needs the curve of every run, "
                "and these results have only their mean and standard deviation"
            )
            remedy = 'simulate with curves="runs", or use band="mean" or band="std"'
            raise UnsupportedError(f"band = {band}: {rule}; {remedy}")
        curves = zip(self._values("regret_mean"), self._values("regret"), strict=True)
        return [between_quantiles(band, mean, runs) for mean, runs in curves]

    def to_pandas(self) -> "pd.DataFrame":
        """Regret in long format: policy, round, mean and standard deviation over runs.

        >>> import decoupled as dc
        >>> easy = dc.environments.Bernoulli(rewards=[0.2, 0.7])
        >>> results = dc.simulate(dc.FTPL(), easy, horizon=100, runs=20, seed=0, checkpoints=4)
        >>> results.to_pandas()["round"].tolist()
        [25, 50, 75, 100]
        """
        with needed_for("to_pandas()"):
            import pandas  # noqa: F401 # xarray makes the table with it
        return self.data[["regret_mean", "regret_std"]].to_dataframe().reset_index()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a netCDF file atomically; the same results give the same bytes.

        Args:
            path: the file to write; an existing file is replaced.
        """
        check_can_save("save()")
        with replacing(path) as temporary:
            self.data.to_netcdf(temporary, engine="h5netcdf")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Load results that `save` wrote.

        Args:
            path: the file that `save` wrote.

        Raises:
            StorageError: if the file does not contain results.

        >>> import decoupled as dc, pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "results.nc"
        >>> easy = dc.environments.Bernoulli(rewards=[0.2, 0.7])
        >>> results = dc.simulate(dc.FTPL(), easy, horizon=100, runs=20, seed=0)
        >>> results.save(path)
        >>> bool((dc.Results.load(path).final_regret("FTPL") == results.final_regret("FTPL")).all())
        True
        """
        check_can_save("Results.load()")
        import xarray as xr

        try:
            data = xr.load_dataset(path, engine="h5netcdf")
        except FileNotFoundError:
            raise
        except Exception as error:
            raise StorageError(f"{path}: is not a results file ({error}); {_WRITTEN}") from error
        if data.attrs.get("format") != FORMAT or int(data.attrs.get("version", 0)) != VERSION:
            raise StorageError(f"{path}: holds no results of version {VERSION}; {_WRITTEN}")
        return cls(data)


def check_can_save(purpose: str) -> None:
    """Raise an error if the packages that read and write results are missing, without loading them.

    >>> check_can_save("save()")
    """
    require(purpose, "xarray", "h5netcdf")


class ResultCollector:
    """Puts the results of blocks together, which come in the order of the plan.

    Args:
        plan: the plan of the blocks.
        keep_curves: whether to keep the curve of every run, or only their mean and standard
            deviation.

    Regret of two runs that another program has played:

    >>> import decoupled as dc
    >>> from decoupled.simulation import Block, BlockResult, make_plan
    >>> easy = dc.environments.Bernoulli(rewards=[0.2, 0.7])
    >>> plan = make_plan(dc.FTPL(), easy, horizon=10, runs=2, seed=0, checkpoints=[5])
    >>> collector = ResultCollector(plan, keep_curves=True)
    >>> plays = np.array([[3, 17], [10, 10]])
    >>> result = BlockResult(np.array([[0.5, 1.0], [0.5, 2.0]]), plays)
    >>> collector.add(Block(policy=0, first=0, last=2), result)
    >>> collector.results().final_regret("FTPL").tolist()
    [1.0, 2.0]
    """

    def __init__(self, plan: Plan, *, keep_curves: bool) -> None:
        policies = len(plan.policies)
        width = len(plan.checkpoints)
        self._plan = plan
        self._final = np.empty((policies, plan.runs))
        self._curves = np.empty((policies, plan.runs, width)) if keep_curves else None
        self._plays = np.zeros((policies, 2, plan.environment.arms), np.int64)
        self._moments = [CurveMoments(width) for _ in plan.policies]

    def add(self, block: Block, result: BlockResult) -> None:
        """Add the next block.

        Args:
            block: which runs these are.
            result: their results.
        """
        runs = slice(block.first, block.last)
        self._final[block.policy, runs] = result.regret[:, -1]
        if self._curves is not None:
            self._curves[block.policy, runs] = result.regret
        self._plays[block.policy] += result.plays
        self._moments[block.policy].add(result.regret)

    def results(self) -> Results:
        """The results, once every block was added."""
        for moments in self._moments:
            moments.finish()
        plan = self._plan
        environment = self._plan.environment
        variables: dict[str, tuple[tuple[str, ...], Any]] = {
            "final_regret": (("policy", "run"), self._final),
            "regret_mean": (
                ("policy", "round"),
                np.stack([moments.mean for moments in self._moments]),
            ),
            "regret_std": (
                ("policy", "round"),
                np.stack([moments.standard_deviation for moments in self._moments]),
            ),
            "plays": (("policy", "role", "arm"), self._plays),
            "policy": (("policy",), np.array([policy.label for policy in plan.policies])),
            "run": (("run",), np.arange(plan.runs)),
            "round": (("round",), np.array(plan.checkpoints, np.int64)),
            "role": (("role",), np.array(["exploit", "explore"])),
            "arm": (("arm",), np.arange(environment.arms)),
        }
        if self._curves is not None:
            variables["regret"] = (("policy", "run", "round"), self._curves)
        if isinstance(environment, ContextTable):
            variables["available"] = (("run",), _available_gains(plan, environment))
        attributes = {
            "format": FORMAT,
            "version": VERSION,
            "environment": environment.label,
            "plan": json.dumps(plan.to_dict()),
        }
        return Results(Labelled(variables, attributes))


def _available_gains(plan: Plan, table: ContextTable) -> Floats:
    """What the best arm for each segment gains over the best arm in each run."""
    # The same rows come in every run if their order is given, or if every row comes equally often.
    are_all_alike = table.order == "given" or plan.horizon % len(table.losses) == 0
    runs = range(1 if are_all_alike else plan.runs)
    gains = [table.available(table.row_at(plan.horizon, plan.seed, run)) for run in runs]
    return np.resize(gains, plan.runs)


REGRET_HEAD = ("policy", "mean regret", "95 % interval", "median", "99th percentile")
SEGMENT_HEAD = ("gain", "regret against segments")


def regret_rows(
    results: Results,
    names: Sequence[str],
    rival: str | None = None,
    *,
    segments: bool,
    paired: bool,
) -> Iterator[tuple[str, ...]]:
    """A row for each policy: mean with interval, median and 99th percentile.

    With `segments` there are two more columns: the gain over the best single arm and the regret
    against segments. With `paired` there are two with the difference from the rival, the label of
    one of the policies, run by run.

    >>> import decoupled as dc
    >>> easy = dc.environments.Bernoulli(rewards=[0.2, 0.7])
    >>> results = dc.simulate(dc.FTPL(), easy, horizon=100, runs=20, seed=0)
    >>> [row] = regret_rows(results, ["FTPL"], segments=False, paired=False)
    >>> len(row) == len(REGRET_HEAD)
    True
    """
    for name, (label, line) in zip(names, results.statistics(rival).items(), strict=True):
        plain = {key: f"{value:,.1f}" for key, value in line.items()}
        ends = f"{plain['low']} to {plain['high']}"
        row: tuple[str, ...] = (name, plain["mean"], ends, plain["median"], plain["p99"])
        if segments:
            row += (f"{line['gain']:+,.1f}", plain["segment_regret"])
        if paired and rival in (None, label):
            row += ("", "")
        elif paired:
            ends = f"{plain['difference_low']} to {plain['difference_high']}"
            row += (f"{line['difference']:+,.1f}", ends)
        yield row

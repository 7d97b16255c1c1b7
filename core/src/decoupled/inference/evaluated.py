"""The result of an evaluation: values with their intervals, as a table, plain values or a plot."""

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.extras import needed_for
from ..plots import COLOURS, DOTS_PER_INCH, SMALL, WIDTH, drawable
from .boundary import Interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Evaluated:
    """The value of an arm, of what was served, or of a candidate: its mean loss over the decisions
    of a log.

    Attributes:
        name: whose value it is.
        telling: how many observed losses it is estimated from.
        importance_weighted: unbiased.
        self_normalised: divided by the sum of the weights instead of their number.
        doubly_robust: unbiased, with a model as control variate; usually the most precise.
        low: the lower end of the interval.
        high: the upper end. If it is below `low` the interval is empty: no value agrees with the
            log.

    >>> Evaluated("a", 90, 0.42, 0.41, 0.41, 0.25, 0.5).scaled(0, 100).high
    50.0
    """

    name: str
    telling: int
    importance_weighted: float | None
    self_normalised: float | None
    doubly_robust: float | None
    low: float
    high: float

    @property
    def empty(self) -> bool:
        """Whether no value lies in the interval."""
        return self.low > self.high

    def scaled(self, low: float, high: float) -> "Evaluated":
        """The same value of losses in [low, high], from that of losses in [0, 1].

        Args:
            low: the lowest possible loss.
            high: the highest possible loss.
        """

        def from_unit(value: float) -> float:
            return low + (high - low) * value

        def from_unit_or_none(value: float | None) -> float | None:
            return None if value is None else from_unit(value)

        return Evaluated(
            name=self.name,
            telling=self.telling,
            importance_weighted=from_unit_or_none(self.importance_weighted),
            self_normalised=from_unit_or_none(self.self_normalised),
            doubly_robust=from_unit_or_none(self.doubly_robust),
            low=from_unit(self.low),
            high=from_unit(self.high),
        )


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Estimates from a log for its arms, for what was served, and for a candidate.

    `print` it for a table.

    Attributes:
        decisions: the rows of the log.
        observed: the decisions that the values are about: those with a loss, that could explore
            every arm.
        left_out: decisions with a loss that could not explore every arm.
        risk: the probability that an interval fails.
        drift: whether the intervals allow for losses that drift.
        arms: the value of each arm.
        served: the value of what was exploited; None if nothing was.
        candidate: the value of the candidate; None if there is none.
        candidate_minus_served: the difference of both: below 0 if the candidate would have cost
            less.
        remarks: what a reader should know about the log.

    >>> import decoupled as dc
    >>> rows = [
    ...     {"explore": "ab"[n % 2], "propensity": 0.5, "loss": 0.2 + n % 2 / 2}
    ...     for n in range(1_000)
    ... ]
    >>> print(dc.evaluate(rows))
               weighted   self-norm.  doubly rob.       95 % interval   losses
    a            0.2000       0.2000       0.1997    0.1747 to 0.3010      500
    b            0.7000       0.7000       0.7000    0.6120 to 0.7372      500
    """

    decisions: int
    observed: int
    left_out: int
    risk: float
    drift: bool
    arms: tuple[Evaluated, ...]
    served: Evaluated | None
    candidate: Evaluated | None
    candidate_minus_served: Interval | None
    remarks: tuple[str, ...]

    @property
    def values(self) -> tuple[Evaluated, ...]:
        """All values: of the arms, of what was served, and of the candidate."""
        others = (self.served, self.candidate)
        return (*self.arms, *(value for value in others if value is not None))

    def __str__(self) -> str:
        width = max(8, *(len(value.name) for value in self.values))
        level = f"{100 * (1 - self.risk):.4g} % interval"
        rows: list[tuple[str, ...]] = [
            ("", "weighted", "self-norm.", "doubly rob.", level, "losses")
        ]
        rows += [_row_of(value) for value in self.values]
        layout = f"{{:{width}}} {{:>10}} {{:>12}} {{:>12}} {{:>19}} {{:>8}}"
        lines = [layout.format(*row) for row in rows]
        difference = self.candidate_minus_served
        if difference is not None:
            interval = f"{difference.low:+.4f} to {difference.high:+.4f}"
            if difference.low > difference.high:
                interval = "empty"
            lines.append(
                f"candidate minus what was served: {difference.estimate:+.4f} ({interval})"
            )
        return "\n".join([*lines, *self.remarks])

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, for JSON."""
        content = asdict(self)
        content["arms"] = list(content["arms"])
        content["remarks"] = list(self.remarks)
        if self.candidate_minus_served is not None:
            content["candidate_minus_served"] = self.candidate_minus_served._asdict()
        return content

    def plot(self, path: str | os.PathLike[str] | None = None) -> "Figure":
        """Draw every value with its interval; save the figure to `path` if given.

        Args:
            path: the file to save the figure to, such as "values.png"; None saves nothing.
        """
        with needed_for("a picture"):
            from matplotlib.figure import Figure

        values = self.values[::-1]
        figure = Figure(figsize=(WIDTH, 1.1 + 0.35 * len(values)), layout="constrained")
        axes: Any = figure.add_subplot()
        for place, value in enumerate(values):
            colour = COLOURS[0] if value in self.arms else COLOURS[1]
            if value.empty:
                across = axes.get_yaxis_transform()
                axes.text(0.5, place, "empty", ha="center", va="center", transform=across)
                continue
            axes.plot([value.low, value.high], [place, place], color=colour, linewidth=2.0)
            if value.doubly_robust is not None:
                estimate = min(max(value.doubly_robust, value.low), value.high)
                axes.plot(estimate, place, "o", color=colour)
        axes.set_yticks(range(len(values)), [drawable(value.name) for value in values])
        axes.set_xlabel(f"mean loss, with {100 * (1 - self.risk):.4g} % interval", fontsize=SMALL)
        axes.tick_params(labelsize=SMALL)
        axes.set_title(f"{self.observed:,} observed decisions", fontsize=10)
        axes.grid(axis="x", alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
        if path is not None:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(path, dpi=DOTS_PER_INCH)
        return figure


def _row_of(value: Evaluated) -> tuple[str, ...]:
    """A row of the printed table."""
    estimates = (value.importance_weighted, value.self_normalised, value.doubly_robust)
    texts = ["-" if estimate is None else f"{estimate:.4f}" for estimate in estimates]
    interval = "empty" if value.empty else f"{value.low:.4f} to {value.high:.4f}"
    return (value.name, *texts, interval, f"{value.telling:,}")

"""Claims: a statement that can be measured, its measurements, and a verdict computed from them.

The verdicts are

- "holds": the whole interval of every part is on the claim's side of the threshold;
- "fails": the whole interval of some part is on the other side;
- "undecided": neither, or fewer than `LEAST_RUNS` runs, so more are needed;
- "holds only ...": the claim fails in general, but holds under the given condition;
- "not judged": the data or the solver that the claim is about was not available.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from decoupled.base import Floats
from decoupled.simulation import interval

from .text import readable

POWER = 0.9  # the chance that so many runs decide it, if the value measured so far is the true one
LEAST_RUNS = 5  # fewer decide nothing: their interval rests on means that are close to normal
MOST = 100_000_000  # runs; beyond this, the value is on the threshold for all that was measured

_LEVEL_QUANTILE, _POWER_QUANTILE = (
    1.959964,
    1.281552,
)  # of the normal distribution, at 0.975 and POWER


class Measure(NamedTuple):
    """A number with its interval, and what it was measured on."""

    of: str
    value: float
    low: float
    high: float
    runs: int = 0  # 0 if it does not come from a number of runs


def runs_to_decide(parts: Sequence[Measure], edges: Sequence[float]) -> int | None:
    """The runs after which no interval crosses an edge, with a probability of 90 % for each part.

    An interval of half-width h after n runs has half-width h sqrt(n / m) after m. With the distance d from the value
    to the nearest edge, and room for the value to move, m = n (h / d)^2 (1 + 1.28 / 1.96)^2. The intervals of joint
    claims are wider than 1.96 standard errors, so for them this is a little more than needed.

    It is None if every part is decided, if the runs of one are not known, or if they would be absurdly many.

    >>> runs_to_decide([Measure("all", 1.1, 0.9, 1.3, runs=100)], [1.0])
    1100
    """
    needed = [
        _runs(part, edges) for part in parts if any(part.low <= edge <= part.high for edge in edges)
    ]
    if not needed or max(needed) > MOST:
        return None
    step = int(10 ** max(0, math.floor(math.log10(max(needed))) - 1))
    return math.ceil(max(needed) / step) * step  # to two digits: the estimate has no more


def _runs(part: Measure, edges: Sequence[float]) -> float:
    distance = min(abs(part.value - edge) for edge in edges)
    half = (part.high - part.low) / 2.0
    if part.runs < 2 or distance == 0.0 or not math.isfinite(half):
        return math.inf
    return part.runs * (half / distance * (1.0 + _POWER_QUANTILE / _LEVEL_QUANTILE)) ** 2


HOLDS, FAILS, UNDECIDED, NOT_JUDGED = "holds", "fails", "undecided", "not judged"
LEVEL = 0.95


class Claim(NamedTuple):
    """A statement with its verdict; `parts` are the measurements behind the verdict, the decisive one first."""

    id: str
    place: str  # the place in the paper, or "ours"
    statement: str
    statistic: str
    threshold: str
    parts: tuple[Measure, ...]
    verdict: str
    runs_to_decide: int | None = None  # for an undecided claim, as far as it can be told

    @property
    def judged(self) -> bool:
        """Whether the measurements can decide the claim; if not, do not show them next to it."""
        return not self.verdict.startswith(NOT_JUDGED)

    def to_dict(self) -> dict[str, Any]:
        """The claim as plain values; numbers that are not finite become None."""
        parts = [
            {"of": of, "measured": _plain(value), "interval": [_plain(low), _plain(high)]}
            for of, value, low, high, _ in self.parts
        ]
        worst: dict[str, Any] = parts[0] if parts else {}
        return {
            "id": self.id,
            "place": readable(self.place),
            "statement": readable(self.statement),
            "statistic": readable(self.statistic),
            "threshold": self.threshold,
            "measured": worst.get("measured"),
            "interval": worst.get("interval"),
            "measured_on": worst.get("of"),
            "verdict": self.verdict,
            "runs_to_decide": self.runs_to_decide,
            "parts": parts,
        }


def _plain(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def mean_of(of: str, values: Floats, comparisons: int = 1) -> Measure:
    """The mean with its interval (Student's t), corrected for the number of comparisons (Bonferroni)."""
    mean, _, low, high = interval(values, 1.0 - (1.0 - LEVEL) / comparisons)
    if len(values) < 2:
        return Measure(of, mean, -math.inf, math.inf)
    return Measure(of, mean, low, high, len(values))


def ratio_of(of: str, above: Floats, below: Floats, comparisons: int = 1) -> Measure:
    """The ratio of two means over the same runs, with its interval by the delta method."""
    ratio = float(np.mean(above) / np.mean(below))
    spread = mean_of(of, (above - ratio * below) / float(np.mean(below)), comparisons)
    return Measure(of, ratio, ratio + spread.low, ratio + spread.high, len(above))


def quotient_of(
    of: str,
    above: Sequence[Floats | list[float]],
    below: Sequence[Floats | list[float]],
    comparisons: int = 1,
) -> Measure:
    """The product of the means of some samples over that of others, all independent (delta method, for logarithms)."""
    over, under = (
        [mean_of(of, np.asarray(each), comparisons) for each in some] for some in (above, below)
    )
    value = math.prod(each.value for each in over) / math.prod(each.value for each in under)
    factor = math.exp(
        math.hypot(*((each.high - each.value) / each.value for each in (*over, *under)))
    )
    return Measure(of, value, value / factor, value * factor)


def quantile_gap(
    of: str, above: Floats, below: Floats, quantile: float, comparisons: int = 1, draws: int = 1_000
) -> Measure:
    """One quantile minus another over the same runs, with its interval by the bootstrap over runs (seeded)."""
    value = float(np.quantile(above, quantile) - np.quantile(below, quantile))
    picks = np.random.default_rng(0).integers(len(above), size=(draws, len(above)))
    gaps = np.quantile(above[picks], quantile, axis=1) - np.quantile(below[picks], quantile, axis=1)
    # A thousand draws estimate the width of a normal distribution well, but not its far quantiles.
    half = float(gaps.std(ddof=1) * ndtri(1.0 - 0.5 * (1.0 - LEVEL) / comparisons))
    return Measure(of, value, value - half, value + half, len(above))


def judged(
    name: str, place: str, statement: str, statistic: str, parts: Sequence[Measure],
    low: float = -math.inf, high: float = math.inf,
) -> Claim:  # fmt: skip
    """The claim that every part lies between two numbers, with its verdict; if only some parts do, that names them.

    The parts that fail come first, and then those that are closest to failing.
    """
    edges = [edge for edge in (low, high) if math.isfinite(edge)]
    words = " and ".join(f"{edge:g}" for edge in edges)
    side = "between" if len(edges) > 1 else "above" if low in edges else "below"

    def tells(part: Measure) -> bool:
        return not 0 < part.runs < LEAST_RUNS

    def fails(part: Measure) -> bool:
        return tells(part) and (part.high < low or part.low > high)

    def room(part: Measure) -> float:
        return min(part.low - edge if edge == low else edge - part.high for edge in edges)

    ordered = tuple(sorted(parts, key=lambda part: (not fails(part), room(part))))
    holding = [part.of for part in parts if tells(part) and room(part) > 0.0]
    claim = Claim(name, place, statement, statistic, f"{side} {words}", ordered, HOLDS)
    if fails(ordered[0]):
        return claim._replace(verdict=_partly(holding, parts))
    if len(holding) < len(ordered):
        return claim._replace(verdict=UNDECIDED, runs_to_decide=runs_to_decide(parts, edges))
    return claim


def _partly(holding: Sequence[str], parts: Sequence[Measure]) -> str:
    if not holding:
        return FAILS
    if len(holding) <= 4:
        return f"holds only for {', '.join(holding)}"
    missing = [part.of for part in parts if part.of not in holding]
    if len(missing) <= 4:
        return f"holds only without {', '.join(missing)}"
    return f"holds only for {len(holding)} of {len(parts)}"


def not_judged(claim: Claim, reason: str) -> Claim:
    """The same claim, without a verdict: its measurements cannot decide it."""
    return claim._replace(verdict=f"{NOT_JUDGED}: {reason}", runs_to_decide=None)

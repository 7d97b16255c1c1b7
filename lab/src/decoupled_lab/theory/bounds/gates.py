"""The soft gate of the centred estimator, and how much one fall of an estimate can cost."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from decoupled.base import Floats, number_in
from decoupled.errors import ParameterError

from .arguments import shape_of

_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(96)


@dataclass(frozen=True)
class Gate:
    r"""The gate SOFT$(a, \delta)$: $b_i = \min(B, (a + \delta \eta u_i) p_i / \eta)$, with $0 < \delta < 1$ and $a \ge \delta$.

    It limits the largest fall of an estimate to $a + \delta y$ in units of $1 / \eta$, where $y$ is the arm's own scaled
    gap. The default is HALF: one observation takes at most half of the gap, plus $1 / (2 \eta)$, off an estimate.

    Args:
        a: the part of the limit that does not depend on the gap.
        delta: the share of its gap that an arm can make up in one round.

    >>> from decoupled_lab import theory
    >>> round(theory.bounds.Gate().fall_factor(alpha=3.0), 4)
    2.6667
    >>> round(theory.bounds.Gate(a=1.5, delta=0.5).fall_factor(alpha=3.0), 1)
    11.8
    """

    a: float = 0.5
    delta: float = 0.5

    def __post_init__(self) -> None:
        delta = number_in("delta", self.delta, 0.0, 1.0, "HALF has 1/2")
        a = number_in("a", self.a, 0.0, remedy="HALF has 1/2")
        if a < delta:
            raise ParameterError.of("a", a, f"must be at least delta = {delta:g}", "raise it")
        object.__setattr__(self, "a", a)
        object.__setattr__(self, "delta", delta)

    def largest_fall(self, gap: float) -> float:
        """The largest fall of an arm with this scaled gap.

        Args:
            gap: the arm's gap, times the learning rate.
        """
        return self.a + self.delta * gap

    def fall_factor(self, alpha: float = 3.0) -> float:
        """The factor Rbar by which a fall costs more than a rise of the same size: the largest R(x, y) of lemma L4.

        With a = delta, this is the closed form r(delta). Otherwise, it is a search over y.

        Args:
            alpha: the shape of the perturbations, above 1.
        """
        alpha = shape_of(alpha)
        if self.a == self.delta:
            return proportional_fall_factor(self.delta, alpha)
        return _soft_fall_factor(self, alpha)

    def switch_factor(self, alpha: float = 3.0) -> float:
        """The factor R1 by which a fall moves more keys than a rise of the same size.

        With a = delta it is ((1 - delta)^-alpha - 1) / (alpha delta). Otherwise it is (1 + a / (1 - delta))^(alpha + 1).

        Args:
            alpha: the shape of the perturbations, above 1.
        """
        alpha, rest = shape_of(alpha), 1.0 - self.delta
        if self.a == self.delta:
            return float((rest**-alpha - 1.0) / (alpha * self.delta))
        return float((1.0 + self.a / rest) ** (alpha + 1.0))


HALF = Gate()


def proportional_fall_factor(delta: float, alpha: float = 3.0) -> float:
    r"""The factor $r(\delta) = \int_0^1 2 (1 - v) (1 - \delta v)^{-(\alpha + 1)} dv$, in closed form."""
    # Substitute s = 1 - delta v; the antiderivatives of s^-alpha and s^-(alpha + 1) are powers, since alpha > 1.
    rest = 1.0 - delta
    first = (rest ** (1.0 - alpha) - 1.0) / (alpha - 1.0)
    second = (rest**-alpha - 1.0) / alpha
    return float(2.0 / delta**2 * (first - rest * second))


@lru_cache(maxsize=64)
def _soft_fall_factor(gate: Gate, alpha: float) -> float:
    return largest_fall_factor(gate.largest_fall, alpha)


def fall_ratio(s: ArrayLike, y: float) -> Floats:
    """The ratio rho(s, y) = (1 + max(s, y)) / (1 + (y - s)_+) of lemma L3, for s and y of at least 0."""
    s = np.asarray(s, np.float64)
    ratio: Floats = (1.0 + np.maximum(s, y)) / (1.0 + np.maximum(y - s, 0.0))
    return ratio


def jump_factor(x: float, y: float, alpha: float = 3.0) -> float:
    r"""The factor $R(x, y) = \int_0^1 2 (1 - v) \rho(x v, y)^{\alpha + 1} dv$ of lemma L4."""
    kink = min(y / x, 1.0)
    found = 0.0
    for low, high in ((0.0, kink), (kink, 1.0)):
        v = low + 0.5 * (high - low) * (1.0 + _NODES)
        values = 2.0 * (1.0 - v) * fall_ratio(x * v, y) ** (alpha + 1.0)
        found += 0.5 * (high - low) * float(_NODE_WEIGHTS @ values)
    return found


def largest_fall_factor(largest_fall: Callable[[float], float], alpha: float) -> float:
    """The largest R(x, y) over gaps y, where `largest_fall` gives x by y: a grid of y, and finer ones around its best."""
    gaps = np.concatenate(([0.0], np.geomspace(1e-3, 1e6, 400)))
    for _ in range(4):
        factors = [jump_factor(largest_fall(float(y)), float(y), alpha) for y in gaps]
        top = int(np.argmax(factors))
        best, low, high = factors[top], gaps[max(top - 1, 0)], gaps[min(top + 1, len(gaps) - 1)]
        gaps = np.linspace(low, high, 41)
    return float(best)

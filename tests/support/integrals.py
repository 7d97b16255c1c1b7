"""The perturbed leader's integrals in twenty-five digits, written from the definitions."""

from collections.abc import Sequence
from typing import Any

import mpmath  # type: ignore[import-untyped]

DIGITS = 25


def integral(
    places: Sequence[Any],
    alpha: float,
    arm: int,
    family: str = "pareto",
    power: int = 0,
    counts: Sequence[int] = (),
) -> Any:
    """The integral of r^power f(r) prod_{j != arm} F(z + places_j), r = z + places_arm, over all z.

    `counts` says how many arms share each place. The variable is s = 1/z with the leader at z >= 1 (Pareto)
    or z > 0 (Frechet), where z + v = (1 + s v) / s and dz = ds / s^2.
    """
    with mpmath.workdps(DIGITS):
        lowest = min(places)
        shifts = [mpmath.mpf(place) - lowest for place in places]
        a = mpmath.mpf(alpha)
        many = list(counts) or [1] * len(shifts)
        many[arm] -= 1

        def integrand(s: Any) -> Any:
            def tail(shift: Any) -> Any:
                return (s / (1 + s * shift)) ** a

            mine = (1 + s * shifts[arm]) / s
            value = a * mine ** (power - a - 1) / s**2
            if family == "frechet":
                return value * mpmath.exp(
                    -tail(shifts[arm]) - sum(n * tail(v) for v, n in zip(shifts, many, strict=True))
                )
            for shift, n in zip(shifts, many, strict=True):
                value *= (1 - tail(shift)) ** n
            return value

        last = mpmath.mpf(1) if family == "pareto" else mpmath.mpf(90) ** (1 / a)
        breaks = sorted({mpmath.mpf(0), last, *(1 / (1 + shift) for shift in shifts)})
        value, error = mpmath.quad(integrand, breaks, error=True, maxdegree=9)
        assert error < 1e-16 * max(1, abs(value))
        return value


def slope(places: Sequence[float], alpha: float, arm: int, other: int, family: str) -> float:
    """The central difference of arm's probability as `other` moves."""
    with mpmath.workdps(DIGITS):
        step = mpmath.mpf("1e-7")
        ends = []
        for sign in (1, -1):
            moved = [mpmath.mpf(place) for place in places]
            moved[other] += sign * step
            ends.append(integral(moved, alpha, arm, family))
        return float((ends[0] - ends[1]) / (2 * step))

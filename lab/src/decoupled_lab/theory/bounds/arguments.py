"""Checks the arguments that several bounds take."""

from collections.abc import Sequence

import numpy as np

from decoupled.base import Floats, as_float, number_in, whole_number
from decoupled.errors import ParameterError


def shape_of(alpha: float, high: float = 1e9) -> float:
    """Validate alpha, the shape of the Pareto perturbations."""
    return number_in("alpha", alpha, 1.0, high, "the paper has 3")


def scale_of(c: float) -> float:
    """Validate c, the scale of the learning rate."""
    return number_in("c", c, 0.0, remedy="the paper has 2")


def split_of(zeta: float) -> float:
    """Validate zeta, where lemma D.1 splits its two cases."""
    return number_in("zeta", zeta, 0.0, 1.0, "the paper has 0.1")


def size_of(horizon: int, arms: int) -> float:
    """Validate the horizon and the number of arms; return their product K * T."""
    rounds = whole_number("horizon", horizon, 1, "give the number of rounds")
    return float(rounds) * whole_number("arms", arms, 2, "give the number of arms")


def positive_gaps(gaps: Sequence[float]) -> Floats:
    """The gaps of all arms except the best one; one zero, for the best arm, is allowed and dropped."""
    numbers = [as_float(gap) for gap in gaps]
    positive = [gap for gap in numbers if gap is not None and 0.0 < gap <= 1.0]
    zeros = sum(gap == 0.0 for gap in numbers)
    if not positive or len(positive) + zeros < len(numbers) or zeros > 1:
        rule = "must be the gaps of the other arms, each in (0, 1], with at most one 0 for the best arm"
        raise ParameterError.of("gaps", gaps, rule, "the theorems assume that the best arm is unique")
    return np.array(positive)

"""Quantiles of Student's t against SciPy's."""

import pytest
from scipy.special import stdtrit

from decoupled.simulation.student import FARTHEST, MOST_DEGREES, t_quantile


@pytest.mark.parametrize("degrees", [*range(1, 12), 39, 99, 100, MOST_DEGREES - 1, MOST_DEGREES, 10**6])
@pytest.mark.parametrize("probability", [0.5, 0.6, 0.95, 0.975, 0.995, FARTHEST, 1.0 - 1e-12, 1.0])
def test_quantiles_are_those_of_scipy(probability: float, degrees: int) -> None:
    assert t_quantile(probability, degrees) == pytest.approx(
        float(stdtrit(degrees, probability)), rel=1e-11
    )

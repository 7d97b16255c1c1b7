"""Quantiles of Student's t against SciPy's."""

import pytest
from scipy.special import stdtrit

from decoupled.simulation.intervals import FARTHEST, MOST_DEGREES, t_quantile


@pytest.mark.parametrize("probability", [0.5, 0.6, 0.95, 0.975, 0.995, FARTHEST, 1.0 - 1e-12, 1.0])
def test_quantiles_are_those_of_scipy(probability: float) -> None:
    degrees = [*range(1, 12), 39, 99, 100, MOST_DEGREES - 1, MOST_DEGREES, 10**6]
    found = {each: t_quantile(probability, each) for each in degrees}
    assert found == pytest.approx({each: float(stdtrit(each, probability)) for each in degrees}, rel=1e-11)

"""Powers with exponents written out, against the general ones."""

import math

import mpmath  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decoupled.kernels.powers import inverse_power, power, tidy_exponent

EXPONENTS = (0.5, 1.0, 1.1, 1.5, 2.0, 2.5, 3.0, 5.5, 100.0)
# 1e3 ** -100 still is an ordinary floating-point number.
EXCESSES = st.floats(0.0, 1e3)


@pytest.mark.parametrize("exponent", EXPONENTS)
@settings(deadline=None)
@given(excess=EXCESSES)
def test_inverse_power(exponent: float, excess: float) -> None:
    with mpmath.workdps(40):
        expected = float((1 + mpmath.mpf(excess)) ** -mpmath.mpf(exponent))
    assert inverse_power(excess, exponent) == pytest.approx(expected, rel=2e-13)
    assert power(excess, exponent) == pytest.approx(1.0 / expected, rel=2e-13)


def test_inverse_power_keeps_its_digits_where_the_exponent_is_huge() -> None:
    assert inverse_power(1e-9, 1e9) == pytest.approx(math.exp(-1.0), rel=1e-8)
    assert inverse_power(3e-18, 1e17) == pytest.approx(math.exp(-0.3), rel=1e-14)


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_inverse_power_at_the_ends(exponent: float) -> None:
    assert inverse_power(0.0, exponent) == 1.0
    assert inverse_power(1e308, 7.3) == 0.0


@pytest.mark.parametrize(
    ("exponent", "tidy"),
    [
        (1 / (1 - 2 / 3), 3.0),
        ((1 - 1 / 3) / (1 - 2 / 3), 2.0),
        (1 / (1 - 0.5), 2.0),
        ((1 - 0.25) / (1 - 0.5), 1.5),
        (3.0 + 1e-9, 3.0 + 1e-9),
        (2.9, 2.9),
    ],
)
def test_tidy_exponent(exponent: float, tidy: float) -> None:
    assert tidy_exponent(exponent) == tidy

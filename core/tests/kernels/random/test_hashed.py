"""Hashed draws are uniform, and depend on everything that their key is made of."""

import numpy as np
from scipy.stats import chi2, kstest

from decoupled.kernels.random.stream import hashed_unit, key_with, scrambled

LEVEL = 1e-4


def key(number: int, value: float) -> np.uint64:
    """A key, as compiled code sees it; the interpreter gets whole numbers."""
    return np.uint64(key_with(np.uint64(scrambled(np.uint64(number))), value))


def test_draws_of_one_key_and_first_draws_of_many_are_uniform() -> None:
    one = key(7, 0.25)
    along = [hashed_unit(one, count) for count in range(20_000)]
    across = [hashed_unit(key(number, 0.5), 0) for number in range(20_000)]
    for draws in (along, across):
        assert kstest(draws, "uniform").pvalue > LEVEL
        table = np.histogram2d(draws[:-1], draws[1:], bins=8, range=[[0, 1], [0, 1]])[0]
        expected = (len(draws) - 1) / 64
        assert chi2.sf(((table - expected) ** 2 / expected).sum(), 63) > LEVEL


def test_a_key_depends_on_its_numbers_but_not_on_their_last_digits() -> None:
    first = key(1, 0.3)
    assert key(1, 0.300002) != first
    assert key(1, float(np.nextafter(0.3, 1.0))) == first
    assert key(1, 1.3) != first
    assert key(2, 0.3) != first
    assert key(1, 0.3) == first

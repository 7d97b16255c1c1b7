"""The random stream: the published generator, bit for bit, and the numbers made from it.

Hashed draws are uniform, and depend on everything that their key is made of.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2, kstest

from decoupled.base.arrays import Words
from decoupled.kernels.jit import compiled
from decoupled.kernels.random.stream import (
    below,
    hashed_unit,
    key_with,
    new_stream,
    next_word,
    scrambled,
    uniform,
)
from support.statistics import chi_square_p
from support.twins import Floats, Ints

MASK = 2**64 - 1
WORD = st.integers(0, MASK)

# Seeds are fixed, so the outcome is too; this is the rate over random seeds, for all tests of the
# file.
FALSE_ALARM = 1e-3
COMPARISONS = 8


def rotate_left(word: int, places: int) -> int:
    return ((word << places) | (word >> (64 - places))) & MASK


def slow_words(s0: int, s1: int) -> Iterator[int]:
    """xoroshiro128++ on Python's unbounded integers, from the paper's description."""
    while True:
        yield (rotate_left((s0 + s1) & MASK, 17) + s0) & MASK
        s1 ^= s0
        s0 = rotate_left(s0, 49) ^ s1 ^ ((s1 << 21) & MASK)
        s1 = rotate_left(s1, 28)


def splitmix64(seed: int) -> Iterator[int]:
    """The generator that its authors recommend for seeding."""
    while True:
        seed = (seed + 0x9E3779B97F4A7C15) & MASK
        z = seed
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        yield z ^ (z >> 31)


def stream_of(s0: int, s1: int) -> Words:
    return np.array([s0, s1], np.uint64)


def some_words(stream: Words, count: int) -> list[int]:
    return [int(next_word(stream)) for _ in range(count)]


# What the authors' C code gives from the words 1, 2, and the values in Bitcoin Core's unit test,
# whose two words come from splitmix64.
PUBLISHED = [
    (
        (1, 2),
        [393217, 669327710093319, 1732421326133921491, 11394790081659126983, 9555452776773192676],
    ),
    (0, [0x6F68E1E7E2646EE1, 0xBF971B7F454094AD, 0x48F2DE556F30DE38, 0x6EA7C59F89BBFC75]),
    (
        0x1A26F3FA8546B47A,
        [0xC8DC5E08D844AC7D, 0x5B5F1F6D499DAD1B, 0xBEB0031F93313D6F, 0xBFBCF4F43A264497],
    ),
]


@pytest.mark.parametrize(("start", "expected"), PUBLISHED)
def test_published_vectors(start: int | tuple[int, int], expected: list[int]) -> None:
    if isinstance(start, int):
        seeds = splitmix64(start)
        start = next(seeds), next(seeds)
    slow = slow_words(*start)
    assert [next(slow) for _ in expected] == expected
    assert some_words(stream_of(*start), len(expected)) == expected


@settings(deadline=None)
@given(WORD, WORD)
def test_words_are_those_of_big_integers_and_uniform_their_top_53_bits_plus_one(
    s0: int, s1: int
) -> None:
    slow = slow_words(s0, s1)
    assert some_words(stream_of(s0, s1), 50) == [next(slow) for _ in range(50)]
    slow = slow_words(s0, s1)
    stream = stream_of(s0, s1)
    for _ in range(20):
        draw = uniform(stream)
        assert draw == ((next(slow) >> 11) + 1) / 2**53
        assert 0.0 < draw <= 1.0


# With s0 = 0 the word is s1 rotated; with s0 = 1 and s0 + s1 all ones it wraps around to zero.
ALL_ONES, ALL_ZEROS = (0, MASK), (1, MASK - 1)


def test_uniform_reaches_both_ends_and_no_stream_is_all_zero() -> None:
    assert uniform(stream_of(*ALL_ONES)) == 1.0
    assert uniform(stream_of(*ALL_ZEROS)) == 2.0**-53
    stream = new_stream(NothingButZeros(0))
    assert stream.dtype == np.uint64
    assert stream.shape == (2,)
    assert stream.any()
    assert len(set(some_words(stream, 10))) == 10


@pytest.mark.parametrize("count", [1, 2, 3, 1000, 2**31, 2**52, 2**53])
def test_below_stays_in_range_at_both_ends(count: int) -> None:
    assert below(count, stream_of(*ALL_ONES)) == 0
    assert below(count, stream_of(*ALL_ZEROS)) == count - 1


@compiled
def fill_uniform(draws: Floats, stream: Words) -> None:
    for k in range(len(draws)):
        draws[k] = uniform(stream)


@compiled
def count_below(counts: Ints, draws: int, stream: Words) -> None:
    for _ in range(draws):
        counts[below(len(counts), stream)] += 1


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_uniform_is_uniform(seed: int) -> None:
    draws = np.empty(1_000_000)
    fill_uniform(draws, new_stream(np.random.SeedSequence(seed)))
    # More cells would find finer faults and miss broad ones: a smooth bend of 2 % needs few.
    counts, _ = np.histogram(draws, bins=50, range=(0.0, 1.0))
    assert chi_square_p(counts, np.full(50, 0.02)) > FALSE_ALARM / COMPARISONS


def test_neighbouring_draws_are_independent() -> None:
    draws = np.empty((500_000, 2))
    fill_uniform(draws.reshape(-1), new_stream(np.random.SeedSequence(4)))
    cells = np.ceil(draws * 32).astype(np.int64) - 1
    counts = np.bincount(cells[:, 0] * 32 + cells[:, 1], minlength=32 * 32)
    assert chi_square_p(counts, np.full(32 * 32, 2.0**-10)) > FALSE_ALARM / COMPARISONS


@pytest.mark.parametrize("count", [2, 3, 10, 777])
def test_below_is_uniform(count: int) -> None:
    counts = np.zeros(count, np.int64)
    count_below(counts, 1_000_000, new_stream(np.random.SeedSequence(5)))
    assert chi_square_p(counts, np.full(count, 1 / count)) > FALSE_ALARM / COMPARISONS


class NothingButZeros(np.random.SeedSequence):
    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Any:
        return np.zeros(n_words, dtype)


LEVEL = 1e-4


def key(number: int, value: float) -> np.uint64:
    """A key, as compiled code sees it; the interpreter gets whole numbers."""
    return np.uint64(key_with(np.uint64(scrambled(np.uint64(number))), value))


def test_draws_of_keys_are_uniform_and_a_key_depends_on_numbers_but_not_on_their_last_digits() -> (
    None
):
    one = key(7, 0.25)
    along = [hashed_unit(one, count) for count in range(20_000)]
    for draws in (along, [hashed_unit(key(number, 0.5), 0) for number in range(20_000)]):
        assert kstest(draws, "uniform").pvalue > LEVEL
        table = np.histogram2d(draws[:-1], draws[1:], bins=8, range=[[0, 1], [0, 1]])[0]
        expected = (len(draws) - 1) / 64
        assert chi2.sf(((table - expected) ** 2 / expected).sum(), 63) > LEVEL
    first = key(1, 0.3)
    assert key(1, 0.300002) != first
    assert key(1, float(np.nextafter(0.3, 1.0))) == first
    assert key(1, 1.3) != first
    assert key(2, 0.3) != first
    assert key(1, 0.3) == first

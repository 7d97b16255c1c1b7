"""Frechet perturbations: draws compared with the exact law."""

import zlib

import numpy as np
import pytest

from decoupled.base.arrays import Floats, Ints, Words
from decoupled.kernels.jit import compiled
from decoupled.kernels.laws.winner_law import frechet_winner_law
from decoupled.kernels.random.sampling import frechet_leader
from decoupled.kernels.random.stream import new_stream
from support.statistics import chi_square_p

# Draws

DRAWS = 300_000
ETA = 0.7
SPREADS: dict[str, Floats] = {
    "two": np.array([0.0, 0.5]),
    "equal": np.zeros(64),
    "one ahead": np.concatenate(([0.0], np.full(63, 3.0))),
    "geometric": np.concatenate(([0.0], 0.01 * 1.5 ** np.arange(1, 30.0))),
    "two blocks": np.repeat([0.0, 0.8], 20),
}
CASES = [(alpha, kind) for alpha in (1.2, 2.0, 5.5) for kind in SPREADS]
# With random seeds, some chi-square test below would fail on a sound kernel with probability 1e-3.
LEVEL = 1e-3 / len(CASES)


@compiled
def count_leaders(counts: Ints, draws: int, ranked: Floats, eta: float, alpha: float, words: Words) -> None:
    for _ in range(draws):
        counts[frechet_leader(ranked, eta, alpha, words)] += 1


def leaders(ranked: Floats, alpha: float, draws: int = DRAWS) -> Ints:
    seed = zlib.crc32(repr((ranked.tolist(), alpha)).encode())
    counts = np.zeros(len(ranked), np.int64)
    count_leaders(counts, draws, ranked, ETA, alpha, new_stream(np.random.SeedSequence(seed)))
    assert counts.sum() == draws
    return counts


@pytest.mark.parametrize(("alpha", "kind"), CASES)
def test_leader_has_its_exact_law(alpha: float, kind: str) -> None:
    gaps = SPREADS[kind]
    # Estimates that start at 5 instead of 0 show whether gaps are relative to the smallest.
    assert chi_square_p(leaders(5.0 + gaps, alpha), frechet_winner_law(ETA * gaps, alpha)) > LEVEL


@pytest.mark.parametrize("alpha", [1.2, 2.0])
def test_the_largest_uniform_is_no_trap(alpha: float) -> None:
    # The words 0, 2^64 - 1 give the uniform 1: an exponential of 0, and an infinite Frechet draw.
    assert frechet_leader(np.zeros(5), ETA, alpha, np.array([0, 2**64 - 1], np.uint64)) == 0

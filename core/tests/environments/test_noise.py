"""Noise on mean losses: its exact laws, and that it uses the same amount of the stream whatever is played."""

import numpy as np
import pytest
import scipy.stats

from decoupled.base.arrays import Floats, Words
from decoupled.kernels.jit import compiled
from decoupled.kernels.random.sampling import BERNOULLI, BETA, NONE, draw_loss
from decoupled.kernels.random.stream import new_stream, next_word

DRAWS = 200_000
# Ten tests in this file, each at 1e-5: a correct program fails one of them once in 10,000 seeds.
FALSE_ALARM = 1e-5


@compiled
def fill(kind: int, concentration: float, mean: float, noise: Words, local: Words, out: Floats) -> None:
    for k in range(len(out)):
        out[k] = draw_loss(kind, concentration, mean, noise, local)


def draws(kind: int, concentration: float, mean: float, seed: int = 0) -> Floats:
    out = np.empty(DRAWS)
    fill(kind, concentration, mean, new_stream(np.random.SeedSequence(seed)), np.zeros(2, np.uint64), out)
    return out


@pytest.mark.parametrize("mean", [0.0, 0.3, 0.995, 1.0])
def test_bernoulli(mean: float) -> None:
    losses = draws(BERNOULLI, 1.0, mean)
    assert set(np.unique(losses)) <= {0.0, 1.0}
    count = int(losses.sum())
    assert scipy.stats.binomtest(count, DRAWS, mean).pvalue > FALSE_ALARM


def test_without_noise_the_mean_is_the_loss_and_the_test_of_beta_has_power() -> None:
    assert (draws(NONE, 1.0, 0.37) == 0.37).all()
    losses = draws(BETA, 10.0, 0.3)
    near = scipy.stats.beta(0.31 * 10.0, 0.69 * 10.0)
    assert scipy.stats.kstest(losses, near.cdf).pvalue < FALSE_ALARM


@pytest.mark.parametrize(
    ("mean", "concentration"), [(0.3, 10.0), (0.5, 2.0), (0.1, 0.7), (0.02, 3.0), (0.6, 500.0)]
)
def test_beta(mean: float, concentration: float) -> None:
    losses = draws(BETA, concentration, mean)
    law = scipy.stats.beta(mean * concentration, (1 - mean) * concentration)
    assert scipy.stats.kstest(losses, law.cdf).pvalue > FALSE_ALARM


@pytest.mark.parametrize(("mean", "concentration"), [(0.0, 5.0), (1.0, 5.0), (0.5, 1e-300)])
def test_beta_at_the_edges_is_finite(mean: float, concentration: float) -> None:
    losses = draws(BETA, concentration, mean)
    assert np.isfinite(losses).all()
    assert abs(losses.mean() - mean) < 0.01


@pytest.mark.parametrize("kind", [BERNOULLI, BETA])
def test_one_word_a_round(kind: int) -> None:
    one, two = (new_stream(np.random.SeedSequence(1)) for _ in range(2))
    fill(kind, 0.7, 0.3, one, np.zeros(2, np.uint64), np.empty(1_000))
    for _ in range(1_000):
        next_word(two)
    assert one.tolist() == two.tolist()

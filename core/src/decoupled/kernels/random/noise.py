"""Noise on a mean loss: one number of the noise stream per round, whatever is played."""

import math

import numpy as np

from ...base.arrays import Words
from ..jit import compiled
from .stream import next_word, uniform

BERNOULLI, NONE, BETA = range(3)
KINDS = ("bernoulli", "none", "beta")  # in the order of the numbers above


@compiled
def draw_loss(kind: int, concentration: float, mean: float, noise: Words, local: Words) -> float:
    """A loss in [0, 1] with the given mean; `local` is work space for two words."""
    if kind == BERNOULLI:
        return 1.0 if uniform(noise) <= mean else 0.0
    if kind == NONE:
        return mean
    # The number of uniforms that a Beta draw needs varies, so each round has a stream of its own.
    word = next_word(noise)
    local[0] = word
    local[1] = ~word * np.uint64(0x9E3779B97F4A7C15) | np.uint64(1)
    return beta(mean, concentration, local)


@compiled
def beta(mean: float, concentration: float, stream: Words) -> float:
    """A draw from Beta(mean * concentration, (1 - mean) * concentration)."""
    if mean <= 0.0 or mean >= 1.0:
        return mean
    first = gamma(mean * concentration, stream)
    second = gamma((1.0 - mean) * concentration, stream)
    if first + second == 0.0:
        # Both underflowed. With such a small concentration the draw is a coin toss to within 1e-300.
        return 1.0 if uniform(stream) <= mean else 0.0
    return first / (first + second)


@compiled
def gamma(shape: float, stream: Words) -> float:
    """A draw from Gamma(shape, 1).

    Marsaglia, G. and Tsang, W. W. (2000). A simple method for generating gamma variables. ACM
    Transactions on Mathematical Software 26(3).
    """
    boost = 1.0
    if shape < 1.0:
        boost = uniform(stream) ** (1.0 / shape)
        shape += 1.0
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = normal(stream)
        v = 1.0 + c * x
        if v <= 0.0:
            continue
        v = v * v * v
        if math.log(uniform(stream)) < 0.5 * x * x + d - d * v + d * math.log(v):
            return boost * d * v


@compiled
def normal(stream: Words) -> float:
    """A standard normal draw (Box and Muller)."""
    radius = math.sqrt(-2.0 * math.log(uniform(stream)))
    return radius * math.cos(2.0 * math.pi * uniform(stream))

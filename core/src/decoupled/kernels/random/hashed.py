"""Random words from a hash of a key and a counter, for code that has no stream.

An update has no stream: what it learns must not depend on who calls it. Where it needs a draw, it hashes the round,
what was learned, and a secret of the seed, so that an adversary who knows everything else cannot foresee it. Equal
states give equal draws, so saved and replayed learners agree to the bit.

The hash is the output function of SplitMix64: Steele, G. L., Lea, D. and Flood, C. H. (2014). Fast splittable
pseudorandom number generators. OOPSLA.
"""

import math

import numpy as np

from ...base.arrays import Words
from ..jit import compiled
from .stream import unit

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_DIGITS = 2.0**20


@compiled
def scrambled(word: np.uint64) -> np.uint64:
    """A word each bit of which depends on every bit of the given one."""
    word = (word ^ (word >> np.uint64(30))) * _FIRST
    word = (word ^ (word >> np.uint64(27))) * _SECOND
    return word ^ (word >> np.uint64(31))


def secret_of(stream: Words) -> float:
    """A whole number below 2^52 from a fresh stream, which does not move on."""
    return float((stream[0] ^ stream[1]) >> np.uint64(12))


compiled_secret_of = compiled(secret_of)


@compiled
def key_with(key: np.uint64, value: float) -> np.uint64:
    """A key that also depends on a number from 0 to 2^53, to six digits after the point.

    Processors may differ in the last digit of a logarithm, and must not differ in every draw that follows.
    """
    whole = math.floor(value)
    digits = np.uint64(int((value - whole) * _DIGITS))
    return scrambled((key ^ digits) + np.uint64(int(whole)) * _STEP)


@compiled
def hashed_unit(key: np.uint64, count: int) -> float:
    """Draw number `count` of a key: uniform on {1, ..., 2^53} / 2^53."""
    return unit(scrambled(key + np.uint64(count + 1) * _STEP))

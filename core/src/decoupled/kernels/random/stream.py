"""The random stream: xoroshiro128++ of Blackman and Vigna (2019) on two 64-bit words.

A stream is a `uint64` array of length 2. It is plain state: it can be copied, saved and compared, and used on a GPU.
NumPy's `SeedSequence` makes the first words; this file advances them.

Blackman, D. and Vigna, S. (2021). Scrambled linear pseudorandom number generators. ACM Transactions
on Mathematical Software 47(4).
"""

import numpy as np

from ...base.arrays import Words
from ..jit import compiled

_TO_UNIT = 2.0**-53


def new_stream(seed: np.random.SeedSequence) -> Words:
    """A stream whose first words are drawn from a seed sequence."""
    words = np.asarray(seed.generate_state(2, np.uint64), np.uint64)
    if words[0] == 0 and words[1] == 0:  # the one state the generator never leaves
        words[0] = 1
    return words


@compiled
def next_word(stream: Words) -> np.uint64:
    """The next 64 random bits."""
    s0 = stream[0]
    s1 = stream[1]
    word: np.uint64 = s0 + s1
    word = ((word << np.uint64(17)) | (word >> np.uint64(47))) + s0
    s1 ^= s0
    stream[0] = ((s0 << np.uint64(49)) | (s0 >> np.uint64(15))) ^ s1 ^ (s1 << np.uint64(21))
    stream[1] = (s1 << np.uint64(28)) | (s1 >> np.uint64(36))
    return word


@compiled
def unit(word: np.uint64) -> float:
    """Map a word to {1, ..., 2^53} / 2^53, keeping the order of the words."""
    return float((word >> np.uint64(11)) + np.uint64(1)) * _TO_UNIT


@compiled
def uniform(stream: Words) -> float:
    """A number uniform on {1, ..., 2^53} / 2^53: never 0, because it is raised to negative powers.

    Args:
        stream: the random stream, which moves on.

    Returns:
        The number.

    >>> import numpy as np
    >>> stream = np.array([11**18, 13**17], np.uint64)  # a policy gets one from the package
    >>> round(uniform(stream), 3), round(uniform(stream), 3)
    (0.792, 0.094)
    """
    return unit(next_word(stream))


@compiled
def below(count: int, stream: Words) -> int:
    """An integer uniform on 0, ..., count - 1 (to within 2^-53 of exact).

    Args:
        count: the number of integers, at least one.
        stream: the random stream, which moves on.

    Returns:
        The integer.

    >>> import numpy as np
    >>> stream = np.array([11**18, 13**17], np.uint64)  # a policy gets one from the package
    >>> [below(6, stream) for _ in range(8)]
    [1, 5, 4, 1, 0, 4, 5, 5]
    """
    return min(int((1.0 - uniform(stream)) * count), count - 1)

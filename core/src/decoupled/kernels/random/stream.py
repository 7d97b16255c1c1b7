"""The random stream: xoroshiro128++ of Blackman and Vigna (2019) on two 64-bit words.

A stream is a `uint64` array of length 2. It is plain state: it can be copied, saved and compared,
and used on a GPU. NumPy's `SeedSequence` makes the first words; this file advances them.

Blackman, D. and Vigna, S. (2021). Scrambled linear pseudorandom number generators. ACM Transactions
on Mathematical Software 47(4).

`seed_pool` and `fill_stream` compute the streams of a run where it is played, as NumPy's
`SeedSequence` would. A million runs on a GPU need two million streams, and `SeedSequence` takes ten
microseconds for each. Nearly all of its work depends on the seed only; the last words that it mixes
in, the run and the number of its stream, differ. So the seed's part is computed once, and the rest
here in compiled code. The streams equal those of `new_stream` bit for bit, and a test checks it.

O'Neill, M. E. (2015). Developing a seed_seq alternative.
https://www.pcg-random.org/posts/developing-a-seed_seq-alternative.html

Code without a stream hashes a key and a counter. An update has no stream: what it learns must not
depend on who calls it. Where it needs a draw, it hashes the round, what was learned, and a secret
of the seed, so that an adversary who knows everything else cannot foresee it. Equal states give
equal draws, so saved and replayed learners agree to the bit.

The hash is the output function of SplitMix64: Steele, G. L., Lea, D. and Flood, C. H. (2014). Fast
splittable pseudorandom number generators. OOPSLA.
"""

import math

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

    >>> import numpy as np
    >>> stream = np.array([11**18, 13**17], np.uint64)  # a policy gets one from the package
    >>> [below(6, stream) for _ in range(8)]
    [1, 5, 4, 1, 0, 4, 5, 5]
    """
    return min(int((1.0 - uniform(stream)) * count), count - 1)


POOL = 4  # words of 32 bits
MOST_RUNS = 2**32  # a larger run number would be two words

_WORD = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(16)
_BLEND_START = 0x43B0D7E5
_BLEND_STEP = np.uint64(0x931E8875)
_DRAW_START = np.uint64(0x8B51F9DD)
_DRAW_STEP = np.uint64(0x58F38DED)
_LEFT = np.uint64(0xCA01F9DD)
_RIGHT = np.uint64(0x4973F715)
_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_LONG = np.uint64(32)


@compiled
def _scramble(value: np.uint64, factor: np.uint64) -> np.uint64:
    value = (value * factor) & _WORD
    return value ^ (value >> _HALF)


@compiled
def _blend(mixed: np.uint64, value: np.uint64) -> np.uint64:
    mixed = ((_LEFT * mixed & _WORD) + _WORD + _ONE - (_RIGHT * value & _WORD)) & _WORD
    return mixed ^ (mixed >> _HALF)


def seed_pool(seed: int) -> Words:
    """The part that all runs of a seed share: the pool after its words, and the factor there."""
    words = [seed >> shift & 0xFFFFFFFF for shift in range(0, max(seed.bit_length(), 1), 32)]
    words += [0] * (POOL - len(words))
    factor = np.uint64(_BLEND_START)
    pool = np.zeros(POOL + 1, np.uint64)

    def hashed(value: int | np.uint64) -> np.uint64:
        nonlocal factor
        value = np.uint64(value) ^ factor
        factor = factor * _BLEND_STEP & _WORD
        return _scramble(value, factor)

    for place in range(POOL):
        pool[place] = hashed(words[place])
    for source in range(POOL):
        for place in range(POOL):
            if source != place:
                pool[place] = _blend(pool[place], hashed(pool[source]))
    for word in words[POOL:]:
        for place in range(POOL):
            pool[place] = _blend(pool[place], hashed(word))
    pool[POOL] = factor
    return pool


@compiled
def fill_stream(pool: Words, run: int, child: int, stream: Words) -> None:
    """Fill the stream of a run and its child from the seed's pool.

    It is the stream of `new_stream(SeedSequence(seed, spawn_key=(run, child)))`.
    """
    factor = pool[POOL]
    draw = _DRAW_START
    stream[0] = _ZERO
    stream[1] = _ZERO
    # The words of the pool do not depend on each other, so none has to be stored.
    run_factor = factor
    child_factor = factor
    for _ in range(POOL):
        child_factor = child_factor * _BLEND_STEP & _WORD
    for place in range(POOL):
        value = np.uint64(run) ^ run_factor
        run_factor = run_factor * _BLEND_STEP & _WORD
        mixed = _blend(pool[place], _scramble(value, run_factor))
        value = np.uint64(child) ^ child_factor
        child_factor = child_factor * _BLEND_STEP & _WORD
        mixed = _blend(mixed, _scramble(value, child_factor))
        mixed ^= draw
        draw = draw * _DRAW_STEP & _WORD
        word = _scramble(mixed, draw)
        if place < 2:
            stream[0] |= word << (_LONG * np.uint64(place))
        else:
            stream[1] |= word << (_LONG * np.uint64(place - 2))
    if stream[0] == _ZERO and stream[1] == _ZERO:  # the one state the generator never leaves
        stream[0] = _ONE


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

    Processors may differ in the last digit of a logarithm, and must not differ in every draw that
    follows.
    """
    integer = math.floor(value)
    digits = np.uint64(int((value - integer) * _DIGITS))
    return scrambled((key ^ digits) + np.uint64(int(integer)) * _STEP)


@compiled
def hashed_unit(key: np.uint64, count: int) -> float:
    """Draw number `count` of a key: uniform on {1, ..., 2^53} / 2^53."""
    return unit(scrambled(key + np.uint64(count + 1) * _STEP))

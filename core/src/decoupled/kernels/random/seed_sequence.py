"""The random streams of a run, computed where the run is played, as NumPy's `SeedSequence` would.

A million runs on a GPU need two million streams, and `SeedSequence` takes ten microseconds for each. Nearly all of its
work depends on the seed only; the last words that it mixes in, the run and the number of its stream, differ. So the
seed's part is computed once, and the rest here in compiled code. The streams equal those of `new_stream` bit for bit,
and a test checks it.

O'Neill, M. E. (2015). Developing a seed_seq alternative. https://www.pcg-random.org/posts/developing-a-seed_seq-alternative.html
"""

import numpy as np

from ...base.arrays import Words
from ..jit import compiled

POOL = 4  # words of 32 bits
MOST_RUNS = 2**32  # a larger run number would be two words

_WORD = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(16)
_BLEND_START, _BLEND_STEP = 0x43B0D7E5, np.uint64(0x931E8875)
_DRAW_START, _DRAW_STEP = np.uint64(0x8B51F9DD), np.uint64(0x58F38DED)
_LEFT, _RIGHT = np.uint64(0xCA01F9DD), np.uint64(0x4973F715)
_ZERO, _ONE = np.uint64(0), np.uint64(1)
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
    """The part that all runs of a seed share: the pool after the seed's words, and the factor at that point."""
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
    """Fill the stream of `new_stream(SeedSequence(seed, spawn_key=(run, child)))` from the seed's pool."""
    factor = pool[POOL]
    draw = _DRAW_START
    stream[0] = _ZERO
    stream[1] = _ZERO
    # The words of the pool do not depend on each other, so none has to be stored.
    run_factor, child_factor = factor, factor
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

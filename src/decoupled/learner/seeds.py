"""From a seed to a random stream."""

import secrets
from typing import TypeAlias

import numpy as np

from ..base.arrays import Words
from ..base.validation import whole_number
from ..kernels.random.stream import new_stream

Seed: TypeAlias = int | np.random.SeedSequence | None
"""A whole number from 0 on or a seed sequence for reproducible draws; None for fresh randomness."""


def randomness(seed: object) -> tuple[Words, str]:
    """A random stream, and a tag that makes the decision ids of different learners differ.

    The tag is public. If a seed of a person's choosing gave it, whoever sees an id could try seeds until one fits, and
    would know what every key is served. So the seed has no part in it.
    """
    if not isinstance(seed, np.random.SeedSequence):
        if seed is not None:
            seed = whole_number("seed", seed, 0, "leave it out for fresh randomness")
        seed = np.random.SeedSequence(seed)
    return new_stream(seed), secrets.token_hex(6)

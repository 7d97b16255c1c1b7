"""From a seed to a random stream."""

import hashlib
import secrets
from typing import TypeAlias

import numpy as np

from ..base.arrays import Words
from ..base.validation import whole_number
from ..kernels.random.stream import new_stream

Seed: TypeAlias = int | np.random.SeedSequence | None
"""A whole number from 0 on or a seed sequence for reproducible draws; None for fresh randomness."""

_SALT = secrets.token_bytes(32)


def randomness(seed: object) -> tuple[Words, str]:
    """A random stream, and a tag that makes the decision ids of different learners differ.

    The tag is public. If the seed alone gave it, whoever sees an id could try the seeds that a person may choose until one
    fits, and would know every draw. So it also depends on a secret of this process, which nobody can try.
    """
    if not isinstance(seed, np.random.SeedSequence):
        if seed is not None:
            seed = whole_number("seed", seed, 0, "leave it out for fresh randomness")
        seed = np.random.SeedSequence(seed)
    words = seed.generate_state(4, np.uint64).tobytes()
    return new_stream(seed), hashlib.blake2b(words, key=_SALT, digest_size=6).hexdigest()

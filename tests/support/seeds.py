"""Seeds of statistical tests, which can be drawn afresh.

A statistical test says how often it fails by chance. That is a statement about fresh seeds, and `make fresh-seeds` checks it:
it runs these tests again with DECOUPLED_SEED_OFFSET at 1, 2, ..., 20, which moves every seed to one that nobody chose.
"""

import os

STRIDE = 15_485_863
"""Prime, and more than any test counts up to from its seed: no two offsets share a seed."""


def seed_offset() -> int:
    """How far DECOUPLED_SEED_OFFSET moves the seeds: 0 unless somebody sets it."""
    return int(os.environ.get("DECOUPLED_SEED_OFFSET", "0"))


def seeded(number: int) -> int:
    """The seed with this number; another one for each offset."""
    return number + STRIDE * seed_offset()

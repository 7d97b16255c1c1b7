"""Learners that go on apart from another one: copies, and those of forked processes."""

import hashlib

import numpy as np

from ..base.arrays import Words
from .parts import Parts
from .seeds import randomness


def branch_off(parts: Parts, stream: Words, tag: str) -> None:
    """Go on with another random stream, and with ids of another tag.

    Numbers go on, so that no event happens twice. The new ids differ from the old ones even if the
    seed is the same.
    """
    store = parts.pending_store
    lineage = f"{store.tag}-{store.made}-{tag}"
    parts.policy_state.stream[:] = stream
    store.tag = hashlib.sha256(lineage.encode()).hexdigest()[:12]


def branch_off_in_child(parts: Parts, forks: tuple[int, ...]) -> None:
    """Draw other arms than the parent process and its other children, under other ids.

    `forks` are the numbers of this process and of those above it, each as a child.
    """
    words = [*parts.policy_state.stream.tolist(), parts.pending_store.made, *forks]
    branch_off(parts, *randomness(np.random.SeedSequence(words)))

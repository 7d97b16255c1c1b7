"""Embeddings and texts as a few numbers for contextual policies, by a fixed projection."""

from functools import cache
from hashlib import shake_128
from typing import Any

import numpy as np

from ..errors import ParameterError
from .arrays import Floats
from .validation import whole_number

LONGEST_VECTOR = 4_096
MOST_PROJECTED = 32
MOST_HASHED = 10_000  # characters of a text
_GRAM_SIZES = (3, 4, 5)  # characters
_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio
_BUCKET = np.uint64(52)  # the first 12 of 64 bits: 4,096 buckets


def project(vector: Any, numbers: int = 16) -> list[float]:
    """An embedding as a few numbers: sums of the vector, scaled to length 1, with fixed random
    signs.


    Distances survive roughly (Johnson and Lindenstrauss). The signs are those of SHAKE-128, so they
    are the same everywhere, and fewer numbers are the first of more. Numbers are rounded to six
    decimals.

    Args:
        vector: 1 to 4,096 finite numbers.
        numbers: how many numbers to return, 1 to 32.

    Raises:
        ParameterError: if the vector is something else. The message does not show it.

    >>> import decoupled as dc
    >>> dc.project([2.0, 3.0, 6.0], numbers=4)
    [1.0, 1.571429, 1.571429, -0.714286]
    """
    try:
        values = np.asarray(vector)
        values = values.astype(float) if values.dtype.kind in "iuf" else np.empty(0)
    except ValueError:  # of ragged lists
        values = np.empty(0)
    if values.ndim != 1 or not 1 <= len(values) <= LONGEST_VECTOR or not np.isfinite(values).all():
        rule = f"must be a list of 1 to {LONGEST_VECTOR:,} finite numbers"
        raise ParameterError(f"vector: {rule}; leave it out if it is not known")
    largest = np.abs(values).max()
    if largest > 0.0:
        values = values / largest  # squares of the largest floats are infinite
        values /= np.sqrt(values @ values)
    count = whole_number("numbers", numbers, 1, "the default is 16", MOST_PROJECTED)
    sums: Floats = _signs(count)[:, : len(values)] @ values
    rounded: list[float] = (np.round(sums, 6) + 0.0).tolist()  # without -0.0
    return rounded


def hash_text(text: str, numbers: int = 16) -> list[float]:
    """A text as a few numbers, without a model.

    Its groups of 3, 4 and 5 characters are hashed, counted and projected.

    Texts that share words and endings are close, whatever they mean. Case and spaces do not count,
    nor does what follows after 10,000 characters. The hash is fixed, so machines agree up to
    rounding, the last of six decimals.

    Args:
        text: the text.
        numbers: how many numbers to return, 1 to 32.

    >>> import decoupled as dc
    >>> numbers = dc.hash_text("Prove that e is irrational.", numbers=4)
    >>> numbers == dc.hash_text(" prove that E is irrational. ", numbers=4)
    True
    """
    if not isinstance(text, str):
        raise ParameterError("text: must be a string; project takes embeddings")
    plain = " ".join(text[:MOST_HASHED].lower().split())
    encoded = f" {plain} ".encode("utf-32-le", "surrogatepass")
    points = np.frombuffer(encoded, "<u4").astype(np.uint64)
    counts = np.zeros(LONGEST_VECTOR)
    for size in _GRAM_SIZES:
        codes = np.zeros(max(len(points) - size + 1, 0), np.uint64)
        for first in range(size):
            codes = (codes + points[first : first + len(codes)]) * _FACTOR  # modulo 2**64
        counts += np.bincount((codes >> _BUCKET).astype(np.int64), minlength=LONGEST_VECTOR)
    return project(np.sqrt(counts), numbers)


@cache
def _signs(numbers: int) -> Floats:
    """The random signs of the projection to so many numbers, a row for each."""
    rows = [shake_128(b"decoupled %d" % row).digest(LONGEST_VECTOR // 8) for row in range(numbers)]
    bits = np.unpackbits(np.frombuffer(b"".join(rows), np.uint8)).reshape(numbers, -1)
    signs: Floats = 2.0 * bits.astype(np.float64) - 1.0
    return signs

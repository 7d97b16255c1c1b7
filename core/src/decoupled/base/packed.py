"""Arrays as short text, for JSON: compressed bytes in base 64. Writing and reading them takes milliseconds."""

import base64
import zlib

import numpy as np

from .arrays import Floats, Ints


def pack_floats(values: Floats) -> str:
    """Numbers as text, bit for bit.

    >>> unpack_floats(pack_floats(np.array([0.1, -0.0, 1e300]))).tolist()
    [0.1, -0.0, 1e+300]
    """
    return _packed(np.ascontiguousarray(values, "<f8").tobytes())


def unpack_floats(text: str) -> Floats:
    """The numbers that `pack_floats` wrote."""
    return np.frombuffer(_unpacked(text), "<f8").astype(np.float64)


def pack_ints(values: Ints) -> str:
    """Whole numbers as text. Their differences are packed, so numbers in order take little room.

    >>> unpack_ints(pack_ints(np.arange(5, 8))).tolist()
    [5, 6, 7]
    """
    return _packed(np.diff(np.ascontiguousarray(values, "<i8"), prepend=0).astype("<i8").tobytes())


def unpack_ints(text: str) -> Ints:
    """The numbers that `pack_ints` wrote."""
    return np.cumsum(np.frombuffer(_unpacked(text), "<i8")).astype(np.int64)


def _packed(content: bytes) -> str:
    return base64.b64encode(zlib.compress(content, 1)).decode()


def _unpacked(text: str) -> bytes:
    return zlib.decompress(base64.b64decode(text))

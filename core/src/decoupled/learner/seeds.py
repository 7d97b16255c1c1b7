"""Where draws come from: the seed of a random stream, and keys, which keep their arms."""

import hashlib
import secrets
from ctypes import memmove
from numbers import Integral
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..base.arrays import Ints, Words
from ..base.validation import whole_number
from ..errors import ParameterError
from ..kernels.random.keyed import MOST_BYTES, hash_key
from ..kernels.random.stream import new_stream
from ..kernels.state import SECRET, State
from ..native.calls import Prepared
from ..policy import Definition

Seed: TypeAlias = int | np.random.SeedSequence | None
"""A whole number from 0 on or a seed sequence for reproducible draws; None for fresh randomness."""

_SALT = secrets.token_bytes(32)


def randomness(seed: object) -> tuple[Words, str]:
    """A random stream, and a tag that makes the decision ids of different learners differ.

    The tag is public. If it depended only on the seed, anyone who sees an id could try likely seeds
    until one fits, and would know every draw. So it also depends on a random secret of this
    process.

    >>> stream, tag = randomness(7)
    >>> stream.tolist() == randomness(7)[0].tolist(), len(tag)
    (True, 12)
    """
    if not isinstance(seed, np.random.SeedSequence):
        if seed is not None:
            seed = whole_number("seed", seed, 0, "leave it out for fresh randomness")
        seed = np.random.SeedSequence(seed)
    words = seed.generate_state(4, np.uint64).tobytes()
    return new_stream(seed), hashlib.blake2b(words, key=_SALT, digest_size=6).hexdigest()


def hashed(text: str) -> float:
    """A number on [0, 1) that looks random to whoever does not know the text."""
    return (int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 11) * 2.0**-53


# Keys: whoever comes with the same key is served the same arm, until what is learned moves it


Key: TypeAlias = str | int
"""A session, a user or anything else that should keep its arm. A whole number is the same key as
its digits.
"""


def key_text(key: object) -> str:
    """A key as text. Errors do not show it, because it may be a user's.

    >>> key_text("session-17"), key_text(17)
    ('session-17', '17')
    """
    if type(key) is not bool and isinstance(key, Integral):
        if int(key).bit_length() > 4 * MOST_BYTES:  # Python refuses to spell some of these
            raise ParameterError(
                f"key: is too large; must have at most {MOST_BYTES} digits; use an id"
            )
        key = str(int(key))
    if not isinstance(key, str):
        rule = "must be a string or a whole number; for example 'session-17'"
        raise ParameterError(f"key: is of type {type(key).__name__}; {rule}")
    encoded(key)
    return str(key)


def encoded(key: str) -> bytes:
    """The text of a key in UTF-8."""
    try:
        text = key.encode()
    except UnicodeEncodeError:
        raise ParameterError(
            "key: has a lone surrogate; must be Unicode text; decode it first"
        ) from None
    if not 0 < len(text) <= MOST_BYTES:
        rule = f"must have 1 to {MOST_BYTES}; use an id, or a hash of a longer text"
        raise ParameterError(f"key: has {len(text)} bytes in UTF-8; {rule}")
    return text


class KeyedCalls(NamedTuple):
    """Machine code from a key to an arm: its text and where that is, the hash of it, and the arm of
    the hash.
    """

    text: Any
    address: int
    hash: Prepared
    serve: Prepared


class KeyDraws:
    """Draws the arms of keys for a running policy in its form for these arms; its arrays stay where
    they are.
    """

    def __init__(self, form: Definition, state: State, serials: Ints) -> None:
        self._form = form
        self._state = state
        self._serials = serials
        self._secret = state.scalars.item(SECRET)
        self._calls = self._prepared()

    def _prepared(self) -> KeyedCalls | None:
        """The machine code, bound to the state; None if some of it does not ship, or the law is not
        in the state.
        """
        if self._form.coupled or not self._form.keyed_in_place:
            return None
        draw = self._form.keyed(self._state)
        # Under a debugger they are plain functions.
        hashing, serving = (
            getattr(function, "shipped", lambda: None)() for function in (hash_key, draw.function)
        )
        if hashing is None or serving is None:
            return None
        text = np.zeros(MOST_BYTES // 8 + 1, np.uint64)
        prepared = (
            hashing.prepared(text, self._secret),
            serving.prepared(*draw.arguments, self._serials),
        )
        return KeyedCalls(text, text.ctypes.data, *prepared)

    def renumber(self, serials: Ints) -> None:
        """Draw by other serial numbers of as many arms."""
        self._serials[:] = serials

    def hash_of(self, key: str) -> int:
        """The hash of a key, under the secret of the seed."""
        text = encoded(key)
        padded = text.ljust(len(text) // 8 * 8 + 8, b"\0")
        if self._calls is None:
            return int(hash_key(np.frombuffer(padded, np.uint64), self._secret, len(text)))
        memmove(self._calls.address, padded, len(padded))
        return self._calls.hash(len(text))

    def arm(self, key_hash: int) -> int:
        """The arm that the key with this hash exploits."""
        if self._calls is not None:
            return self._calls.serve(key_hash)
        draw = self._form.keyed(self._state)
        return int(draw.function(*draw.arguments, self._serials, key_hash))

"""Keys: whoever comes with the same key is served the same arm, until what is learned moves it."""

from numbers import Integral
from typing import TypeAlias

import numpy as np

from ..errors import ParameterError
from ..kernels.random.keyed import MOST_BYTES, key_word
from ..kernels.state import SECRET, State
from ..native.quick import KeyedCalls
from .runner import Running

Key: TypeAlias = str | int
"""A session, a user or anything else that should keep its arm; a whole number is the same key as its digits."""


def key_text(key: object) -> str:
    """A key as text. Errors do not show it, because it may be a user's."""
    if type(key) is not bool and isinstance(key, Integral):
        if int(key).bit_length() > 4 * MOST_BYTES:  # Python refuses to spell some of these
            raise ParameterError(f"key: is too large; must have at most {MOST_BYTES} digits; use an id")
        key = str(int(key))
    if not isinstance(key, str):
        raise ParameterError(
            f"key: is of type {type(key).__name__}; must be a string or a whole number; for example 'session-17'"
        )
    encoded(key)
    return str(key)


def encoded(key: str) -> bytes:
    """The text of a key in UTF-8."""
    try:
        text = key.encode()
    except UnicodeEncodeError:
        raise ParameterError("key: has a lone surrogate; must be Unicode text; decode it first") from None
    if not 0 < len(text) <= MOST_BYTES:
        raise ParameterError(
            f"key: has {len(text)} bytes in UTF-8; must have 1 to {MOST_BYTES}; use an id, or a hash of a longer text"
        )
    return text


def word_of(key: str, state: State) -> int:
    """The word of a key for the learner with this state."""
    text = encoded(key)
    padded = np.frombuffer(text.ljust(len(text) // 8 * 8 + 8, b"\0"), np.uint64)
    return int(key_word(padded, state.scalars.item(SECRET), len(text)))


def keyed_calls(running: Running) -> KeyedCalls | None:
    """The machine code that draws the arms of keys, bound to the state; None if some of it does not ship."""
    if running.policy.coupled or not running.form.keyed_in_place:
        return None
    draw = running.form.keyed(running.state)
    hashing, serving = (
        getattr(each, "shipped", lambda: None)() for each in (key_word, draw.function)
    )  # under a debugger they are plain functions
    if hashing is None or serving is None:
        return None
    text = np.zeros(MOST_BYTES // 8 + 1, np.uint64)
    serials = np.arange(running.state.floats.shape[1])
    return KeyedCalls(
        text,
        hashing.prepared(text, running.state.scalars.item(SECRET)),
        serving.prepared(*draw.arguments, serials),
    )

"""Keys of decisions: the same key is served the same arm. Here is what the log holds of them.

A key may identify a user, so its text is neither logged nor shown in an error, unless the experiment says so.
"""

import secrets
from hashlib import blake2b

from decoupled.client import Invalid
from decoupled.errors import ParameterError
from decoupled.learner import Key, key_text

from .records import KeyLog

_SIZE = 16  # bytes of a hash; even among a billion keys, two hardly ever share one


def new_secret() -> str:
    """A new secret to hash the keys of an experiment with."""
    return secrets.token_hex(32)


def checked_key(key: Key, log: KeyLog) -> str:
    """A key as text; `Invalid`, without the key, if it breaks a rule.

    >>> checked_key(17, "hashed")
    '17'
    >>> checked_key("", "hashed")
    Traceback (most recent call last):
        ...
    decoupled.client.service_errors.Invalid: key: has 0 bytes in UTF-8; must have 1 to 1024; use an id, or a hash of a longer text
    """
    try:
        text = key_text(key)
    except ParameterError as error:
        raise Invalid(str(error)) from None
    if log == "plain" and "\0" in text:
        raise Invalid(
            "key: has a NUL character; must have none where keys are logged plain; use another id"
        )
    return text


def hashed_key(text: str, secret: str) -> str:
    """The keyed hash of a text.

    >>> hashed_key("session-17", "ab") == hashed_key("session-17", "ab") != hashed_key("session-17", "cd")
    True
    """
    return blake2b(text.encode(), digest_size=_SIZE, key=bytes.fromhex(secret)).hexdigest()


def logged_key(text: str, log: KeyLog, secret: str) -> str:
    """What the log holds of a key; an empty text if nothing, so that a replay still knows that there was one."""
    if log == "hashed":
        return hashed_key(text, secret)
    return text if log == "plain" else ""

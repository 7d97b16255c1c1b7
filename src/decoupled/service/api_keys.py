"""API keys: made with 256 bits, shown once, kept as a digest, compared in constant time.

A key is random, so its SHA-256 is enough: there is nothing to guess that a slow hash would protect.
"""

import hashlib
import hmac
import secrets

from ..errors import ParameterError, invalid_value, near_name

PREFIX = "dk_"
ROLES = ("read", "decide", "admin")  # each may do what those before it may
OPERATOR = "local"  # the tenant whose keys also see to the whole instance: metrics, backups


def new_key() -> str:
    """A fresh key, 256 random bits.

    >>> key = new_key()
    >>> key.startswith("dk_"), len(key)
    (True, 46)
    """
    return PREFIX + secrets.token_urlsafe(32)


def digest_of(key: str) -> str:
    """What is kept of a key.

    >>> digest_of("dk_example")[:16]
    '9c85cfe0efedb48e'
    """
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()


def same_digest(one: str, other: str) -> bool:
    """Whether two digests are equal, in a time that does not depend on where they differ.

    >>> same_digest(digest_of("a"), digest_of("b"))
    False
    """
    return hmac.compare_digest(one, other)


def checked_role(role: str) -> str:
    """A role by its name.

    >>> checked_role("decide")
    'decide'
    """
    if role not in ROLES:
        raise ParameterError(invalid_value("role", role, "is not a role", near_name(role, ROLES)))
    return role


def reaches(role: str, needed: str) -> bool:
    """Whether a role may do what `needed` may.

    >>> reaches("admin", "decide"), reaches("read", "decide")
    (True, False)
    """
    return ROLES.index(role) >= ROLES.index(needed)

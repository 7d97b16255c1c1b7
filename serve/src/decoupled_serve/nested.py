"""Values inside mappings inside mappings, as JSON and TOML have them."""

import json
from typing import Any


def at(content: Any, place: str) -> Any:
    """The value at a place such as "user.id"; None if there is none.

    >>> at({"user": {"id": 17}}, "user.id"), at({"user": 17}, "user.id"), at([1], "user")
    (17, None, None)
    """
    for step in place.split("."):
        content = content.get(step) if isinstance(content, dict) else None
    return content


def parsed(body: bytes, **options: Any) -> Any:
    """The content of a body; None if it is not JSON."""
    try:
        return json.loads(body, **options)
    except (ValueError, RecursionError):
        return None

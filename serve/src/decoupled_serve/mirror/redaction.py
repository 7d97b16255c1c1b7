"""Removes what is private from texts, in a process of its own: a pattern may take for ever, and a function may do anything."""

import re
from collections.abc import Sequence
from pathlib import Path

from .config import MIB, JudgeConfig
from .judges import BadVerdict, PythonJudge


def without(text: str, patterns: Sequence[str] = ()) -> str:
    r"""A text without what matches one of the patterns.

    >>> without("Call 0171 555, ann@example.com", [r"\d[\d ]+\d", r"\S+@\S+"])
    'Call [removed], [removed]'
    """
    for pattern in patterns:
        text = re.sub(pattern, "[removed]", text)
    return text


class Redactor(PythonJudge):
    """Calls a function of a text that returns it without what is private, or removes patterns."""

    def __init__(self, redact: str | Sequence[str], folder: Path) -> None:
        itself = f"{__name__}:{without.__name__}"
        self._more = () if isinstance(redact, str) else (tuple(redact),)
        name = redact if isinstance(redact, str) else itself
        super().__init__(JudgeConfig(python=name, concurrency=2), MIB, folder, kind="text")

    async def redacted(self, text: str) -> str:
        """The text without what is private; raises an error if that fails, which must not be shown: it may have the text."""
        async with self._slots:
            found = await self._answer(text, *self._more)
        if not isinstance(found, str):
            raise BadVerdict("labels.redact: returned something that is no text; return a text")
        return found

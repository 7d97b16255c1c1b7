"""Finds the key and the context of a request.

Requests with the same key are served by the same arm. One whose key is missing, empty or too long is served like one
without. Keys are never logged. A context has the fields by which a contextual policy learns, and verdicts are given by
segment. Clients send these values, so they are bounded: a text is cut, and what does not fit its type counts as missing.
"""

import asyncio
import logging
import threading
from concurrent.futures import Future
from typing import Any

from decoupled.errors import ParameterError
from decoupled.learner import LARGEST_NUMBER, key_text
from decoupled.policies import Policy

from ..nested import at
from ..service.experiment.context import LONGEST_VALUE, Value
from ..service.experiment.records import FieldType
from .config import MirrorConfig, StickyConfig
from .counts import MirrorCounts
from .exchange import Request
from .headers import Raw
from .judge_worker import function_named

_AT_A_TIME = 8  # calls of a function; while so many are late, the field is missing
_log = logging.getLogger("decoupled.mirror")


class KeyFinder:
    """Finds keys where the configuration says. `in_body` is whether it has to read the body for that."""

    def __init__(self, config: StickyConfig) -> None:
        self._header = None if config.header is None else config.header.lower().encode()
        self._cookie = None if config.cookie is None else config.cookie.encode()
        self._place = config.body
        self.in_body = config.body is not None

    def find(self, headers: Raw, content: Any) -> str | None:
        """The key of a request, whose body is read as JSON; None if it has none.

        >>> KeyFinder(StickyConfig(header="X-Session-Id")).find([(b"x-session-id", b"17")], None)
        '17'
        >>> KeyFinder(StickyConfig(cookie="sid")).find([(b"cookie", b'theme=dark; sid="a b"')], None)
        'a b'
        >>> KeyFinder(StickyConfig(json="user.id")).find([], {"user": {"id": 17}})
        '17'
        """
        if self._header is not None:
            return _checked(next((value for name, value in headers if name == self._header), None))
        if self._cookie is not None:
            return _checked(self._in_cookies(headers))
        return None if self._place is None else _checked(at(content, self._place))

    def _in_cookies(self, headers: Raw) -> bytes | None:
        for name, value in headers:
            for each in value.split(b";") if name == b"cookie" else ():
                key, _, found = each.partition(b"=")
                if key.strip() == self._cookie:
                    return found.strip().removeprefix(b'"').removesuffix(b'"')
        return None


def _checked(found: object) -> str | None:
    if isinstance(found, bytes):
        found = found.decode("utf-8", "replace").strip()
    try:
        return key_text(found)
    except ParameterError:
        return None


_TRUTH = {"true": True, "1": True, "false": False, "0": False}


class ContextFinder:
    """Finds contexts where the configuration says. `in_body` is whether it has to read the body for that."""

    def __init__(self, config: MirrorConfig, counts: MirrorCounts | None = None) -> None:
        self._config, self._counts = config.context, counts or MirrorCounts()
        self._policy: Any = Policy.from_dict(config.experiment.policy)
        self._functions = {
            name: (
                function_named(field.python, config.folder, field=name),
                threading.Semaphore(_AT_A_TIME),
            )
            for name, field in self._config.items()
            if field.python is not None
        }
        self._fields = {name: field for name, field in self._config.items() if field.python is None}
        named = {name: field.header for name, field in self._fields.items()}
        self._headers = {
            name: each.lower().encode() for name, each in named.items() if each is not None
        }
        self.computes = bool(self._functions)
        self.in_body = self.computes or any(
            field.body is not None for field in self._fields.values()
        )

    def find(self, method: str, path: bytes, headers: Raw, content: Any) -> dict[str, Value]:
        """What is known of a request, whose body is read as JSON.

        >>> fields = {"subject": {"header": "X-Subject"}, "tokens": {"json": "max_tokens", "type": "number"}, "api": {"path": 2}}
        >>> arms = [{"name": "a", "url": "http://a"}, {"name": "b", "url": "http://b"}]
        >>> finder = ContextFinder(MirrorConfig.model_validate({"arm": arms, "context": fields}))
        >>> finder.find("POST", b"/v1/chat", [(b"x-subject", b"law")], {"max_tokens": 312})
        {'subject': 'law', 'tokens': 312.0, 'api': 'chat'}
        """
        found: dict[str, Value] = {}
        for name, field in self._fields.items():
            value: Any = None
            if field.header is not None:
                value = next((each for key, each in headers if key == self._headers[name]), None)
            elif field.body is not None:
                value = at(content, field.body)
            elif field.path is not None:
                value = (
                    path if field.path == 0 else dict(enumerate(path.split(b"/"))).get(field.path)
                )
            else:
                value = method
            found |= self._fitted(name, value, field.type)
        return found

    async def compute(self, request: Request) -> dict[str, Value]:
        """What functions say of a request, in threads of their own: one that never ends delays nothing, not even the mirror's end."""
        found: dict[str, Value] = {}
        for each in await asyncio.gather(
            *(self._computed(name, request) for name in self._functions)
        ):
            found |= each
        return found

    async def _computed(self, name: str, request: Request) -> dict[str, Value]:
        (function, free), field = self._functions[name], self._config[name]
        done: Future[dict[str, Value]] = Future()

        def work() -> None:
            try:
                if done.set_running_or_notify_cancel():
                    done.set_result(self._fitted(name, function(request), field.type))
            except BaseException as error:  # someone else's code, which may call sys.exit
                done.set_exception(_FunctionFailed(type(error).__name__))
            finally:
                free.release()

        try:
            if not free.acquire(blocking=False):
                raise TimeoutError
            threading.Thread(target=work, daemon=True).start()
            return await asyncio.wait_for(asyncio.wrap_future(done), field.timeout)
        except TimeoutError:
            self._counts.fields_missing["late"] += 1
        except _FunctionFailed as error:
            if self._counts.fields_missing["failed"] == 0:
                _log.warning(
                    "context.%s: its function failed with %s; the field is missing", name, error
                )
            self._counts.fields_missing["failed"] += 1
        return {}

    def _fitted(self, name: str, value: Any, kind: FieldType) -> dict[str, Value]:
        """A value as its type takes it, by name; nothing if it does not fit."""
        if kind != "vector":
            fitted = _fitted(value, kind)
            return {} if fitted is None else {name: fitted}
        try:
            text = value.decode("utf-8", "replace").strip() if isinstance(value, bytes) else value
            return dict(self._policy.spread(name, text))
        except ParameterError:
            return {}


class _FunctionFailed(Exception):  # noqa: N818
    """A function of a request raised an error; its text may be a user's, so only its kind is known."""


def _fitted(value: Any, kind: FieldType) -> Value | None:
    """A value as its type takes it; None if it does not fit."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace").strip()
    if kind == "text":
        text = str(value) if type(value) is int and abs(value) < 10**LONGEST_VALUE else value
        return (
            text[:LONGEST_VALUE] if isinstance(text, str) and text and text.isprintable() else None
        )
    if kind == "boolean":
        return value if isinstance(value, bool) else _TRUTH.get(str(value).lower())
    try:
        plain = isinstance(value, (str, int, float)) and not isinstance(value, bool)
        number = float(value) if plain else None
    except (ValueError, OverflowError):
        return None
    return number if number is not None and abs(number) <= LARGEST_NUMBER else None

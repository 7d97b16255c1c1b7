"""A minimal HTTP client: one connection, one request at a time, no retries.

Only the standard library is imported, so that client processes start at once.
"""

import http.client
import json
from types import TracebackType
from typing import Any, Self


class Unanswered(Exception):
    """No answer came: the request may or may not have been executed."""


class Asking:
    def __init__(self, port: int, timeout: float = 120.0) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)

    def ask(
        self, method: str, path: str, body: Any = None, key: str | None = None
    ) -> tuple[int, bytes]:
        headers = {"Content-Type": "application/json"}
        if key is not None:
            headers["Idempotency-Key"] = key
        content = None if body is None else json.dumps(body).encode()
        try:
            self._connection.request(method, path, content, headers)
            answer = self._connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise Unanswered(f"{method} {path}: {error!r}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connection.close()

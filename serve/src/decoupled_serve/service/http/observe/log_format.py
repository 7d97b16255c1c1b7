"""How the service and the mirror write their logs: as text, or as one JSON object a line."""

import json
import logging
import re
import sys
import threading
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Literal, TypeAlias

from ...experiment.request_context import ORIGIN, Origin

LogFormat: TypeAlias = Literal["text", "json"]

_log = logging.getLogger("decoupled.service")


class TextFormatter(logging.Formatter):
    """Lines of text. A line that belongs to a request ends with the id of that request.

    >>> record = logging.LogRecord("decoupled.service", logging.INFO, "", 0, "the disk is full", None, None)
    >>> token = ORIGIN.set(Origin(request="1f2e-7"))
    >>> TextFormatter().format(record).partition(" INFO ")[2]
    'decoupled.service: the disk is full [request 1f2e-7]'
    >>> ORIGIN.reset(token)
    """

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - named by the base class
        """The line, without what follows an exception."""
        request = ORIGIN.get().request
        return super().formatMessage(record) + (
            f" [request {request}]" if request is not None else ""
        )


class JsonFormatter(logging.Formatter):
    """One JSON object a line: what the line says, and what it is about. Code adds fields with `extra={"fields": {...}}`.

    >>> record = logging.LogRecord("decoupled.service", logging.INFO, "", 0, "the disk is full", None, None)
    >>> token = ORIGIN.set(Origin("1f2e-7", "key 3f29c1a0b7de", "till"))
    >>> {name: value for name, value in json.loads(JsonFormatter().format(record)).items() if name != "time"}
    {'level': 'info', 'logger': 'decoupled.service', 'message': 'the disk is full', 'request_id': '1f2e-7', 'caller': 'key 3f29c1a0b7de', 'key_label': 'till'}
    >>> ORIGIN.reset(token)
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        at = datetime.fromtimestamp(record.created, UTC)
        content: dict[str, Any] = {
            "time": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_origin_fields(ORIGIN.get()),
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[1] is not None:
            content["exception"] = {
                "type": type(record.exc_info[1]).__name__,
                "message": str(record.exc_info[1]),
                "stack": self.formatException(record.exc_info),
            }
        elif record.exc_text:
            content["exception"] = {"stack": record.exc_text}
        return json.dumps(content, default=str)


def _origin_fields(origin: Origin) -> dict[str, Any]:
    if origin.request is None and origin.trace is None:
        return {}
    trace = origin.trace
    fields = {
        "request_id": origin.request, "trace_id": trace and trace.trace_id, "span_id": trace and trace.span_id,
        "caller": origin.caller, "key_label": origin.label or None,
    }  # fmt: skip
    return {name: value for name, value in fields.items() if value is not None}


def set_up_logging(log_format: LogFormat, *, access_log: bool = False) -> None:
    """Write the logs of this process and its server to stderr; with "json", also warnings, and errors that nothing catches."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.getLogger("decoupled.access").setLevel(logging.INFO if access_log else logging.WARNING)
    if log_format == "json":
        logging.captureWarnings(True)
        sys.excepthook = _log_uncaught
        threading.excepthook = lambda args: _log_uncaught(
            args.exc_type, args.exc_value, args.exc_traceback
        )


def _log_uncaught(
    kind: type[BaseException], error: BaseException | None, trace: TracebackType | None
) -> None:
    if error is None or issubclass(kind, (KeyboardInterrupt, SystemExit)):
        return
    _log.critical("an error that nothing caught", exc_info=(kind, error, trace))


access_log = logging.getLogger("decoupled.access")
_EXPERIMENT = re.compile(r"/v1/experiments/([^/]+)")


def log_access(method: str, path: str, route: str, status: int, seconds: float) -> None:
    """Log a request. Query strings and headers are left out: they may contain a key."""
    caller, found = ORIGIN.get().caller, _EXPERIMENT.match(path)
    fields = {
        "method": method, "path": path, "route": route, "status": status, "ms": round(1e3 * seconds, 3),
        **({"experiment": found[1]} if found is not None else {}),
    }  # fmt: skip
    # JSON keeps a path with line breaks on one line.
    line = (method, json.dumps(path), status, 1e3 * seconds, caller)
    access_log.info("%s %s %d %.1f ms %s", *line, extra={"fields": fields})

"""The access log: one line for each request, without anything that may be secret."""

import json
import logging
import re

from ...experiment.request_context import ORIGIN

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
    access_log.info(
        "%s %s %d %.1f ms %s",
        method,
        json.dumps(path),
        status,
        1e3 * seconds,
        caller,
        extra={"fields": fields},
    )

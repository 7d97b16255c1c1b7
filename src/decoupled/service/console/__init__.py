"""The console: a page at `/` made of plain files, which uses the same API as everyone else.

Its files need no key, because they contain no data: the page requests all data from `/v1` with the visitor's key.
"""

import json
from collections.abc import Awaitable, Callable
from importlib.resources import files

from fastapi import APIRouter, Response

from ...policies import FTPL, Exp3, Policy, TsallisINF

KINDS = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "json": "application/json",
}
# The policies offered in the form for a new experiment. The first is the default.
OFFERED: tuple[Policy, ...] = (FTPL.recommended(), FTPL(), TsallisINF(), Exp3())
# The page may contact only this service and run only the files here, and no text can become markup: names that users
# chose are shown as text, or not at all.
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def _read() -> dict[str, tuple[bytes, str]]:
    found = {}
    for file in files(__name__).iterdir():
        ending = file.name.rpartition(".")[2]
        if ending in KINDS:
            path = "/" if file.name == "index.html" else f"/console/{file.name}"
            found[path] = (file.read_bytes(), KINDS[ending])
    # For the form: parameters written into the page itself would become outdated.
    offered = [{"label": policy.label, "policy": policy.to_dict()} for policy in OFFERED]
    found["/console/policies.json"] = (json.dumps(offered).encode(), KINDS["json"])
    return found


FILES = _read()
PATHS = frozenset(FILES)  # served without a key


def console_routes() -> APIRouter:
    """The console's files, each at its path; the OpenAPI document leaves them out."""
    router = APIRouter(include_in_schema=False)
    for path, (content, kind) in FILES.items():
        router.add_api_route(path, _serving(content, kind), methods=["GET", "HEAD"])
    return router


def _serving(content: bytes, kind: str) -> Callable[[], Awaitable[Response]]:
    async def serve() -> Response:
        return Response(content, media_type=kind, headers=HEADERS)

    return serve

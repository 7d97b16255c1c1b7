"""The console: a page at `/` of static files that uses the public API, and the reference of that API at `/docs`.

The files hold no data, so they require no key. The pages request their data from `/v1` with the visitor's key.
"""

import json
from collections.abc import Awaitable, Callable
from importlib.resources import files

from fastapi import APIRouter, Response

from decoupled.policies import FTPL, Exp3, Ladder, Policy, TsallisINF

KINDS = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "json": "application/json",
}
PAGES = {"index.html": "/", "reference.html": "/docs"}
# The policies in the form for a new experiment. The first is the default.
OFFERED: tuple[Policy, ...] = (Ladder(), FTPL(), TsallisINF(), Exp3())
# The page talks only to this service and runs only these files, and text cannot become markup: names that users
# choose are always shown as text.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
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
            path = PAGES.get(file.name, f"/console/{file.name}")
            found[path] = (file.read_bytes(), KINDS[ending])
    # The page itself has no parameters of policies, which would become outdated.
    offered = [{"label": policy.label, "policy": policy.to_dict()} for policy in OFFERED]
    found["/console/policies.json"] = (json.dumps(offered).encode(), KINDS["json"])
    return found


FILES = _read()
PATHS = frozenset(FILES)  # require no key


def console_routes() -> APIRouter:
    """Routes for the console's files, which are not in the OpenAPI document."""
    router = APIRouter(include_in_schema=False)
    for path, (content, kind) in FILES.items():
        router.add_api_route(path, _respond_with(content, kind), methods=["GET", "HEAD"])
    return router


def _respond_with(content: bytes, kind: str) -> Callable[[], Awaitable[Response]]:
    async def respond() -> Response:
        return Response(content, media_type=kind, headers=HEADERS)

    return respond

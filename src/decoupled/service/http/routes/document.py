"""Route: the OpenAPI document. It is the same for everyone, so it needs no key."""

import asyncio
import hashlib
import json

from fastapi import APIRouter, FastAPI, Request, Response

PATH = "/v1/openapi.json"


def document_routes(app: FastAPI) -> APIRouter:
    """Serve the document of an application."""
    router = APIRouter(include_in_schema=False)
    written: list[tuple[bytes, str]] = []

    @router.api_route(PATH, methods=["GET", "HEAD"])
    async def get_document(request: Request) -> Response:
        """Return the document, or 304 if the caller has it already."""
        if not written:
            # Describing every route takes most of a second, in which decisions must not wait.
            content = json.dumps(await asyncio.to_thread(app.openapi), ensure_ascii=False).encode()
            written.append((content, f'"{hashlib.sha256(content).hexdigest()[:32]}"'))
        content, tag = written[0]
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers={"ETag": tag})
        return Response(content, media_type="application/json", headers={"ETag": tag})

    return router

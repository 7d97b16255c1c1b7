"""Two small servers to measure a mirror with: an upstream, and a proxy that only passes on.

    python -m decoupled_lab.bench.plain_proxy upstream ok
    python -m decoupled_lab.bench.plain_proxy proxy http://127.0.0.1:9001

print their port. The proxy is what one would write with well-known libraries: uvicorn in front, httpcore behind.
"""

import asyncio
import os
import socket
import sys
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

MARK = b"x-mirrored"  # on the copies that a mirror sends
CONTENT = b'{"answer": "' + b"a" * 400 + b'"}'
_HOP_BY_HOP = frozenset(
    (b"connection", b"keep-alive", b"transfer-encoding", b"upgrade", b"te", b"host")
)


def upstream(behaviour: str) -> Any:
    """An application that answers at once, and treats copies as `behaviour` says: ok, hang, huge or broken."""
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(CONTENT)).encode()),
    ]
    huge, part = [(b"content-length", str(2**26).encode())], bytes(2**16)

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        copied = any(name == MARK for name, _ in scope["headers"])
        if copied and behaviour == "hang":
            while (await receive())["type"] != "http.disconnect":
                pass
        elif copied and behaviour == "huge":
            await send({"type": "http.response.start", "status": 200, "headers": huge})
            for number in range(2**10):
                await send(
                    {"type": "http.response.body", "body": part, "more_body": number < 2**10 - 1}
                )
        elif copied and behaviour == "broken":
            await send({"type": "http.response.start", "status": 200, "headers": huge})
        else:
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": CONTENT})

    return answer


def proxy(url: str) -> Any:
    """An application that passes requests on to an address, and streams the answers back."""
    import httpcore

    # httpcore tries this import several times in each request, and each would search all folders.
    if find_spec("sniffio") is None:
        sys.modules["sniffio"] = None  # type: ignore[assignment]
    parts = urlsplit(url)
    host, port = (parts.hostname or "").encode(), parts.port
    pool = httpcore.AsyncConnectionPool(max_connections=None, keepalive_expiry=4.0)
    timeouts = {"timeout": {"connect": 5.0, "read": 60.0, "write": 60.0, "pool": 60.0}}

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        async def body() -> Any:
            more = True
            while more:
                message = await receive()
                more = message.get("more_body", False)
                if message.get("body"):
                    yield message["body"]

        query = scope["query_string"]
        target = scope["raw_path"] + b"?" + query if query else scope["raw_path"]
        headers = [each for each in scope["headers"] if each[0] not in _HOP_BY_HOP]
        request = httpcore.Request(
            scope["method"].encode(),
            httpcore.URL(scheme=parts.scheme.encode(), host=host, port=port, target=target),
            headers=[(b"host", parts.netloc.encode()), *headers],
            content=body(),
            extensions=timeouts,
        )
        response = await pool.handle_async_request(request)
        try:
            kept = [each for each in response.headers if each[0].lower() not in _HOP_BY_HOP]
            await send({"type": "http.response.start", "status": response.status, "headers": kept})
            async for part in response.aiter_stream():
                await send({"type": "http.response.body", "body": part, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            await response.aclose()

    return answer


def main(kind: str, argument: str) -> None:
    """Serve on a free port of the loopback until the process is ended."""
    import uvicorn

    app = upstream(argument) if kind == "upstream" else proxy(argument)
    if kind == "upstream" and argument != "ok" and hasattr(os, "nice"):
        os.nice(
            19
        )  # an upstream that only gets copies would not share a processor with those that serve
    with socket.create_server(("127.0.0.1", 0), backlog=2048) as listener:
        print(f"Serving on http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
        config = uvicorn.Config(
            app,
            loop="uvloop",
            http="httptools",
            ws="none",
            lifespan="off",
            access_log=False,
            log_level="critical",
        )
        with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
            runner.run(uvicorn.Server(config).serve([listener]))


if __name__ == "__main__":
    main(*sys.argv[1:])

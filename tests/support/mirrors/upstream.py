"""An upstream in a process of its own, which does as each request says, for the arm that it is.

    python upstream.py NAME

prints its port. A request says what to do in its query, by the name of the arm: `/x?next=hang&stable=ok`.
`/ok?copy=hang` is for a request with the header X-Mirrored.
`/seen` lists the requests that came, as JSON.
"""

import asyncio
import base64
import json
import sys
from urllib.parse import parse_qsl, urlsplit

import h11

NAME = sys.argv[1] if len(sys.argv) > 1 else "?"
SEEN: list[dict[str, object]] = []
OPEN = 0  # answers that were begun and not finished


async def read_request(
    reader: asyncio.StreamReader, begun: bytes
) -> tuple[str, str, list[list[str]], bytes, bytes]:
    """A request, and what came after it."""
    http, body, request = h11.Connection(h11.SERVER, 2**20), b"", None
    http.receive_data(begun) if begun else None
    while not isinstance(event := http.next_event(), h11.EndOfMessage):
        if event is h11.NEED_DATA:
            if not (data := await reader.read(2**16)):
                raise ConnectionError
            http.receive_data(data)
        elif isinstance(event, h11.Request):
            request = event
        elif isinstance(event, h11.Data):
            body += event.data
    assert request is not None
    headers = [[name.decode("latin-1"), value.decode("latin-1")] for name, value in request.headers]
    return request.method.decode(), request.target.decode(), headers, body, http.trailing_data[0]


def head(status: int, *headers: str) -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status} Whatever", *headers, "", ""]).encode("latin-1")


def whole(content: bytes, status: int = 200, *headers: str) -> bytes:
    return head(status, f"Content-Length: {len(content)}", f"X-Arm: {NAME}", *headers) + content


def chunk(content: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(content), content)


async def respond(
    writer: asyncio.StreamWriter, method: str, target: str, record: dict[str, object]
) -> bool:
    """Answer; returns whether the connection stays open."""
    parts = urlsplit(target)
    query = dict(parse_qsl(parts.query))
    headers = record["headers"]
    assert isinstance(headers, list)
    copied = any(name.lower() == "x-mirrored" for name, _ in headers)
    told = query.get("copy") if copied else query.get(NAME)
    action, _, argument = (told or parts.path.removeprefix("/")).partition(":")
    if action == "seen":
        writer.write(whole(json.dumps({"seen": SEEN, "open": OPEN}).encode()))
    elif action == "echo":
        writer.write(
            whole(
                json.dumps(record | {"arm": NAME}).encode(), 200, "Content-Type: application/json"
            )
        )
    elif action == "status":
        writer.write(whole(NAME.encode(), int(argument)))
    elif action == "hop":
        extra = (
            "Connection: keep-alive, X-Private",
            "X-Private: 1",
            "Keep-Alive: timeout=5",
            "Set-Cookie: a=1",
            "Set-Cookie: b=2",
        )
        writer.write(whole(b"hop", 200, *extra))
    elif action == "slow":
        await asyncio.sleep(float(argument))
        writer.write(whole(NAME.encode()))
    elif action == "hang":
        await writer.wait_closed()
        return False
    elif action == "events":  # count:seconds between them
        count, _, gap = argument.partition(":")
        writer.write(head(200, "Content-Type: text/event-stream", "Transfer-Encoding: chunked"))
        for number in range(int(count)):
            writer.write(chunk(f"data: {NAME} {number}\n\n".encode()))
            await writer.drain()
            await asyncio.sleep(float(gap or 0))
        writer.write(chunk(b""))
    elif action in ("die", "die-in-length"):
        length = "Transfer-Encoding: chunked" if action == "die" else "Content-Length: 1000"
        writer.write(head(200, length) + (chunk(b"part") if action == "die" else b"part"))
        await writer.drain()
        writer.transport.abort()
        return False
    elif action == "malformed":
        writer.write(b"\x00\x01 this is not HTTP\r\n\r\n")
        return False
    elif action == "silent":
        return False
    elif (
        action == "raw"
    ):  # the whole answer, in base64; the connection stays open unless it says "close"
        content = base64.urlsafe_b64decode(argument)
        writer.write(content)
        await writer.drain()
        return b"onnection: close" not in content
    elif action == "bytes":
        writer.write(head(200, f"Content-Length: {argument}"))
        left = int(argument)
        while left > 0:
            part = bytes(range(256)) * 256
            writer.write(part[:left])
            left -= len(part)
            await writer.drain()
    else:
        writer.write(whole(NAME.encode()))
    await writer.drain()
    return True


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    global OPEN
    begun = b""
    try:
        while True:
            method, target, headers, body, begun = await read_request(reader, begun)
            record: dict[str, object] = {"method": method, "target": target, "headers": headers}
            record["body"] = base64.b64encode(body).decode()
            if not target.startswith("/seen") and len(SEEN) < 10_000:
                SEEN.append(record)
            OPEN += not target.startswith("/seen")
            answering = asyncio.ensure_future(respond(writer, method, target, record))
            following = asyncio.ensure_future(reader.read(1))  # empty if the other side hangs up
            try:
                await asyncio.wait([answering, following], return_when=asyncio.FIRST_COMPLETED)
                if following.done() and (following.exception() or not following.result()):
                    break
                if not await answering or ["connection", "close"] in headers:
                    break
                following.cancel()
                await asyncio.wait([following])
                begun += b"" if following.cancelled() else following.result()
            finally:
                for each in (answering, following):
                    each.cancel()
                await asyncio.gather(answering, following, return_exceptions=True)
                OPEN -= not target.startswith("/seen")
    except h11.RemoteProtocolError:
        writer.write(whole(b"", 400, "Connection: close"))
    except (ConnectionError, ValueError):
        pass
    finally:
        writer.close()


async def main() -> None:
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())

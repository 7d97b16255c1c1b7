"""A flush of the log precedes every acknowledgement, seen in the service's system calls.

SIGKILL cannot show this: what a killed process has written stays in the system's memory.
"""

import json
import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.reliability import careless, tracing
from support.reliability.asking import Asking
from support.reliability.serving import COMMAND, Server, serving
from support.reliability.sizes import SIZES

CLIENTS = 4
TRACED = ("-e", f"trace={','.join(tracing.WRITES + tracing.FLUSHES)}")


@pytest.mark.parametrize(
    "synchronous", ["FULL", "OFF", "NORMAL"] if SIZES.long else ["FULL", "OFF"]
)
def test_a_flush_precedes_every_acknowledgement(synchronous: str, tmp_path: Path) -> None:
    """And the test can fail: with NORMAL and OFF, where SQLite does not flush each commit, it finds each fault."""
    tracing.need_strace()
    program = COMMAND if synchronous == "FULL" else (careless.__file__, synchronous)
    with serving(tmp_path / "store.db", tmp_path / "server.log", program) as server:
        server.create("traced", {"policy": {"name": "FTPL"}, "arms": ["a", "b", "c"], "seed": 7})
        assert server.ask("POST", "/v1/experiments/traced/decisions")[0] == 201
        with tracing.traced(server.pid, tmp_path / "trace", *TRACED):
            writes = _acknowledged(server)
    found = tracing.calls(tmp_path / "trace")
    faults = tracing.unflushed(found, writes)
    print(
        f"{synchronous}: {len(writes)} writes in {len(tracing.commits(found))} commits, {len(faults)} not flushed before"
    )
    assert len(writes) == 2 * CLIENTS * (SIZES.traced // (2 * CLIENTS))
    assert len(tracing.commits(found)) < len(writes), "no commit was shared"
    if synchronous == "FULL":
        assert faults == []
    else:
        # With NORMAL a checkpoint flushes what was answered last before it, now and then in time.
        assert len(faults) >= (1.0 if synchronous == "OFF" else 0.95) * len(writes)
        assert all("answered before its rows were flushed" in fault for fault in faults)


def _acknowledged(server: Server) -> list[tracing.Write]:
    """Decisions and feedback by several clients; each can be told by bytes that only its own rows hold."""
    writes: list[tracing.Write] = []

    def client(place: int) -> None:
        with Asking(server.port) as asking:
            for turn in range(SIZES.traced // (2 * CLIENTS)):
                number = 10_000 * place + turn
                key = f"key-{number:06d}-yek"
                status, content = asking.ask("POST", "/v1/experiments/traced/decisions", key=key)
                assert status == 201
                name = json.loads(content)["id"]
                writes.append(tracing.Write(key.encode(), (b'"%s"' % name.encode(), b'"pending"')))
                # A loss whose eight bytes, as SQLite keeps them, read as text.
                token = b"?A%06d" % number
                [loss] = struct.unpack(">d", token)
                status, content = asking.ask(
                    "PUT", f"/v1/decisions/{name}/feedback", {"loss": loss}
                )
                assert status == 200
                writes.append(tracing.Write(token, (b'"%s"' % name.encode(), b'"applied"')))

    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(client, range(CLIENTS)))
    return writes

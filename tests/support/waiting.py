"""Waiting for what happens elsewhere, and ports for what is started there."""

import random
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def wait_for(
    condition: Callable[[], Any], what: str = "it", log: Path | None = None, seconds: float = 120.0
) -> Any:
    """The first result of a condition that is true; on a busy machine that takes long."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        told = log.read_text()[-3000:] if log else ""
        assert time.monotonic() < deadline, f"waited for {what}\n{told}"
        time.sleep(0.01)
    return found


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def free_port() -> int:
    """A free port below the ephemeral range, so that it stays free between two starts."""
    while True:
        port = random.SystemRandom().randrange(20_000, 32_000)
        with socket.socket() as attempt:
            try:
                attempt.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port

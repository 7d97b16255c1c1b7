"""Clients that retry forever: a process with several threads, started by `traffic` and stopped by a file.

Each thread asks for decisions and sends feedback that comes late, out of order, twice, in batches, or with
another value than before. A request with an idempotency key, and feedback, is sent until it is answered.
Every answer is written to the thread's journal the moment it has come; see `ledger`.
"""

import heapq
import json
import os
import random
import sys
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

from support.reliability.asking import Asking, Unanswered

THREADS = 6
_PARENT = os.getppid()
EXPERIMENTS: dict[str, dict[str, Any]] = {
    "plain": {"policy": {"name": "FTPL"}, "arms": ["a", "b", "c"], "seed": 7},
    "tsallis": {"policy": {"name": "TsallisINF"}, "arms": ["a", "b", "c", "d"], "seed": 8},
    "hurried": {
        "policy": {"name": "FTPL"},
        "arms": ["a", "b", "c"],
        "seed": 9,
        "deadline_seconds": 1.0,
        "expired_loss": 0.75,
    },
}


class Due(NamedTuple):
    """Feedback to send at a given time. `contrary` differs from the value that was applied."""

    at: float
    order: int
    decision: str
    sent: dict[str, float]
    loss: float
    contrary: bool


class Plan:
    """Feedback to be sent, shared by all threads of a process."""

    def __init__(self) -> None:
        self._heap: list[Due] = []
        self._lock = threading.Lock()
        self._count = self._taken = 0

    def add(
        self, delay: float, decision: str, sent: dict[str, float], loss: float, contrary: bool
    ) -> None:
        with self._lock:
            self._count += 1
            due = Due(time.monotonic() + delay, self._count, decision, sent, loss, contrary)
            heapq.heappush(self._heap, due)

    def take(self, most: int) -> list[Due]:
        """Up to this many that are due; call `done` when each has been answered."""
        now = time.monotonic()
        found: list[Due] = []
        with self._lock:
            while self._heap and len(found) < most and self._heap[0].at <= now:
                found.append(heapq.heappop(self._heap))
            self._taken += len(found)
        return found

    def done(self, count: int) -> None:
        with self._lock:
            self._taken -= count

    def empty(self) -> bool:
        with self._lock:
            return not self._heap and not self._taken


class Client:
    def __init__(
        self, name: str, ports: list[int], timeout: float, folder: Path, seed: int, plan: Plan
    ) -> None:
        self.name = name
        self._random = random.Random(f"{seed}-{name}")
        self._asking = [Asking(port, timeout) for port in ports]
        self._journal = os.open(
            folder / f"{name}.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644
        )
        self._stop = folder / "stop"
        self._plan = plan
        self._keys = 0

    def run(self) -> None:
        try:
            while not self._stop.exists():
                self._send_due()
                self._decide()
            while not self._plan.empty():
                if not self._send_due():
                    time.sleep(0.01)
        except BaseException as error:
            self._write("?", repr(error))
            raise

    def _write(self, *line: Any) -> None:
        os.write(self._journal, json.dumps(line).encode() + b"\n")

    # Retrying until there is an answer

    def _once(self, method: str, path: str, body: Any, key: str | None = None) -> tuple[int, Any]:
        status, content = self._random.choice(self._asking).ask(method, path, body, key)
        return status, json.loads(content)

    def _until_answered(
        self, method: str, path: str, body: Any, key: str | None = None
    ) -> tuple[int, Any]:
        while True:
            try:
                status, content = self._once(method, path, body, key)
                if status != 503:
                    return status, content
                self._write("refused", status)
            except Unanswered:
                pass
            if os.getppid() != _PARENT:  # the parent process is gone
                os._exit(1)
            time.sleep(0.02)

    # Decisions

    def _decide(self) -> None:
        chance = self._random
        name = chance.choice(list(EXPERIMENTS))
        path, body = f"/v1/experiments/{name}/decisions", self._wanted(name)
        count = body.get("count", 1)
        if chance.random() < 0.1:
            try:
                status, content = self._once("POST", path, body)
            except Unanswered:
                self._write("unanswered", name, count)
                time.sleep(0.02)
                return
            self._take(name, None, status, content, count)
            return
        self._keys += 1
        key = f"{self.name}-{self._keys}"
        status, content = self._until_answered("POST", path, body, key)
        self._take(name, key, status, content, count)
        if chance.random() < 0.05:
            status, content = self._until_answered("POST", path, body, key)
            self._write("decided again", name, key, status, content)

    def _wanted(self, name: str) -> dict[str, Any]:
        chance = self._random
        body: dict[str, Any] = {}
        if chance.random() < 0.2:
            body["mode"] = chance.choice(["explore", "exploit"])
        if chance.random() < 0.2:
            body["count"] = chance.randrange(1, 6)
        if chance.random() < 0.1:
            body["available"] = chance.sample(EXPERIMENTS[name]["arms"], 2)
        return body

    def _take(self, name: str, key: str | None, status: int, content: Any, count: int) -> None:
        if status == 503:
            self._write("refused", status)
            self._write("turned away", name, count)
            return
        if status != 201:
            self._write("?", "decide", status, content)
            return
        made = content.get("decisions", [content])
        self._write("decided", name, key, made)
        if len(made) != count:
            self._write("?", "count", count, content)
        for each in made:
            if each["mode"] != "exploit" and self._random.random() < 0.93:
                self._promise(each["id"])

    # Feedback

    def _delay(self) -> float:
        return min(self._random.expovariate(4.0), 2.5)

    def _promise(self, decision: str) -> None:
        chance = self._random
        value = chance.random()
        sent, loss = (
            ({"reward": value}, 1.0 - value) if chance.random() < 0.1 else ({"loss": value}, value)
        )
        self._plan.add(self._delay(), decision, sent, loss, False)
        if chance.random() < 0.25:
            self._plan.add(self._delay(), decision, sent, loss, False)

    def _send_due(self) -> bool:
        due = self._plan.take(20 if self._random.random() < 0.1 else 1)
        if len(due) == 1:
            status, content = self._until_answered(
                "PUT", f"/v1/decisions/{due[0].decision}/feedback", due[0].sent
            )
            self._settle(due[0], status, content)
        elif due:
            items = [{"decision": each.decision, **each.sent} for each in due]
            status, content = self._until_answered("POST", "/v1/feedback", {"items": items})
            for each, result in zip(due, content["results"], strict=True):
                self._settle(each, result["status"], result.get("decision", result.get("problem")))
        self._plan.done(len(due))
        return bool(due)

    def _settle(self, due: Due, status: int, content: Any) -> None:
        if status == 200 and not due.contrary:
            self._write("applied", due.decision, due.loss, content)
            if self._random.random() < 0.03:
                other = 1.0 - due.loss if due.loss != 0.5 else 0.25
                self._plan.add(self._delay(), due.decision, {"loss": other}, other, True)
        elif status == 409 and due.contrary:
            self._write("conflict", due.decision, due.loss)
        elif status == 410 and not due.contrary:
            self._write("late", due.decision, due.loss)
        elif status == 503:  # in a batch: after a start, the policy of this one is not loaded yet
            self._write("refused", status)
            self._plan.add(self._delay(), due.decision, due.sent, due.loss, due.contrary)
        else:
            self._write("?", "feedback", due, status, content)


def main() -> None:
    folder, seed, place, timeout, *ports = sys.argv[1:]
    plan = Plan()
    clients = [
        Client(
            f"{place}-{number}",
            [int(port) for port in ports],
            float(timeout),
            Path(folder),
            int(seed),
            plan,
        )
        for number in range(THREADS)
    ]
    threads = [threading.Thread(target=client.run) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()

"""The system calls of a running service, by strace, to check that it flushes before it answers."""

import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from support.waiting import wait_for

WRITES = ("write", "writev", "pwrite64", "pwritev", "pwritev2", "sendto", "sendmsg")
FLUSHES = ("fsync", "fdatasync")
_BEGUN = re.compile(r"(\d+)\s+(\w+)\((\d+)<(.*?)>(.*)", re.DOTALL)
_RESUMED = re.compile(r"(\d+)\s+<\.\.\. (\w+) resumed>(.*)", re.DOTALL)
_TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
_FRAME_HEADER = 24  # bytes before each page in SQLite's write-ahead log
_LOG_HEADER = 32


class Call(NamedTuple):
    """A system call: when it began and ended, as places in the trace; `offset` of a positioned write."""

    name: str
    path: str
    data: bytes
    offset: int
    begun: int
    ended: int
    result: int


@contextmanager
def traced(pid: int, out: Path, *options: str) -> Iterator[None]:
    """Trace a process and its threads while the block runs."""
    command = [
        "strace",
        "-f",
        "-p",
        str(pid),
        "-o",
        str(out),
        "-y",
        "-xx",
        "-s",
        "100000",
        *options,
    ]
    with out.with_suffix(".strace").open("w+") as said:
        process = subprocess.Popen(command, stderr=said)
        try:

            def attached() -> bool:
                if process.poll() is not None:
                    last = (Path(said.name).read_text().splitlines() or ["it said nothing"])[-1]
                    pytest.skip(f"strace may not trace here, flushes were NOT traced: {last}")
                return "attached" in Path(said.name).read_text()

            wait_for(attached, "strace")
            yield
        finally:
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:  # it waits for a process that has been killed
                process.kill()
                process.wait()


def need_strace() -> None:
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed here: flushes were NOT traced")


def calls(trace: Path) -> list[Call]:
    """The calls of a trace, in the order in which they began."""
    found: list[Call] = []
    open_calls: dict[str, tuple[str, str, str, int]] = {}
    with trace.open() as lines:
        for place, line in enumerate(lines):
            begun = _BEGUN.match(line)
            if begun is not None:
                thread, name, _, path, rest = begun.groups()
                if "<unfinished" in rest:
                    open_calls[thread] = (name, path, rest, place)
                else:
                    found.append(_call(name, path, rest, rest, place, place))
                continue
            resumed = _RESUMED.match(line)
            if resumed is not None and resumed[1] in open_calls:
                name, path, rest, start = open_calls.pop(resumed[1])
                found.append(_call(name, path, rest, resumed[3], start, place))
    return sorted(found, key=lambda call: call.begun)


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))


def _call(name: str, path: str, arguments: str, ending: str, begun: int, ended: int) -> Call:
    data = b"".join(_bytes(text) for text in _TEXT.findall(arguments))
    numbers = re.findall(r"(?<=, )\d+", _TEXT.sub("", arguments))
    result = re.search(r"\)\s+= (-?\d+)", ending)  # strace pads what it resumes
    offset = int(numbers[-1]) if name.startswith("pwrite") and numbers else -1
    return Call(
        name, _bytes(path).decode(), data, offset, begun, ended, int(result[1]) if result else -1
    )


class Commit(NamedTuple):
    """The bytes that one transaction wrote to the log, and when the last was written."""

    data: bytes
    written: int


def commits(found: Iterable[Call]) -> list[Commit]:
    """The transactions in SQLite's log: frames up to one whose header names the size of the database."""
    done: list[Commit] = []
    gathered: list[bytes] = []
    closing = -1  # the page of the commit frame
    for call in found:
        if call.name != "pwrite64" or not call.path.endswith("-wal") or call.offset < _LOG_HEADER:
            continue
        if len(call.data) == _FRAME_HEADER:
            if int.from_bytes(call.data[4:8], "big"):
                closing = call.offset + _FRAME_HEADER
            continue
        gathered.append(call.data)
        if call.offset == closing:
            done.append(Commit(b"".join(gathered), call.ended))
            gathered, closing = [], -1
    return done


def answers(found: Iterable[Call]) -> list[Call]:
    """The answers sent to clients; head and body of an answer may be two calls, and are joined here."""
    sent: list[Call] = []
    latest: dict[str, int] = {}
    for call in found:
        if call.name not in WRITES or not call.path.startswith(("socket:", "TCP")):
            continue
        if call.data.startswith(b"HTTP/1.1 "):
            latest[call.path] = len(sent)
            sent.append(call)
        elif call.path in latest:
            head = sent[latest[call.path]]
            sent[latest[call.path]] = head._replace(data=head.data + call.data)
    return sent


class Write(NamedTuple):
    """An acknowledged write: bytes that occur in its rows, and bytes that occur only in its answer."""

    token: bytes
    answer: tuple[bytes, ...]


def unflushed(found: Sequence[Call], writes: Iterable[Write]) -> list[str]:
    """A message for each acknowledged write that was answered before it reached the disk."""
    made = commits(found)
    flushes = [call for call in found if call.name in FLUSHES and call.path.endswith("-wal")]
    sent = answers(found)
    faults = []
    for write in writes:
        answered = next(
            (call for call in sent if all(part in call.data for part in write.answer)), None
        )
        commit = next((each for each in made if write.token in each.data), None)
        if answered is None or commit is None:
            faults.append(f"{write.token!r}: its rows or its answer are not in the trace")
        elif not any(
            commit.written < flush.begun and flush.result == 0 and flush.ended < answered.begun
            for flush in flushes
        ):
            faults.append(f"{write.token!r}: answered before its rows were flushed")
    return faults

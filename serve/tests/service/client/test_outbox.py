"""An outbox that several programs use at once, some of which are killed: nothing that was kept is lost."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from decoupled.client import Outbox, Undelivered
from decoupled.errors import ParameterError
from support.typescript import PACKAGE, built

PYTHON = """
import sys
from itertools import count
from decoupled.client import Outbox, Undelivered
outbox = Outbox(sys.argv[1])
for number in count():
    decision = f"{sys.argv[2]}-{number}"
    outbox.add(Undelivered(decision, loss=0.5))
    print(decision, flush=True)
    if number % 3 == 0:  # as after a delivery
        outbox.remove([decision])
        print("sent", decision, flush=True)
"""
NODE = """
import { writeSync } from "node:fs";
import { FolderOutbox } from "./dist/node.js";
const [path, name] = process.argv.slice(1);
const outbox = new FolderOutbox(path);
for (let number = 0; ; number++) {
  const decision = `${name}-${number}`;
  outbox.add({ decision, loss: 0.5 });
  writeSync(1, `${decision}\\n`);
  if (number % 3 === 0) {
    outbox.remove([decision]);
    writeSync(1, `sent ${decision}\\n`);
  }
}
"""
ENOUGH = 25


@contextmanager
def program(command: list[str], folder: Path, name: str) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen([*command, str(folder), name], stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@pytest.mark.parametrize("kinds", [("python", "python"), ("node", "node"), ("python", "node")])
def test_programs_add_send_and_are_killed(
    kinds: tuple[str, str], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    commands = {"python": [sys.executable, "-c", PYTHON]}
    if "node" in kinds:
        commands["node"] = [
            built(tmp_path_factory),
            "--input-type=module",
            "--eval",
            NODE.replace("./dist", str(PACKAGE / "dist")),
        ]
    folder, kept, sent = tmp_path / "outbox", set[str](), set[str]()
    with (
        program(commands[kinds[0]], folder, "one") as one,
        program(commands[kinds[1]], folder, "two") as two,
        ThreadPoolExecutor(2) as pool,
    ):

        def killed(process: "subprocess.Popen[str]") -> list[str]:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(ENOUGH)]
            process.kill()
            return [*lines, *process.stdout]

        reading = [pool.submit(killed, each) for each in (one, two)]
        mine = Outbox(folder)
        while not all(each.done() for each in reading):
            found = [item.decision for item in mine.items()]
            sent.update(found[::2])  # a third program, which delivers some
            mine.remove(found[::2])
        lines = [line.split() for each in reading for line in each.result() if line.endswith("\n")]
    kept = {words[0] for words in lines if len(words) == 1}
    sent |= {words[1] for words in lines if len(words) == 2}
    assert len(kept) > ENOUGH
    left = Outbox(folder)
    ids = {item.decision for item in left.items()}
    # A program that was killed while it sent may have said so or not.
    unsure = {f"{name}-{3 * number}" for name in ("one", "two") for number in range(10_000)}
    assert kept - sent - unsure <= ids, "lost"
    assert len(left) == len(ids)
    assert all(item.loss == 0.5 for item in left.items())


def test_of_two_losses_for_a_decision_one_is_kept_whoever_is_first(tmp_path: Path) -> None:
    for turn in range(20):
        outboxes, barrier = [Outbox(tmp_path / "outbox") for _ in range(4)], threading.Barrier(4)

        def add(place: int, turn: int = turn, barrier: threading.Barrier = barrier) -> bool:
            barrier.wait(60)
            try:
                outboxes[place].add(Undelivered(f"one-{turn}", loss=0.25 * place))  # noqa: B023
            except ParameterError:
                return False
            return True

        with ThreadPoolExecutor(4) as pool:
            assert sum(pool.map(add, range(4))) == 1
    assert len(Outbox(tmp_path / "outbox")) == 20


def test_any_id_is_a_file_and_the_oldest_is_first(tmp_path: Path) -> None:
    ids = ["../../x", "a" * 5000, "\0", "", "CON", "1f2e-7", "é", "a/b"]
    outbox = Outbox(tmp_path / "outbox")
    for each in ids:
        outbox.add(Undelivered(each, reward=0.1 + 0.2, arm="é"))
    assert sorted(each.decision for each in Outbox(outbox.path).items()) == sorted(ids)
    assert outbox.items()[0].reward == 0.1 + 0.2
    times = [each.stat().st_mtime_ns for each in (tmp_path / "outbox").iterdir()]
    if len(set(times)) == len(times):
        assert [each.decision for each in outbox.items()] == ids
    outbox.remove(ids)
    assert list((tmp_path / "outbox").iterdir()) == []
    assert json.dumps(len(outbox)) == "0"

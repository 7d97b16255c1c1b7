"""What only one client has, an outbox that several programs use at once, and the types and snippets of TypeScript's client.

test_client_contract.py has what every client promises.
"""

import asyncio
import inspect
import json
import math
import runpy
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import decoupled as dc
from decoupled.client import AsyncClient, Client, Outbox, Retries, Undelivered
from decoupled.client.errors import Invalid
from decoupled.errors import ParameterError
from decoupled.policies import Ladder
from support.dropping import dropping_proxy, random_outcomes
from support.http_service import Service, openapi_document, served
from support.pages import ROOT, blocks
from support.typescript import PACKAGE, built, without_key

# Two attempts in three fail: of 200 requests one fails 60 times running once in 10**8 runs.
HASTY = Retries(attempts=60, first=0.001, most=0.01)


def test_calls_of_the_async_client_run_at_the_same_time(service: Service) -> None:
    service.create("dropped-async")

    async def main(url: str) -> None:
        async with AsyncClient(url, retries=HASTY) as client:
            decisions = await asyncio.gather(*(client.decide("dropped-async") for _ in range(20)))
            await asyncio.gather(*(client.feedback(each, loss=0.5) for each in decisions))
            assert (await client.state("dropped-async"))["applied"] == 20
            assert (await client.decision(decisions[0].id)).status == "applied"

    with dropping_proxy(service, random_outcomes(2)) as url:
        asyncio.run(main(url))
    assert service.http.get("/v1/experiments/dropped-async/state").json()["decisions"] == 20


def test_both_clients_write_a_log_in_the_format_of_its_suffix(
    service: Service, tmp_path: Path
) -> None:
    service.create("log")
    decision = service.decide("log")["id"]
    linked, real = tmp_path / "linked.csv", tmp_path / "real.csv"
    linked.symlink_to(real)

    async def awaiting() -> None:
        async with AsyncClient(service.url) as client:
            await client.log("log", tmp_path / "a.PARQUET")
            await client.log("log", linked)
            with pytest.raises(ParameterError, match=r"known are \.csv, \.parquet"):
                await client.log("log", tmp_path / "a.txt")
            with pytest.raises(FileExistsError):
                await client.log("log", real, overwrite=False)

    asyncio.run(awaiting())
    with Client(service.url) as client:
        client.log("log", tmp_path / "b.parquet")
        client.log("log", tmp_path / "b.txt", "csv")
        with pytest.raises(ParameterError, match=r"known are \.csv, \.parquet"):
            client.log("log", tmp_path / "c.txt")
        with pytest.raises(ParameterError, match="csv, parquet"):
            client.log("log", tmp_path / "c.csv", "xls")  # type: ignore[arg-type]
        with pytest.raises(FileExistsError):
            client.log("log", tmp_path / "b.txt", "csv", overwrite=False)
        client.log("log", "/dev/null", "csv")
    assert Path("/dev/null").is_char_device(), "a device is not replaced"
    assert (
        (tmp_path / "a.PARQUET").read_bytes()[:4]
        == (tmp_path / "b.parquet").read_bytes()[:4]
        == b"PAR1"
    )
    assert decision in real.read_text() == (tmp_path / "b.txt").read_text()
    assert linked.is_symlink()
    names = ["a.PARQUET", "b.parquet", "b.txt", "linked.csv", "real.csv"]
    assert sorted(each.name for each in tmp_path.iterdir()) == names


def public(kind: type) -> dict[str, Any]:
    return {name: found for name, found in vars(kind).items() if not name.startswith("_")}


def test_both_clients_have_the_same_methods() -> None:
    assert public(Client).keys() == public(AsyncClient).keys()
    for name, method in public(Client).items():
        one, two = inspect.signature(method), inspect.signature(public(AsyncClient)[name])
        if name.startswith("iter_"):  # what they return is awaited item by item
            assert str(two.return_annotation) == str(one.return_annotation).replace(
                "abc.", "abc.Async"
            )
            one, two = (each.replace(return_annotation=None) for each in (one, two))
        assert one == two, name


POLICIES: list[tuple[Any, dict[str, Any]]] = [
    (dc.FTPL(alpha=2.5), dc.FTPL(alpha=2.5).to_dict()),
    (dc.Forgetting(dc.FTPL(), period=50), dc.Forgetting(dc.FTPL(), period=50).to_dict()),
    ({"name": "FTPL", "alpha": 2.5}, dc.FTPL(alpha=2.5).to_dict()),
    ("FTPL", dc.FTPL().to_dict()),
    (dc.Ladder(), dc.Ladder().to_dict()),
    (None, dc.Ladder().to_dict()),
]


def test_a_policy_may_be_an_object_a_dict_or_a_name(service: Service) -> None:
    async def same(name: str, policy: Any) -> dict[str, Any]:
        async with AsyncClient(service.url, timeout=60.0) as client:
            return await client.create(name, policy=policy, arms=["a", "b"])

    with Client(service.url, timeout=60.0) as client:
        for i, (given, stored) in enumerate(POLICIES):
            created = client.create(f"policy-{i}", policy=given, arms=["a", "b"])
            assert created["policy"] == stored
            assert asyncio.run(same(f"policy-{i}", given)) == created
        with pytest.raises(
            ParameterError, match=r"policy = 3: must be a policy.*for example dc\.Ladder"
        ):
            client.create("policy-x", policy=3, arms=["a", "b"])  # type: ignore[arg-type]
        with pytest.raises(Invalid, match=r"policy\.name = 'FTLP'.*did you mean 'FTPL'"):
            client.create("policy-x", policy="FTLP", arms=["a", "b"])


LOSSES: list[tuple[Any, float]] = [
    (True, 1.0), (False, 0.0), (np.True_, 1.0), (np.float32(0.5), 0.5), (np.int64(1), 1.0), (1, 1.0),
]  # fmt: skip


def test_losses_are_finite_or_truth_values_and_unknown_options_are_refused(
    service: Service,
) -> None:
    service.create("numbers")
    with Client(service.url) as client:
        for loss, applied in LOSSES:
            one, two = client.decide("numbers", count=2)
            assert getattr(client.feedback(one, loss=loss), "loss", None) == applied
            [many] = client.feedback_many([Undelivered(two.id, loss=loss)])
            assert getattr(many, "loss", None) == applied
        with pytest.raises(ParameterError, match="reward = nan: must be a finite number"):
            client.feedback(one, reward=math.nan)
    service.create("refusing")
    with Client(service.url) as client:
        with pytest.raises(TypeError, match=r"'polcy'; known are budget, context, .*, policy, "):
            client.create("refused", arms=2, polcy="Ladder")  # type: ignore[call-arg]
        with pytest.raises(TypeError, match=r"'keys'; known are advice, available, "):
            client.decide("refusing", keys="u1")  # type: ignore[call-overload]
    assert service.http.get("/v1/experiments/refused").status_code == 404


def test_retries_double_with_jitter_and_heed_retry_after() -> None:
    retries = Retries(attempts=9, first=0.1, most=1.0)
    for attempt, most in ((1, 0.1), (2, 0.2), (4, 0.8), (8, 1.0), (5_000, 1.0)):
        pauses = [retries.pause(attempt, 0.0) for _ in range(200)]
        assert max(pauses) <= most
        assert max(pauses) - min(pauses) > 0.5 * most  # a false alarm once in 2**190 runs
    assert retries.pause(1, 7.0) >= 7.0


GENERATE = runpy.run_path(str(PACKAGE / "generate.py"))


def test_the_types_are_those_of_the_document_and_the_package_has_no_dependencies() -> None:
    written: str = GENERATE["written"](openapi_document())
    assert (PACKAGE / "src" / "api.ts").read_text() == written, (
        "the API has changed: run `make client`"
    )
    package = json.loads((PACKAGE / "package.json").read_text())
    assert "dependencies" not in package
    assert all(version[0].isdigit() for version in package["devDependencies"].values())


def test_what_only_this_client_has(tmp_path_factory: pytest.TempPathFactory) -> None:
    node, file = built(tmp_path_factory), PACKAGE / "test" / "client.test.mjs"
    done = subprocess.run(
        [node, "--test", str(file)], capture_output=True, text=True, env=without_key()
    )
    assert done.returncode == 0, done.stdout
    assert "# pass 3" in done.stdout


PAGES = (ROOT / "docs" / "other-languages.md", PACKAGE / "README.md")


def test_the_snippets_of_the_pages_run(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    node, run = built(tmp_path_factory), 0
    with served(tmp_path) as service:
        service.create("checkout", arms=["one page", "two pages"], policy=Ladder().to_dict())
        for page in PAGES:
            for block in blocks(page, "js"):
                code = block.code.replace("http://127.0.0.1:8000", service.url)
                code = code.replace('"outbox"', json.dumps(str(tmp_path / "outbox")))
                # In the package's folder, its own name and those of its tools can be imported.
                command = [node, "--input-type=module", "--eval", code]
                done = subprocess.run(
                    command, cwd=PACKAGE, capture_output=True, text=True, env=without_key()
                )
                assert done.returncode == 0, done.stderr
                assert done.stdout == (block.output or "")
                run += 1
    assert run == 3


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

"""What only one client has, and the generated types and snippets of TypeScript's; test_client_contract.py has what every client promises."""

import asyncio
import inspect
import json
import math
import runpy
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import decoupled as dc
from decoupled.client import AsyncClient, Client, Retries, Undelivered
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


def test_both_clients_write_a_log_in_the_format_of_its_suffix(service: Service, tmp_path: Path) -> None:
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
    assert (tmp_path / "a.PARQUET").read_bytes()[:4] == (tmp_path / "b.parquet").read_bytes()[:4] == b"PAR1"
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
            assert str(two.return_annotation) == str(one.return_annotation).replace("abc.", "abc.Async")
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
        with pytest.raises(ParameterError, match=r"policy = 3: must be a policy.*for example dc\.Ladder"):
            client.create("policy-x", policy=3, arms=["a", "b"])  # type: ignore[arg-type]
        with pytest.raises(Invalid, match=r"policy\.name = 'FTLP'.*did you mean 'FTPL'"):
            client.create("policy-x", policy="FTLP", arms=["a", "b"])


LOSSES: list[tuple[Any, float]] = [
    (True, 1.0), (False, 0.0), (np.True_, 1.0), (np.float32(0.5), 0.5), (np.int64(1), 1.0), (1, 1.0),
]  # fmt: skip


def test_losses_are_finite_numbers_or_truth_values_and_unknown_options_are_refused(
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
    assert (PACKAGE / "src" / "api.ts").read_text() == written, "the API has changed: run `make client`"
    package = json.loads((PACKAGE / "package.json").read_text())
    assert "dependencies" not in package
    assert all(version[0].isdigit() for version in package["devDependencies"].values())


def test_what_only_this_client_has(tmp_path_factory: pytest.TempPathFactory) -> None:
    node, file = built(tmp_path_factory), PACKAGE / "test" / "client.test.mjs"
    done = subprocess.run([node, "--test", str(file)], capture_output=True, text=True, env=without_key())
    assert done.returncode == 0, done.stdout
    assert "# pass 3" in done.stdout


PAGES = (ROOT / "docs" / "other-languages.md", PACKAGE / "README.md")


def test_the_snippets_of_the_pages_run(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
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

"""The names of experiments: every way to name one has the same rule."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from decoupled.base.names import is_name
from decoupled.client.service_errors import Invalid
from decoupled.errors import ParameterError
from decoupled_serve.cli.service import checked_tenant
from decoupled_serve.options.kinds import experiment_name
from decoupled_serve.service.experiment.records import Settings
from support.stores import quick_service
from support.wire import Wired, on_loop, request, wired

NAMES = ("a", "7", "a.b", "1.0", "v1..2", "a.", "A-._z", "-".join("x" * 50) + "y")
OTHERS = (".", "..", ".a", "-a", "_a", "a:b", "a b", "a%b", "ä", "x" * 101)
SETTINGS = {"policy": {"name": "FTPL"}, "arms": ["red", "blue"]}


def _accepts(check: object, *arguments: object) -> bool:
    try:
        check(*arguments)  # type: ignore[operator]
    except (ParameterError, Invalid):
        return False
    return True


@pytest.mark.parametrize("name", [*NAMES, *OTHERS, "a/b", "", "a\n"])
def test_one_rule(name: str) -> None:
    assert is_name(name) is (name in NAMES)
    assert _accepts(experiment_name, "name", name) is (name in NAMES), "of a mirror"
    assert _accepts(checked_tenant, name) is (name in NAMES)


async def _status(http: Wired, method: str, path: str, content: object = None) -> int:
    wire = http.connect()
    wire.send(request(method, path, b"" if content is None else json.dumps(content).encode()))
    return (await wire.answer()).status


async def _use(http: Wired, name: str, good: bool) -> None:
    there = name.replace("%", "%25").replace(" ", "%20").replace("ä", "%C3%A4")
    path, flag = f"/v1/experiments/{there}", f"/ofrep/v1/evaluate/flags/{there}"
    assert await _status(http, "PUT", path, SETTINGS) == (201 if good else 422), name
    assert await _status(http, "GET", path) == (200 if good else 422), name
    for _ in range(2):  # the second finds what the first has put into memory
        assert await _status(http, "POST", f"{path}/decisions") == (201 if good else 404), name
    assert await _status(http, "POST", flag, {"context": {}}) == (200 if good else 404), name


@on_loop
async def test_what_can_be_created_can_be_used_in_every_way(tmp_path: Path) -> None:
    with closing(quick_service(str(tmp_path / "store.db"))) as service:
        async with wired(service) as http:
            for name in (*NAMES, *OTHERS):
                await _use(http, name, name in NAMES)
        for name in ("a b", "a:b", "x" * 101):
            with pytest.raises(Invalid, match=r"letters, digits, dots"):
                await service.experiments.put("local", name, Settings({"name": "FTPL"}, ("red", "blue")))

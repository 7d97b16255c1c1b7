"""The names of experiments: every way to name one has the same rule."""

import json
from urllib.parse import quote

import pytest

from decoupled.base.names import is_name
from decoupled.client.errors import Invalid
from decoupled.errors import ParameterError
from decoupled_serve.options.kinds import experiment_name
from support.stores import quick_service
from support.wire import on_loop, request, wired

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
    assert _accepts(experiment_name, "name", name) is (name in NAMES), "of a mirror and of tenants"


@on_loop
async def test_what_can_be_created_can_be_used_in_every_way(file: str) -> None:
    async with wired(quick_service(file)) as http:

        async def status(method: str, path: str, content: object = None) -> int:
            wire = http.connect()
            wire.send(request(method, path, b"" if content is None else json.dumps(content).encode()))
            return (await wire.answer()).status

        for name in (*NAMES, *OTHERS):
            good, there = name in NAMES, quote(name)
            path = f"/v1/experiments/{there}"
            assert await status("PUT", path, SETTINGS) == (201 if good else 422), name
            assert await status("GET", path) == (200 if good else 422), name
            for _ in range(2):  # the second finds what the first has put into memory
                assert await status("POST", f"{path}/decisions") == (201 if good else 404), name
            flag = await status("POST", f"/ofrep/v1/evaluate/flags/{there}", {"context": {}})
            assert flag == (200 if good else 404), name

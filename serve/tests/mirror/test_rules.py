"""Guardrails and budgets of a mirror: from its file, and changed while it runs."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from decoupled.client.aio import AsyncClient
from decoupled.client.errors import Invalid
from decoupled_serve.mirror.backend import Embedded, Remote
from decoupled_serve.mirror.config import MirrorConfig
from decoupled_serve.mirror.config_file import read_config
from decoupled_serve.service.service import open_service
from support.http_service import served
from support.mirrors.running import UpstreamProcess, eventually, mirror, write_config

Arms = dict[str, UpstreamProcess]
RULES = "[guardrails]\nfloors = { next = 0.1 }\n[budget]\nrate = [5, 3600]\ncost = { next = 2.0 }\ntotal = 100\n"


def prepared(config: MirrorConfig, store: Path, change: dict[str, Any] | None = None) -> Any:
    """The experiment after a start, before which somebody may have changed a guardrail."""

    async def scenario() -> Any:
        service = open_service(store)
        backend = Embedded(service, config)
        if change is not None:
            await service.experiments.change_guardrails("local", "mirror", change)
        await backend.prepare()
        found = await service.experiments.get("local", "mirror")
        await backend.close()
        return found

    return asyncio.run(scenario())


def test_the_file_sets_rules_at_every_start_and_leaves_others_alone(arms: Arms, tmp_path: Path) -> None:
    config, store = read_config(write_config(tmp_path, arms, RULES)), tmp_path / "store.db"
    first = prepared(config, store)
    assert first.guardrails.floors == {"next": 0.1}
    assert first.budget.to_dict()["rate"] == [5, 3600]
    again = prepared(config, store, {"pinned": "stable", "floors": {}})
    assert again.guardrails.pinned == "stable", "the kill switch holds over a restart"
    assert again.guardrails.floors == {"next": 0.1}, "the file names floors"
    assert prepared(config, store).state_version == again.state_version, (
        "nothing to change, so nothing is logged"
    )


def test_a_rule_that_names_no_arm_is_refused(arms: Arms, tmp_path: Path) -> None:
    config = read_config(write_config(tmp_path, arms, '[guardrails]\npinned = "stabel"\n'))
    with pytest.raises(Invalid, match="stabel"):
        prepared(config, tmp_path / "store.db")


async def prepare_elsewhere(url: str, config: MirrorConfig) -> None:
    """What a start does with a service elsewhere."""
    backend = Remote(AsyncClient(url), config)
    await backend.prepare()
    await backend.close()


@contextmanager
def remote(arms: Arms, folder: Path, text: str) -> Iterator[Any]:
    with served(folder) as service:
        config = read_config(write_config(folder, arms, f'service = "{service.url}"\n{text}'))
        with mirror(config, Remote(AsyncClient(service.url), config)) as running:
            yield running, service.http


def test_a_pin_holds_for_a_running_mirror_though_decisions_were_drawn_ahead(
    arms: Arms, tmp_path: Path
) -> None:
    with remote(arms, tmp_path, "[mirror]\nshare = 0.0\n") as (running, http):
        running.http.get("/x")  # answered once the experiment exists
        for name in ("next", "stable"):
            http.patch("/v1/experiments/mirror/guardrails", json={"pinned": name}).raise_for_status()

            def all_by(name: str = name) -> bool:
                return {running.http.get("/x").headers["x-arm"] for _ in range(20)} == {name}

            eventually(all_by, f"every request served by {name}")


def test_copies_stay_within_the_budget(arms: Arms, tmp_path: Path) -> None:
    with remote(arms, tmp_path, f"[mirror]\nshare = 1.0\n{RULES}") as (running, http):
        for _ in range(60):
            assert running.http.get("/x").status_code == 200
        status = running.settled()
        found = http.get("/v1/experiments/mirror").json()
        assert found["budget"]["rate"] == [5, 3600]
        assert found["guardrails"]["floors"] == {"next": 0.1}
        asyncio.run(prepare_elsewhere(str(http.base_url), running.config))
        assert http.get("/v1/experiments/mirror").json() == found
    learned = sum(status["copied"].values()) + sum(status["reused"].values())
    assert 0 < learned <= 5

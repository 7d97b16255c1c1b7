"""Tags and baselines of decisions: what they may be, where they are kept, and that they change nothing."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from decoupled.client.service_errors import Conflict, Invalid
from decoupled_serve.service.analysis.doctor import examine
from decoupled_serve.service.experiment.records import Settings
from decoupled_serve.service.service import DecisionService
from support.stores import both_stores, quick_service

UNSAFE = ("disk", "durability")  # of stores for tests
ARMS = ("red", "green", 3)
SETTINGS = Settings({"name": "FTPL"}, ARMS, loss_range=(0.0, 10.0))


def made(address: str, **options: Any) -> DecisionService:
    service = quick_service(address, **options)
    service.experiments.put("local", "colours", SETTINGS, seed=7).result()
    return service


@both_stores
def test_annotations_are_kept_and_change_no_draw(address: str) -> None:
    service = made(address, snapshot_every=5)
    service.experiments.put("local", "plain", SETTINGS, seed=7).result()
    tags, baseline = {"device": "phone", "country": "de"}, {"red": 2, "3": 7.40625}
    for loss in (1.0, 9.0, 4.0, 2.0):
        [noted] = service.decisions.decide("local", "colours", tags=tags, baseline=baseline).result()
        [plain] = service.decisions.decide("local", "plain").result()
        assert (noted.exploit, noted.explore, noted.propensity) == (
            plain.exploit,
            plain.explore,
            plain.propensity,
        )
        assert (noted.tags, noted.baseline) == (tags, {"red": 2.0, "3": 7.40625})
        assert (plain.tags, plain.baseline) == ({}, None)
        for each in (noted, plain):
            service.decisions.feedback("local", each.id, loss=loss).result()
    assert service.experiments.state("local", "colours").result().estimates == (
        service.experiments.state("local", "plain").result().estimates
    )
    [waiting] = service.decisions.decide("local", "colours", tags=tags).result()
    service.close()

    again = quick_service(address)
    assert again.decisions.get("local", waiting.id).result() == waiting, "after a restart, too"
    snapshots = again._session.store.reader()
    texts = [text for _, text in snapshots.snapshots(1)]
    snapshots.close()
    assert texts, "there is a snapshot"
    assert not any("phone" in text or "7.40625" in text for text in texts), "snapshots do not repeat them"
    again.close()
    assert [each.finding for each in examine(address) if not each.good and each.name not in UNSAFE] == []


def test_the_same_key_compares_annotations(file: str) -> None:
    service = made(file)
    ask = service.decisions.decide
    first = ask(
        "local", "colours", idempotency_key="k", tags={"country": "de"}, baseline={"red": 1}
    ).result()
    assert (
        ask("local", "colours", idempotency_key="k", tags={"country": "de"}, baseline={"red": 1.0}).result()
        == first
    )
    for other in (
        {},
        {"tags": {"country": "de"}},
        {"tags": {"country": "fr"}, "baseline": {"red": 1}},
        {"tags": {"country": "de"}, "baseline": {"red": 2}},
    ):
        with pytest.raises(Conflict, match="another request"):
            ask("local", "colours", idempotency_key="k", **other).result()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"tags": {"country": 49}}, "tags.country = 49"),
        ({"tags": {"": "x"}}, "the name of a tag"),
        ({"tags": {"a:b": "x"}}, "the name of a tag"),
        ({"tags": {"a": "line\nbreak"}}, "printable"),
        ({"tags": {"a": "x" * 201}}, "200"),
        ({"tags": {str(n): "x" for n in range(17)}}, "17 tags"),
        ({"baseline": {"blue": 1}}, "'blue' is not an arm"),
        ({"baseline": {"red": 10.5}}, "baseline.red = 10.5"),
        ({"baseline": {"red": float("nan")}}, "baseline.red = nan"),
        ({"baseline": [1, 2]}, "3 arms, and has 2"),
        ({"baseline": 0.5}, "by arm"),
    ],
)
def test_what_is_refused_changes_nothing(file: str, given: dict[str, Any], words: str) -> None:
    service = made(file)
    with pytest.raises(Invalid) as caught:
        service.decisions.decide("local", "colours", **given).result()
    assert words in str(caught.value)
    assert service.experiments.state("local", "colours").result().decisions == 0


def test_exports_and_evaluations_filter_by_tags(file: str, tmp_path: Path) -> None:
    service = made(file)
    for n in range(8):
        tags = {"country": "de" if n % 2 else "fr", "n": str(n // 4)}
        [each] = service.decisions.decide("local", "colours", tags=tags, baseline=[1, 2, 3]).result()
        service.decisions.feedback("local", each.id, loss=n).result()
    wanted = {"country": "de", "n": "1"}
    assert service.logs.export("local", "colours", tmp_path / "l.csv", "csv", tags=wanted).result() == 2
    rows = list(csv.DictReader((tmp_path / "l.csv").read_text(encoding="utf-8").splitlines()))
    assert [float(row["loss"]) for row in rows] == [5.0, 7.0]
    assert json.loads(rows[0]["tags"]) == wanted
    assert json.loads(rows[0]["baseline"]) == {"red": 1.0, "green": 2.0, "3": 3.0}
    found = service.logs.evaluate("local", "colours", tags={"country": "fr"}).result()
    assert (found.decisions, found.observed) == (4, 4)

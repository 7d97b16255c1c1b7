"""The alert rules and the dashboard that ship: checked, unit-tested, and fed by a real scrape of a real service."""

import json
import re
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.http_service import Service
from support.pages import ROOT
from support.prometheus import RULES, prometheus, promtool
from support.waiting import wait_for

DASHBOARD = json.loads((ROOT / "deploy" / "grafana" / "decoupled-service.json").read_text())
METRIC = re.compile(r"\b(?:decoupled|process)_\w+|\bup\b")
SELECTOR = re.compile(r'(?:decoupled|process)_\w+(?:\{(?:[^}"]|"[^"]*")*\})?')
# What Grafana fills in.
VARIABLES = {"$job": "decoupled", "$__rate_interval": "30s"}
VARIABLES |= dict.fromkeys(("$instance", "$tenant", "$experiment"), ".*")


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load((RULES / "decoupled-alerts.yml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def panels() -> list[tuple[str, str]]:
    """The title and the expression of everything that the dashboard asks for."""
    return [
        (panel["title"], target["expr"])
        for panel in DASHBOARD["panels"]
        for target in panel.get("targets", ())
    ]


def filled(expression: str) -> str:
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    assert "$" not in expression, expression
    return expression


def test_the_rules_are_sound_and_their_unit_tests_pass() -> None:
    assert f"{len(rules())} rules found" in promtool("check", "rules", "decoupled-alerts.yml")
    promtool("check", "config", "--syntax-only", "prometheus.yml")
    promtool("test", "rules", "decoupled-alerts-test.yml")


def test_every_rule_has_a_test_that_fires_and_one_that_does_not() -> None:
    tests = yaml.safe_load((RULES / "decoupled-alerts-test.yml").read_text())["tests"]
    fires: set[str] = set()
    quiet: set[str] = set()
    for asked in [each for test in tests for each in test["promql_expr_test"]]:
        found = re.search(r'alertname="(\w+)"', asked["expr"])
        assert found is not None
        (fires if asked["exp_samples"] else quiet).add(found[1])
    assert fires == quiet == {rule["alert"] for rule in rules()}
    for rule in rules():
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert {"summary", "description"} <= set(rule["annotations"])


SERVED = {"open_to_all": False, "metrics_experiments": 1}


@pytest.fixture(scope="module")
def exported(service: Service) -> set[str]:
    """The names of the families that the service exports."""
    admin = service.key("admin")
    service.create("models", admin)
    wait_for(lambda: service.direct.health().sizes, "the first look at the store's size")
    text = service.http.get("/metrics", headers=admin).text
    return {
        name.removesuffix("_total") for name in re.findall(r"^# TYPE (\w+) ", text, re.MULTILINE)
    } - set(re.findall(r"^# TYPE (\w+_created) ", text, re.MULTILINE))


def test_all_metrics_are_in_the_table_and_rules_and_dashboard_name_no_others(
    exported: set[str],
) -> None:
    page = (ROOT / "docs" / "observe.md").read_text()
    table = page.partition("## Metrics")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`decoupled_[^|]*|`process_[^|]*) \|", table, re.MULTILINE)
    documented = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert len(set(documented)) == len(documented)
    assert set(documented) == exported
    texts = [rule["expr"] for rule in rules()] + [text for _, text in panels()]
    texts += [each.get("definition", "") for each in DASHBOARD["templating"]["list"]]
    named = {
        re.sub(r"_(total|bucket|sum|count)$", "", name)
        for text in texts
        for name in METRIC.findall(text)
    }
    assert named - {"up"} <= exported
    assert len(named) > 20


class Traffic:
    """Decides and sends feedback until it is told to stop, with a request now and then that is refused."""

    def __init__(self, service: Service) -> None:
        self._service, self._headers = service, service.key("admin")
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> None:
        for name in ("models", "prompts"):
            self._service.create(name, self._headers, policy={"name": "FTPL"})
        self._thread.start()

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        http, headers = self._service.http, self._headers
        while not self._stop.wait(0.02):
            for name in ("models", "prompts", "nobody"):
                made = http.post(f"/v1/experiments/{name}/decisions", headers=headers)
                if made.status_code == 201:
                    path = f"/v1/decisions/{made.json()['id']}/feedback"
                    http.put(path, json={"loss": 0.5}, headers=headers)


def test_a_real_prometheus_gets_data_for_every_rule_and_panel(
    service: Service, tmp_path: Path
) -> None:
    key = service.key("read")["Authorization"].removeprefix("Bearer ")
    with prometheus(tmp_path, service.url.removeprefix("http://"), key) as ask, Traffic(service):

        def scraped() -> bool:
            found = ask(
                "query", query='count_over_time(decoupled_store_bytes{job="decoupled"}[1m])'
            )["result"]
            return bool(found) and int(found[0]["value"][1]) >= 4

        wait_for(scraped, "four scrapes")
        for title, expression in panels():
            assert ask("query", query=filled(expression))["result"], f"{title}: {expression}"
        assert {each["value"][1] for each in ask("query", query="up")["result"]} == {"1"}

        def evaluated() -> list[dict[str, Any]]:
            groups = ask("rules")["groups"]
            return [
                rule for group in groups for rule in group["rules"] if rule["health"] != "unknown"
            ]

        wait_for(lambda: len(evaluated()) == len(rules()), "the rules to be evaluated")
        assert {(rule["health"], rule.get("lastError", "")) for rule in evaluated()} == {("ok", "")}
        assert {
            rule["name"]: rule["state"] for rule in evaluated() if rule["state"] == "firing"
        } == {}
        names = set(ask("label/__name__/values"))
        for rule in rules():
            missing = set(METRIC.findall(rule["expr"])) - names
            assert not missing, rule["alert"]
        # The labels that rules rely on are those of the service, too: every selector finds series.
        for rule in rules():
            for selector in SELECTOR.findall(rule["expr"]):
                usual = re.sub(r'status=~?"[^"]*"', 'status=~"2.."', selector)
                assert ask("query", query=usual)["result"], (rule["alert"], selector)
        series = ask("series", **{"match[]": "decoupled_experiment_decisions_total"})
        named = {(each.get("tenant", ""), each["experiment"]) for each in series}
        assert named == {("local", "models"), ("", "other")}

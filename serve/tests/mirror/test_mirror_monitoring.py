"""The alert rules of a mirror: sound, unit-tested, and about metrics that there are."""

import re
from pathlib import Path

import yaml

from support.mirrors.running import Fixed, UpstreamProcess, asking, mirror, write_config
from support.prometheus import RULES, promtool


def test_the_rules_are_sound_and_about_metrics_that_there_are(
    arms: dict[str, UpstreamProcess], tmp_path: Path
) -> None:
    [group] = yaml.safe_load((RULES / "decoupled-mirror-alerts.yml").read_text())["groups"]
    with mirror(write_config(tmp_path, arms), Fixed()) as running:
        text = asking.get(f"{running.console}/mirror/metrics").text
    exported = set(re.findall(r"^# TYPE (\w+) ", text, re.MULTILINE))
    named = {name for rule in group["rules"] for name in re.findall(r"decoupled_\w+", rule["expr"])}
    assert named <= exported
    tests = yaml.safe_load((RULES / "decoupled-mirror-alerts-test.yml").read_text())["tests"]
    asked = [each for test in tests for each in test["promql_expr_test"]]
    for fires in (True, False):
        tested = {
            re.search(r'alertname="(\w+)"', each["expr"])[1]  # type: ignore[index]
            for each in asked
            if bool(each["exp_samples"]) == fires
        }
        assert tested == {rule["alert"] for rule in group["rules"]}
    assert f"{len(group['rules'])} rules found" in promtool("check", "rules", "decoupled-mirror-alerts.yml")
    promtool("test", "rules", "decoupled-mirror-alerts-test.yml")

"""What `make quick` runs."""

import re
from types import SimpleNamespace
from typing import Any

import decoupled as dc
from support.pages import ROOT
from support.quick import SETS, sample


def item(name: str, *parameters: object, slow: bool = False) -> Any:
    marker = object() if slow else None
    called = {"callspec": SimpleNamespace(params=dict(enumerate(parameters)))} if parameters else {}
    return SimpleNamespace(
        nodeid=f"{name}[{parameters!r}]", get_closest_marker=lambda kind: marker, **called
    )


def test_one_policy_for_each_law_is_kept() -> None:
    policies = [dc.FTPL(), dc.FTPL(c=1.0), dc.FTPL(ranking="strata"), dc.Exp3(), dc.Exp3(c=1.0)]
    tests = [item(name, policy, arms) for name in ("one", "two") for policy in policies for arms in (2, 3)]
    kept = sample(tests)
    assert [test.nodeid for test in kept] == [
        f"{name}[{(policy, arms)!r}]"
        for name in ("one", "two")
        for policy in (dc.FTPL(), dc.FTPL(ranking="strata"), dc.Exp3())
        for arms in (2, 3)
    ]


def test_of_many_sets_of_parameters_a_few_are_kept_from_all_over() -> None:
    tests = [item("one", number) for number in range(100)]
    assert sample(tests) == tests[:: 100 // SETS]
    assert sample(tests[:SETS]) == tests[:SETS]


def test_slow_tests_are_left_out() -> None:
    tests = [item("one"), item("two", slow=True), item("three")]
    assert sample(tests) == [tests[0], tests[2]]


def test_what_make_quick_names_exists() -> None:
    (names,) = re.findall(r"^QUICK := ((?:.*\\\n)*.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    paths = names.replace("\\\n", " ").split()
    assert len(paths) > 10
    assert [path for path in paths if not (ROOT / path).exists()] == []

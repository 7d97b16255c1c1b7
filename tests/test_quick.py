"""What `make quick` runs."""

import re
from types import SimpleNamespace
from typing import Any

import decoupled as dc
from support.pages import ROOT
from support.quick import SETS, sample


def item(name: str, parameter: object = None, *, slow: bool = False) -> Any:
    called = {} if parameter is None else {"callspec": SimpleNamespace(params={"one": parameter})}
    nodeid = f"{name}[{parameter!r}]"
    return SimpleNamespace(nodeid=nodeid, get_closest_marker=lambda kind: slow or None, **called)


def test_a_sample_has_one_policy_for_each_law_a_few_sets_of_parameters_and_nothing_slow() -> None:
    policies = [dc.FTPL(), dc.FTPL(c=1.0), dc.FTPL(ranking="strata"), dc.Exp3(), dc.Exp3(c=1.0)]
    laws = [item("laws", policy) for policy in policies]
    sets = [item("sets", number) for number in range(100)]
    rest = [item("plain"), item("slow", slow=True)]
    assert sample([*laws, *sets, *rest]) == [laws[0], laws[2], laws[3], *sets[:: 100 // SETS], rest[0]]


def test_what_make_quick_names_exists() -> None:
    (names,) = re.findall(r"^QUICK := ((?:.*\\\n)*.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    paths = names.replace("\\\n", " ").split()
    assert len(paths) > 10
    assert [path for path in paths if not (ROOT / path).exists()] == []

"""What `make quick` runs, and that what the Makefile and the workflows name exists."""

import re
from types import SimpleNamespace
from typing import Any

import pytest

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


@pytest.mark.parametrize("file", ["Makefile", ".github/workflows/ci.yml", ".github/workflows/release.yml"])
def test_what_make_and_the_workflows_name_exists(file: str) -> None:
    paths = set(
        re.findall(
            r"(?<![\w./$-])(?:core|serve|lab|tests|examples|clients)/[\w./-]*\w", (ROOT / file).read_text()
        )
    )
    built = [path for path in paths if "native/lib" in path]
    assert [path for path in sorted(paths - {*built}) if not (ROOT / path).exists()] == []

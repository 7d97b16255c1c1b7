"""The tests that `make quick` runs, of those in the files it names.

It keeps one policy for each law and, of every test, at most four sets of parameters, evenly spaced; it leaves
out tests that are marked slow.
"""

from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import Any

import pytest

SETS = 4


def sample(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """A few of these tests, in their order."""
    groups: dict[Hashable, list[pytest.Item]] = defaultdict(list)
    first: dict[Hashable, object] = {}
    for item in items:
        policy = _policy(item)
        law = (
            item.nodeid.partition("[")[0],
            type(policy),
            getattr(policy, "ranking", None) == "strata",
        )
        if item.get_closest_marker("slow") is None and first.setdefault(law, policy) == policy:
            groups[law].append(item)
    kept = {item.nodeid for group in groups.values() for item in group[:: -(-len(group) // SETS)]}
    return [item for item in items if item.nodeid in kept]


def _policy(item: pytest.Item) -> Any:
    from decoupled.policies import Policy  # only with --quick, where it is needed

    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return next((value for value in parameters if isinstance(value, Policy)), None)

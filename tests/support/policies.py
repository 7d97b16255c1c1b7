"""The policies that tests of all of them run with: those that `examples()` of each class says to test."""

from functools import cache

import decoupled as dc


@cache
def examples() -> tuple[dc.Policy, ...]:
    """Every example of every policy that decoupled/policies/__init__.pyi lists."""
    return tuple(
        policy for name in dc.Policy.homes for policy in dc.Policy.known()[name].examples()
    )


@cache
def forms() -> tuple[dc.Policy, ...]:
    """The first example of every form: others have the same functions and the same rows."""
    found: dict[object, dc.Policy] = {}
    for policy in examples():
        few = policy.at(5)
        found.setdefault((few.params_type, few.layout), policy)
    return tuple(found.values())

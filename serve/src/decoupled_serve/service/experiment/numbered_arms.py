"""Experiments with more than 10,000 arms, which are numbered 0, 1, 2, ...: what they can do.

They share a service with others, so nothing about them may take long while others wait. A decision and its feedback take
microseconds with any number of arms if the policy ranks arms in strata. What takes time in proportion to the number of arms
happens in the background (restoring, snapshots), or is not offered: choosing from some of the arms, changing the arms, and
confidence sequences, which would say nothing about so many.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from decoupled.client import Conflict, Invalid
from decoupled.decision import Arm
from decoupled.learner import Budget, Guardrails
from decoupled.policies import Policy

MOST_NAMED = 10_000  # arms that have names, and all that an experiment can do
MOST_NUMBERED = 1_000_000
SHOWN = 100  # arms in the state of a large experiment: those that were exploited most


def is_large(arms: Sequence[Arm]) -> bool:
    """Whether these are the numbered arms of a large experiment.

    >>> is_large(range(20_000)), is_large(("a", "b"))
    (True, False)
    """
    return isinstance(arms, range)


def numbered(count: int) -> Sequence[Arm]:
    """So many arms, numbered from 0.

    >>> numbered(3), numbered(1_000_000)
    ((0, 1, 2), range(0, 1000000))
    """
    return range(count) if count > MOST_NAMED else tuple(range(count))


def as_stored(arms: Sequence[Arm]) -> int | list[Arm]:
    """Arms as JSON: their names, or the number of a large experiment's."""
    return len(arms) if is_large(arms) else list(arms)


def from_stored(arms: int | list[Arm]) -> Sequence[Arm]:
    """The arms that `as_stored` wrote."""
    return range(arms) if isinstance(arms, int) else arms


def count_of(arms: int | list[Arm]) -> int:
    """How many arms `as_stored` wrote."""
    return arms if isinstance(arms, int) else len(arms)


class Places(Mapping[Arm, int]):
    """The place of each numbered arm: its number.

    >>> places = Places(20_000)
    >>> places[7], places.get("7"), len(places)
    (7, None, 20000)
    """

    def __init__(self, count: int) -> None:
        self._arms = range(count)

    def __getitem__(self, arm: Arm) -> int:
        if type(arm) is int and arm in self._arms:
            return arm
        raise KeyError(arm)

    def __iter__(self) -> Iterator[Arm]:
        return iter(self._arms)

    def __len__(self) -> int:
        return len(self._arms)


def check_settings(policy: Policy, arms: Sequence[Arm]) -> None:
    """Refuse what would hold up other experiments."""
    if not is_large(arms):
        return
    if len(arms) > MOST_NUMBERED:
        rule = f"must not exceed {MOST_NUMBERED:,}"
        raise Invalid.of("arms", len(arms), rule, "use several experiments")
    if getattr(policy.at(len(arms)), "ranking", None) != "strata":
        rule = f"takes milliseconds for a decision among more than {MOST_NAMED:,} arms, while others wait"
        remedy = 'use Ladder(), or FTPL(ranking="auto")'
        raise Invalid.of("policy", type(policy).__name__, rule, remedy)


def check_guardrails(rules: Guardrails, arms: Collection[Arm]) -> None:
    """Refuse guardrails that a large experiment cannot have."""
    if rules.down:
        raise _too_many("down", list(rules.down), arms)
    if rules.incumbent is not None:
        raise _too_many("incumbent", rules.incumbent, arms)
    for name in (rules.pinned, rules.control, *rules.floors):
        if name is not None:
            _check_arm("guardrails", name, arms)


def check_budget(budget: Budget, arms: Collection[Arm]) -> None:
    """Refuse a budget that a large experiment cannot have."""
    if isinstance(budget.cost, Mapping):
        raise _too_many("cost", "a mapping", arms)


def _check_arm(argument: str, name: Any, arms: Collection[Arm]) -> None:
    if name not in arms:
        raise Invalid.of(argument, name, "is not an arm", f"the arms are 0 to {len(arms) - 1:,}")


def _too_many(argument: str, value: object, arms: Collection[Arm]) -> Invalid:
    rule = f"is not possible with more than {MOST_NAMED:,} arms, and there are {len(arms):,}"
    return Invalid.of(argument, value, rule, "leave it out, or use several experiments")


def refuse_if_large(name: str, arms: Sequence[Arm], what: str) -> None:
    """Raise `Conflict` if a large experiment does not offer this."""
    if is_large(arms):
        raise Conflict(
            f"experiment {name!r}: {what} is not possible with more than {MOST_NAMED:,} arms; "
            "use several experiments with fewer arms"
        )


def most_used(counts: Sequence[int]) -> list[int]:
    """The places of the arms with the highest counts, of those that are not 0.

    >>> most_used([0, 3, 0, 5])
    [3, 1]
    """
    all_counts = np.asarray(counts)
    used = np.flatnonzero(all_counts)
    found: list[int] = used[np.argsort(-all_counts[used], kind="stable")[:SHOWN]].tolist()
    return found

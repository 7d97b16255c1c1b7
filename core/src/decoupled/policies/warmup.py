"""Compile all the machine code that a learner calls, before a user has to wait for it.

Entry points are compiled, or loaded from disk, on their first call: `warm` calls each once, on a
throwaway learner.
"""

import json
from collections.abc import Hashable, Iterator
from typing import Any

from . import Policy

_warm: set[Hashable] = set()


def warm(policy: Policy, arms: int = 2) -> None:
    """Compile everything that a learner of this policy calls, or load it from disk.

    Do nothing if already done.

    >>> import decoupled as dc
    >>> warm(dc.FollowTheLeader())
    >>> is_warm(dc.FollowTheLeader(), arms=2)
    True
    """
    if not is_warm(policy, arms):
        for _ in steps(policy, arms):
            pass


def is_warm(policy: Policy, arms: int) -> bool:
    """Whether `warm` has run for this policy and number of arms in this process."""
    return is_warm_form(form(policy, arms))


def is_warm_form(form_key: Hashable) -> bool:
    """Like `is_warm`, for a result of `form`."""
    return form_key in _warm


def steps(policy: Policy, arms: int = 2) -> Iterator[None]:
    """Do what `warm` does, in parts of up to half a minute each.

    A caller can do more urgent work in between.
    """
    learner = policy.start(arms, seed=0)
    yield
    decision = learner.decide()
    yield
    learner.observe(decision, 0.5)
    yield
    # A decision whose feedback is late keeps more of the state than others do.
    late, prompt = learner.decide(count=2)
    learner.observe(prompt, 0.5)
    learner.observe(late, 0.5)
    yield
    learner.exploitation_probabilities()
    yield
    learner.exploration_probabilities()
    yield
    # A subset of the arms may need another form than all of them.
    learner.observe(learner.decide(available=learner.arms[:2]), 0.5)
    yield
    learner.exploration_probabilities(available=learner.arms[:2])
    _warm.add(form(policy, arms))


def form(policy: Policy, arms: int) -> Hashable:
    """A key that is equal for policies that run the same machine code.

    Numbers are arguments of that code.

    >>> import decoupled as dc
    >>> form(dc.FTPL(alpha=2.5), arms=3) == form(dc.FTPL(), arms=4)
    True
    >>> form(dc.FTPL(), arms=3) == form(dc.Ladder(), arms=3)
    False
    """
    here = policy.at(arms)
    return here.params_type, json.dumps(_without_numbers(here.to_dict()), sort_keys=True)


def _without_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_numbers(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_numbers(item) for item in value]
    return 0 if type(value) in (int, float) else value

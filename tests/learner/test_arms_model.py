"""Adding and retiring arms, compared with a plain model that keeps every arm in dictionaries by its identity.

The model is written from the rules in docs/learner.md. It has no places that shift: an arm is a number
that no other arm ever gets. Both laws come from the twins; the ladder's laws and baselines are the learner's own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import decoupled as dc
from decoupled.learner.pending import recorded
from support.centred_ftpl import CENTRED_FTPL
from support.twins import Floats, Twin
from support.twins.centred import CentredFTPLTwin
from support.twins.exp3 import Exp3Twin
from support.twins.ftpl import FTPLTwin

pytestmark = pytest.mark.slow

LADDER = dc.Ladder()
POLICIES = [dc.FTPL(), CENTRED_FTPL, LADDER, dc.Exp3(), dc.FollowTheLeader()]

POOL: list[str | int] = ["north", "east", 7, "south", "west", -1, "centre", 0]
MOST = len(POOL)


@dataclass
class Awaited:
    """A decision without feedback yet: the explored arm, the available arms, and all baselines."""

    decision: dc.Decision
    arm: int
    reachable: frozenset[int]
    baseline: dict[int, float]


class Model:
    """The effect of a learner's calls, arm by arm."""

    def __init__(self, names: list[str | int], lam: float) -> None:
        self.names = dict(enumerate(names))
        self.born = len(names)
        self.sums = dict.fromkeys(self.names, 0.0)
        self.seen: dict[int, list[float]] = {arm: [] for arm in self.names}
        self.round, self.forgotten, self.mean, self.lam = 1, 0, 0.5, lam
        self.spread = 0.0
        self.pending: list[Awaited] = []

    def add(self, names: list[str | int]) -> None:
        best = min(self.sums.values())
        for name in names:
            self.names[self.born], self.sums[self.born], self.seen[self.born] = name, best, []
            self.born += 1

    def retire(self, arms: list[int]) -> None:
        for arm in arms:
            del self.names[arm], self.sums[arm], self.seen[arm]

    def set_level(self) -> None:
        """The ladder's first loss: no estimate moves."""
        self.sums = dict.fromkeys(self.names, 0.0)
        self.round += 1

    def learn(self, awaited: Awaited, loss: float) -> None:
        for arm in self.names:
            b = awaited.baseline.get(arm, 0.0)
            if arm not in awaited.reachable:
                self.sums[arm] += loss
            elif arm == awaited.arm:
                self.sums[arm] += b + awaited.decision.weight * (loss - b)
                self.seen[arm].append(loss)
            else:
                self.sums[arm] += b
        self.spread += (loss - self.mean) ** 2 / 0.25
        self.mean += self.lam * (loss - self.mean)
        self.round += 1

    def estimates(self, policy: dc.Policy) -> list[float]:
        if isinstance(policy, dc.FollowTheLeader):
            return [sum(losses) / len(losses) if losses else -1.0 for losses in self.seen.values()]
        return list(self.sums.values())


def twin_of(
    policy: dc.Policy, estimates: Floats, arms: int, round_: int, mean: float, spread: float
) -> Twin | None:
    """A twin in the given state; follow the leader explores uniformly and needs none."""
    twin: Twin
    if isinstance(policy, dc.FollowTheLeader) or policy == LADDER:
        return None
    if isinstance(policy, dc.Exp3):
        twin = Exp3Twin(arms, policy.c)
    elif policy == dc.FTPL():
        twin = FTPLTwin(arms)
    else:
        twin = CentredFTPLTwin(arms, policy)
        twin.mean, twin.spread = mean, spread
    twin.estimates, twin.observations = estimates, round_ - 1
    return twin


# Sixteenths: most random floats are so close to 0 or 1 that a wrong sum would look like rounding.
SHARES = st.integers(0, 16).map(lambda share: share / 16)
BITS = st.integers(0, 2**MOST - 1)
PREDICTIONS = st.none() | st.lists(st.none() | SHARES, min_size=MOST, max_size=MOST)


class ArmsMachine(RuleBasedStateMachine):
    """Makes the same calls on a learner and its model, and compares them after each."""

    policy: ClassVar[dc.Policy]

    @initialize(arms=st.integers(2, 5), numbered=st.booleans(), seed=st.integers(0, 2**32))
    def start(self, arms: int, numbered: bool, seed: int) -> None:
        self.seed = seed
        names: list[str | int] = list(range(arms)) if numbered else POOL[:arms]
        self.model = Model(names, getattr(self.policy, "lam", 0.0))
        self.learner = self.policy.start(arms if numbered else names, seed, loss_range=(-1.0, 3.0))

    def chosen(self, bits: int | None) -> list[int]:
        """Some of the arms, at least one; None for all of them."""
        arms = list(self.model.names)
        some = [arm for i, arm in enumerate(arms) if bits is None or bits >> i & 1]
        return some or [arms[0]]

    def refused(self, error: type[dc.DecoupledError], call: Callable[[], object]) -> None:
        before = self.learner.to_json()
        with pytest.raises(error):
            call()
        assert self.learner.to_json() == before

    # Adding and retiring

    @precondition(lambda self: len(self.model.names) < MOST)
    @rule(bits=BITS)
    def add(self, bits: int) -> None:
        free = [name for name in POOL if name not in self.model.names.values()]
        names = [name for i, name in enumerate(free) if bits >> i & 1][: MOST - len(self.model.names)]
        stream = self.learner._running.stream.tolist()
        self.learner.add_arms(iter(names))
        self.model.add(names)
        assert self.learner._running.stream.tolist() == stream

    @precondition(lambda self: len(self.model.names) > 2)
    @rule(bits=BITS)
    def retire(self, bits: int) -> None:
        arms = self.chosen(bits)[: len(self.model.names) - 2]
        stream = self.learner._running.stream.tolist()
        self.learner.retire_arms([self.model.names[arm] for arm in reversed(arms)])
        self.model.retire(arms)
        assert self.learner._running.stream.tolist() == stream

    @rule(bits=BITS)
    def add_or_retire_badly(self, bits: int) -> None:
        names = list(self.model.names.values())
        self.refused(dc.ArmError, lambda: self.learner.add_arms(["new", names[bits % len(names)]]))
        self.refused(dc.ArmError, lambda: self.learner.add_arms(["new", "newer", "new"]))
        self.refused(dc.ArmError, lambda: self.learner.retire_arms(names[1:]))
        self.refused(dc.ArmError, lambda: self.learner.retire_arms([names[0], "nobody"]))

    # Deciding

    @rule(bits=st.none() | BITS, predictions=PREDICTIONS, exploits=st.booleans())
    def decide(self, bits: int | None, predictions: list[float | None] | None, exploits: bool) -> None:
        model, reachable = self.model, self.chosen(bits)
        everyone = list(model.names)
        arguments: dict[str, Any] = {}
        if bits is not None:
            arguments["available"] = [model.names[arm] for arm in reachable]
        foreseen = zip(everyone, predictions or [], strict=False)
        expected = {arm: share for arm, share in foreseen if share is not None}
        if predictions is not None and self.policy.baseline is not None:
            arguments["baseline"] = {model.names[arm]: 4.0 * share - 1.0 for arm, share in expected.items()}
        elif predictions is not None:
            self.refused(dc.UnsupportedError, lambda: self.learner.decide(baseline={}))
        # The learner's own estimates, which agree() compares with the model's: a difference in the last
        # bit could break a tie of ranks the other way.
        estimates = self.learner.estimates()[[everyone.index(arm) for arm in reachable]]
        twin = twin_of(self.policy, estimates, len(everyone), model.round, model.mean, model.spread)
        decision = self.learner.decide(**arguments) if exploits else self.learner.explore(**arguments)
        arm = {name: who for who, name in model.names.items()}[decision.explore]
        assert arm in reachable
        law = np.full(len(reachable), 1 / len(reachable)) if twin is None else twin.exploration_law()
        if self.policy == LADDER:
            some = [model.names[each] for each in reachable]
            whole = dict(zip(everyone, self.learner.exploration_probabilities(available=some), strict=True))
            law = np.array([whole[each] for each in reachable])
        assert decision.propensity == pytest.approx(law[reachable.index(arm)], rel=1e-9)
        baseline: dict[int, float] = {}
        if isinstance(twin, CentredFTPLTwin):
            own = dict(zip(reachable, twin.baseline().tolist(), strict=True))
            baseline = {who: expected.get(who, b) if b > 0 else 0.0 for who, b in own.items()}
        if self.policy == LADDER:
            kept = recorded(self.learner._waiting.find(decision)[3])
            baseline = {} if kept is None else dict(zip(kept[0].tolist(), kept[1].tolist(), strict=True))
            assert set(baseline) == (set(reachable) if model.round > 1 else set())
        model.pending.append(Awaited(decision, arm, frozenset(reachable), baseline))

    # Learning

    @precondition(lambda self: self.model.pending)
    @rule(place=st.integers(0, 20), share=SHARES)
    def observe(self, place: int, share: float) -> None:
        awaited = self.model.pending.pop(place % len(self.model.pending))
        if self.policy == LADDER and not awaited.baseline:  # decided before the first loss
            running = self.learner._running
            values = running.form.baselines(running.state)[1].tolist()
            awaited.baseline = dict(zip(self.model.names, values, strict=False))
        self.learner.observe(awaited.decision, loss=4.0 * share - 1.0)
        if self.policy == LADDER and self.model.round == 1:
            self.model.set_level()
        else:
            self.model.learn(awaited, share)

    @precondition(lambda self: self.model.pending)
    @rule(share=SHARES)
    def observe_all(self, share: float) -> None:
        while self.model.pending:
            self.observe(0, share)

    @precondition(lambda self: self.model.pending)
    @rule(place=st.integers(0, 20))
    def forget(self, place: int) -> None:
        awaited = self.model.pending.pop(place % len(self.model.pending))
        self.learner.forget(awaited.decision.id)
        self.model.forgotten += 1

    # Saving

    @rule()
    def save_and_load(self) -> None:
        text = self.learner.to_json()
        self.learner = dc.Learner.from_json(text)
        assert self.learner.to_json() == text

    @rule()
    def fork(self) -> None:
        self.seed += 1
        self.learner = self.learner.fork(seed=self.seed)

    @invariant()
    def agree(self) -> None:
        model = self.model
        assert self.learner.arms == tuple(model.names.values())
        assert self.learner.round == model.round
        assert self.learner.pending.forgotten == model.forgotten
        assert self.learner.pending == tuple(awaited.decision for awaited in model.pending)
        known = self.learner.estimates()
        assert known.tolist() == pytest.approx(model.estimates(self.policy), rel=1e-9, abs=1e-9)
        twin = twin_of(self.policy, known, len(known), model.round, model.mean, model.spread)
        if twin is not None:
            law = self.learner.exploration_probabilities()
            assert law.tolist() == pytest.approx(twin.exploration_law().tolist(), rel=1e-9)


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_any_sequence_of_calls_leaves_learner_and_model_agreed(policy: dc.Policy) -> None:
    machine = type("Machine", (ArmsMachine,), {"policy": policy})
    examples = 30 if policy == POLICIES[0] else 12  # policies share all but their laws
    run_state_machine_as_test(
        machine, settings=settings(max_examples=examples, stateful_step_count=40, deadline=None)
    )

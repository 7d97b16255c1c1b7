"""A learner and a plain model of it: after any sequence of calls, valid or not, they must agree.

The model is written from the rules in docs/learner.md, and keeps every arm in dictionaries by its
identity: an arm is a number that no other arm ever gets, so no places shift when arms come and go.
It draws nothing itself. Exploration laws come from the twins; the ladder's laws and baselines are
the learner's own.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
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
from decoupled.extend import diagnostics
from decoupled.learner import place_in_stream
from decoupled.testing import state_of
from support.centred_ftpl import CENTRED_FTPL
from support.saved import kept_by
from support.twins import Floats, Twin, twin_of
from support.twins.centred import CentredFTPLTwin

pytestmark = pytest.mark.slow

LADDER = dc.Ladder()
STRATA, OTHER_BETA = dc.FTPL(alpha=1.7, c=0.6, ranking="strata"), dc.TsallisINF(beta=0.4, c=5.0)
POLICIES = [dc.FTPL(), STRATA, CENTRED_FTPL, LADDER, OTHER_BETA, dc.Exp3(), dc.FollowTheLeader()]

POOL: list[str | int] = ["north", "east", 7, "south", "west", -1, "centre", 0]
MOST = len(POOL)


@dataclass
class Awaited:
    """A decision without feedback yet: the explored arm, the available arms, and all baselines."""

    weight: float
    arm: int
    reachable: frozenset[int]
    baseline: dict[int, float] = field(default_factory=dict)
    decision: dc.Decision | None = None  # of a log there is none


class Model:
    """The effect of a learner's calls, arm by arm."""

    def __init__(self, names: list[str | int], lam: float, max_pending: int) -> None:
        self.names = dict(enumerate(names))
        self.born = len(names)
        self.sums = dict.fromkeys(self.names, 0.0)
        self.seen: dict[int, list[float]] = {arm: [] for arm in self.names}
        self.round, self.forgotten, self.mean, self.lam = 1, 0, 0.5, lam
        self.spread = 0.0
        self.pending: list[Awaited] = []
        self.max_pending = max_pending

    def add(self, names: list[str | int]) -> None:
        best = min(self.sums.values())
        for name in names:
            self.names[self.born], self.sums[self.born], self.seen[self.born] = name, best, []
            self.born += 1

    def retire(self, arms: list[int]) -> None:
        for arm in arms:
            del self.names[arm], self.sums[arm], self.seen[arm]

    def await_feedback(self, awaited: Awaited) -> None:
        """Record a decision; beyond the limit the oldest is forgotten."""
        self.pending.append(awaited)
        if len(self.pending) > self.max_pending:
            del self.pending[0]
            self.forgotten += 1

    def set_level(self) -> None:
        """The ladder's first loss: no estimate moves."""
        self.sums = dict.fromkeys(self.names, 0.0)
        self.round += 1

    def learn(self, awaited: Awaited, loss: float) -> None:
        """The explored arm's loss counts by its weight.

        Unavailable arms are charged the loss itself.
        """
        for arm in self.names:
            b = awaited.baseline.get(arm, 0.0)
            if arm not in awaited.reachable:
                self.sums[arm] += loss
            elif arm == awaited.arm:
                self.sums[arm] += b + awaited.weight * (loss - b)
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


Strategy = st.SearchStrategy[Any]

SEEDS_END = 2**64
# Sixteenths: most random floats are so close to 0 or 1 that a wrong sum would look like rounding.
SHARES = st.integers(0, 16).map(lambda share: share / 16)
RANGES = st.sampled_from([(0.0, 1.0), (0.0, 250.0), (-3.0, 5.0)])
BITS = st.integers(0, 2**MOST - 1)
PLACES = st.integers(0, 20)
RECORDS = st.lists(st.tuples(st.integers(0, 1), st.floats(0.01, 1), SHARES), max_size=4)
BAD_LOSSES: Strategy = st.sampled_from(
    [math.nan, math.inf, -math.inf, 1e9, -1e9, "0.5", b"0", None, [], 1j]
)
BAD_PROPENSITIES = st.sampled_from([0.0, -0.5, 1.5, math.nan, math.inf, "0.5", None, True, 5e-324])
BAD_COUNTS: Strategy = st.sampled_from([0, -1, 1.0, "2", True, 10**9])
BAD_SETS: Strategy = st.sampled_from(
    [[], "north", ["nowhere"], [-2], [99], [None], [True], 0, [["north"]]]
)
UNKNOWN: Strategy = st.sampled_from(["", "-", "00000000-1", None, 1, ()]) | st.text(max_size=12)
BAD_SEEDS: Strategy = st.sampled_from([-1, 1.5, "7", True])


class LearnerMachine(RuleBasedStateMachine):
    """Makes the same calls on a learner and its model, and compares them after each."""

    policy: ClassVar[dc.Policy]

    @initialize(
        arms=st.integers(2, 5),
        numbered=st.booleans(),
        loss_range=RANGES,
        max_pending=st.sampled_from([1000, 1000, 4, 2, 1]),
        seed=st.integers(0, SEEDS_END),
    )
    def start(
        self,
        arms: int,
        numbered: bool,
        loss_range: tuple[float, float],
        max_pending: int,
        seed: int,
    ) -> None:
        names: list[str | int] = list(range(arms)) if numbered else POOL[:arms]
        self.low, self.high = loss_range
        self.made: list[dc.Decision] = []
        self.forks = 0
        mean_rate = self.policy.mean_rate if isinstance(self.policy, dc.CentredFTPL) else 0.0
        self.model = Model(names, mean_rate, max_pending)
        self.learner = self.policy.start(
            arms if numbered else names, seed, loss_range=loss_range, max_pending=max_pending
        )

    def chosen(self, bits: int | None) -> list[int]:
        """Some of the arms, at least one; None for all of them."""
        arms = list(self.model.names)
        return [arm for i, arm in enumerate(arms) if bits is None or bits >> i & 1] or [arms[0]]

    def within_range(self, share: float) -> float:
        return self.low + share * (self.high - self.low)

    def refused(self, error: type[dc.DecoupledError], call: Callable[[], object]) -> None:
        """The call must fail in this way and change nothing, not even the random stream."""
        before = self.learner.to_json()
        with pytest.raises(error):
            call()
        assert self.learner.to_json() == before

    def twin(self, estimates: Floats) -> Twin | None:
        """A twin in the model's state; follow the leader explores uniformly and needs none."""
        if isinstance(self.policy, dc.FollowTheLeader) or self.policy == LADDER:
            return None
        twin = twin_of(self.policy, len(self.model.names))
        twin.estimates, twin.observations = estimates, self.model.round - 1
        if isinstance(twin, CentredFTPLTwin):
            twin.mean, twin.spread = self.model.mean, self.model.spread
        return twin

    # Adding and retiring

    @precondition(lambda self: len(self.model.names) < MOST)
    @rule(bits=BITS)
    def add(self, bits: int) -> None:
        free = [name for name in POOL if name not in self.model.names.values()]
        names = [name for i, name in enumerate(free) if bits >> i & 1][
            : MOST - len(self.model.names)
        ]
        stream = place_in_stream(self.learner)
        self.learner.add_arms(iter(names))
        self.model.add(names)
        assert place_in_stream(self.learner) == stream

    @precondition(lambda self: len(self.model.names) > 2)
    @rule(bits=BITS)
    def retire(self, bits: int) -> None:
        arms = self.chosen(bits)[: len(self.model.names) - 2]
        stream = place_in_stream(self.learner)
        self.learner.retire_arms([self.model.names[arm] for arm in reversed(arms)])
        self.model.retire(arms)
        assert place_in_stream(self.learner) == stream

    # Deciding

    @rule(how=st.sampled_from(["decide", "explore", 1, 2, 4]), bits=st.none() | BITS)
    def decide(self, how: str | int, bits: int | None) -> None:
        model, reachable, learner = self.model, self.chosen(bits), self.learner
        given: dict[str, Any] = {}
        if bits is not None:
            given["available"] = [model.names[arm] for arm in reversed(reachable)]
        if isinstance(how, int) and how > model.max_pending:
            self.refused(dc.ParameterError, lambda: learner.decide(how, **given))
            return
        # The learner's own estimates, which agree() compares with the model's: a difference in the
        # last bit could break a tie of ranks the other way.
        twin = self.twin(learner.estimates()[[[*model.names].index(arm) for arm in reachable]])
        law = self.law(reachable, twin)
        own: dict[int, float] = {}
        if isinstance(twin, CentredFTPLTwin):
            covered = dict(zip(reachable, twin.baseline().tolist(), strict=True))
            own = {arm: max(b, 0.0) for arm, b in covered.items()}
        if isinstance(how, int):
            several = learner.decide(how, **given)
            assert len(several) == how
        else:
            several = [learner.decide(**given) if how == "decide" else learner.explore(**given)]
        for decision in several:
            self.check(decision, dict(zip(reachable, law.tolist(), strict=True)), how != "explore")
            arm = self.arm_named(decision.explore)
            baseline = self.kept(decision, reachable) if self.policy == LADDER else own
            model.await_feedback(
                Awaited(decision.weight, arm, frozenset(reachable), baseline, decision)
            )

    def law(self, reachable: list[int], twin: Twin | None) -> Floats:
        """The exploration law of the available arms."""
        if twin is not None:
            return twin.exploration_law()
        if self.policy != LADDER:
            return np.full(len(reachable), 1 / len(reachable))
        some = [self.model.names[each] for each in reachable]
        whole = self.learner.exploration_probabilities(available=some)
        return whole[[[*self.model.names].index(arm) for arm in reachable]]

    def check(self, decision: dc.Decision, law: dict[int, float], exploits: bool) -> None:
        """Each field of a new decision."""
        assert decision.id not in {each.id for each in self.made}
        assert decision.round == self.model.round
        chance = law[self.arm_named(decision.explore)]
        if getattr(self.policy, "ranking", None) == "strata":
            # It knows an estimate of sum q, between 1, the q of the first rank, and 1.5 times the
            # sum.
            assert decision.propensity is None
            assert 1 <= decision.weight <= 1.5 / chance * (1 + 1e-8)
        else:
            assert decision.propensity is not None
            assert decision.propensity == pytest.approx(chance, rel=1e-8)
            assert decision.propensity * decision.weight == pytest.approx(1, rel=1e-12)
        assert (decision.exploit is not None) == exploits
        assert decision.exploit is None or self.arm_named(decision.exploit) in law
        self.made.append(decision)

    def arm_named(self, name: str | int) -> int:
        return next(arm for arm, own in self.model.names.items() if own == name)

    def kept(self, decision: dc.Decision, reachable: list[int]) -> dict[int, float]:
        """The law by which the ladder explored, as negative numbers, or baselines if some were
        given or arms are away.
        """
        kept = kept_by(self.learner)[decision.id]
        assert kept.by_arm or self.model.round == 1
        sign = -1 if kept.is_law else 1
        baseline = {arm: sign * value for arm, value in kept.by_arm.items()}
        assert set(baseline) == (set(reachable) if self.model.round > 1 or sign < 0 else set())
        return baseline

    def gated(self, law: dict[int, float]) -> dict[int, float]:
        """The baselines of the soft gate, in the state of now, for the law of a decision."""
        found, estimates = diagnostics(self.learner), self.learner.estimates()
        mean, gaps = 0.5 + found["rise"], estimates - estimates.min()
        unit = 1 / found["eta"] if found["largest"] > 0 else math.inf
        falls = dict(zip(self.model.names, (unit + gaps) / 2, strict=True))
        return {
            arm: min(mean, found["least"] + law[arm] * falls[arm]) for arm in law if arm in falls
        }

    @rule(bits=st.none() | BITS)
    def exploit(self, bits: int | None) -> None:
        some = [self.model.names[arm] for arm in self.chosen(bits)]
        assert self.learner.exploit(available=None if bits is None else some).exploit in some

    # Learning

    @precondition(lambda self: self.model.pending)
    @rule(place=PLACES, by_id=st.booleans(), share=SHARES, as_reward=st.booleans())
    def observe(self, place: int, by_id: bool, share: float, as_reward: bool) -> None:
        awaited = self.model.pending.pop(place % len(self.model.pending))
        decision, loss = awaited.decision, self.within_range(share)
        assert decision is not None
        given = decision.id if by_id else decision
        if self.policy == LADDER and not awaited.baseline:  # decided before the first loss
            assert LADDER.baselines is not None
            values = LADDER.baselines.read(state_of(self.learner).to_state())[1].tolist()
            awaited.baseline = dict(zip(self.model.names, values, strict=False))
        elif self.policy == LADDER and min(awaited.baseline.values()) < 0:
            awaited.baseline = self.gated(
                {arm: -chance for arm, chance in awaited.baseline.items()}
            )
        if as_reward:
            self.learner.observe(given, reward=self.low + self.high - loss)
        else:
            self.learner.observe(given, loss)
        if self.policy == LADDER and self.model.round == 1:
            self.model.set_level()
        else:
            self.model.learn(awaited, share)

    @precondition(lambda self: self.model.pending)
    @rule(newest_first=st.booleans(), share=SHARES)
    def observe_all(self, newest_first: bool, share: float) -> None:
        while self.model.pending:
            self.observe(-1 if newest_first else 0, newest_first, share, newest_first)

    @precondition(lambda self: self.model.pending)
    @rule(place=PLACES, by_id=st.booleans())
    def forget(self, place: int, by_id: bool) -> None:
        decision = self.model.pending.pop(place % len(self.model.pending)).decision
        assert decision is not None
        self.learner.forget(decision.id if by_id else decision)
        self.model.forgotten += 1

    @precondition(
        lambda self: self.policy != LADDER
    )  # which bounds a log's baselines by its propensities
    @rule(records=RECORDS, as_mappings=st.booleans())
    def replay(self, records: list[tuple[int, float, float]], as_mappings: bool) -> None:
        given: list[Any] = self.log_of(records)
        if as_mappings:
            given = [
                dict(zip(("explore", "propensity", "loss"), each, strict=True)) for each in given
            ]
        assert self.learner.replay(given, unrandomised=True) == len(records)
        everyone = [*self.model.names]
        for place, propensity, share in records:
            self.model.learn(Awaited(1 / propensity, everyone[place], frozenset(everyone)), share)

    def log_of(
        self, records: list[tuple[int, float, float]]
    ) -> list[tuple[str | int, float, float]]:
        names = [*self.model.names.values()]
        return [(names[arm], p, self.within_range(share)) for arm, p, share in records]

    # Saving

    @rule()
    def save_and_load(self) -> None:
        text = self.learner.to_json()
        self.learner = dc.Learner.from_json(text)
        assert self.learner.to_json() == text

    @rule()
    def fork(self) -> None:
        before = self.learner.to_json()
        self.forks += 1
        copy = self.learner.fork(seed=SEEDS_END + self.forks)  # a seed not used before
        assert self.learner.to_json() == before
        self.learner = copy

    # Invalid calls

    @precondition(lambda self: self.made)
    @rule(place=st.integers(0, 200), loss=BAD_LOSSES)
    def observe_badly(self, place: int, loss: Any) -> None:
        decision = self.made[place % len(self.made)]
        unknown: list[Any] = [decision._replace(weight=decision.weight * 2)]
        if not any(each.decision == decision for each in self.model.pending):
            unknown += [decision, decision.id]  # already observed, forgotten or dropped
        for each in unknown:
            self.refused(dc.FeedbackError, partial(self.learner.observe, each, self.low))
            self.refused(dc.FeedbackError, partial(self.learner.forget, each))
        self.refused(dc.LossError, lambda: self.learner.observe(decision, loss=loss))
        self.refused(dc.LossError, lambda: self.learner.observe(decision, reward=loss))
        self.refused(dc.LossError, lambda: self.learner.observe(decision, loss=0.5, reward=0.5))

    @rule(records=RECORDS, propensity=BAD_PROPENSITIES, loss=BAD_LOSSES)
    def replay_with_a_bad_end(
        self, records: list[tuple[int, float, float]], propensity: Any, loss: Any
    ) -> None:
        good, replay = self.log_of(records), self.learner.replay
        arm, fine = next(iter(self.model.names.values())), self.low
        self.refused(dc.ParameterError, lambda: replay([*good, (arm, propensity, fine)]))
        self.refused(dc.LossError, lambda: replay([*good, (arm, 0.5, loss)]))
        self.refused(dc.ArmError, lambda: replay([*good, ("nowhere", 0.5, fine)]))
        self.refused(dc.ParameterError, lambda: replay([*good, (arm, 0.5)]))

    @rule(bits=BITS, count=BAD_COUNTS, available=BAD_SETS, unknown=UNKNOWN, seed=BAD_SEEDS)
    def call_badly(self, bits: int, count: Any, available: Any, unknown: Any, seed: Any) -> None:
        learner, names = self.learner, list(self.model.names.values())
        self.refused(dc.ParameterError, lambda: learner.decide(count))
        self.refused(dc.ArmError, lambda: learner.decide(available=available))
        self.refused(dc.ArmError, lambda: learner.explore(available=available))
        self.refused(dc.ArmError, lambda: learner.exploit(available=available))
        self.refused(dc.FeedbackError, lambda: learner.observe(unknown, self.low))
        self.refused(dc.FeedbackError, lambda: learner.forget(unknown))
        self.refused(dc.ParameterError, lambda: learner.fork(seed))
        self.refused(dc.ArmError, lambda: learner.add_arms(["new", names[bits % len(names)]]))
        self.refused(dc.ArmError, lambda: learner.add_arms(["new", "newer", "new"]))
        self.refused(dc.ArmError, lambda: learner.retire_arms(names[1:]))
        self.refused(dc.ArmError, lambda: learner.retire_arms([names[0], "nobody"]))

    @invariant()
    def agree(self) -> None:
        model, learner = self.model, self.learner
        assert learner.arms == tuple(model.names.values())
        assert learner.round == model.round
        assert learner.pending.forgotten == model.forgotten
        assert learner.pending == tuple(awaited.decision for awaited in model.pending)
        known = learner.estimates()
        assert known.tolist() == pytest.approx(model.estimates(self.policy), rel=1e-9, abs=1e-9)
        twin = self.twin(known)
        if twin is not None:
            law = learner.exploration_probabilities()
            assert law.tolist() == pytest.approx(twin.exploration_law().tolist(), rel=1e-8)


@pytest.mark.filterwarnings("ignore::decoupled.UnseenArmWarning")
@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_any_sequence_of_calls_agrees_with_the_model(policy: dc.Policy) -> None:
    machine = type("Machine", (LearnerMachine,), {"policy": policy})
    # Policies share all but their laws, so most sequences are tried with one of them.
    examples = 40 if policy == dc.FTPL() else 10
    run_state_machine_as_test(
        machine, settings=settings(deadline=None, max_examples=examples, stateful_step_count=40)
    )

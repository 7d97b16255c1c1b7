"""A learner and a plain model of it: after any sequence of calls, valid or not, they must agree.

The model is written from the definitions alone. It knows the round, the pending decisions and the
estimates, and the probability with which each policy explores; it draws nothing itself.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    MultipleResults,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)

import decoupled as dc

pytestmark = pytest.mark.slow

POLICIES = [
    dc.FTPL(),
    dc.FTPL(alpha=1.7, c=0.6, ranking="strata"),
    dc.TsallisINF(beta=0.4, c=5.0),
    dc.Exp3(),
    dc.FollowTheLeader(),
]

NAMES = ["north", "east", "south", "west", "centre"]


# The model


@dataclass
class Awaited:
    """A decision without feedback yet."""

    decision: dc.Decision
    arm: int
    reachable: list[int]


class Model:
    """The effect of a learner's calls."""

    def __init__(self, arms: int, low: float, high: float, max_pending: int) -> None:
        self.arms, self.low, self.high, self.max_pending = arms, low, high, max_pending
        self.round, self.forgotten = 1, 0
        self.pending: list[Awaited] = []
        self.weighted = [0.0] * arms
        self.seen: list[list[float]] = [[] for _ in range(arms)]

    def await_feedback(self, decision: dc.Decision, arm: int, reachable: list[int]) -> None:
        """Record a decision; beyond the limit the oldest is forgotten."""
        self.pending.append(Awaited(decision, arm, reachable))
        if len(self.pending) > self.max_pending:
            del self.pending[0]
            self.forgotten += 1

    def learn(self, arm: int, weight: float, loss: float, reachable: list[int]) -> None:
        """The explored arm's loss counts by its weight; unavailable arms are charged the loss itself."""
        share = (loss - self.low) / (self.high - self.low)
        for other in range(self.arms):
            if other not in reachable:
                self.weighted[other] += share
        self.weighted[arm] += weight * share
        self.seen[arm].append(share)
        self.round += 1

    def estimates(self, policy: dc.Policy) -> list[float]:
        if isinstance(policy, dc.FollowTheLeader):
            return [sum(losses) / len(losses) if losses else -1.0 for losses in self.seen]
        return self.weighted


def exploration(policy: dc.Policy, estimates: list[float], arms: int, round_: int) -> list[float]:
    """The exploration law of arms with these estimates, out of `arms` in the whole problem."""
    if isinstance(policy, dc.FollowTheLeader):
        return _normalised([1.0] * len(estimates))
    gaps = [each - min(estimates) for each in estimates]
    if isinstance(policy, dc.FTPL):
        return _ftpl(gaps, policy.alpha, policy.c * arms ** (1 / policy.alpha - 0.5) / math.sqrt(round_))
    if isinstance(policy, dc.Exp3):
        eta = policy.c / math.sqrt(arms * round_)
        return _normalised([math.sqrt(math.exp(-eta * gap)) for gap in gaps])
    assert isinstance(policy, dc.TsallisINF)
    return _tsallis(gaps, policy.beta, policy.c * arms ** (0.5 - policy.beta) / math.sqrt(round_))


def _normalised(weights: list[float]) -> list[float]:
    return [weight / sum(weights) for weight in weights]


def _ftpl(gaps: list[float], alpha: float, eta: float) -> list[float]:
    by_rank = sorted(range(len(gaps)), key=lambda arm: (gaps[arm], arm))
    surrogate = [0.0] * len(gaps)
    for rank, arm in enumerate(by_rank, start=1):
        bound = min(1 / (1 + eta * gaps[arm]), rank ** (-1 / alpha))
        surrogate[arm] = bound ** ((alpha + 1) / 2)
    shared = []  # evenly among tied arms
    for gap in gaps:
        tie = [share for share, other in zip(surrogate, gaps, strict=True) if other == gap]
        shared.append(sum(tie) / len(tie))
    return _normalised(shared)


def _tsallis(gaps: list[float], beta: float, eta: float) -> list[float]:
    power = 1 / (1 - beta)

    def weights(shift: float) -> list[float]:
        return [(shift + (1 - beta) * eta * gap) ** -power for gap in gaps]

    low, high = 1.0, len(gaps) ** (1 / power)  # the weights sum to 1 or more, and to 1 or less
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(weights(middle)) > 1 else (low, middle)
    return _normalised([weight ** (1 - beta / 2) for weight in weights(low)])


# The calls

SEEDS_END = 2**64
# Sixteenths: most random floats are so close to 0 or 1 that a wrong sum would look like rounding.
SHARES = st.integers(0, 16).map(lambda share: share / 16)
RANGES = st.sampled_from([(0.0, 1.0), (0.0, 250.0), (-3.0, 5.0)])
SUBSETS = st.none() | st.integers(0, 2 ** len(NAMES) - 1)  # every arm, or a bit for each of them
BAD_LOSSES: st.SearchStrategy[Any] = st.sampled_from(
    [math.nan, math.inf, -math.inf, 1e9, -1e9, "0.5", b"0", None, [], 1j]
)
BAD_PROPENSITIES = st.sampled_from([0.0, -0.5, 1.5, math.nan, math.inf, "0.5", None, True, 5e-324])
BAD_COUNTS: st.SearchStrategy[Any] = st.sampled_from([0, -1, 1.0, "2", True, 10**9])
BAD_SETS: st.SearchStrategy[Any] = st.sampled_from(
    [[], "north", ["nowhere"], [-1], [99], [None], [True], 0, [[0]]]
)
UNKNOWN: st.SearchStrategy[Any] = st.sampled_from(["", "-", "00000000-1", None, 1, ()]) | st.text(
    max_size=12
)
BAD_SEEDS: st.SearchStrategy[Any] = st.sampled_from([-1, 1.5, "7", True])
RECORDS = st.lists(st.tuples(st.integers(0, 1), st.floats(0.01, 1), SHARES), max_size=4)


class LearnerMachine(RuleBasedStateMachine):
    """Makes the same calls on a learner and its model, and compares them after each."""

    policy: ClassVar[dc.Policy]
    decisions: Bundle[dc.Decision] = Bundle("decisions")

    def __init__(self) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.forks = 0

    @initialize(
        arms=st.integers(2, len(NAMES)),
        named=st.booleans(),
        loss_range=RANGES,
        max_pending=st.sampled_from([1000, 4, 2, 1]),
        seed=st.integers(0, SEEDS_END),
    )
    def start(
        self, arms: int, named: bool, loss_range: tuple[float, float], max_pending: int, seed: int
    ) -> None:
        self.names: Sequence[str | int] = NAMES[:arms] if named else range(arms)
        self.model = Model(arms, *loss_range, max_pending)
        self.learner = self.policy.start(
            NAMES[:arms] if named else arms, seed, loss_range=loss_range, max_pending=max_pending
        )

    def reachable(self, subset: int | None) -> tuple[list[int], list[str | int] | None]:
        """The places of a drawn subset, and the argument for the learner."""
        if subset is None:
            return list(range(self.model.arms)), None
        places = [place for place in range(self.model.arms) if subset >> place & 1]
        places = places or [subset % self.model.arms]
        return places, [self.names[place] for place in reversed(places)]

    def refused(self, error: type[dc.DecoupledError], call: Callable[[], object]) -> None:
        """The call must fail in this way and change nothing, not even the random stream."""
        before = self.learner.to_json()
        with pytest.raises(error):
            call()
        assert self.learner.to_json() == before

    def made(self, decision: dc.Decision, reachable: list[int], exploits: bool) -> dc.Decision:
        """Check each field of a new decision, and expect its feedback."""
        assert decision.id not in self.ids
        assert decision.round == self.model.round
        arm = self.names.index(decision.explore)
        law = self.law(reachable)
        if getattr(self.policy, "ranking", None) == "strata":
            # It knows an estimate of sum q, between 1, the q of the first rank, and 1.5 times the sum.
            assert decision.propensity is None
            assert 1 <= decision.weight <= 1.5 / law[reachable.index(arm)] * (1 + 1e-8)
        else:
            assert decision.propensity is not None
            assert decision.propensity == pytest.approx(law[reachable.index(arm)], rel=1e-8)
            assert decision.propensity * decision.weight == pytest.approx(1, rel=1e-12)
        if exploits:
            assert decision.exploit is not None
            assert self.names.index(decision.exploit) in reachable
        else:
            assert decision.exploit is None
        self.ids.add(decision.id)
        self.model.await_feedback(decision, arm, reachable)
        return decision

    def law(self, reachable: list[int]) -> list[float]:
        # The learner's own estimates, which agree() compares with the model's: a difference in the last
        # bit could break a tie of ranks the other way.
        estimates = self.learner.estimates().tolist()
        part = [estimates[arm] for arm in reachable]
        return exploration(self.policy, part, self.model.arms, self.model.round)

    # Deciding

    @rule(target=decisions, subset=SUBSETS)
    def decide(self, subset: int | None) -> dc.Decision:
        places, available = self.reachable(subset)
        return self.made(self.learner.decide(available=available), places, exploits=True)

    @rule(target=decisions, count=st.integers(1, 4), subset=SUBSETS)
    def decide_many(self, count: int, subset: int | None) -> MultipleResults[dc.Decision]:
        places, available = self.reachable(subset)
        if count > self.model.max_pending:
            self.refused(dc.ParameterError, lambda: self.learner.decide(count, available=available))
            return multiple()
        several = self.learner.decide(count, available=available)
        assert len(several) == count
        return multiple(*(self.made(each, places, exploits=True) for each in several))

    @rule(target=decisions, subset=SUBSETS)
    def explore(self, subset: int | None) -> dc.Decision:
        places, available = self.reachable(subset)
        return self.made(self.learner.explore(available=available), places, exploits=False)

    @rule(subset=SUBSETS)
    def exploit(self, subset: int | None) -> None:
        places, available = self.reachable(subset)
        assert self.names.index(self.learner.exploit(available=available).exploit) in places

    # Learning

    @precondition(lambda self: self.model.pending)
    @rule(place=st.integers(0, 20), by_id=st.booleans(), share=SHARES, as_reward=st.booleans())
    def observe(self, place: int, by_id: bool, share: float, as_reward: bool) -> None:
        self.settle(self.model.pending.pop(place % len(self.model.pending)), by_id, share, as_reward)

    @precondition(lambda self: self.model.pending)
    @rule(newest_first=st.booleans(), share=SHARES)
    def observe_all(self, newest_first: bool, share: float) -> None:
        for _ in range(len(self.model.pending)):
            self.settle(
                self.model.pending.pop(-1 if newest_first else 0), newest_first, share, newest_first
            )

    def settle(self, awaited: Awaited, by_id: bool, share: float, as_reward: bool) -> None:
        given = awaited.decision.id if by_id else awaited.decision
        low, high = self.model.low, self.model.high
        loss, reward = self.within_range(share), low + high - self.within_range(share)
        if as_reward:
            self.learner.observe(given, reward=reward)
        else:
            self.learner.observe(given, loss)
        self.model.learn(awaited.arm, awaited.decision.weight, loss, awaited.reachable)

    @precondition(lambda self: self.model.pending)
    @rule(place=st.integers(0, 20), by_id=st.booleans())
    def forget(self, place: int, by_id: bool) -> None:
        awaited = self.model.pending.pop(place % len(self.model.pending))
        self.learner.forget(awaited.decision.id if by_id else awaited.decision)
        self.model.forgotten += 1

    @rule(decision=decisions, loss=BAD_LOSSES)
    def observe_badly(self, decision: dc.Decision, loss: Any) -> None:
        altered = decision._replace(weight=decision.weight * 2)
        unknown: list[Any] = [altered]
        if not any(each.decision == decision for each in self.model.pending):
            unknown += [decision, decision.id]  # already observed, forgotten or dropped
        for each in unknown:
            self.refused(dc.FeedbackError, partial(self.learner.observe, each, self.model.low))
            self.refused(dc.FeedbackError, partial(self.learner.forget, each))
        self.refused(dc.LossError, lambda: self.learner.observe(decision, loss=loss))
        self.refused(dc.LossError, lambda: self.learner.observe(decision, reward=loss))
        self.refused(dc.LossError, lambda: self.learner.observe(decision, loss=0.5, reward=0.5))

    def within_range(self, share: float) -> float:
        return self.model.low + share * (self.model.high - self.model.low)

    @rule(records=RECORDS, as_mappings=st.booleans())
    def replay(self, records: list[tuple[int, float, float]], as_mappings: bool) -> None:
        log = self.log_of(records)
        keys = ("explore", "propensity", "loss")
        given = [dict(zip(keys, each, strict=True)) for each in log] if as_mappings else log
        assert self.learner.replay(given, unrandomised=True) == len(records)
        for (arm, propensity, _), (_, _, loss) in zip(records, log, strict=True):
            self.model.learn(arm, 1 / propensity, loss, list(range(self.model.arms)))

    @rule(records=RECORDS, propensity=BAD_PROPENSITIES, loss=BAD_LOSSES)
    def replay_with_a_bad_end(
        self, records: list[tuple[int, float, float]], propensity: Any, loss: Any
    ) -> None:
        good = self.log_of(records)
        arm, fine = self.names[0], self.model.low
        self.refused(dc.ParameterError, lambda: self.learner.replay([*good, (arm, propensity, fine)]))
        self.refused(dc.LossError, lambda: self.learner.replay([*good, (arm, 0.5, loss)]))
        self.refused(dc.ArmError, lambda: self.learner.replay([*good, ("nowhere", 0.5, fine)]))
        self.refused(dc.ParameterError, lambda: self.learner.replay([*good, (arm, 0.5)]))

    def log_of(self, records: list[tuple[int, float, float]]) -> list[tuple[str | int, float, float]]:
        return [(self.names[arm], p, self.within_range(share)) for arm, p, share in records]

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

    # Calls that are always invalid

    @rule(count=BAD_COUNTS, available=BAD_SETS, unknown=UNKNOWN, seed=BAD_SEEDS)
    def call_badly(self, count: Any, available: Any, unknown: Any, seed: Any) -> None:
        learner = self.learner
        self.refused(dc.ParameterError, lambda: learner.decide(count))
        self.refused(dc.ArmError, lambda: learner.decide(available=available))
        self.refused(dc.ArmError, lambda: learner.explore(available=available))
        self.refused(dc.ArmError, lambda: learner.exploit(available=available))
        self.refused(dc.FeedbackError, lambda: learner.observe(unknown, self.model.low))
        self.refused(dc.FeedbackError, lambda: learner.forget(unknown))
        self.refused(dc.ParameterError, lambda: learner.fork(seed))

    @invariant()
    def agree(self) -> None:
        learner, model = self.learner, self.model
        assert learner.round == model.round
        assert learner.pending.forgotten == model.forgotten
        assert learner.pending == tuple(each.decision for each in model.pending)
        assert learner.estimates().tolist() == pytest.approx(model.estimates(self.policy), rel=1e-11)
        assert learner.arms == tuple(self.names)


@pytest.mark.filterwarnings("ignore::decoupled.UnseenArmWarning")
@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_any_sequence_of_calls_agrees_with_the_model(policy: dc.Policy) -> None:
    machine = type("Machine", (LearnerMachine,), {"policy": policy})
    # Policies share all but their laws, so most sequences are tried with one of them.
    examples = 40 if policy == dc.FTPL() else 10
    run_state_machine_as_test(
        machine, settings=settings(deadline=None, max_examples=examples, stateful_step_count=40)
    )

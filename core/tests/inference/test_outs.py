"""Arms that are out: the bet of each arm against the leader by its definition, closed testing by
all subsets, epochs, and that no round costs more than everything.
"""

import json
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decoupled.errors import StateError
from decoupled.inference import Sequences, verdict
from decoupled.inference.comparisons import weighted_evidence
from decoupled.inference.outs import closed_evidence
from decoupled.inference.sums import Observation, share_of_batch
from decoupled.kernels.stakes import PRIOR, STAKES
from support.betting import bet_by_law, drawn, fed, labelled, level_of

ARMS = 3


def money_of(seen: list[Observation], width: float = 1.0, *, laws: bool = False) -> Any:
    """What the bet of each arm has won after each round, by the definition; with `laws`, only
    rounds with a law count.
    """
    totals, counts = [0.0] * ARMS, [0] * ARMS
    won = np.tile(PRIOR, (ARMS, 1))
    found = []
    for each in seen:
        if each.law is not None:
            available = [arm for arm in range(ARMS) if each.law[arm] > 0.0]
        else:
            available = list(range(ARMS)) if each.available is None else list(each.available)
        means = {arm: (totals[arm] + 0.5) / (counts[arm] + 1) for arm in available}
        leader = min(available, key=lambda arm: (means[arm], arm))
        for arm in available:
            if arm == leader or len(available) < 2 or (laws and each.law is None):
                continue
            if each.law is not None:
                level = level_of(arm, leader, totals, counts)
                z, _ = bet_by_law(each, arm, leader, level, width)
            else:
                assert each.weight is not None
                gain = (each.explore == arm) * each.loss
                gain += (each.explore == leader) * (1.0 - each.loss)
                z = (each.weight * gain - 1.0) / len(available)
            assert z >= -1.0 - 1e-12
            won[arm] *= 1.0 + STAKES * z
        totals[each.explore] += 0.5 + width * (each.loss - 0.5)
        counts[each.explore] += 1
        found.append(won.sum(axis=1))
    return np.array(found)


@pytest.mark.parametrize("label_share", [1.0, 0.25])
@pytest.mark.parametrize("drift", [True, False])
def test_what_was_won_is_that_of_the_definition(label_share: float, drift: bool) -> None:
    seen = drawn(300, [0.3, 0.5, 0.6])
    first = next(number for number, each in enumerate(seen) if each.law is not None)
    seen = seen[first:]  # without drift, the first round says whether laws are known
    if label_share < 1.0:
        seen = labelled(seen, label_share)
    sequences = fed(seen, ARMS, drift=drift, label_share=label_share)
    money = money_of(seen, 2.0 / label_share - 1.0)
    assert np.exp(sequences.sums.outs.evidence()) == pytest.approx(money[-1])


def test_an_arm_is_out_when_its_money_reaches_the_number_of_arms_over_its_risk() -> None:
    seen = drawn(900, [0.2, 0.5, 0.8], seed=2)
    money = money_of(seen)
    goal = ARMS / (0.05 * 0.5 * share_of_batch(0))
    first = {
        arm: int(np.flatnonzero(money[:, arm] >= goal)[0]) + 1
        for arm in range(ARMS)
        if (money[:, arm] >= goal).any()
    }
    assert len(first) == 2
    assert fed(seen, ARMS).sums.out_at == first


def closed(seen: list[Observation], goal: float) -> dict[int, int]:
    """When closed testing rules each arm out: all sets of arms with it and none that is out have a
    mean of at least the goal.
    """
    out: dict[int, int] = {}
    for number, money in enumerate(money_of(seen), 1):
        left = [arm for arm in range(ARMS) if arm not in out]
        for arm in left:
            others = [other for other in left if other != arm]
            sets = [(arm, *some) for size in range(ARMS) for some in combinations(others, size)]
            if all(np.mean(money[list(some)]) >= goal for some in sets):
                out[arm] = number
    return out


def test_without_drift_arms_are_out_by_closed_testing() -> None:
    seen = [each for each in drawn(2_500, [0.2, 0.5, 0.8], seed=2) if each.law is not None]
    expected = closed(seen, 1.0 / (0.05 * share_of_batch(0)))
    assert len(expected) == 2
    sequences = fed(seen, ARMS, drift=False)
    assert sequences.sums.out_at == expected
    found = verdict(sequences)
    assert (found.state, found.best, found.decided_at) == ("decided", 0, max(expected.values()))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(-5.0, 9.0), min_size=1, max_size=7))
def test_the_least_mean_is_that_over_all_subsets(logs: list[float]) -> None:
    money = np.exp(logs)
    for arm, found in enumerate(np.exp(closed_evidence(np.array(logs)))):
        others = [other for other in range(len(logs)) if other != arm]
        means = [
            money[[arm, *some]].mean()
            for size in range(len(logs))
            for some in combinations(others, size)
        ]
        assert found == pytest.approx(min(means))


CHANCES = st.floats(1e-6, 1.0)
SHARES = st.floats(0.0, 1.0)


@settings(max_examples=300, deadline=None)
@given(
    before=st.lists(st.tuples(st.integers(0, 2), SHARES), max_size=30),
    chances=st.tuples(CHANCES, CHANCES, CHANCES),
    explore=st.integers(0, 2),
    loss=st.one_of(st.sampled_from([0.0, 1.0]), SHARES),
    expected=st.one_of(st.sampled_from([0.0, 1.0]), SHARES),
    label_share=st.sampled_from([1.0, 0.5, 0.05, 0.001]),
    wanted=st.booleans(),
    has_law=st.booleans(),
)
def test_no_round_costs_more_than_everything(
    before: list[tuple[int, float]],
    chances: tuple[float, float, float],
    explore: int,
    loss: float,
    expected: float,
    label_share: float,
    wanted: bool,
    has_law: bool,
) -> None:
    """For every loss, law, level, judge and label: what a stake f has left is at least 1 - f of
    what it had, of every pair and of every bet against the leader.
    """
    law = np.array(chances) / sum(chances)
    width = 2.0 / label_share - 1.0
    sequences = Sequences(ARMS, risk=1e-12, label_share=label_share)
    for arm, past in before:
        mapped = 0.5 + (past - 0.5) / width
        sequences.update(arm, 3.0, mapped, law=[1.0 / 3.0] * 3)
    old = sequences.sums.copy()
    label = None
    if label_share < 1.0:
        estimate = expected + (loss - expected) / label_share if wanted else expected
        label = loss if wanted else None
        loss = min(max(0.5 + (estimate - 0.5) / width, 0.0), 1.0)
    weight = 1.0 / float(law[explore])
    if weight > 1e6:
        weight = 1e6
    sequences.update(
        explore, weight, loss, law=law if has_law else None, rho=label_share, label=label
    )
    new = sequences.sums
    least = np.log1p(-STAKES) - 1e-9
    for one in range(ARMS):
        for two in range(ARMS):
            if one != two:
                assert (new.pairs.log_won(one, two) - old.pairs.log_won(one, two) >= least).all()
    assert (np.log(new.outs.won / old.outs.won) >= least).all()


def test_the_stake_is_the_largest_that_a_round_can_lose() -> None:
    """The worst loss of a round costs a stake of f its share f, not less. With a bound that is 5 %
    off it would cost more or less than that.
    """
    for seed in range(20):
        rng = np.random.default_rng(seed)
        law = rng.dirichlet(np.ones(2))
        means = rng.random(2)
        left = []
        for explore in range(2):
            for loss in (0.0, 1.0):
                sequences = Sequences(2)
                for number in range(50):
                    arm = number % 2 if number < 48 else 0
                    sequences.update(arm, 2.0, float(means[arm]), law=[0.5, 0.5])
                before = sequences.sums.pairs.log_won(0, 1)
                sequences.update(explore, 1.0 / float(law[explore]), loss, law=law)
                left.append(np.exp(sequences.sums.pairs.log_won(0, 1) - before))
        assert np.min(left, axis=0) == pytest.approx(1.0 - STAKES)


# Epochs


def even(sequences: Sequences, rounds: int, seed: int, *means: float) -> None:
    """Arms that are not retired, explored with equal chances, with losses of 0 and 1."""
    rng = np.random.default_rng(seed)
    live = sequences.live
    law = np.zeros(sequences.count)
    law[live] = 1.0 / len(live)
    for _ in range(rounds):
        arm = int(rng.choice(live))
        sequences.update(arm, float(len(live)), float(rng.random() < means[arm]), law=law)


@pytest.mark.parametrize("drift", [True, False])
def test_arms_that_come_begin_an_epoch_and_those_that_are_out_stay_out(drift: bool) -> None:
    sequences = Sequences(2, drift=drift)
    even(sequences, 400, 1, 0.2, 0.8)
    assert verdict(sequences).out == (1,)
    sequences.add_arms(1)
    assert sequences.sums.outs.epoch == 1
    assert sequences.sums.outs.evidence().tolist() == pytest.approx([0.0] * 3)
    assert verdict(sequences).out == (1,)
    even(sequences, 1_500, 2, 0.5, 0.9, 0.1)
    found = verdict(sequences)
    assert (found.out, found.left) == ((0, 1), (2,))
    assert json.loads(json.dumps(sequences.to_dict())) == sequences.to_dict()
    again = Sequences.from_dict(sequences.to_dict())
    assert again.to_dict() == sequences.to_dict()


@pytest.mark.parametrize("drift", [True, False])
def test_an_arm_that_was_out_by_a_retired_leader_contends_again(drift: bool) -> None:
    sequences = Sequences(3, drift=drift)
    even(sequences, 500, 3, 0.1, 0.6, 0.6)
    assert verdict(sequences).out == (1, 2)
    sequences.retire(0)
    assert verdict(sequences).out == ()
    assert sequences.sums.outs.epoch == 1


def test_retiring_an_arm_that_never_led_changes_nothing() -> None:
    sequences = Sequences(3)
    for _ in range(4):  # so that arm 2 never leads
        for arm, loss in ((2, 1.0), (0, 0.0)):
            sequences.update(arm, None, loss)
    even(sequences, 500, 3, 0.1, 0.9, 1.0)
    assert verdict(sequences).out == (1, 2)
    sequences.retire(2)
    assert (verdict(sequences).out, sequences.sums.outs.epoch) == ((1,), 0)


def test_arms_that_take_turns_can_all_be_out_and_the_verdict_says_so() -> None:
    sequences = Sequences(2, drift=False)
    for number in range(6_000):
        best = 0 if number < 200 else 1
        arm = number % 2
        sequences.update(arm, 2.0, 0.1 if arm == best else 0.9, law=[0.5, 0.5])
    found = verdict(sequences)
    assert (found.state, found.left, found.out) == ("narrowed", (), (0, 1))
    assert found.text.startswith("every arm is out, each worse than a leader of its time")


def test_sums_of_another_version_are_refused_with_the_remedy() -> None:
    content = Sequences(2).to_dict()
    with pytest.raises(StateError, match="replay the log"):
        Sequences.from_dict({**content, "format": 2})


# Feedback that goes missing


def with_missing(shares: tuple[float, float], seed: int, rounds: int = 1_500) -> Sequences:
    """Two arms, of which these shares of the decisions have no loss."""
    rng = np.random.default_rng(seed)
    sequences = Sequences(2)
    law = np.array([0.5, 0.5])
    for _ in range(rounds):
        arm = int(rng.integers(2))
        loss = float(rng.random() < (0.5, 0.3)[arm])
        if rng.random() < shares[arm]:
            sequences.leave_out(Observation(arm, 2.0, 0.0, law=law))
        else:
            sequences.update(arm, 2.0, loss, law=law)
    return sequences


def test_a_verdict_waits_if_feedback_goes_missing_more_for_one_arm() -> None:
    found = verdict(with_missing((0.02, 0.2), 1), ["a", "b"])
    assert (found.state, found.out, found.sure) == ("open", (), None)
    assert found.text.startswith("withheld: feedback of b is missing in ")
    assert found.text.endswith("so declare an expired_loss or find out why")
    assert verdict(with_missing((0.1, 0.1), 1), ["a", "b"]).state == "decided"


def test_equal_shares_are_called_uneven_in_at_most_one_run_in_a_hundred() -> None:
    """At most 1 % of runs, so 8 or more of 200 have a probability below 0.1 %."""
    uneven = sum(with_missing((0.3, 0.3), seed, 300).missing.is_uneven for seed in range(200))
    assert uneven <= 7
    assert sum(with_missing((0.1, 0.5), seed, 300).missing.is_uneven for seed in range(20)) >= 18


@given(st.integers(0, 2**32 - 1), st.floats(0.5, 20.0))
@settings(max_examples=60, deadline=None)
def test_what_is_left_out_of_a_look_could_not_reach_its_goal(seed: int, least: float) -> None:
    luck = np.random.default_rng(seed)
    arms = 120
    sequences = Sequences(arms)
    means = luck.choice([0.1, 0.9], arms)
    for _ in range(int(luck.integers(1, 400))):
        arm = int(luck.integers(arms))
        sequences.update(arm, float(arms), float(luck.random() < means[arm]))
    live = np.arange(arms)
    exact, rivals = weighted_evidence(sequences.sums, live)
    quick, same_rivals = weighted_evidence(sequences.sums, live, least)
    assert rivals.tolist() == same_rivals.tolist()
    assert (quick[exact >= least] == exact[exact >= least]).all()
    assert ((quick == exact) | (quick == 0.0)).all()


def test_a_look_is_needed_for_arms_without_a_place_among_the_pairs() -> None:
    for arms, are_apart in ((100, False), (202, True)):
        sequences = Sequences(arms)
        assert sequences.sums.has_arms_apart == are_apart == bool(sequences.sums.apart)
        sequences.retire(0)
        sequences.add_arms(1)
        assert sequences.sums.has_arms_apart == bool(sequences.sums.apart)


def test_the_evidence_of_one_arm_is_that_among_all() -> None:
    sequences = Sequences(3)
    for n in range(50):
        sequences.update(n % 3, 3.0, [0.1, 0.5, 0.9][n % 3], law=[1 / 3] * 3)
    outs = sequences.sums.outs
    assert [float(outs.evidence_of(arm)) for arm in range(3)] == pytest.approx(outs.evidence())

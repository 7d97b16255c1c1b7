"""Theorem F, about contexts: its bounds by hand, and every step in random rounds, which a broken step fails."""

import math

import numpy as np
import pytest

import decoupled as dc
from decoupled_lab.theory import bounds
from decoupled_lab.theory.bounds.contexts import shared_numbers
from decoupled_lab.theory.bounds.ladder import ladder_numbers
from decoupled_lab.theory.inequality import Inequality, Sides, Tally
from decoupled_lab.theory.lemmas import contexts
from decoupled_lab.theory.moment import Moment
from decoupled_lab.theory.survey import drawn_contexts

STEPS = [each for each in vars(contexts).values() if isinstance(each, Inequality)]
POLICY = dc.ContextualLadder(segments=("s",), advisers=("mine",))


RNG = np.random.default_rng(2)
DRAWN = [sides for _ in range(60) for sides in drawn_contexts(RNG)]


def tallied(several: list[Sides]) -> dict[Inequality, int]:
    tally = Tally()
    tally.add(several, Moment(np.zeros(2), 1.0, 3.0))
    return {line.inequality: line.violations for line in tally}


def test_no_step_fails_in_random_rounds() -> None:
    assert tallied(DRAWN) == dict.fromkeys(STEPS, 0)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name[:30])
def test_a_broken_step_is_found(step: Inequality) -> None:
    shrunk = 0.5 if step is contexts.SQUARED else 0.9  # the others are nearly tight
    own = [each for each in DRAWN if each.inequality is step]
    broken = [each._replace(right=shrunk * np.asarray(each.right)) for each in own]
    assert tallied(broken)[step] > 0


def test_rungs_that_agree_have_no_disagreement() -> None:
    same = np.tile(np.array([0.2, 0.8]), (1, 3, 1))
    assert contexts.disagreement(same, np.array([0.2, 0.3, 0.5])) == pytest.approx(0.0)
    # Two rungs drawn at random differ with probability 1 - (0.4^2 + 0.6^2).
    leaders = np.array([[[1.0, 0.0], [0.0, 1.0]]])
    assert contexts.disagreement(leaders, np.array([0.4, 0.6])) == pytest.approx(0.48)


def test_the_greedy_bound_is_attained() -> None:
    # Two arms, each off by half of the gap, explored evenly: both sides are the gap.
    truth, gap = np.array([0.3, 0.5]), 0.2
    sides = list(contexts.greedy_sides(truth, np.array([0.4 + 1e-9, 0.4]), np.array([0.5, 0.5]), 1.0))
    for each in sides:
        assert each.left == pytest.approx(gap)
        assert each.right == pytest.approx(gap, rel=1e-6)
    assert [each.inequality for each in sides] == [contexts.GREEDY, contexts.GAPPED]


def test_f1_by_hand() -> None:
    costs, rate = {}, POLICY.hedge_rate
    for rung in POLICY.rung_names:
        none, some = (bounds.theorem_f1(apart, 2, POLICY, rung) for apart in (0.0, 500.0))
        # Half of the exploration is even, and of each ladder's one fiftieth.
        costs[rung] = (none - 1.0) / ((2.0 / 3.0 * rate + 1.0) * 2.0 / 0.51)
        assert some - none == pytest.approx(costs[rung] * math.sqrt(rate * 2.0 / 0.51 * 500.0))
    # Lambda = 1 + ln(1 / prior) / L0, and the priors sum to 1.
    assert sum(math.exp(-rate * (cost - 1.0)) for cost in costs.values()) == pytest.approx(1.0)


def test_many_arms_in_f1_by_hand() -> None:
    rate = POLICY.hedge_rate
    for arms, least in ((8, 56.14), (64, 1812.4), (1024, 48_861.9)):
        costs = []
        for rung in POLICY.rung_names:
            none, some = (bounds.theorem_f1(apart, arms, POLICY, rung) for apart in (0.0, 500.0))
            costs.append((some - none) / math.sqrt(rate * least * 500.0))
        priors = [math.exp(-rate * (cost - 1.0)) for cost in costs]
        assert sum(priors) == pytest.approx(1.0, abs=2e-3)
        assert priors[0] / priors[1] == pytest.approx(arms, rel=2e-3)  # 2 K / 2 against 1


def test_what_a_shared_exploration_changes() -> None:
    alone, shared = ladder_numbers(8), shared_numbers(8, POLICY)
    even = 0.125 + 0.875 * 0.02  # at the start, and each ladder has an even share of its own
    assert shared.share == 0.25  # when contextual rungs have earned everything
    assert shared.whole == pytest.approx(
        1.0 / (0.25 / alone.whole + 0.51 / 8)
    )  # all arms have more by then
    segment = shared_numbers(8, POLICY, "segments")
    assert segment.whole == pytest.approx(1.0 / (0.875 * 0.25 / 2.0 / alone.whole + even / 8))
    assert shared.low_cost == pytest.approx(8.0 / even)
    assert shared.low_cost < alone.low_cost
    assert shared.variance == pytest.approx(min(4.0 * alone.variance, 16.0 / even))
    assert shared.jump <= 8.0 / even
    # That of a segment has the least at the start, or at the end if there is much even exploration.
    assert segment.share == 0.875 * 0.25 / 2.0
    often = dc.ContextualLadder(segments=("s",), uniform_share=0.9)
    assert shared_numbers(8, often, "segments").share == pytest.approx(0.05)
    assert shared_numbers(2, POLICY, "segments") == shared_numbers(2, POLICY)
    # Two arms that are explored evenly alone: only the even share counts.
    evenly = shared_numbers(2, dc.ContextualLadder(uniform_share=1.0))
    assert (evenly.whole, evenly.jump, evenly.variance) == (2.0, 2.0, 4.0)
    # Without segments, the ladder has all the rest.
    assert shared_numbers(8, dc.ContextualLadder()).share == 0.5


def test_f2_grows_with_the_segments_and_f2b_does_not_grow_with_the_rounds() -> None:
    for segments, own, count in ((None, "pooled", 1), (9, "segments", 9)):
        terms = bounds.shared_terms(4, POLICY, own)
        hand = terms.factor * math.sqrt(count * 4 * 10_000) + count * terms.constant
        hand += bounds.theorem_f1(20_000.0, 4, POLICY, own)
        assert bounds.theorem_f2(10_000, 4, segments, POLICY) == pytest.approx(hand)
    assert bounds.theorem_f2b([0.3, 0.1], 5) > bounds.theorem_f2b([0.3, 0.1]) > 0.0


def test_f3_by_hand() -> None:
    assert bounds.theorem_f3(1_000, 2, 8.0) == pytest.approx(math.sqrt(2 * 2 * 1_000 * 8.0 / 0.51))
    assert bounds.theorem_f3(1_000, 8, 8.0) == pytest.approx(math.sqrt(2 * 8 * 1_000 * 8.0 / 0.1425))
    assert bounds.theorem_f3(1_000, 2, 8.0, 1.0, gap=0.1) == pytest.approx(2 * 2 * 8.0 / 0.1)
    squared = bounds.forecaster_regret(1_000, 2, 3, norm=2.0, ridge=0.5)
    assert squared == pytest.approx(2 * (0.5 * 4.0 + 3 * math.log(1 + 1_000 / (0.5 * 3 * 2))))


def test_greedy_regression_stays_below_its_bound() -> None:
    """Linear means, uniform exploration: the sum of what the greedy arm loses, over 8 runs of 300 rounds."""
    rng, arms, size, rounds = np.random.default_rng(0), 3, 2, 300
    regrets, errors = [], []
    for _ in range(8):
        theta = rng.uniform(0.0, 0.5, (arms, size))
        grams, sums = np.tile(np.eye(size), (arms, 1, 1)), np.zeros((arms, size))
        lost = squared = 0.0
        for _ in range(rounds):
            x = rng.dirichlet(np.ones(size))
            seen = grams + np.outer(x, x)
            predicted = np.einsum("d,adk,ak->a", x, np.linalg.inv(seen), sums)
            truth = theta @ x
            lost += truth[predicted.argmin()] - truth.min()
            squared += float(((predicted - truth) ** 2).mean())
            arm = int(rng.integers(arms))
            grams[arm], sums[arm] = seen[arm], sums[arm] + x * (rng.random() < truth[arm])
        regrets.append(lost)
        errors.append(squared)
    squared_bound = bounds.forecaster_regret(rounds, arms, size)
    # The mean over explored arms is exact, so the first inequality holds on every path.
    for lost, squared in zip(regrets, errors, strict=True):
        assert lost <= bounds.theorem_f3(rounds, arms, squared, 1.0)
    assert np.mean(errors) < squared_bound
    assert np.mean(regrets) < bounds.theorem_f3(rounds, arms, squared_bound, 1.0)

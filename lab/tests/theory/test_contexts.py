"""Theorems F to H, about contexts and late, lost or chosen feedback: by hand, in the docs' numbers, and with teeth."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom

import decoupled as dc
from decoupled_lab.theory import bounds
from decoupled_lab.theory.bounds.contexts import shared_numbers
from decoupled_lab.theory.bounds.ladder import ladder_numbers
from decoupled_lab.theory.inequality import Inequality, Sides, Tally
from decoupled_lab.theory.lemmas import contexts, late
from decoupled_lab.theory.lemmas.switches import new_wins, switch_probability
from decoupled_lab.theory.moment import Moment
from decoupled_lab.theory.survey import drawn_arrival, drawn_contexts, drawn_ladder_rounds
from support.inequalities import HERE, check_teeth

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
    sides = list(
        contexts.greedy_sides(truth, np.array([0.4 + 1e-9, 0.4]), np.array([0.5, 0.5]), 1.0)
    )
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
    assert bounds.theorem_f3(1_000, 8, 8.0) == pytest.approx(
        math.sqrt(2 * 8 * 1_000 * 8.0 / 0.1425)
    )
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


C1, G = 4 * math.gamma(4 / 3), math.gamma(2 / 3)


def test_theorem_g1_by_hand() -> None:
    k, t, d, c = 8, 10_000, 40, 0.34
    s, z = (sum(i**power for i in range(1, k + 1)) for power in (-2 / 3, -4 / 3))
    leading = (c * C1 * (s / k ** (1 / 3)) ** 2 + G / c) * math.sqrt(k * t)
    flying = 2 * C1 * z * c * k ** (-1 / 6) * math.sqrt(t)
    flying += C1 * math.log(k) * (0.5 * math.log(t) + 1.37432)
    assert bounds.theorem_g1(t, k, d, dc.FTPL(c=c)) == pytest.approx(leading + d * flying, rel=1e-6)
    assert bounds.theorem_g1(t, k, 0) == bounds.theorem_a(t, k)


def test_theorem_g2_by_hand() -> None:
    c, theta, gamma, m, f, l0, kappa, r = 0.5, 0.01, 0.02, 0.5, 0.2, 3.0, 1.25, 8 / 3
    for policy, least, prior in ((dc.Ladder(), 8.0, 11.5), (dc.Ladder(memory=None), 2.0, 10.0)):
        for k in (2, 64):
            of, t, d = ladder_numbers(k, policy), 10_000, 10
            h, s, z, big = c * k ** (-1 / 6), of.sum, of.squares, of.whole
            grown = (1 + h / 2) ** 4
            stable = C1 * grown * h * max(r * big**2 / 8, (4 + kappa) / 4 * k ** (2 / 3))
            drift = 8 * z * k ** (-2 / 3)
            n = 4 * (1 + theta) * t + 4 + min(drift * t, (2 * h * k / gamma) ** 2 + drift)
            sigma = 2 * d + 14 / 3 * C1 * grown * z * h * 4 / math.sqrt(3) * d * math.sqrt(
                t / theta
            )
            sigma += 3 * h * d * k / gamma
            sigma += 4 * C1 * math.log(k) * d * math.log(4 + (4 + 4 * theta + drift) * t)
            first = 1 + (2 * stable + G / c * math.sqrt(k)) * math.sqrt(n) + 7 * k / gamma + big
            first += 4 * stable * (kappa**2 + drift / 4) + (r * grown + 2) * sigma
            v = max(s * of.chances / (1 - m), least / (m * f)) / (1 - gamma)
            regret = math.sqrt(l0 * t) * (math.sqrt(v) + 0.5) + (2 * l0 / 3 + 1) * (of.jump + 1)
            grows = math.log(regret) + 200 * math.log(10)
            moved = math.sqrt(1.5 * t * (grows / math.log(2) + 2)) + math.log(prior) * grows
            judged = d + 1 + (1 + math.log(prior) / l0) * regret + d * moved
            assert bounds.theorem_g2(t, k, d, policy) == pytest.approx(first + judged, rel=1e-9)


def test_the_numbers_of_the_theorem() -> None:
    plain = dc.Ladder(memory=None)
    found = [f"{bounds.theorem_g2(10_000, 8, delay, plain):.1e}" for delay in (0, 10, 40, 200)]
    assert found == ["3.3e+04", "4.1e+06", "1.6e+07", "8.1e+07"]
    # The factors of sqrt(K T) and of d sqrt(T).
    for k, whole, delayed in ((8, 75.4, 3_989.6), (64, 100.7, 2_790.5)):
        now, then = ([bounds.theorem_g2(n * 10**16, k, d, plain) for n in (1, 4)] for d in (0, 10))
        assert (now[1] - now[0]) / math.sqrt(k * 1e16) == pytest.approx(whole, abs=0.05)
        assert (then[1] - then[0] - now[1] + now[0]) / 1e9 == pytest.approx(delayed, abs=0.1)


def test_theorem_g3_grows_with_the_square_of_the_delay() -> None:
    short, long = (bounds.theorem_g3([0.125] * 7, delay) for delay in (10_000, 20_000))
    assert long / short == pytest.approx(4.0, rel=0.01)
    few, many = (bounds.theorem_g3([gap] * 7, 1) for gap in (1e-5, 1e-6))
    assert many / few == pytest.approx(10.0, rel=1e-2)
    # Without delay it is T2b but for a share: both pay for the same rung, T2b with a smaller drift.
    one = dc.Ladder(rungs=(0.5,), prior=(), top_two_share=0.0)
    assert 1.0 < bounds.theorem_g3([0.125] * 7, 0) / bounds.theorem_t2b([0.125] * 7, one) < 10.0


def test_theorem_g4_is_concave_and_has_its_order() -> None:
    def late_ladder(t: int) -> float:
        return bounds.theorem_g2(t, 8, 10)

    for bound in (
        late_ladder,
        lambda t: bounds.theorem_g1(t, 8, 10),
        lambda t: bounds.theorem_t2(t, 8),
    ):
        steps = [bound(t + 1_000) - bound(t) for t in range(1, 60_000, 1_000)]
        assert all(later <= earlier * (1.0 + 1e-9) for earlier, later in itertools.pairwise(steps))
        assert bounds.theorem_g4(bound, 10_000, 0.0) == bound(10_000)
    half = bounds.theorem_g4(late_ladder, 10**12, 0.5)
    assert half == pytest.approx(math.sqrt(2.0) * late_ladder(10**12), rel=0.01)


def test_theorem_h_is_the_bound_at_the_looks_over_the_share() -> None:
    paper = dc.FTPL(c=0.34)
    for share in (1.0, 0.1, 0.013):
        looks = math.ceil(share * 10_000)
        bound = bounds.theorem_a(looks, 8, c_exploit=0.34)
        assert bounds.theorem_h(10_000, 8, share, paper) == bound / share
        for hindsight in (False, True):
            found = bounds.theorem_h(10_000, 8, share, in_hindsight=hindsight)
            assert found == bounds.theorem_t2(looks, 8, in_hindsight=hindsight) / share
        # A lost decision is one without a look, so theorem G4 says the same.
        lost = bounds.theorem_g4(lambda t: bounds.theorem_t2(t, 8), 10_000, 1.0 - share)
        assert bounds.theorem_h(10_000, 8, share) == pytest.approx(lost, rel=3e-3)  # up to one look


def test_a_coin_divides_the_regret_of_the_looks_by_the_share() -> None:
    # The step of the proof that holds with equality for independent losses: E Reg_T = E Reg_N / s with N looks. 2,000 runs:
    # the difference lies within 4 standard errors but for one time in 15,000; without "/ s" it is 60 of them.
    world, share, rounds = dc.environments.Bernoulli(rewards=[0.7, 0.4, 0.4]), 0.2, 1_000
    coin = dc.Traffic(explore_share=share)
    sliced = dc.simulate(dc.FTPL(), world, rounds, 2_000, seed=1, traffic=coin).final_regret("FTPL")
    every = list(range(1, 401))
    curve = dc.simulate(dc.FTPL(), world, 400, 2_000, seed=2, checkpoints=every, curves="runs")
    looks = np.random.default_rng(3).binomial(rounds, share, 2_000)
    direct = curve.data.regret.sel(policy="FTPL").values[np.arange(2_000), looks - 1]
    error = math.hypot(sliced.std(), direct.std() / share) / math.sqrt(2_000)
    assert abs(sliced.mean() - direct.mean() / share) < 4.0 * error
    assert sliced.mean() - direct.mean() > 20.0 * error


@pytest.mark.parametrize("arms", [2, 8, 1_000])
def test_the_constant_of_the_lower_bound(arms: int) -> None:
    for looks in (arms, 4 * arms, 400 * arms):
        even, ratio = 1.0 - 1.0 / arms, looks / arms
        gap = np.linspace(0.0, 0.499, 100_000)
        divergence = -0.5 * np.log1p(-4.0 * gap**2)
        proved = (gap * (even - np.sqrt(ratio * divergence / 2.0))).max()
        found = bounds.looks_lower_bound(10**6, arms, looks) / 10**6
        assert 0.75 * proved < found <= proved


def test_the_lower_bound_is_below_what_a_good_policy_has_on_its_worst_gap() -> None:
    # Two arms: see each B / 2 times, then serve the better one. This is exact, by the binomial law of both sums.
    for looks in (20, 100, 500):
        half, worst = looks // 2, 0.0
        for gap in np.linspace(0.01, 0.49, 97):
            one, other = (binom.pmf(np.arange(half + 1), half, mean) for mean in (0.5, 0.5 - gap))
            below = np.cumsum(one) - one  # the worse arm has fewer losses
            worst = max(worst, gap * float(other @ (below + one / 2.0)))
        assert 1.0 < worst / (bounds.looks_lower_bound(10_000, 2, looks) / 10_000) < 6.0


def test_the_lemmas_hold_in_random_flights_and_have_teeth() -> None:
    rng = np.random.default_rng(4)
    arrivals = [drawn_arrival(rng, at) for at in drawn_ladder_rounds(rng, 60)]
    found = [(sides, HERE) for arrival in arrivals for sides in late.arrival_sides(*arrival)]
    check_teeth(found, [each for each in vars(late).values() if isinstance(each, Inequality)])


def test_new_wins_are_all_switches() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        before, after = rng.exponential(2.0, (2, 5))
        switched = switch_probability(before, after, 3.0)
        assert new_wins(before, after, 3.0).sum() == pytest.approx(switched, abs=1e-9)
    draws = (1.0 - rng.random((200_000, 5))) ** (-1 / 3)
    then, now = (draws - before).argmax(axis=1), (draws - after).argmax(axis=1)
    counted = np.bincount(now[then != now], minlength=5) / len(draws)
    # Five standard errors: a false alarm has a probability below 1e-5.
    assert np.abs(counted - new_wins(before, after, 3.0)).max() < 5.0 * 0.5 / math.sqrt(len(draws))

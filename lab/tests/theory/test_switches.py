"""Sticky serving: the constants of its bounds, and the exact probabilities with which a key or its rung changes."""

import math

import numpy as np
import pytest
from scipy.special import zeta

import decoupled as dc
from decoupled.kernels.winner_law import winner_law
from decoupled_lab.theory import bounds
from decoupled_lab.theory.bounds.switching import late_rate_constant, rate_fall_cost
from decoupled_lab.theory.lemmas import switches
from decoupled_lab.theory.lemmas.switches import cumulated_change, race_change, switch_probability
from decoupled_lab.theory.trajectory import run

HALF = bounds.Gate()
C1 = 4.0 * math.gamma(4.0 / 3.0)
Z = float(zeta(4.0 / 3.0))


def test_the_constants_are_those_of_the_theorem() -> None:
    # As printed, rounded up: 25.73 and 60.1.
    assert bounds.switch_constant() == pytest.approx(C1 * Z)
    few = sum(i ** (-4 / 3) for i in range(1, 9))
    assert bounds.switch_constant(arms=8) == pytest.approx(C1 * few)
    assert 25.72 < 2.0 * bounds.switch_constant() <= 25.73
    assert bounds.switch_constant(gate=HALF) == pytest.approx(14.0 / 3.0 * C1 * Z)
    assert 60.0 < bounds.switch_constant(gate=HALF) <= 60.1
    assert bounds.late_switch_constant(zeta=0.01) == pytest.approx(C1 * Z / 0.1967, rel=1e-3)
    assert late_rate_constant(4) == pytest.approx(8.0 * C1)
    assert late_rate_constant(64) == pytest.approx(C1 * math.log(64.0) / 0.1967, rel=1e-3)


@pytest.mark.parametrize(("alpha", "printed"), [(3.0, 1.375), (2.5, 1.094), (2.0, 0.848)])
def test_the_constant_of_the_falling_rates(alpha: float, printed: float) -> None:
    found = bounds.rate_fall_constant(alpha)
    assert printed - 0.001 < found <= printed
    rounds = np.arange(1.0, 400_000.0)  # four times as many as are summed one by one
    sums = np.cumsum(rate_fall_cost(1.0 - np.sqrt(rounds / (rounds + 1.0)), alpha))
    excess = sums - 0.5 * np.log(rounds)
    assert excess.max() <= found <= excess.max() + 1e-4


def test_a_small_alpha_has_its_largest_excess_in_round_one() -> None:
    assert bounds.rate_fall_constant(1.2) == pytest.approx(
        float(rate_fall_cost(1.0 - math.sqrt(0.5), 1.2))
    )
    assert bounds.rate_fall_constant(1e6) == math.inf


@pytest.mark.parametrize("horizon", [1, 10, 4_000, 300_000])
@pytest.mark.parametrize("alpha", [1.5, 3.0])
def test_the_bound_is_above_the_sum_of_its_rounds(horizon: int, alpha: float) -> None:
    arms, policy = 8, dc.FTPL(alpha=alpha, c=1.5)
    rounds = np.arange(1.0, horizon + 1.0)
    eta = 1.5 * arms ** (1.0 / alpha - 0.5) / np.sqrt(rounds)
    rates = bounds.curvature_constant(alpha) * math.log(arms)
    slowed = rates * rate_fall_cost(1.0 - np.sqrt(rounds / (rounds + 1.0)), alpha).sum()
    for gate in (None, HALF, bounds.Gate(1.0, 0.25)):
        growth = 1.0 if gate is None else (1.0 + eta) ** (alpha + 1.0)
        summed = float((bounds.switch_constant(alpha, gate, arms) * eta * growth).sum() + slowed)
        bound = bounds.switches(horizon, arms, policy, gate=gate)
        assert summed <= bound * (1.0 + 1e-12)
        assert horizon < 1_000 or bound < 1.02 * summed


def test_the_bound_by_hand() -> None:
    a, c, t, k = 1.37432, 2.0, 10_000.0, 8
    z = sum(i ** (-4 / 3) for i in range(1, k + 1))
    expected = 2.0 * C1 * z * c * k ** (-1 / 6) * math.sqrt(t) + C1 * math.log(k) * (
        0.5 * math.log(t) + a
    )
    assert bounds.switches(10_000, 8) == pytest.approx(expected, rel=1e-6)
    h = 0.5 * k ** (-1 / 6)
    gated = bounds.switches(10_000, 8, dc.FTPL(c=0.5), gate=HALF)
    moved = 60.1 * (1.0 + h) ** 4 * 2.0 * h * math.sqrt(t)
    assert gated < moved + 3.572 * math.log(k) * (0.5 * math.log(t) + 1.375)


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        (dc.Ladder(), "rung on means, which has an infinite rate"),
        (dc.Ladder(prior=(), top_two_share=0.0), "open"),
        (dc.FollowTheLeader(), "infinite rate"),
        (dc.CentredFTPL(), "hard gate"),
        (dc.CentredFTPL(schedule="losses"), "rates that fall with the losses"),
        (dc.TsallisINF(), "Pareto perturbations"),
    ],
)
def test_other_policies_have_no_bound(policy: dc.Policy, why: str) -> None:
    with pytest.raises(dc.ParameterError, match=f"policy.*{why}"):
        bounds.switches(1_000, 8, policy)


def drawn_move(rng: np.random.Generator, place: int) -> tuple[np.ndarray, np.ndarray, float]:
    """A state, a state after some move of all arms, and alpha."""
    arms, alpha = int(rng.integers(2, 9)), float(rng.uniform(1.1, 6.0))
    before = rng.exponential(2.0, arms) * (rng.random(arms) < 0.8)
    return (
        before,
        before + rng.normal(0.0, 0.3, arms) * (place % 2 or rng.random(arms) < 0.3),
        alpha,
    )


def test_the_probability_of_a_switch_is_that_of_drawn_keys() -> None:
    # 60 states of 40,000 keys; |z| above 5 in any of them has a probability below 4e-5, by the normal law.
    rng, keys = np.random.default_rng(0), 40_000
    for place in range(60):
        before, after, alpha = drawn_move(rng, place)
        draws = (1.0 - rng.random((keys, len(before)))) ** (-1.0 / alpha)
        moved = np.argmax(draws - before, axis=1) != np.argmax(draws - after, axis=1)
        p = switch_probability(before, after, alpha)
        assert abs(moved.mean() - p) <= 5.0 * math.sqrt(p * (1.0 - p) / keys) + 1e-4


def test_switches_of_single_moves() -> None:
    before = np.array([0.0, 0.4, 1.5, 3.0])
    law = winner_law(before, 3.0, False)
    for arm in range(4):
        risen = before.copy()
        risen[arm] += 0.7
        lost = law[arm] - winner_law(risen - risen.min(), 3.0, False)[arm]
        assert switch_probability(before, risen, 3.0) == pytest.approx(lost, abs=1e-11)
        assert switch_probability(risen, before, 3.0) == pytest.approx(lost, abs=1e-11)  # and back
    assert switch_probability(before, before + 5.0, 3.0) == pytest.approx(0.0, abs=1e-11)
    # Never less than the law itself moves.
    after = np.array([1.0, 0.4, 0.5, 3.5])
    moved = switches.total_variation(law, winner_law(after - after.min(), 3.0, False))
    assert switch_probability(before, after, 3.0) >= float(moved)


def test_rungs_of_drawn_keys() -> None:
    # 40 pairs of weights, two devices: |z| above 5 has a probability below 5e-5, by the normal law.
    rng, keys = np.random.default_rng(1), 40_000
    for _ in range(40):
        rungs = int(rng.integers(2, 6))
        before, after = rng.dirichlet(np.full(rungs, 0.7), size=2)
        races = rng.exponential(1.0, (keys, rungs))
        moved = np.argmin(races / before, axis=1) != np.argmin(races / after, axis=1)
        uniform = rng.random(keys)
        ends = (np.cumsum(weights)[:-1] for weights in (before, after))
        places = [np.searchsorted(each, uniform, side="right") for each in ends]
        for share, p in (
            (moved.mean(), race_change(before, after)),
            ((places[0] != places[1]).mean(), cumulated_change(before, after)),
        ):
            assert abs(share - p) <= 5.0 * math.sqrt(p * (1.0 - p) / keys) + 1e-4


def test_a_key_switches_less_than_fresh_draws_do_along_a_path() -> None:
    # Exact probabilities, so only the path is random; it is seeded.
    path = run(dc.FTPL(), dc.environments.Bernoulli([0.3, 0.5, 0.6, 0.7]), 400, 0)
    keyed = fresh = 0.0
    for t in range(path.horizon):
        before, after = (
            path.rates[s] * (path.estimates[s] - path.estimates[s].min()) for s in (t, t + 1)
        )
        keyed += switch_probability(before, after, 3.0)
        fresh += 1.0 - float(winner_law(before, 3.0, False) @ winner_law(after, 3.0, False))
    assert keyed < fresh / 4.0
    assert keyed < bounds.switches(400, 4)

"""Bounds compared with the numbers of the paper and with calculations by hand or by another route."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.special import zeta

import decoupled as dc
from decoupled_lab.theory import bounds
from decoupled_lab.theory.bounds.constants import (
    fall_ratio,
    jump_factor,
    largest_fall_factor,
    proportional_fall_factor,
)

E = math.e


@pytest.mark.parametrize("corrected", [False, True])
@pytest.mark.parametrize("zeta", [0.01, 0.1, 0.5])
def test_optimal_c_is_optimal(zeta: float, corrected: bool) -> None:
    def constant(log: float) -> float:
        return bounds.leading_constant(math.exp(log), zeta, corrected=corrected)

    best = minimize_scalar(constant, bounds=(-6, 2), method="bounded")
    found = bounds.optimal_c(zeta, corrected=corrected)
    assert found.c == pytest.approx(math.exp(best.x), rel=1e-4)
    assert found.leading_constant == pytest.approx(best.fun, rel=1e-9)


def test_theorem1_by_hand() -> None:
    # alpha = 2, c = 1, K = 4, T = 100: 8 * 4 * 3 e / 1 = 96 e, C = (16 + 4 (e - 2)) / 3, 2 Gamma(1/2) sqrt(4).
    expected = (96 * E + (8 + 4 * E) / 3) * 20 + 2 * math.sqrt(math.pi) * 2
    assert bounds.theorem1(100, 4, alpha=2.0, c=1.0) == pytest.approx(expected, rel=1e-14)


def test_constants_at_alpha_3() -> None:
    assert bounds.stability_constant(3.0, 2.0) == pytest.approx(144 * E)
    assert bounds.penalty_constant(3.0) == pytest.approx((36 + 9 * E) / 10)
    assert bounds.first_round_constant(3.0) == pytest.approx(1.5 * math.gamma(2 / 3))
    assert bounds.surrogate_sum_bound(27, 3.0) == pytest.approx(9.0)
    # 4 * 9 / 4 = 9 times c^2 K^(1/3) / zeta^2.
    assert bounds.early_rounds(27, 3.0, 0.5, 0.1) == pytest.approx(9 * 0.25 * 3 / 0.01)


@pytest.mark.parametrize("corrected", [False, True])
def test_theorem2_by_hand(corrected: bool) -> None:
    gaps, rounds, c, zeta = [0.5, 0.25], 3, 0.5, 0.2
    root = math.sqrt(2) if corrected else 1.0
    # alpha = 2: Z_1 = (2 e^2)^(1/2) (24 c e + 16 c (e - 1) / (1 - zeta)^3 + 2 / c) K^(1/4), Z_2 = Z_1^2 / 4.
    z1 = math.sqrt(2 * E**2) * (12 * E + 8 * (E - 1) / 0.8**3 + root * 4) * 3**0.25
    first = z1**2 / 4 * (2 + 4) * (1 + 1 / 2 + 1 / 3)
    per_round = 48 * E + (8 + 4 * E) / 3 * math.sqrt(2) / c
    second = 4 / (1 - math.exp(-0.5)) * per_round**2 * 3 / 0.25
    third = 2 * 2 * math.sqrt(math.pi) * math.sqrt(3) / c
    fourth = 2 * (4 * 3**0.25 * c / zeta) ** 2
    found = bounds.theorem2(gaps, rounds, alpha=2.0, c=c, zeta=zeta, corrected=corrected)
    assert found == pytest.approx(first + second + third + fourth, rel=1e-12)


def test_corollary_by_hand() -> None:
    gaps, c, zeta = [0.5, 0.25, 0.25], 0.3, 0.1
    f = (144 * c * E + (36 + 9 * E) / 5 / c) * (
        24 * c * E + 18 * c * (E - 1) / 0.9**4 + 1.5 / c
    ) ** 3
    lead = 2 * math.sqrt(32 * E**4 / 27 * f) * math.sqrt(4 / 0.25 * 10)
    second = (
        4 / (1 - math.exp(-0.5)) * (72 * c * E + (36 + 9 * E) / 10 * math.sqrt(2) / c) ** 2 * 16
    )
    third = 3 * math.gamma(2 / 3) * 2 / c
    fourth = 2 * 9 * c**2 * 4 ** (1 / 3) / zeta**2
    assert bounds.corollary(gaps, c, zeta) == pytest.approx(
        lead + second + third + fourth, rel=1e-12
    )


def test_corollary_follows_from_theorem2_over_time() -> None:
    # The corollary holds for any horizon. Theorem 3.2 grows with it, and they share all terms but the first.
    early, late = (bounds.theorem2([0.25] * 3, rounds) for rounds in (10, 100_000))
    assert early < late < bounds.theorem2([0.25] * 3, 10**7) < 1.01 * late


def test_a_zero_for_the_best_arm_may_be_among_the_gaps() -> None:
    assert bounds.corollary([0.0, 0.25]) == bounds.corollary([0.25])
    assert bounds.rouyer_seldin_order([0.25, 0.5, 0.0]) == 12.0


def test_the_others_by_hand() -> None:
    assert bounds.rouyer_seldin(100, 4, beta=0.5, c=2.0) == pytest.approx((2 + 2) * 20)
    assert bounds.zimmert_seldin(100, 4) == pytest.approx(81)
    assert bounds.lower_bound_order(100, 4) == 20.0


@pytest.mark.parametrize(
    "gaps", [[], [0.0], [0.0, 0.0, 0.1], [1.5], [-0.1], ["a"], [math.nan]], ids=str
)
def test_gaps_are_checked(gaps: list[float]) -> None:
    for function in (bounds.corollary, bounds.rouyer_seldin_order):
        with pytest.raises(dc.ParameterError, match="gaps"):
            function(gaps)


HALF = bounds.Gate()
POLICY = dc.ContextualLadder(segments=("s",))


def growth(bound: object, arms: int) -> float:
    """What multiplies sqrt(K T) in a bound, from two long horizons."""
    assert callable(bound)
    return float(bound(4 * 10**12) - bound(10**12)) / math.sqrt(arms * 1e12)


def test_the_shared_constants() -> None:
    assert bounds.curvature_constant(3.0) == pytest.approx(4.0 * math.gamma(4.0 / 3.0))
    assert bounds.ratio_sum(2.0) == pytest.approx(float(zeta(1.25)))
    assert bounds.rank_sum(3, 2.0) == pytest.approx(1.0 + 2.0**-0.75 + 3.0**-0.75)
    assert bounds.rank_share(10**6) < bounds.rank_share(None) == 3.0
    assert bounds.rank_sum(64) < bounds.surrogate_sum_bound(64)  # the paper's bound on the same sum


@pytest.mark.parametrize(("delta", "expected"), [(0.25, 1.48), (0.5, 8.0 / 3.0), (0.75, 8.0)])
def test_the_factor_of_a_proportional_fall(delta: float, expected: float) -> None:
    by_integral = quad(lambda v: 2.0 * (1.0 - v) * (1.0 - delta * v) ** -4.0, 0.0, 1.0)[0]
    assert proportional_fall_factor(delta, 3.0) == pytest.approx(by_integral, rel=1e-10)
    assert by_integral == pytest.approx(expected, abs=0.005)


@pytest.mark.parametrize(("x", "y"), [(0.3, 0.0), (0.5, 2.0), (2.0, 0.5), (30.0, 21.35)])
@pytest.mark.parametrize("alpha", [1.5, 3.0])
def test_the_factor_of_one_jump(x: float, y: float, alpha: float) -> None:
    def integrand(v: float) -> float:
        s = x * v
        ratio = (1.0 + max(s, y)) / (1.0 + max(y - s, 0.0))
        return 2.0 * (1.0 - v) * math.pow(ratio, alpha + 1.0)

    by_quad = sum(
        quad(integrand, *ends)[0] for ends in ((0.0, min(y / x, 1.0)), (min(y / x, 1.0), 1.0))
    )
    assert jump_factor(x, y, alpha) == pytest.approx(by_quad, rel=1e-8)
    assert fall_ratio(x, y) == pytest.approx((1.0 + max(x, y)) / (1.0 + max(y - x, 0.0)))


def test_gates() -> None:
    assert HALF.fall_factor(3.0) == pytest.approx(8.0 / 3.0)
    assert round(bounds.Gate(3.0, 0.5).fall_factor(), 1) == 63.3
    # The hard gate of centred FTPL: falls of 60 (B = 1) and 30 (B = 1/2), whatever the gap.
    assert largest_fall_factor(lambda gap: 60.0, 3.0) == pytest.approx(9.5e5, rel=0.01)
    assert largest_fall_factor(lambda gap: 30.0, 3.0) == pytest.approx(6.6e4, rel=0.01)
    for gate in (bounds.Gate(0.7, 0.2), bounds.Gate(3.0, 0.5)):
        found = gate.fall_factor(2.0)
        gaps = np.random.default_rng(0).exponential(1.0, 400) * 10.0 ** np.linspace(-2.0, 3.0, 400)
        assert max(jump_factor(gate.largest_fall(y), y, 2.0) for y in gaps) <= found * (1.0 + 1e-9)
        assert found <= (1.0 + gate.a / (1.0 - gate.delta)) ** 3.0
    for arguments in ((0.4, 0.5), (0.5, 1.0), (0.5, 0.0), (math.inf, 0.5)):
        with pytest.raises(dc.ParameterError, match=r"(a|delta) ="):
            bounds.Gate(*arguments)


def test_theorem_a() -> None:
    best = [
        bounds.centred_constant(k, c_exploit=bounds.optimal_c_exploit(k), gate=None)
        for k in (8, None)
    ]
    assert [round(value, 1) for value in best] == [8.1, 13.2]
    assert bounds.curvature_constant() * 9.0 == pytest.approx(32.2, abs=0.06)
    stability = 1.5 * 3.0 * math.gamma(1.5) * sum(i**-0.75 for i in range(1, 5)) ** 2 / 2.0
    by_hand = 20.0 * (stability + math.sqrt(math.pi) / 1.5)
    assert bounds.theorem_a(100, 4, 2.0, 1.5) == pytest.approx(by_hand)
    assert all(
        bounds.theorem_a(1_000, k) < bounds.theorem1(1_000, k) / 6.0 for k in (2, 8, 64, 1024)
    )


@pytest.mark.parametrize("gate", [None, HALF])
def test_the_optimal_c_of_theorems_a_and_b(gate: bounds.Gate | None) -> None:
    found = minimize_scalar(
        lambda log: bounds.centred_constant(8, 2.5, math.exp(log), gate),
        bounds=(-6, 2),
        method="bounded",
    )
    assert bounds.optimal_c_exploit(8, 2.5, gate) == pytest.approx(math.exp(found.x), rel=1e-4)


@pytest.mark.parametrize(
    ("c", "constants", "low"),
    [
        (3.0, (48.3, 97.0, 164.5, 257.6), (14_300, 39_000, 122_200)),
        (0.5, (10.7, 18.8, 30.0, 45.6), (95, 409, 1_949)),
    ],
)
def test_theorem_b(c: float, constants: tuple[float, ...], low: tuple[float, ...]) -> None:
    found = [bounds.centred_constant(arms, c_exploit=c) for arms in (2, 8, 64, None)]
    assert [round(value, 1) for value in found] == list(constants)
    assert all(value < 394.0 for value in found)  # the paper's, at c = 2
    for arms, expected in zip((2, 8, 64), low, strict=True):
        value = bounds.low_order_term(arms, c_exploit=c)
        assert value == pytest.approx(expected, rel=0.005)
        assert value < bounds.low_order_term(arms, c_exploit=c, closed=True)
        whole = found[(2, 8, 64).index(arms)] * math.sqrt(arms * 1e4) + value
        assert bounds.theorem_b(10_000, arms, c_exploit=c) == pytest.approx(whole)


def test_the_low_order_term_is_its_series() -> None:
    arms, alpha, c, gate = 5, 2.0, 0.7, bounds.Gate(0.6, 0.3)
    t = np.arange(1.0, 4e6)
    eta, total = c / np.sqrt(t), sum(i**-0.75 for i in range(1, 6))
    share = np.minimum(1.0, eta * total / 0.3)
    curvature = 3.0 * math.gamma(1.5)
    drift = 3.0 * curvature * eta * (1.0 + eta) ** 3 * np.minimum(zeta(1.5), 5 * share**2)
    rest = 0.5 * curvature * gate.fall_factor(2.0) * eta * ((1.0 + eta) ** 3 - 1.0)
    rest *= total * np.minimum(total, 5 * share)
    by_hand = float(np.minimum(3.0, drift).sum() + rest.sum())
    found = bounds.low_order_term(arms, alpha, c, gate)
    assert by_hand < found < 1.005 * by_hand  # rounded up, and the rounds after four million
    for size in ((2, 1.3), (500, 3.0)):
        assert bounds.low_order_term(*size, 0.5, closed=True) > bounds.low_order_term(*size)


def test_theorem_c() -> None:
    c, bracket = bounds.papers_bracket()
    assert bracket < bounds.papers_bracket(0.2).leading_constant
    assert bounds.gap_constant(3.0, c) + bounds.leading_constant(c) == pytest.approx(bracket)


def test_the_constants_of_theorem_c_by_hand() -> None:
    alpha, c, split, gate = 2.0, 0.4, 0.2, bounds.Gate(0.5, 0.25)
    found = bounds.constrained_constants(4, alpha, c, split, gate)
    curvature, factor = 3.0 * math.gamma(1.5), gate.fall_factor(2.0)
    total = sum(i**-0.75 for i in range(1, 5))
    share = total / 4.0**0.25

    def any_state(growth: float) -> float:
        jumps = 0.2 * curvature * factor * growth * share**2
        return float(jumps + 1.2 * curvature * growth * zeta(1.5) / 2.0 + math.sqrt(math.pi) / 0.4)

    late = 1.2**3
    on_event = (
        0.4 * share * (late * (curvature * factor / 2 + 3 * curvature / total) + 0.8**-3)
        + 2.0 / 0.4
    )
    assert found.early == pytest.approx(any_state(1.4**3))  # K^(1/alpha - 1/2) = 1 at alpha = 2
    assert found.any_state == pytest.approx(any_state(late))
    assert found.on_event == pytest.approx(on_event)
    assert found.first_round == math.ceil((0.4 * (total + 1) / 0.2) ** 2)
    gaps, horizon, switch = [0.5, 0.25, 0.125], 500, 100
    tail = sum(1.0 / t for t in range(101, 501))
    by_hand = (
        4 * found.early * math.sqrt(4 * found.first_round)
        + 4 * found.any_state * 20.0
        + 2.0**2 * 8.0 / 4.0 * found.on_event**2 * 2.0 * (2 + 4 + 8) * tail
        + 4 * found.any_state**2 * 4 / (0.5 * (1 - math.exp(-0.5)) * 0.125)
    )
    assert bounds.theorem_c(gaps, horizon, alpha, c, split, gate, switch=switch) == pytest.approx(
        by_hand
    )


def test_theorem_c_is_constant_in_the_horizon_above_alpha_2() -> None:
    gaps = [0.25] * 7
    always = bounds.theorem_c(gaps)
    assert bounds.theorem_c(gaps, 10**9) <= always
    assert bounds.theorem_c(gaps, 10**14) == pytest.approx(always, rel=0.01)
    with pytest.raises(dc.ParameterError, match="horizon"):
        bounds.theorem_c(gaps, alpha=2.0)
    assert bounds.theorem_c(gaps, 10**16, alpha=2.0) > 1.1 * bounds.theorem_c(
        gaps, 10**14, alpha=2.0
    )
    # The default T0 is the best one.
    for switch in (3_000, 10**5, 10**7, 10**9):
        assert bounds.theorem_c(gaps) <= bounds.theorem_c(gaps, switch=switch)
    assert always < bounds.constrained_bracket(8) * 32 + 4 * 45.9 * math.sqrt(8 * 274) + 1.0


def test_theorem_e1() -> None:
    assert bounds.prior_factor(0.05, 3.0) == pytest.approx(2.0, abs=0.002)
    assert bounds.prior_factor(1.0) == 1.0
    total = bounds.rank_sum(8)
    by_hand = math.sqrt(1.5 * (total * bounds.ratio_sum() + 1) * 900) + 3 * (total + 1)
    assert bounds.mixing_overhead(900, 8) == pytest.approx(by_hand)
    assert bounds.theorem_e1(10.0, 5.0, prior=1.0) == 15.0


def test_theorem_e2() -> None:
    found = [growth(lambda t, k=arms: bounds.theorem_e2(t, k), arms) for arms in (2, 8, 64)]
    assert [round(value, 1) for value in found] == [15.2, 22.1, 31.9]
    assert growth(lambda t: bounds.theorem_e2(t, 10**7), 10**7) < 45.6
    assert all(value < 394.4 / 8 for value in found)
    # As printed: 4.763 s_K^2 + 2.71 + 2 sqrt(1.5 (S_K Z2 + 1) / K), and 6 (S_K + 1) beside C_low.
    total, share = bounds.rank_sum(8), bounds.rank_share(8)
    lead = 4.763 * share**2 + 2.71 + 2 * math.sqrt(1.5 * (total * bounds.ratio_sum() + 1) / 8)
    whole = lead * math.sqrt(8 * 1e4) + bounds.low_order_term(8) + 6 * (total + 1)
    assert bounds.theorem_e2(10_000, 8) == pytest.approx(whole, rel=1e-3)


def test_theorem_e3() -> None:
    gaps, total = [0.125] * 7, bounds.rank_sum(8)
    factor = bounds.prior_factor(0.05)
    mixing = factor**2 * 3 * (8 * total + 2) / 0.125 + 6 * factor * (total + 1)
    assert bounds.theorem_e3(gaps) == pytest.approx(2 * bounds.theorem_c(gaps) + mixing)


def test_where_a_bound_falls_below_its_horizon() -> None:
    assert bounds.useful_from(lambda horizon: 5.0) == 6

    def first_useful(arms: int) -> int:
        return bounds.useful_from(lambda horizon: bounds.theorem_e2(horizon, arms))

    first = {arms: first_useful(arms) for arms in (8, 64)}
    assert first == {8: 4_727, 64: 68_972}
    for arms, horizon in first.items():
        assert bounds.theorem_e2(horizon, arms) < horizon
        assert bounds.theorem_e2(horizon - 1, arms) >= horizon - 1
    assert round(bounds.useful_from(lambda t: bounds.theorem1(t, 8)), -4) == 1_240_000


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: bounds.theorem1(0, 8), "horizon"),
        (lambda: bounds.theorem1(10, 1), "arms"),
        (lambda: bounds.theorem2([0.1], 10, alpha=3.5), "alpha"),  # the theorem ends at 3
        (lambda: bounds.optimal_c(1.0), "zeta"),
        (lambda: bounds.rouyer_seldin(10, 8, beta=1.0), "beta"),
        (lambda: bounds.leading_constant(-1), "c = -1"),
        (lambda: bounds.constrained_constants(8, zeta=0.6), "zeta"),
        (lambda: bounds.theorem_e1(1.0, 1.0, prior=0.0), "prior"),
        (lambda: bounds.theorem_c([0.25] * 7, switch=1), "switch"),
        (lambda: bounds.theorem_f1(10.0, 2, dc.Ladder()), "policy.*must be a ContextualLadder"),  # type: ignore[arg-type]
        (lambda: bounds.theorem_f1(10.0, 2, POLICY, "linear"), "rung = 'linear'"),
        (lambda: bounds.theorem_f1(-1.0, 2), "disagreement"),
        (
            lambda: bounds.theorem_f2(10, 2, 5, dc.ContextualLadder(numbers=("x",))),
            "has no segments",
        ),
        (lambda: bounds.theorem_f3(10, 2, 1.0, gap=0.0), "gap"),
        (lambda: bounds.forecaster_regret(10, 2, 0), "features"),
        (lambda: bounds.shared_terms(5_000), "arms"),
        (lambda: bounds.shared_terms(8, dc.ContextualLadder(), "segments"), "ladder = 'segments'"),
        (lambda: bounds.theorem_g1(100, 8, 1, dc.CentredFTPL()), "policy"),  # type: ignore[arg-type]
        (lambda: bounds.theorem_g1(100, 8, -1), "delay"),
        (lambda: bounds.theorem_g2(100, 8, 1, dc.Ladder(least_spread=0.0)), "least_spread"),
        (lambda: bounds.theorem_g2(100, 8, 1, dc.Ladder(uniform_share=0.0)), "uniform_share"),
        (lambda: bounds.theorem_g3([0.1], 1, dc.Ladder()), "policy"),
        (lambda: bounds.theorem_g4(float, 100, 1.0), "lost"),
        (lambda: bounds.theorem_h(100, 8, 0.0), "share"),
        (lambda: bounds.theorem_h(100, 8, 1.1), "share"),
        (lambda: bounds.theorem_h(100, 8, 0.5, dc.CentredFTPL()), "policy"),  # type: ignore[arg-type]
        (lambda: bounds.theorem_h(100, 8, 0.5, dc.FTPL(), in_hindsight=True), "in_hindsight"),
        (lambda: bounds.looks_lower_bound(100, 8, 7), "looks"),
        (lambda: bounds.looks_lower_bound(100, 8, 101), "looks"),
        (lambda: bounds.theorem_t2(1_000, 8, dc.Ladder(uniform_share=0.0)), "uniform_share"),
        (lambda: bounds.ladder_terms(8, dc.FTPL()), "Ladder"),  # type: ignore[arg-type]
        (lambda: bounds.theorem_t2b([0.1], dc.Ladder(least_spread=0.0)), "least_spread"),
    ],
)
def test_arguments_are_checked(call: Callable[[], float], said: str) -> None:
    with pytest.raises(dc.ParameterError, match=said):
        call()

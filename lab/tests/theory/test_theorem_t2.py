"""Theorem T2: its lemmas hold in random rounds and along paths of the shipped policy, and every check has teeth."""

import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad

import decoupled as dc
from decoupled_lab import theory
from decoupled_lab.theory import bounds
from decoupled_lab.theory.bounds.ladder import ladder_numbers
from decoupled_lab.theory.inequality import OURS, Inequality, Sides
from decoupled_lab.theory.lemmas import ladder
from decoupled_lab.theory.rounds import LadderRound, squared_chances
from decoupled_lab.theory.survey import drawn_ladder_rounds
from decoupled_lab.theory.trajectory import LadderPath, run_ladder
from support.inequalities import HERE, check_teeth, line_of

TWO_RUNGS = dc.Ladder(prior=(0.05, 0.95), mean_rate=0.1, top_two_share=0.0)
NO_MEMORY = dc.Ladder(memory=None)
INEQUALITIES = [
    each for each in vars(ladder).values() if isinstance(each, Inequality) and each.status == OURS
]


def table(losses: Any) -> dc.environments.LossTable:
    return dc.environments.LossTable(np.asarray(losses, np.float64), noise="none")


def growing(arms: int, rounds: int) -> dc.environments.LossTable:
    """Losses whose scale grows by half every five rounds, from 1e-5 to 1, and alternate below and above."""
    scale = np.minimum(1e-5 * 1.5 ** (np.arange(rounds) // 5), 1.0)
    signs = np.random.default_rng(1).choice([-1.0, 1.0], (rounds, arms))
    return table(0.5 + 0.5 * scale[:, None] * signs)


def rising(arms: int, rounds: int) -> dc.environments.LossTable:
    """One level for all arms that rises in small steps, so that B - a is far above every surprise."""
    return table(np.tile(np.linspace(0.1, 0.9, rounds)[:, None], (1, arms)))


def changing(arms: int, rounds: int) -> dc.environments.LossTable:
    """The best arm becomes the worst halfway, so that the recent leader is another arm than the leader."""
    losses = np.random.default_rng(2).random((rounds, arms)) < np.linspace(0.1, 0.9, arms)
    return table(np.where(np.arange(rounds)[:, None] < rounds // 2, losses, losses[:, ::-1]))


WORLDS: dict[str, dc.environments.Environment] = {
    "alternating": dc.environments.Alternating(6, 0.2),
    "punishing": dc.environments.PunishLast(5),
    "growing": growing(4, 151),
    "rising": rising(3, 151),
    "flat": table(np.full((151, 3), 0.3)),
    "changing": changing(4, 151),
}


@cache
def played(world: str, policy: dc.Ladder | None = None) -> LadderPath:
    return run_ladder(dc.Ladder() if policy is None else policy, WORLDS[world], 150, 0)


def path_sides() -> list[Sides]:
    return [
        sides
        for world in WORLDS
        if world != "flat"
        for _, sides in ladder.whole_ladder(played(world))
    ]


def fresh(rounds: list[LadderRound]) -> list[LadderRound]:
    """The same rounds without what they have computed, which a broken constant must reach."""
    return [replace(each) for each in rounds]


@cache
def _drawn() -> list[LadderRound]:
    return list(drawn_ladder_rounds(np.random.default_rng(3), 60))


def round_sides() -> list[Sides]:
    along = [each for world in WORLDS for each in played(world).rounds[::40]]
    return [sides for at in fresh([*_drawn(), *along]) for sides in ladder.ladder_sides(at)]


ONE_RUNG = dc.Ladder(rungs=(1.0,), prior=(), top_two_share=0.0)


@pytest.mark.parametrize("policy", [None, NO_MEMORY, dc.Ladder(memory=10), TWO_RUNGS, ONE_RUNG])
@pytest.mark.parametrize("world", WORLDS)
def test_the_shipped_policy_is_that_of_the_theorem(world: str, policy: dc.Ladder | None) -> None:
    found = played(world, policy)
    for at, law, baseline in zip(found.rounds, found.laws, found.baselines, strict=True):
        np.testing.assert_allclose(at.p, law, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(at.b, baseline, rtol=1e-12, atol=1e-15)
    for _, sides in ladder.whole_ladder(found):
        line = line_of([(sides, HERE)], sides.inequality)
        assert not line.violations, sides


def test_no_round_breaks_a_lemma_and_a_broken_side_is_noticed() -> None:
    found = [(sides, HERE) for sides in (*round_sides(), *path_sides())]
    exact = [each for each in INEQUALITIES if "1e-12" in each.name]  # two that hold up to rounding
    assert all(line_of(found, each).violations == 0 for each in exact)
    check_teeth(found, [each for each in INEQUALITIES if each not in exact])


def test_two_leaders_differ_where_the_best_arm_changes() -> None:
    rounds = played("changing", dc.Ladder(memory=10)).rounds
    assert sum(len(set(at.leaders)) > 1 for at in rounds) > 10
    assert all(at.shown.sum() == pytest.approx(1.0) for at in rounds)
    assert {len(at.leaders) for at in played("changing", NO_MEMORY).rounds} == {1}


def test_the_unit_counts_the_range_of_the_gate() -> None:
    # Change (c): with the surprises alone as the unit, (I1) fails while the level rises in small steps.
    found = played("rising")
    seen = [float(at.surprises[arm]) for at, arm in zip(found.rounds, found.explored, strict=True)]
    largest = np.maximum.accumulate(seen)
    assert (np.array(found.ranges[1:]) > 2.0 * largest).any()
    assert (np.array(found.ranges) <= np.array(found.units) * (1.0 + 1e-12)).all()


def test_the_first_loss_only_sets_the_level() -> None:
    found = played("alternating")
    assert not found.estimates[0].any()
    assert (found.units[0], found.counts[0], found.regrets[0]) == (0.0, 1e-24, 0.0)
    assert found.rounds[0].mean == found.rounds[0].least


def test_flat_losses_have_no_unit_up_to_rounding() -> None:
    found = played("flat")  # (I6)
    assert max(found.units) < 1e-15
    assert np.ptp(np.array(found.estimates), axis=1).max() < 1e-12


@pytest.mark.parametrize(
    "shifts", [[0.0, 0.0, 0.0], [0.0, 0.3, 5.0, 5.0], [0.0, 2e3], [0.7, 0.0, 40.0]]
)
def test_the_mean_square_of_a_chance(shifts: list[float]) -> None:
    found = squared_chances(np.array(shifts), 3.0)
    for arm, shift in enumerate(shifts):
        others = [each - shift for place, each in enumerate(shifts) if place != arm]
        low = 1.0 + shift

        def density(t: float, low: float = low, others: list[float] = others) -> float:
            wins = math.prod(1.0 - math.pow(max(low / t + other, 1.0), -3.0) for other in others)
            return 6.0 * t**5 * math.pow(low, -6.0) * wins

        by_quad = quad(density, 0.0, 1.0, points=[0.9, 0.99, 0.999], limit=400)[0]
        assert found[arm] == pytest.approx(by_quad, rel=1e-6)
    rng = np.random.default_rng(0)
    draws = (1.0 - rng.random((200_000, len(shifts)))) ** (-1.0 / 3.0) - np.array(shifts)
    rival = np.delete(draws, 1, axis=1).max(axis=1)
    chance = np.maximum(1.0, rival + shifts[1]) ** -3.0
    assert (
        abs((chance**2).mean() - found[1])
        < 5.0 * (chance**2).std() / math.sqrt(len(chance)) + 1e-12
    )


def test_the_check_of_a_ladder() -> None:
    report = theory.check(WORLDS["growing"], dc.Ladder(), horizon=140, rounds=20)
    assert report.surprises == []
    sources = {line.inequality.source for line in report.lines}
    assert {
        "ladder, L1",
        "ladder, L7",
        *(f"ladder, L{n}" for n in (9, 10, 11, 12, 13, 14)),
    } <= sources
    quick = theory.check(WORLDS["growing"], dc.Ladder(), horizon=20, rounds=3, whole_path=False)
    assert "ladder, L1" not in {line.inequality.source for line in quick.lines}


def by_hand(arms: int, memory: bool) -> tuple[float, float]:
    """A(K) and C(K) from the text of the theorem, for the defaults of `Ladder`."""
    c, theta, gamma, m, f, l0, kappa = 0.5, 0.01, 0.02, 0.5, 0.2, 3.0, 1.25
    h, c1, g = c * arms ** (-1 / 6), 4 * math.gamma(4 / 3), math.gamma(2 / 3)
    ranks = range(1, arms + 1)
    s, z = sum(i ** (-2 / 3) for i in ranks), sum(i ** (-4 / 3) for i in ranks)
    zw = sum(2 * i ** (-1 / 3) / (i + 1) for i in ranks)
    big, grown = s / ((1 - gamma) * (1 - m)), (1 + h / 2) ** 4
    lam = 1 + math.log(11.5 if memory else 10) / l0
    stability = max(c1 * grown * (8 / 3) / 8 * h * big**2, c1 * grown * h * arms ** (2 / 3))
    n, drift = kappa**2 + 2 * z * arms ** (-2 / 3), 8 * z * arms ** (-2 / 3)
    va = (s * zw / (1 - m * f) + (4 if memory else 2) / m) / (1 - gamma)
    span = max(big * arms ** (2 / 3), (8 if memory else 2) / ((1 - gamma) * m * f)) + 1
    root = 2 * math.sqrt(1 + theta)
    slope = 2 * stability + g / c * math.sqrt(arms)
    factor = (slope * root + lam * math.sqrt(l0) * (math.sqrt(va) + 0.5)) / math.sqrt(arms)
    rest = (math.sqrt(64 * arms ** (1 / 3)) * big * h + 4 + drift) / (2 * root)
    ext = arms / gamma + big * (1 + (1 + h / 2) ** 3 * kappa / (kappa - 1))
    return factor, 1 + 4 * stability * n + ext + lam * (2 * l0 / 3 + 1) * span + slope * rest


@pytest.mark.parametrize("policy", [dc.Ladder(), NO_MEMORY])
@pytest.mark.parametrize("arms", [2, 8, 64, 1_024, 100_000])
def test_the_terms_are_those_of_the_text(arms: int, policy: dc.Ladder) -> None:
    terms = bounds.ladder_terms(arms, policy)
    assert (terms.factor, terms.constant) == pytest.approx(by_hand(arms, policy.memory is not None))
    whole = terms.factor * math.sqrt(arms * 1e4) + terms.constant
    assert bounds.theorem_t2(10_000, arms, policy) == pytest.approx(whole)


@pytest.mark.parametrize(
    ("policy", "arms", "printed"),
    [
        # A, C, what the range costs, C_A, and T2b with gaps of 1/8, which a memory changes by less than can be seen.
        (dc.Ladder(), 2, ("51.21", "941", "248", "142", "1.794e+09")),
        (dc.Ladder(), 8, ("75.47", "2335", "248", "217", "7.407e+09")),
        (dc.Ladder(), 64, ("100.14", "14511", "942", "527", "6.239e+10")),
        (dc.Ladder(), 1_024, ("109.40", "187256", "17292", "1632", "1.042e+12")),
        (NO_MEMORY, 2, ("49.50", "605", "64", "80", "1.794e+09")),
        (NO_MEMORY, 8, ("74.80", "2049", "93", "155", "7.407e+09")),
        (NO_MEMORY, 64, ("99.95", "14467", "942", "466", "6.239e+10")),
        (NO_MEMORY, 1_024, ("109.35", "186450", "17292", "1571", "1.042e+12")),
    ],
)
def test_the_numbers_of_the_theorem(policy: dc.Ladder, arms: int, printed: tuple[str, ...]) -> None:
    terms, of = bounds.ladder_terms(arms, policy), ladder_numbers(arms, policy)
    constrained = f"{bounds.theorem_t2b([0.125] * (arms - 1), policy):.4g}"
    rest = (f"{each:.0f}" for each in (terms.constant, of.range_cost, of.small_variance))
    assert (f"{terms.factor:.2f}", *rest, constrained) == printed


def test_the_factor_for_every_number_of_arms() -> None:
    sizes = np.unique(np.geomspace(2, 1e6, 300).round())
    factors = [bounds.ladder_terms(int(arms)).factor for arms in sizes]
    assert 109.5 < max(factors) <= 109.6
    assert factors[-1] < 103.0


@pytest.mark.parametrize(
    ("policy", "first", "in_hindsight"),
    [(dc.Ladder(), 50_123, 69_764), (NO_MEMORY, 48_770, 68_252)],
)
def test_from_where_on_the_bound_says_something(
    policy: dc.Ladder, first: int, in_hindsight: int
) -> None:
    assert bounds.useful_from(lambda t: bounds.theorem_t2(t, 8, policy)) == first
    found = bounds.useful_from(lambda t: bounds.theorem_t2(t, 8, policy, in_hindsight=True))
    assert found == in_hindsight


def test_the_bound_has_the_scale_of_the_losses() -> None:
    whole, small = bounds.theorem_t2(1_000, 8), bounds.theorem_t2(1_000, 8, width=0.01)
    assert small == pytest.approx(0.01 * whole)
    assert bounds.theorem_t2(1_000, 8, width=1e-15) > 7e-12  # the least n counts


def test_the_best_arm_in_hindsight() -> None:
    """The cost of comparing with the best arm of each run is that of K sums of estimates less losses."""
    arms, rounds, runs, share = 8, 4_000, 400, dc.Ladder().uniform_share
    chance = share / arms  # the least of an arm
    extra = bounds.theorem_t2(rounds, arms, in_hindsight=True) - bounds.theorem_t2(rounds, arms)
    spread = 2.0 * math.log(arms) / share
    assert extra == pytest.approx(math.sqrt(arms * rounds * spread) + arms / 6.0 * spread)
    # Losses of 1 and a gate of 0, seen with the least chance: the widest sums there are.
    seen = np.random.default_rng(7).binomial(rounds, chance, (runs, arms))
    highest = float((seen / chance - rounds).max(axis=1).mean())
    assert 0.6 * extra < highest < extra
    narrow = bounds.theorem_t2(rounds, arms, width=0.5, in_hindsight=True)
    assert narrow - bounds.theorem_t2(rounds, arms, width=0.5) == pytest.approx(0.5 * extra)


def test_theorem_t2b() -> None:
    assert 7e9 < bounds.theorem_t2b([0.125] * 7) < 8e9
    assert bounds.theorem_t2b([0.125] * 7, dc.Ladder(least_spread=0.999)) < 1e8
    # O(1 / (theta gap)), with what does not depend on the gaps beside it.
    few, many = (bounds.theorem_t2b([gap] * 7) for gap in (1e-3, 1e-4))
    assert many / few == pytest.approx(10.0, rel=1e-3)
    of = ladder_numbers(8)
    k, s = 8.0, of.sum / 2.0  # s_K = S_K / K^(1/3)
    # A0 and A1 as the theorem writes them.
    c1, grown, prime = bounds.curvature_constant(), of.growth, of.whole / 2.0
    a0 = 0.5 * (c1 * grown * (8 / 3) * 1.25**2 / 2 * s * prime + 4 * c1 * grown * of.squares / 4.0)
    assert 0.5 * k ** (-2 / 3) * of.any_state() == pytest.approx(a0)
    late = 1.1**4
    others = 1.25**2 * c1 * late * (8 / 3) / 2 + 4 * c1 * late / of.whole
    a1 = 0.5 * prime * (others + 1.5 * 1.25**2 * 0.9**-4)
    assert 0.5 * k ** (-1 / 3) * of.on_event(0.1) == pytest.approx(a1)


def test_a_single_rung_has_no_judge() -> None:
    assert bounds.ladder_terms(8, dc.Ladder(rungs=(0.5,), prior=(), top_two_share=0.0)).judge == 0.0

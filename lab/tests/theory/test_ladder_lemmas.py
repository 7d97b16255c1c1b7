"""Lemmas L1 to L8 of the ladder and S1 to S3 of sticky serving: they hold in random states, and every check has teeth.

test_theorem_t2.py has paths.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import decoupled as dc
from decoupled_lab import theory
from decoupled_lab.theory import bounds
from decoupled_lab.theory.bounds.constants import jump_factor
from decoupled_lab.theory.bounds.switching import late_rate_constant, rate_fall_cost
from decoupled_lab.theory.inequality import OURS, Inequality, Sides, Tally
from decoupled_lab.theory.lemmas import centred, in_order, jumps, path, switches
from decoupled_lab.theory.lemmas.switches import total_variation
from decoupled_lab.theory.moment import Moment, divergence, potential
from decoupled_lab.theory.rounds import CentredRound
from decoupled_lab.theory.survey import drawn_experts, drawn_report, drawn_rounds
from decoupled_lab.theory.trajectory import run
from support.inequalities import HERE, check_teeth, line_of

EVERY = [each for group in (jumps, path, centred, switches) for each in vars(group).values()]
OUR_INEQUALITIES = [each for each in EVERY if isinstance(each, Inequality) and each.status == OURS]


def drawn_states(count: int, seed: int = 0) -> Iterator[Moment]:
    """Gaps of five kinds over many orders of magnitude, alpha from 1.1 to 6, and any arm as the best one."""
    rng = np.random.default_rng(seed)
    for place in range(count):
        arms, alpha = int(rng.integers(2, 16)), float(rng.uniform(1.1, 6.0 if place % 2 else 3.0))
        gaps = [
            np.zeros(arms),
            rng.exponential(10.0 ** rng.uniform(-2.0, 2.0), arms),
            rng.integers(0, 2, arms) * 10.0 ** rng.uniform(-1.0, 3.0),
            rng.pareto(0.5, arms),
            np.where(
                np.arange(arms) > 0, (2.0 * arms) ** (1.0 / alpha) + rng.exponential(3.0, arms), 0.0
            ),
        ][place % 5]
        best = int(np.argmin(gaps)) if place % 2 == 0 else int(rng.integers(arms))
        eta = 10.0 ** rng.uniform(-2.0, 0.5)
        yield Moment(gaps / eta, eta, alpha, best)


def test_random_states_break_no_lemma() -> None:
    tally = Tally()
    for moment in drawn_states(100):
        tally.add((*jumps.sides(moment), *switches.sides(moment)), moment)
    report = theory.Report(in_order(tally))
    assert report.violations == []
    for line in report.lines:
        assert line.evaluated >= (3 if "on D_t, late" in line.inequality.name else 10)


@pytest.mark.parametrize("alpha", [1.1, 2.0, 3.0, 6.0])
def test_random_rounds_and_sequences_break_no_lemma(alpha: float) -> None:
    report = drawn_report(alpha, 40, seed=1)
    assert report.violations == []
    assert all(line.evaluated >= 10 for line in report.lines)


def state_sides() -> list[tuple[Sides, Moment]]:
    states = list(drawn_states(25))
    return [
        (s, state) for state in states for group in (jumps, switches) for s in group.sides(state)
    ]


def round_sides() -> list[tuple[Sides, Moment]]:
    found: list[tuple[Sides, Moment]] = []
    for at in drawn_rounds(np.random.default_rng(5), 3.0, 40):
        every = *centred.centred_sides(at), *switches.sides(at.moment), *switches.round_sides(at)
        found += [(sides, at.moment) for sides in every]
    return found


def path_sides() -> list[tuple[Sides, Moment]]:
    played = run(dc.FTPL(), dc.environments.PunishLast(4), 60, 0)
    found = path.divergences(played.estimates, played.rates[:-1], played.alpha)
    return [(sides, HERE) for _, sides in found]


def hedge_sides() -> list[tuple[Sides, Moment]]:
    rng = np.random.default_rng(2)
    runs = [centred.adahedge(*drawn_experts(rng)) for _ in range(60)]
    # One expert, of a small prior, is best from the start: its weight has to be paid for.
    late = np.tile([1.0, 0.0], (60, 1))
    runs.append(centred.adahedge(late, np.array([1.0 - 1e-12, 1e-12]), 0.5))
    both = ((*centred.hedge_sides(run), *switches.weight_sides(run)) for run in runs)
    return [(sides, HERE) for several in both for sides in several]


def keyed_sides() -> list[tuple[Sides, Moment]]:
    played = run(dc.FTPL(), dc.environments.Alternating(6, 0.3), 200, 0)
    return [(sides, HERE) for _, sides in switches.keyed(played)]


def mean_sides() -> list[tuple[Sides, Moment]]:
    every = (centred.mean_sides(losses, 0.1) for losses in (np.ones(400), np.zeros(3)))
    return [(sides, HERE) for several in every for sides in several]


def half(function: Callable[..., Any], share: float = 0.5) -> Callable[..., Any]:
    return lambda *arguments: share * function(*arguments)


BREAKS: list[tuple[Any, Inequality, Any, str, Any]] = [
    # What to evaluate, the inequality that must fail, and what replaces which name of which module.
    (
        path_sides,
        path.DIVERGENCES,
        path,
        "divergence",
        lambda after, before: -divergence(after, before),
    ),
    (state_sides, jumps.UNIFORM, jumps, "winner_constant", half(bounds.winner_constant)),
    (state_sides, jumps.LOWER, jumps, "SHARE", 1.0),
    (state_sides, jumps.SELF_BOUNDING, jumps, "SHARE", 0.02),
    (state_sides, jumps.CURVATURE, jumps, "curvature_constant", half(bounds.curvature_constant)),
    (state_sides, jumps.FALLEN, jumps, "fall_ratio", lambda s, y: 1.0),
    (state_sides, jumps.LAW, jumps, "fall_ratio", lambda s, y: 1.0),
    (state_sides, jumps.RISE, jumps, "curvature_constant", half(bounds.curvature_constant)),
    (state_sides, jumps.FALL, jumps, "jump_factor", lambda x, y, alpha: 1.0),
    (
        round_sides,
        centred.STABILITY,
        centred,
        "curvature_constant",
        half(bounds.curvature_constant),
    ),
    (round_sides, centred.BELOW, CentredRound, "explored", property(lambda self: self.q**2)),
    (hedge_sides, centred.REGRET, centred, "prior_cost", np.zeros_like),
    (
        mean_sides,
        centred.MEAN,
        centred,
        "running_means",
        lambda losses, lam: np.full(len(losses), 0.5),
    ),
    (keyed_sides, switches.LAW, switches, "_draws", lambda arms, alpha: np.ones((200, arms))),
    (state_sides, switches.RISE, switches, "curvature_constant", half(bounds.curvature_constant)),
    (
        round_sides,
        switches.ESTIMATES,
        switches,
        "switch_constant",
        half(bounds.switch_constant, 0.1),
    ),
    (state_sides, switches.GAIN, switches, "rate_fall_cost", half(rate_fall_cost)),
    (state_sides, switches.EVENT, switches, "_after_fall", lambda shifts, arm, x, alpha: 0.0),
    (state_sides, switches.RATE, switches, "rate_fall_cost", half(rate_fall_cost, 0.05)),
    (
        state_sides,
        switches.LATE_RATE,
        switches,
        "late_rate_constant",
        half(late_rate_constant, 0.05),
    ),
    (
        round_sides,
        switches.LATE,
        switches,
        "late_switch_constant",
        half(bounds.late_switch_constant, 0.02),
    ),
    (
        round_sides,
        switches.LEADING,
        switches,
        "curvature_constant",
        half(bounds.curvature_constant, 0.3),
    ),
    (
        round_sides,
        switches.MOVES,
        switches,
        "curvature_constant",
        half(bounds.curvature_constant, 0.2),
    ),
    (round_sides, switches.GATED, switches, "switch_constant", half(bounds.switch_constant, 0.01)),
    (
        round_sides,
        switches.HIGHER,
        switches,
        "switch_constant",
        half(bounds.switch_constant, 0.001),
    ),
    (hedge_sides, switches.STEP, switches, "total_variation", half(total_variation, 2.0)),
    (hedge_sides, switches.WEIGHTS, switches, "total_variation", half(total_variation, 4.0)),
    (hedge_sides, switches.RACE, switches, "race_change", switches.cumulated_change),
    (hedge_sides, switches.CUMULATED, switches, "total_variation", half(total_variation)),
]


@pytest.mark.parametrize(
    "broken", BREAKS, ids=[f"{b[1].source}, {b[1].name[:30]}, {b[3]}" for b in BREAKS]
)
def test_a_broken_lemma_is_noticed(broken: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sides, inequality, home, name, replacement = broken
    monkeypatch.setattr(home, name, replacement)
    assert line_of(sides(), inequality).violations > 0


def test_a_broken_side_of_any_inequality_is_noticed() -> None:
    found = [
        *state_sides(),
        *round_sides(),
        *path_sides(),
        *hedge_sides(),
        *mean_sides(),
        *keyed_sides(),
    ]
    check_teeth(found, OUR_INEQUALITIES)


def test_the_potential_is_the_mean_of_the_best_score() -> None:
    rng = np.random.default_rng(0)
    losses = np.array([0.3, 0.0, 2.0, 5.0])
    scores = (1.0 - rng.random((400_000, 4))) ** (-1.0 / 4.0) - losses
    best = scores.max(axis=1)
    found = potential(losses, 4.0)
    assert abs(found.value - best.mean()) < 5.0 * best.std() / math.sqrt(len(best))
    # The gradient is the law, and a common shift changes no divergence.
    step = np.array([1e-5, -2e-5, 0.0, 1e-5])
    grown = potential(losses + step, 4.0).value - found.value
    assert grown == pytest.approx(-float(found.moments.law @ step), abs=1e-9)
    moved = losses + np.array([1.0, 0.0, -2.0, 0.5])
    plain = divergence(potential(moved, 4.0), found)
    assert plain == pytest.approx(divergence(potential(moved + 7.0, 4.0), found), rel=1e-9)
    assert plain > 0.0


def test_the_cost_of_a_jump_is_the_integral_of_the_laws_change() -> None:
    losses, alpha = np.array([0.0, 0.8, 3.0]), 3.0
    nodes, weights = np.polynomial.legendre.leggauss(40)
    for x in (2.0, -1.5):  # arm 1 falls past the leader, or rises
        fallen = losses.copy()
        fallen[1] -= x
        cost = divergence(potential(fallen, alpha), potential(losses, alpha))
        before = theory.weights(losses, 1.0, alpha)[1]
        by_hand = 0.0
        for low, high in ((0.0, 0.8), (0.8, 2.0)) if x > 0.0 else ((0.0, -1.5),):
            for node, weight in zip(nodes, weights, strict=True):
                here = losses.copy()
                here[1] -= low + 0.5 * (high - low) * (1.0 + node)
                by_hand += (
                    0.5 * (high - low) * weight * (theory.weights(here, 1.0, alpha)[1] - before)
                )
        assert cost == pytest.approx(by_hand, rel=1e-7)
        assert cost <= 0.5 * x**2 * bounds.curvature_constant(alpha) * jump_factor(
            max(x, 1e-9), 0.8, alpha
        )


def test_the_stability_of_a_round_by_hand() -> None:
    played = next(drawn_rounds(np.random.default_rng(9), 3.0, 1))
    moment, eta = played.moment, played.moment.eta
    by_hand = 0.0
    for j in range(moment.arms):
        estimate = played.b.copy()
        estimate[j] += (played.losses[j] - played.b[j]) / played.p[j]
        scaled = [
            potential(eta * (moment.estimates + part), 3.0) for part in (estimate, 0.0 * estimate)
        ]
        by_hand += played.p[j] * divergence(*scaled) / eta
    assert played.stability == pytest.approx(by_hand, rel=1e-5)


def test_the_second_moment_of_the_conditional_probability() -> None:
    # E max_m what_j^2 <= 2 max(1 + eta_1 u, rank^(1/alpha))^(-2 alpha) if the rungs share their draws.
    rng = np.random.default_rng(4)
    for moment in list(drawn_states(20, seed=3)):
        alpha, shifts = moment.alpha, moment.shifts
        draws = (1.0 - rng.random((4_000, moment.arms))) ** (-1.0 / alpha)
        arm = int(rng.integers(moment.arms))
        most = np.zeros(len(draws))
        for factor in (1.0, 3.0, 40.0):
            others = (
                np.delete(draws - factor * shifts, arm, axis=1).max(axis=1) + factor * shifts[arm]
            )
            most = np.maximum(most, np.maximum(1.0, others) ** -alpha)
        square = most**2
        error = 5.0 * square.std() / math.sqrt(len(square))
        assert square.mean() - error <= 2.0 * moment.levels[arm] ** (-2.0 * alpha)


def test_errors_name_the_argument() -> None:
    valid: dict[str, Any] = {"estimates": [0.0, 1.0], "eta": 1.0, "losses": [0.0, 1.0]}
    for options, match in (
        ({"losses": [1.0]}, "losses"),
        ({"losses": [1.0, 2.0]}, "losses"),
        ({"eps": 2.0}, "eps"),
        ({"mean": 1.5}, "mean"),
        ({"rungs": [0.5]}, "rungs"),
    ):
        with pytest.raises(dc.ParameterError, match=match):
            theory.inspect_round(**(valid | options))

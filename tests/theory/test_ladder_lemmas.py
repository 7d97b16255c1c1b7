"""Lemmas L1 to L8 of the ladder and S1 to S3 of sticky serving hold in random states and along paths.

Every check has teeth.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import decoupled as dc
from decoupled import theory
from decoupled.kernels.laws.winner_law import winner_law
from decoupled.theory import bounds
from decoupled.theory.bounds.gates import jump_factor
from decoupled.theory.bounds.switching import late_rate_constant, rate_fall_cost
from decoupled.theory.centred_round import CentredRound
from decoupled.theory.drawn import drawn_experts, drawn_report, drawn_rounds
from decoupled.theory.inequality import OURS, Inequality, Line, Sides, Tally
from decoupled.theory.lemmas import hedge, in_order, jumps, one_round, path, running_mean, switches, winner
from decoupled.theory.lemmas.switches import total_variation
from decoupled.theory.moment import Moment
from decoupled.theory.potential import divergence, potential
from decoupled.theory.trajectory import run
from support.ladder_twin import HALF, Hard, LadderTwin, Soft
from support.twins import Floats

HERE = Moment(np.zeros(2), 1.0, 3.0)  # a state for inequalities that have none
GROUPS = (winner, jumps, path, one_round, hedge, running_mean, switches)
OUR_INEQUALITIES = [
    each
    for group in GROUPS
    for each in vars(group).values()
    if isinstance(each, Inequality) and each.status == OURS
]


def law(shifts: Floats, alpha: float) -> Floats:
    return winner_law(shifts, alpha, False)


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
            np.where(np.arange(arms) > 0, (2.0 * arms) ** (1.0 / alpha) + rng.exponential(3.0, arms), 0.0),
        ][place % 5]
        best = int(np.argmin(gaps)) if place % 2 == 0 else int(rng.integers(arms))
        eta = 10.0 ** rng.uniform(-2.0, 0.5)
        yield Moment(gaps / eta, eta, alpha, best)


def adversary(kind: str, rng: np.random.Generator, arms: int) -> Callable[[int, int], Floats]:
    """Losses by round and by the arm exploited last."""
    levels = np.concatenate(([0.2], np.full(arms - 1, 0.6)))
    if kind == "punish":
        return lambda t, last: np.where(np.arange(arms) == last, 1.0, 0.1)
    if kind == "flat":
        return lambda t, last: np.full(arms, 0.3)
    return lambda t, last: (rng.random(arms) < levels).astype(np.float64)


class Played:
    """A path of the twin with everything that the lemmas are about."""

    def __init__(self, twin: LadderTwin, kind: str, horizon: int) -> None:
        self.twin, last = twin, 0
        losses_of = adversary(kind, np.random.default_rng(3), twin.arms)
        estimates, rates, self.rounds, rung_losses, seen = [twin.estimates], [], [], [], []
        self.steps, self.counts = [], [twin.passed]
        for t in range(horizon):
            decided = twin.decide()
            losses = losses_of(t, last)
            view, last = decided.view, decided.exploit
            rate = twin.rungs[0] * view.scale
            finite = [c * view.scale for c in twin.rungs if math.isfinite(c)]
            moment = Moment(twin.estimates.copy(), rate, twin.alpha, round=t + 1)
            spread = twin.spread
            rung_losses.append(twin.update(decided, float(losses[decided.explore])))
            if isinstance(twin.gate, Soft):
                gate = bounds.Gate(*twin.gate)
                self.rounds.append(CentredRound(moment, view.eps, view.mean, losses, gate, finite))
                np.testing.assert_allclose(self.rounds[-1].b, view.b, rtol=1e-12)
                np.testing.assert_allclose(self.rounds[-1].p, view.p, rtol=1e-12)
            estimates.append(twin.estimates)
            rates.append(rate)
            seen.append(float(losses[decided.explore]))
            self.steps.append(twin.spread - spread)
            self.counts.append(twin.passed)
        self.estimates, self.rates = np.array(estimates), np.array(rates)
        self.rung_losses, self.seen = np.array(rung_losses), np.array(seen)

    def report(self, rounds: int = 12) -> theory.Report:
        twin, tally = self.twin, Tally()
        for round_, sides in path.divergences(self.estimates, self.rates, twin.alpha):
            tally.add([sides], Moment(self.estimates[round_], float(self.rates[round_ - 1]), twin.alpha))
        for place in (
            np.unique(np.geomspace(1, len(self.rounds), rounds).astype(int)) if self.rounds else ()
        ):
            played = self.rounds[place - 1]
            tally.add(one_round.sides(played), played.moment)
            tally.add(winner.sides(played.moment), played.moment)
            tally.add(jumps.sides(played.moment), played.moment)
        tally.add(hedge.sides(hedge.adahedge(self.rung_losses, twin.prior, twin.l0)), HERE)
        tally.add(running_mean.sides(self.seen, twin.lam), HERE)
        return theory.Report(in_order(tally))


def made(arms: int = 5, seed: int = 0, **options: Any) -> LadderTwin:
    return LadderTwin(arms, np.random.default_rng(seed), law=law, **options)


def test_random_states_break_no_lemma() -> None:
    tally = Tally()
    for moment in drawn_states(100):
        tally.add((*winner.sides(moment), *jumps.sides(moment), *switches.sides(moment)), moment)
    report = theory.Report(in_order(tally))
    assert report.violations == []
    assert all(
        line.evaluated >= (3 if "on D_t, late" in line.inequality.name else 10) for line in report.lines
    )


@pytest.mark.parametrize("alpha", [1.1, 2.0, 3.0, 6.0])
def test_random_rounds_and_sequences_break_no_lemma(alpha: float) -> None:
    report = drawn_report(alpha, 40, seed=1)
    assert report.violations == []
    assert all(line.evaluated >= 10 for line in report.lines)


@pytest.mark.parametrize("kind", ["punish", "stochastic", "flat"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"what": "exact", "schedule": "rounds"},
        {"rungs": (1.0, 4.0, math.inf), "prior": (0.2, 0.3, 0.5), "gate": Soft(1.0, 0.25), "alpha": 2.0},
    ],
    ids=["as recommended", "rounds, exact", "three rungs"],
)
def test_the_twins_path_breaks_no_lemma(kind: str, options: dict[str, Any]) -> None:
    played = Played(made(6, **options), kind, 120)
    report = played.report()
    assert report.violations == []
    assert {"ladder, L1", "ladder, L5", "ladder, L7", "ladder, L8"} <= {
        line.inequality.source for line in report.lines
    }


def test_decomposition_holds_for_the_hard_gate_too() -> None:
    played = Played(made(4, gate=Hard(0.1)), "punish", 150)
    assert (np.diff(played.estimates, axis=0) < 0.0).any()  # L1 allows estimates of any sign
    assert played.report().violations == []


@pytest.mark.parametrize("kind", ["punish", "flat"])
def test_the_sum_of_theorem_d(kind: str) -> None:
    # sum v_t / sqrt(n_t) <= 2 sqrt(n_{T+1}) + vbar, every v_t <= vbar, and V at most `largest_spread`.
    for theta in (0.0, 0.01):
        played = Played(made(12, theta=theta), kind, 200)
        steps, counts = np.array(played.steps), np.array(played.counts)
        assert 0.0 < steps.max() <= bounds.largest_step()
        assert (steps / np.sqrt(counts[:-1])).sum() <= 2.0 * math.sqrt(counts[-1]) + bounds.largest_step()
        assert steps.sum() <= bounds.largest_spread(200, 12)
        second = bounds.theorem_d2(
            float(((played.seen - played.seen.mean()) ** 2).sum()), 8.0 * 200, lam=0.1
        )
        assert steps.sum() <= second


def test_the_report_of_a_trajectory_has_the_lemmas_of_the_ladder() -> None:
    report = theory.check(dc.environments.Alternating(6, 0.3), horizon=120, rounds=10)
    sources = {line.inequality.source for line in report.lines if line.inequality.status == OURS}
    assert {"ladder, L1", "ladder, L2", "ladder, L3 (1)", "ladder, L4", "ladder, L6"} <= sources
    assert report.surprises == []


def test_a_survey_has_all_of_them() -> None:
    report = theory.survey(alphas=[3.0], arms=[3], horizon=40)
    assert {line.inequality for line in report.lines} >= set(OUR_INEQUALITIES)
    assert report.surprises == []


def broken(sides: Callable[[], Sequence[tuple[Sides, Moment]]], inequality: Inequality) -> bool:
    line = Line(inequality)
    for each, moment in sides():
        if each.inequality == inequality:
            line.add(each, moment)
    assert line.evaluated
    return line.violations > 0


def state_sides() -> list[tuple[Sides, Moment]]:
    states = list(drawn_states(25))
    groups = (winner, jumps, switches)
    return [(s, state) for state in states for group in groups for s in group.sides(state)]


def round_sides() -> list[tuple[Sides, Moment]]:
    found = drawn_rounds(np.random.default_rng(5), 3.0, 40)
    return [
        (sides, played.moment)
        for played in found
        for sides in (
            *one_round.sides(played),
            *switches.sides(played.moment),
            *switches.round_sides(played),
        )
    ]


def path_sides() -> list[tuple[Sides, Moment]]:
    played = Played(made(4), "punish", 60)
    return [(sides, HERE) for _, sides in path.divergences(played.estimates, played.rates, 3.0)]


def hedge_sides() -> list[tuple[Sides, Moment]]:
    rng = np.random.default_rng(2)
    runs = [hedge.adahedge(*drawn_experts(rng)) for _ in range(60)]
    # One expert, of a small prior, is best from the start: its weight has to be paid for.
    late = np.tile([1.0, 0.0], (60, 1))
    runs.append(hedge.adahedge(late, np.array([1.0 - 1e-12, 1e-12]), 0.5))
    return [(sides, HERE) for run in runs for sides in (*hedge.sides(run), *switches.weight_sides(run))]


def keyed_sides() -> list[tuple[Sides, Moment]]:
    return [
        (sides, HERE)
        for _, sides in switches.keyed(run(dc.FTPL(), dc.environments.Alternating(6, 0.3), 200, 0))
    ]


def mean_sides() -> list[tuple[Sides, Moment]]:
    return [
        (sides, HERE) for losses in (np.ones(400), np.zeros(3)) for sides in running_mean.sides(losses, 0.1)
    ]


def half(function: Callable[..., Any], share: float = 0.5) -> Callable[..., Any]:
    return lambda *arguments: share * function(*arguments)


BREAKS: list[tuple[Any, Inequality, Any, str, Any]] = [
    # What to evaluate, the inequality that must fail, and what replaces which name of which module.
    (path_sides, path.DIVERGENCES, path, "divergence", lambda after, before: -divergence(after, before)),
    (state_sides, winner.UNIFORM, winner, "winner_constant", half(bounds.winner_constant)),
    (state_sides, winner.LOWER, winner, "_SHARE", 1.0),
    (state_sides, winner.SELF_BOUNDING, winner, "_SHARE", 0.02),
    (state_sides, jumps.CURVATURE, jumps, "curvature_constant", half(bounds.curvature_constant)),
    (state_sides, jumps.FALLEN, jumps, "fall_ratio", lambda s, y: 1.0),
    (state_sides, jumps.LAW, jumps, "fall_ratio", lambda s, y: 1.0),
    (state_sides, jumps.RISE, jumps, "curvature_constant", half(bounds.curvature_constant)),
    (state_sides, jumps.FALL, jumps, "jump_factor", lambda x, y, alpha: 1.0),
    (round_sides, one_round.STABILITY, one_round, "curvature_constant", half(bounds.curvature_constant)),
    (round_sides, one_round.BELOW, CentredRound, "explored", property(lambda self: self.q**2)),
    (hedge_sides, hedge.REGRET, hedge, "prior_cost", np.zeros_like),
    (
        mean_sides,
        running_mean.MEAN,
        running_mean,
        "running_means",
        lambda losses, lam: np.full(len(losses), 0.5),
    ),
    (keyed_sides, switches.LAW, switches, "_draws", lambda arms, alpha: np.ones((200, arms))),
    (state_sides, switches.RISE, switches, "curvature_constant", half(bounds.curvature_constant)),
    (round_sides, switches.ESTIMATES, switches, "switch_constant", half(bounds.switch_constant, 0.1)),
    (state_sides, switches.GAIN, switches, "rate_fall_cost", half(rate_fall_cost)),
    (state_sides, switches.EVENT, switches, "_after_fall", lambda shifts, arm, x, alpha: 0.0),
    (state_sides, switches.RATE, switches, "rate_fall_cost", half(rate_fall_cost, 0.05)),
    (state_sides, switches.LATE_RATE, switches, "late_rate_constant", half(late_rate_constant, 0.05)),
    (round_sides, switches.LATE, switches, "late_switch_constant", half(bounds.late_switch_constant, 0.02)),
    (round_sides, switches.LEADING, switches, "curvature_constant", half(bounds.curvature_constant, 0.3)),
    (round_sides, switches.MOVES, switches, "curvature_constant", half(bounds.curvature_constant, 0.2)),
    (round_sides, switches.GATED, switches, "switch_constant", half(bounds.switch_constant, 0.01)),
    (round_sides, switches.HIGHER, switches, "switch_constant", half(bounds.switch_constant, 0.001)),
    (hedge_sides, switches.STEP, switches, "total_variation", half(total_variation, 2.0)),
    (hedge_sides, switches.WEIGHTS, switches, "total_variation", half(total_variation, 4.0)),
    (hedge_sides, switches.RACE, switches, "race_change", switches.cumulated_change),
    (hedge_sides, switches.CUMULATED, switches, "total_variation", half(total_variation)),
]


@pytest.mark.parametrize(
    ("sides", "inequality", "home", "name", "replacement"),
    BREAKS,
    ids=[f"{b[1].source}, {b[1].name[:30]}, {b[3]}" for b in BREAKS],
)
def test_a_broken_lemma_is_noticed(
    sides: Callable[[], Sequence[tuple[Sides, Moment]]],
    inequality: Inequality,
    home: Any,
    name: str,
    replacement: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(home, name, replacement)
    assert broken(sides, inequality)


def test_a_broken_side_of_any_inequality_is_noticed() -> None:
    # Raise each left side, then lower each right side, by slightly more than the slack.
    found = [*state_sides(), *round_sides(), *path_sides(), *hedge_sides(), *mean_sides(), *keyed_sides()]
    for inequality in OUR_INEQUALITIES:
        mine = [(sides, moment) for sides, moment in found if sides.inequality == inequality]
        whole = Line(inequality)
        for sides, moment in mine:
            whole.add(sides, moment)
        assert whole.violations == 0
        assert whole.ratio > 1e-3, f"{inequality.name} is never tested"
        for left, right in ((1.001 / whole.ratio, 1.0), (1.0, whole.ratio / 1.001)):
            line = Line(inequality)
            for sides, moment in mine:
                line.add(
                    sides._replace(
                        left=left * np.asarray(sides.left), right=right * np.asarray(sides.right)
                    ),
                    moment,
                )
            assert line.violations > 0


def test_the_potential_is_the_mean_of_the_best_score() -> None:
    rng = np.random.default_rng(0)
    losses = np.array([0.3, 0.0, 2.0, 5.0])
    scores = (1.0 - rng.random((400_000, 4))) ** (-1.0 / 4.0) - losses
    best = scores.max(axis=1)
    found = potential(losses, 4.0)
    assert abs(found.value - best.mean()) < 5.0 * best.std() / math.sqrt(len(best))
    # The gradient is the law, and a common shift changes no divergence.
    step = np.array([1e-5, -2e-5, 0.0, 1e-5])
    assert potential(losses + step, 4.0).value - found.value == pytest.approx(
        -float(found.moments.law @ step), abs=1e-9
    )
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
                by_hand += 0.5 * (high - low) * weight * (theory.weights(here, 1.0, alpha)[1] - before)
        assert cost == pytest.approx(by_hand, rel=1e-7)
        assert cost <= 0.5 * x**2 * bounds.curvature_constant(alpha) * jump_factor(max(x, 1e-9), 0.8, alpha)


def test_the_stability_of_a_round_by_hand() -> None:
    played = next(drawn_rounds(np.random.default_rng(9), 3.0, 1))
    moment, eta = played.moment, played.moment.eta
    by_hand = 0.0
    for j in range(moment.arms):
        estimate = played.b.copy()
        estimate[j] += (played.losses[j] - played.b[j]) / played.p[j]
        scaled = [potential(eta * (moment.estimates + part), 3.0) for part in (estimate, 0.0 * estimate)]
        by_hand += played.p[j] * divergence(*scaled) / eta
    assert played.stability == pytest.approx(by_hand, rel=1e-5)


@pytest.mark.parametrize("what", ["exact", "cheap"])
def test_the_rungs_losses_are_unbiased(what: str) -> None:
    # E[g_m] = <w^(m), loss> - B, over the explored arm (exactly) and the draws (by Monte Carlo).
    twin = made(5, what=what, rungs=(0.5, 2.0, math.inf), prior=(1.0, 1.0, 1.0))
    for _ in range(40):
        decided = twin.decide()
        twin.update(decided, float(decided.explore > 0))
    losses = np.array([0.1, 0.9, 0.4, 0.7, 1.0])
    view = twin.view()
    expected = np.array([twin.rung_law(view, m) @ losses for m in range(3)]) - view.mean
    rng, samples = np.random.default_rng(1), 1 if what == "exact" else 1_500
    sums = np.zeros((samples, 3))
    for sample in range(samples):
        draws = (1.0 - rng.random(5)) ** (-1.0 / 3.0)
        for j in range(5):
            decided = type(decided)(0, j, 0.0, 0, draws, view)
            sums[sample] += view.p[j] * twin.estimated_losses(decided, float(losses[j]))
    error = sums.std(axis=0) / math.sqrt(samples)
    assert (np.abs(sums.mean(axis=0) - expected) <= 5.0 * error + 1e-9).all()


def test_the_second_moment_of_the_conditional_probability() -> None:
    # E max_m what_j^2 <= 2 max(1 + eta_1 u, rank^(1/alpha))^(-2 alpha) if the rungs share their draws.
    rng = np.random.default_rng(4)
    for moment in list(drawn_states(20, seed=3)):
        alpha, shifts = moment.alpha, moment.shifts
        draws = (1.0 - rng.random((4_000, moment.arms))) ** (-1.0 / alpha)
        arm = int(rng.integers(moment.arms))
        most = np.zeros(len(draws))
        for factor in (1.0, 3.0, 40.0):
            others = np.delete(draws - factor * shifts, arm, axis=1).max(axis=1) + factor * shifts[arm]
            most = np.maximum(most, np.maximum(1.0, others) ** -alpha)
        square = most**2
        error = 5.0 * square.std() / math.sqrt(len(square))
        assert square.mean() - error <= 2.0 * moment.levels[arm] ** (-2.0 * alpha)


def test_adahedge_is_the_twins() -> None:
    for options in ({}, {"what": "exact", "l0": 1.0}):
        played = Played(made(5, **options), "punish", 120)  # type: ignore[arg-type]
        run = hedge.adahedge(played.rung_losses, played.twin.prior, played.twin.l0)
        assert np.maximum(run.gaps, 0.0).sum() == pytest.approx(played.twin.delta, rel=1e-9)


def test_the_twin_by_hand() -> None:
    twin = made(2, lam=0.1, theta=0.01)
    decided = twin.decide()
    view, j = decided.view, decided.explore
    scale = 2 ** (-1 / 6)
    q = np.array([1.0, 2 ** (-2 / 3)])
    np.testing.assert_allclose(view.q, q)
    np.testing.assert_allclose(
        view.b, np.minimum(0.5, q / q.sum() / scale)
    )  # p / (2 eps), with eps = scale / 2
    np.testing.assert_allclose(view.pi, [0.05, 0.95])
    assert decided.weight == pytest.approx(q.sum() / q[j])
    rival = decided.draws[1 - j]
    chances = np.full(2, rival**-3.0)  # level arms: the same at every rate
    missing = 0.5 - view.b[int(np.argmax(decided.draws))]
    g = twin.update(decided, 1.0)
    np.testing.assert_allclose(g, chances * (1.0 - view.b[j]) * decided.weight - missing)
    assert twin.delta == pytest.approx(0.0, abs=1e-12)
    assert twin.spread == pytest.approx(
        4 * (1 - view.b[j]) ** 2 + 4 * 2 ** (-2 / 3) * (0.5 - view.b) @ q**2
    )
    assert twin.mean == pytest.approx(0.55)
    after = view.b.copy()
    after[j] += decided.weight * (1.0 - view.b[j])
    np.testing.assert_allclose(twin.estimates, after)
    assert twin.passed == pytest.approx(1 + twin.spread + 0.01)


def test_the_twins_gates() -> None:
    for gate in (HALF, Soft(2.0, 0.25), Hard(0.3)):
        twin = made(4, gate=gate, rungs=(1.0, 8.0))
        twin.estimates = np.array([0.0, 1.0, 30.0, 900.0])
        twin.mean = 0.3
        view = twin.view()
        fall = view.scale * view.b / view.p  # in units of 1 / eta of the first rung
        if isinstance(gate, Hard):
            np.testing.assert_array_equal(view.b, np.where(view.p >= 0.3 * view.eps, 0.3, 0.0))
            assert 0.0 in view.b
        else:
            limit = gate.a + gate.delta * view.scale * view.gaps
            assert (fall <= limit * (1.0 + 1e-12)).all()
            assert (view.b == 0.3).any()
            assert np.isclose(fall, limit).any()


def test_a_rung_of_infinite_rate_follows_the_leaders() -> None:
    twin = made(4, rungs=(0.5, math.inf), prior=(0.0001, 0.9999))
    twin.estimates = np.array([3.0, 1.0, 1.0, 9.0])
    view = twin.view()
    np.testing.assert_allclose(twin.rung_law(view, 1), [0.0, 0.5, 0.5, 0.0])
    assert {twin.decide().exploit for _ in range(60)} == {1, 2}
    draws = np.array([9.0, 1.5, 2.0, 9.0])
    chances = [twin.conditional_probability(view, 1, draws, arm) for arm in range(4)]
    np.testing.assert_allclose(chances, [0.0, 2.0**-3, 1.5**-3, 0.0])
    twin.estimates = np.array([3.0, 1.0, 2.0, 9.0])
    assert twin.conditional_probability(twin.view(), 1, draws, 1) == 1.0


def test_errors_name_the_argument() -> None:
    for options, match in (
        ({"losses": [1.0]}, "losses"),
        ({"losses": [1.0, 2.0]}, "losses"),
        ({"eps": 2.0}, "eps"),
        ({"mean": 1.5}, "mean"),
        ({"rungs": [0.5]}, "rungs"),
    ):
        with pytest.raises(dc.ParameterError, match=match):
            theory.inspect_round(**{"estimates": [0.0, 1.0], "eta": 1.0, "losses": [0.0, 1.0]} | options)  # type: ignore[arg-type]

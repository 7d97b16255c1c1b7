"""The checks pass where the lemmas hold, find the known slips, and notice a broken inequality."""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

import decoupled as dc
from decoupled_lab import theory
from decoupled_lab.theory import checking
from decoupled_lab.theory.inequality import AS_PRINTED, OURS, Inequality, Line, Sides
from decoupled_lab.theory.lemmas import all_sides, paper, path
from decoupled_lab.theory.moment import Moment
from decoupled_lab.theory.survey import regimes
from decoupled_lab.theory.trajectory import run
from support.inequalities import check_teeth
from support.twins.ftpl import FTPLTwin

EVENT_PRINTED = paper.BEST_PRINTED.name
TAIL_PRINTED = paper.TAIL_PRINTED.name


def edge(arms: int, alpha: float) -> theory.Report:
    moment = paper.edge_of_event(arms, alpha)
    return theory.inspect(moment.estimates, moment.eta, alpha, moment.best, moment.zeta)


@pytest.mark.parametrize("alpha", [1.1, 3.0, 6.0])
def test_nothing_fails_that_should_hold(alpha: float) -> None:
    report = theory.survey(alphas=[alpha], arms=[2, 8], horizon=25, seed=1)
    assert report.surprises == []
    assert all(line.evaluated for line in report.lines)
    sources = {line.inequality.source for line in report.lines if line.inequality.status == OURS}
    assert {f"ladder, L{number}" for number in (1, 2, 4, 5, 6, 7, 8)} <= sources


def test_nothing_fails_with_many_arms_either() -> None:
    world = dc.environments.Bernoulli([0.9, *np.linspace(0.1, 0.5, 255)])
    assert theory.check(world, dc.FTPL(alpha=2.4), horizon=100, rounds=10).surprises == []


def test_random_states_break_no_lemma() -> None:
    # States that no trajectory visits: gaps over six orders of magnitude, and any arm as the best.
    rng = np.random.default_rng(7)
    reports = []
    for _ in range(60):
        arms = int(rng.integers(2, 40))
        estimates = rng.exponential(1.0, arms) * 10.0 ** rng.uniform(-3, 3)
        best = int(rng.integers(arms)) if rng.random() < 0.5 else int(np.argmin(estimates))
        reports.append(
            theory.inspect(estimates, 10.0 ** rng.uniform(-2, 1), rng.uniform(1.05, 8.0), best)
        )
    together = theory.combine(reports)
    assert together.surprises == []
    assert together[paper.BEST.name].evaluated > 5


def test_the_event_needs_a_strict_inequality() -> None:
    line = theory.inspect([50.0, 0.0], eta=1.0)[EVENT_PRINTED]
    assert line.violations == 1
    assert line.witness is not None
    assert f"{line.witness.right:.0e}" == "7e-06"  # as in the notes on the paper
    # With a third arm, however far behind, the sum exceeds 1/2 and the event does not hold.
    names = [line.inequality.name for line in theory.inspect([50.0, 0.0, 1e12], eta=1.0).lines]
    assert EVENT_PRINTED not in names
    assert paper.OFF_PRINTED.name in names


def test_the_tail_bound_fails_from_a_few_hundred_arms_on() -> None:
    assert edge(300, 3.0)[TAIL_PRINTED].violations == 0
    for arms in (350, 400, 2_000):
        report = edge(arms, 3.0)
        assert report[TAIL_PRINTED].violations == 1
        assert report.surprises == []  # the corrected step holds, and so does the lemma


def test_a_trajectory_meets_the_failing_tail_bound() -> None:
    # Losses are 0 and 1 without noise. The event begins around round 1400, when sum q is still near 6.5.
    world = dc.environments.LossTable(
        [[0.0] + [1.0] * 255], noise="none", index=np.zeros(1_460, int)
    )
    policy = dc.FTPL(alpha=5.0, c=0.5)
    report = theory.check(world, policy, 1_460, rounds=5, zeta=0.0145, whole_path=False)
    assert report[TAIL_PRINTED].violations == 1
    assert report.surprises == []


def test_other_slips_fail_as_printed_and_hold_corrected() -> None:
    world = dc.environments.Bernoulli([0.9, 0.3, 0.2])
    report = theory.check(world, dc.FTPL(alpha=2.0), horizon=300, seed=0)
    for printed, corrected in (
        (paper.SLOPE_PRINTED, paper.SLOPE),
        (paper.USE_PRINTED, paper.USE),
        (paper.EXPONENT_PRINTED, paper.EXPONENT),
        (paper.ROOTS_PRINTED, paper.ROOTS),
    ):
        assert printed.status == AS_PRINTED
        assert report[printed.name].violations > 0
        assert report[corrected.name].violations == 0


def test_beyond_three_the_chain_breaks() -> None:
    world = dc.environments.Bernoulli([0.9, 0.3, 0.2])
    report = theory.check(world, dc.FTPL(alpha=8.0), horizon=300, seed=0)
    assert report[paper.LAST_BEYOND.name].violations > 0
    assert report.surprises == []


def everything() -> list[tuple[Sides, Moment]]:
    """Both sides of every inequality, from trajectories of two kinds."""
    found: list[tuple[Sides, Moment]] = []
    for arms in (2, 12):
        for world in list(regimes(arms))[:2]:
            trajectory = run(dc.FTPL(), world, 250, 0)
            for round_ in (1, 2, 5, 20, 80, 250):
                moment = trajectory.moment(round_, 0.1)
                found += [(sides, moment) for sides in all_sides(moment)]
            both = (*path.decomposition(trajectory), *path.unbiasedness(trajectory, 0.1))
            found += [(sides, trajectory.moment(round_, 0.1)) for round_, sides in both]
    return found


def test_a_broken_side_of_any_inequality_is_noticed() -> None:
    found = everything()
    expected = {sides.inequality for sides, _ in found if sides.inequality.expected}
    assert len(expected) >= 25
    check_teeth(found, expected, least=1e-5)


def test_not_a_number_counts_as_a_violation() -> None:
    moment = Moment(np.array([0.0, 1.0]), 1.0, 3.0)
    for left, right in ((math.nan, 1.0), (1.0, math.nan), (1.0, 0.0)):
        line = Line(paper.UPPER)
        line.add(Sides(paper.UPPER, left, right), moment)
        assert line.violations == 1


@pytest.mark.parametrize(
    ("field", "break_it", "noticed"),
    [
        ("weights", lambda weights: 1.02 * weights, path.WEIGHT),
        ("policy_law", lambda law: np.roll(law, 1, axis=1), path.LAW),
        ("explored", lambda explored: np.zeros_like(explored), path.COUNTS),
        ("losses", lambda losses: 2.0 * losses, path.DECOMPOSITION),
    ],
)
def test_a_broken_policy_is_noticed(
    field: str, break_it: Any, noticed: Inequality, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = dc.environments.Alternating(arms=6, gap=0.3)

    def broken_run(*arguments: Any) -> Any:
        trajectory = run(*arguments)
        return dataclasses.replace(trajectory, **{field: break_it(getattr(trajectory, field))})

    monkeypatch.setattr(checking, "run", broken_run)
    report = theory.check(world, horizon=300, rounds=2)
    assert noticed.name in [line.inequality.name for line in report.surprises]


def test_a_moment_agrees_with_the_twin() -> None:
    twin = FTPLTwin(5, alpha=2.5, c=1.5)
    twin.estimates[:] = [3.0, 0.5, 0.5, 9.0, 40.0]
    twin.observations = 16
    moment = Moment(twin.estimates, twin.eta, 2.5)
    np.testing.assert_allclose(moment.exploration, twin.exploration_law(), rtol=1e-13)
    np.testing.assert_allclose(moment.moments.law, twin.exploitation_law(), atol=1e-10)
    # The stability by definition: the arm is explored with probability p, and its estimate grows by 1/p.
    for arm in range(5):
        after = twin.estimates.copy()
        after[arm] += 1.0 / moment.exploration[arm]
        lost = moment.moments.law[arm] - theory.weights(after, twin.eta, 2.5)[arm]
        assert moment.stability[arm] == pytest.approx(lost, rel=1e-9)


def test_an_adversary_sees_what_is_exploited() -> None:
    trajectory = run(dc.FTPL(), dc.environments.PunishLast(arms=6), 200, 0)
    assert (trajectory.means[np.arange(1, 200), trajectory.exploited[:-1]] == 1.0).all()
    assert (trajectory.exploited != trajectory.explored).any()


def test_the_ladder_rises() -> None:
    world = dc.environments.Alternating(arms=4, gap=0.25)
    found = [theory.steps(world, horizon=300, seed=seed) for seed in range(5)]
    totals = np.mean([[rung.total for rung in each] for each in found], axis=0)
    assert (np.diff(totals) > 0.0).all()
    assert found[0][-1].total == pytest.approx(theory.bounds.theorem1(300, 4))


def test_the_same_seed_gives_the_same_report() -> None:
    world = dc.environments.PunishLast(arms=4)
    first, second = (theory.check(world, horizon=60, seed=3).table() for _ in range(2))
    assert first.equals(second)
    assert not first.equals(theory.check(world, horizon=60, seed=4).table())


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda world: theory.check(world, dc.Exp3()), "policy"),  # type: ignore[arg-type]
        (lambda world: theory.check(world, horizon=0), "horizon"),
        (lambda world: theory.check(world, zeta=1.0), "zeta"),
        (lambda world: theory.inspect([0.0, 1.0], 1.0, best=2), "best"),
        (lambda world: theory.inspect([0.0], 1.0), "two arms"),
        (lambda world: theory.inspect([0.0, 1.0], 1.0)["w <= (1 + eta u)^alpha"], "did you mean"),
    ],
)
def test_errors_name_the_argument(call: Any, said: str) -> None:
    with pytest.raises(dc.ParameterError, match=said):
        call(dc.environments.PunishLast(arms=4))

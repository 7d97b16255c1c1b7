"""The tests can fail: each is given a kernel with a small, likely mistake, and must reject it.

A guard that accepts everything looks like one that works. The wrong variants here are written for the
purpose, with the counts of draws of the tests proper; `make mutations` breaks the kernels themselves,
one at a time, and sees that a test fails for each.
"""

import math
from typing import Any, cast

import numpy as np
import pytest

import decoupled as dc
from decoupled.base.arrays import Floats, Ints, Words
from decoupled.kernels.jit import compiled
from decoupled.kernels.laws import simplex
from decoupled.kernels.laws import winner_law as weights
from decoupled.kernels.laws.winner_law import pareto_winner_law
from decoupled.kernels.order.ranked import move_arm, sort_arms
from decoupled.kernels.powers import inverse_power
from decoupled.kernels.random.sampling import categorical, pareto_leader, total
from decoupled.kernels.random.stream import new_stream, uniform
from support.statistics import chi_square_p, means_agree
from support.twins.ftpl import FTPLTwin
from support.twins.tsallis import TsallisTwin, tsallis_law_by_brentq

pytestmark = pytest.mark.slow

# Far below the level of any test, so that a rejection is not luck.
CERTAIN = 1e-9

DRAWS = 300_000
ETA, ALPHA = 0.7, 3.0
GAPS = 0.05 * 1.5 ** np.arange(8.0) - 0.05

RIGHT, ACCEPT_ALL, SKIP_ONE_MORE, FORGET_SHIFT = range(4)


@compiled
def inverse_root(base: float, degree: float) -> float:
    return math.exp(-math.log(base) / degree) - 1.0


@compiled
def faulty_leader(ranked: Floats, eta: float, alpha: float, fault: int, stream: Words) -> int:
    """The perturbed leader by thinning, with one of three faults."""
    lowest = ranked[0]
    best = inverse_root(uniform(stream), alpha)
    leader = 0
    place = 1
    while place < len(ranked):
        bound = inverse_power(best + eta * (ranked[place] - lowest), alpha)
        place += int(math.log(uniform(stream)) / math.log1p(-bound)) + (fault == SKIP_ONE_MORE)
        if place >= len(ranked):
            break
        shift = eta * (ranked[place] - lowest)
        mark = uniform(stream) * bound
        if fault == ACCEPT_ALL or mark <= inverse_power(best + shift, alpha):
            best = inverse_root(mark, alpha) - (0.0 if fault == FORGET_SHIFT else shift)
            leader = place
        place += 1
    return leader


@compiled
def count_faulty(counts: Ints, draws: int, ranked: Floats, alpha: float, fault: int, stream: Words) -> None:
    for _ in range(draws):
        counts[faulty_leader(ranked, ETA, alpha, fault, stream)] += 1


def leader_p_value(fault: int, alpha: float = ALPHA) -> float:
    counts = np.zeros(len(GAPS), np.int64)
    count_faulty(counts, DRAWS, GAPS, alpha, fault, new_stream(np.random.SeedSequence(21)))
    return chi_square_p(counts, pareto_winner_law(ETA * GAPS, ALPHA))


def test_the_copy_itself_is_sound() -> None:
    # Otherwise the copy itself might cause the rejections below.
    assert leader_p_value(RIGHT) > 1e-3


@pytest.mark.parametrize("fault", [ACCEPT_ALL, SKIP_ONE_MORE, FORGET_SHIFT])
def test_faulty_thinning_is_caught(fault: int) -> None:
    assert leader_p_value(fault) < CERTAIN


def test_an_exponent_wrong_by_five_percent_is_caught() -> None:
    assert leader_p_value(RIGHT, alpha=1.05 * ALPHA) < CERTAIN


@compiled
def count_mixed(counts: Ints, draws: int, ranked: Floats, share: float, stream: Words) -> None:
    """The true leader, except for a small share of draws that always take the first arm."""
    for _ in range(draws):
        blind = uniform(stream) <= share
        leader = pareto_leader(ranked, ETA, ALPHA, stream)
        counts[0 if blind else leader] += 1


def test_one_draw_in_a_hundred_gone_astray_is_caught() -> None:
    counts = np.zeros(len(GAPS), np.int64)
    count_mixed(counts, DRAWS, GAPS, 0.01, new_stream(np.random.SeedSequence(22)))
    assert chi_square_p(counts, pareto_winner_law(ETA * GAPS, ALPHA)) < CERTAIN


@compiled
def count_categories(counts: Ints, draws: int, chances: Floats, mass: float, stream: Words) -> None:
    for _ in range(draws):
        counts[categorical(chances, mass, stream)] += 1


def test_a_sum_wrong_by_two_percent_is_caught() -> None:
    chances = np.array([0.1, 0.4, 0.3, 0.2])
    counts = np.zeros(4, np.int64)
    count_categories(counts, DRAWS, chances, 1.02 * total(chances), new_stream(np.random.SeedSequence(23)))
    assert chi_square_p(counts, chances) < CERTAIN


def test_a_draw_of_weight_zero_is_caught() -> None:
    assert chi_square_p([999_999, 1], [1.0, 0.0]) == 0.0


@compiled
def fill_bent(draws: Floats, stream: Words) -> None:
    for k in range(len(draws)):
        draws[k] = uniform(stream) ** 1.02


def test_a_slightly_bent_uniform_is_caught() -> None:
    draws = np.empty(DRAWS)
    fill_bent(draws, new_stream(np.random.SeedSequence(24)))
    counts, _ = np.histogram(draws, bins=50, range=(0.0, 1.0))
    assert chi_square_p(counts, np.full(50, 0.02)) < CERTAIN


class RankOffByOne(FTPLTwin):
    def ranks(self) -> Ints:
        return super().ranks() + 1


class RateOffByAThird(FTPLTwin):
    @property
    def eta(self) -> float:
        return 1.3 * super().eta


WRONG_LAWS = [RankOffByOne, RateOffByAThird]


def pair_of(twin: type[FTPLTwin]) -> tuple[dc.Learner, FTPLTwin]:
    learner, slow = dc.FTPL().start(arms=5, seed=25), twin(5)
    for arm, loss in enumerate([0.1, 0.3, 0.6, 0.2, 0.9]):
        learner.replay([(arm, 0.2, loss)])
        slow.update(arm, 5.0, loss)
    return learner, slow


@pytest.mark.parametrize("twin", WRONG_LAWS)
def test_a_wrong_exploration_law_is_caught(twin: type[FTPLTwin]) -> None:
    learner, slow = pair_of(twin)
    explored = [cast(int, decision.explore) for decision in learner.decide(count=50_000)]
    counts = np.bincount(explored, minlength=5)
    assert chi_square_p(counts, learner.exploration_probabilities()) > 1e-3
    assert chi_square_p(counts, slow.exploration_law()) < CERTAIN


def test_two_draws_from_one_uniform_are_caught() -> None:
    # Each draw has its law, but they are correlated; only the table of pairs shows it.
    learner, _ = pair_of(FTPLTwin)
    w, p = learner.exploitation_probabilities(), learner.exploration_probabilities()
    shared = np.random.default_rng(26).random(50_000)
    exploit = np.minimum(np.searchsorted(np.cumsum(w), shared), 4)
    explore = np.minimum(np.searchsorted(np.cumsum(p), shared), 4)
    counts = np.zeros((5, 5))
    np.add.at(counts, (exploit, explore), 1)
    assert chi_square_p(counts.sum(axis=0), p) > 1e-3
    assert chi_square_p(counts, np.outer(w, p)) < CERTAIN


@pytest.mark.parametrize("late", [False, True])
def test_late_feedback_weighed_by_the_present_state_is_caught(late: bool) -> None:
    learner, _ = pair_of(FTPLTwin)
    losses = np.array([0.2, 0.3, 1.0, 0.7, 0.5])
    then = learner.exploration_probabilities()
    counts = np.zeros(5)
    for decision in learner.decide(count=20_000):
        counts[cast(int, decision.explore)] += 1
    learner.replay([(arm, 0.2, 0.2 * arm) for arm in range(5)])
    now = learner.exploration_probabilities()
    mean = losses * counts / (now if late else then) / counts.sum()
    error = losses * np.sqrt((1.0 / then - 1.0) / counts.sum())
    assert means_agree(mean, losses, error, CERTAIN) is not late


@compiled
def move_by_estimate_alone(ranked: Floats, order: Ints, arm: int, after: float) -> None:
    """Insertion that ignores the arm's number, as a plain sorted list would."""
    rank = 0
    while order[rank] != arm:
        rank += 1
    while rank + 1 < len(order) and ranked[rank + 1] < after:
        ranked[rank], order[rank] = ranked[rank + 1], order[rank + 1]
        rank += 1
    while rank > 0 and ranked[rank - 1] > after:
        ranked[rank], order[rank] = ranked[rank - 1], order[rank - 1]
        rank -= 1
    ranked[rank], order[rank] = after, arm


@pytest.mark.parametrize("careless", [False, True])
def test_ties_left_to_chance_are_caught(careless: bool) -> None:
    generator = np.random.default_rng(27)
    estimates = np.zeros(8)
    ranked, order = np.zeros(8), np.zeros(8, np.int64)
    sort_arms(estimates, ranked, order)
    wrong = 0
    for _ in range(200):
        arm, after = int(generator.integers(8)), float(generator.integers(3))
        if careless:
            move_by_estimate_alone(ranked, order, arm, after)
        else:
            move_arm(ranked, order, arm, estimates[arm], after)
        estimates[arm] = after
        wrong += order.tolist() != sorted(range(8), key=lambda arm: (estimates[arm], arm))
    assert (wrong > 0) is careless


@pytest.mark.parametrize(("last_step", "sound"), [(1e-8, True), (0.3, False)])
def test_newton_stopped_early_is_caught(
    last_step: float, sound: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simplex, "_LAST_STEP", last_step)
    uncompiled = cast(Any, simplex.tsallis_excess).py_func
    work, slopes = np.empty(8), np.empty(8)
    root, _ = uncompiled(GAPS, 1.0, 3.0, work, slopes)
    simplex.two_powers(GAPS, root, 3.0, 4.0, work, slopes)
    expected = tsallis_law_by_brentq(GAPS, 3.0, 2 / 3)
    assert np.allclose(work, expected, rtol=1e-12, atol=0) is sound


def test_a_rate_wrong_by_a_millionth_is_caught() -> None:
    learner, twin = dc.TsallisINF(c=2.0 + 2e-6).start(arms=5, seed=28), TsallisTwin(5, c=2.0)
    learner.replay([(0, 0.2, 1.0)])
    twin.update(0, 5.0, 1.0)
    law = twin.exploration_law()
    assert not np.allclose(learner.exploration_probabilities(), law, rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    ("nodes", "tail", "sound"), [(16, 1e-8, True), (6, 1e-8, False), (16, 1e-4, False)]
)
def test_too_coarse_a_quadrature_is_caught(
    nodes: int, tail: float, sound: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    points, point_weights = np.polynomial.legendre.leggauss(nodes)
    exact = pareto_winner_law(GAPS, ALPHA)
    monkeypatch.setattr(weights, "_NODES", points)
    monkeypatch.setattr(weights, "_NODE_WEIGHTS", point_weights)
    plain = weights.grid.__wrapped__  # without the cache of earlier calls
    monkeypatch.setattr(weights, "grid", lambda *problem: plain(*problem, tail))
    law = pareto_winner_law(GAPS, ALPHA)
    assert np.allclose(law, exact, rtol=0, atol=1e-12) is sound

"""The tests of draws can fail: a small, likely mistake must be rejected, at the counts of draws of the tests proper.

A guard that accepts everything looks like one that works. `make mutations` breaks the kernels themselves, one at a time,
and sees that a test fails for each; here the statistics alone are judged.
"""

from typing import cast

import numpy as np
import pytest

import decoupled as dc
from decoupled.kernels.laws.winner_law import pareto_winner_law
from support.statistics import chi_square_p, means_agree

# Far below the level of any test, so that a rejection is not luck.
CERTAIN = 1e-9
DRAWS = 300_000
LAW = pareto_winner_law(0.7 * (0.05 * 1.5 ** np.arange(8.0) - 0.05), 3.0)
FIRST = np.eye(8)[0]


def trained() -> dc.Learner:
    learner = dc.FTPL().start(arms=5, seed=25)
    for arm, loss in enumerate([0.1, 0.3, 0.6, 0.2, 0.9]):
        learner.replay([(arm, 0.2, loss)])
    return learner


@pytest.mark.parametrize(("astray", "sound"), [(0.0, True), (0.01, False)])
def test_one_draw_in_a_hundred_gone_astray_is_caught(astray: float, sound: bool) -> None:
    counts = np.random.default_rng(22).multinomial(DRAWS, (1.0 - astray) * LAW + astray * FIRST)
    found = chi_square_p(counts, LAW)
    assert found > 1e-3 if sound else found < CERTAIN


def test_two_draws_from_one_uniform_and_one_of_weight_zero_are_caught() -> None:
    # Each draw has its law, but they are correlated; only the table of pairs shows it.
    learner = trained()
    w, p = learner.exploitation_probabilities(), learner.exploration_probabilities()
    shared = np.random.default_rng(26).random(50_000)
    exploit = np.minimum(np.searchsorted(np.cumsum(w), shared), 4)
    explore = np.minimum(np.searchsorted(np.cumsum(p), shared), 4)
    counts = np.zeros((5, 5))
    np.add.at(counts, (exploit, explore), 1)
    assert chi_square_p(counts.sum(axis=0), p) > 1e-3
    assert chi_square_p(counts, np.outer(w, p)) < CERTAIN
    assert chi_square_p([999_999, 1], [1.0, 0.0]) == 0.0


@pytest.mark.parametrize("late", [False, True])
def test_late_feedback_weighed_by_the_present_state_is_caught(late: bool) -> None:
    learner = trained()
    losses = np.array([0.2, 0.3, 1.0, 0.7, 0.5])
    then = learner.exploration_probabilities()
    counts = np.bincount([cast(int, each.explore) for each in learner.decide(count=20_000)], minlength=5)
    learner.replay([(arm, 0.2, 0.2 * arm) for arm in range(5)])
    now = learner.exploration_probabilities()
    mean = losses * counts / (now if late else then) / counts.sum()
    error = losses * np.sqrt((1.0 / then - 1.0) / counts.sum())
    assert means_agree(mean, losses, error, CERTAIN) is not late

"""The strongest rival: its law, and the chance that an arm has against it."""

import numpy as np
import pytest

from decoupled.kernels.laws.ladder_rungs import chance_against, strongest_rival
from decoupled.kernels.laws.winner_law import pareto_winner_law
from decoupled.kernels.random.stream import scrambled
from support.statistics import chi_square_p
from support.twins import Floats

DRAWS = 20_000
LEVEL = 1e-4  # of each test below: the rate of false alarms

STATES = [
    np.array([0.0, 0.0]),
    np.array([0.0, 0.4, 0.5, 3.0]),
    np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]),
    np.array([0.0, 2.0, 2.5, 2.5, 9.0, 40.0]),
    np.concatenate([[0.0, 0.1], np.linspace(0.2, 6.0, 70)]),
]


def keys() -> list[np.uint64]:
    return [np.uint64(scrambled(np.uint64(number))) for number in range(1, DRAWS + 1)]


@pytest.mark.parametrize("alpha", [3.0, 2.0, 2.5])
@pytest.mark.parametrize("state", range(len(STATES)))
def test_the_mean_chance_is_the_probability_to_lead(state: int, alpha: float) -> None:
    ranked = STATES[state]
    eta = 0.8
    law = pareto_winner_law(eta * ranked, alpha)
    for rank in {0, 1, len(ranked) - 1}:
        chances = np.array([chance_against(ranked, rank, eta, alpha, key)[0] for key in keys()])
        assert ((chances > 0) & (chances <= 1)).all()
        error = chances.std() / np.sqrt(DRAWS) + 1e-12
        assert abs(chances.mean() - law[rank]) < 4.0 * error


@pytest.mark.parametrize("alpha", [3.0, 1.5])
@pytest.mark.parametrize("state", range(len(STATES)))
def test_rivals_win_as_often_as_among_themselves(state: int, alpha: float) -> None:
    ranked = STATES[state]
    for rank in {0, len(ranked) - 1}:
        others: Floats = np.delete(ranked, rank)
        law = np.insert(pareto_winner_law(0.8 * (others - others.min()), alpha), rank, 0.0)
        winners = [strongest_rival(ranked, rank, 0.8, alpha, key)[0] for key in keys()]
        assert chi_square_p(np.bincount(winners, minlength=len(ranked)), law) > LEVEL


def test_an_arm_alone_always_wins() -> None:
    assert chance_against(np.zeros(1), 0, 1.0, 3.0, np.uint64(1)) == (1.0, 0)

"""AdaHedge against its definition, and against the inequality that it is used for.

The strongest rival: its law, and the chance that an arm has against it.
"""

import math
from collections.abc import Iterable

import numpy as np
import pytest

from decoupled.kernels.random.stream import scrambled
from decoupled.kernels.winner_law import pareto_winner_law
from decoupled.policies.ladder.rungs import (
    chance_against,
    fill_hedge,
    hedge_step,
    strongest_rival,
)
from support.statistics import chi_square_p
from support.twins import Floats

PRIOR, LOSS, WEIGHT, STEP = 0, 5, 10, 15
RATE = 3.0


def weights_by_definition(prior: Floats, losses: Floats, regret: float) -> Floats:
    behind = losses - losses.min()
    weights = prior * (behind == 0 if regret == 0 else np.exp(-RATE * behind / regret))
    law: Floats = weights / weights.sum()
    return law


@pytest.mark.parametrize("rungs", [2, 3, 5])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_it_is_adahedge_with_a_prior(rungs: int, scale: float) -> None:
    generator = np.random.default_rng(rungs)
    prior = generator.dirichlet(np.ones(rungs))
    scalars = np.zeros(20)
    scalars[PRIOR : PRIOR + rungs] = prior
    regret = suffered = 0.0
    losses = np.zeros(rungs)
    for _ in range(500):
        whole = fill_hedge(scalars, rungs, PRIOR, LOSS, WEIGHT, regret, RATE)
        weights = weights_by_definition(prior, losses, regret)
        np.testing.assert_allclose(
            scalars[WEIGHT : WEIGHT + rungs], weights, rtol=1e-9, atol=1e-300
        )
        steps = scale * generator.normal(0.1 * np.arange(rungs), 1.0)
        if regret > 0:
            rate = RATE / regret
            mixed = (
                steps.min()
                - math.log((weights * np.exp(-rate * (steps - steps.min()))).sum()) / rate
            )
        else:
            mixed = (losses + steps).min() - losses.min()
        expected = regret + max(float(weights @ steps) - mixed, 0.0)
        scalars[STEP : STEP + rungs] = steps
        regret = hedge_step(scalars, rungs, PRIOR, LOSS, WEIGHT, STEP, whole, regret, RATE)
        assert regret == pytest.approx(expected, rel=1e-9)
        losses, suffered, regret = losses + steps, suffered + float(weights @ steps), expected
        # Lemma L7: for every rung, on every path.
        assert (
            suffered - losses <= (1 + np.log(1 / prior) / RATE) * regret * (1 + 1e-9) + 1e-9
        ).all()


def regret_after(
    losses: Iterable[tuple[float, ...]], prior: tuple[float, ...]
) -> tuple[float, float]:
    """The regret of the hedge, and what it says of it: AdaHedge's own sum of mixability gaps."""
    rungs, gaps, suffered = len(prior), 0.0, 0.0
    scalars = np.zeros(20)
    scalars[PRIOR : PRIOR + rungs] = prior
    for step in losses:
        whole = fill_hedge(scalars, rungs, PRIOR, LOSS, WEIGHT, gaps, RATE)
        scalars[STEP : STEP + rungs] = step
        suffered += float(scalars[WEIGHT : WEIGHT + rungs] @ step)
        gaps = hedge_step(scalars, rungs, PRIOR, LOSS, WEIGHT, STEP, whole, gaps, RATE)
    return suffered - float(scalars[LOSS : LOSS + rungs].min()), gaps


def test_a_rung_may_overtake_and_a_hopeless_one_has_no_say() -> None:
    """With the mix loss from the weights, the sum of gaps would stay at 3e-5 and the regret grow to
    1,999.
    """
    trap = [(1e-4, 1e-4, 0.0), (0.5, 0.5, 0.0), *[(0.0, 0.0, 1.0), (1.0, 1.0, 0.0)] * 2_000]
    prior = (0.1, 0.15, 0.75)
    regret, gaps = regret_after(trap, prior)
    assert 40 < regret < 55
    assert regret <= (1 + math.log(1 / prior[0]) / RATE) * gaps
    scalars = np.zeros(20)
    scalars[PRIOR : PRIOR + 2] = 0.5
    scalars[LOSS : LOSS + 2] = 0.0, 1e6
    whole = fill_hedge(scalars, 2, PRIOR, LOSS, WEIGHT, 1.0, RATE)
    assert scalars[WEIGHT : WEIGHT + 2].tolist() == [1.0, 0.0]
    scalars[STEP : STEP + 2] = 1.0, -1e3
    assert hedge_step(scalars, 2, PRIOR, LOSS, WEIGHT, STEP, whole, 1.0, RATE) == 1.0
    assert chance_against(np.zeros(1), 0, 1.0, 3.0, np.uint64(1)) == (1.0, 0)


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

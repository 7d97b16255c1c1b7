"""AdaHedge against its definition, and against the inequality that it is used for."""

import math

import numpy as np
import pytest

from decoupled.kernels.laws.hedge import fill_hedge, hedge_step
from support.twins import Floats

PRIOR, LOSS, WEIGHT, STEP = 0, 5, 10, 15
BOLDNESS = 3.0


def weights_by_definition(prior: Floats, losses: Floats, regret: float) -> Floats:
    behind = losses - losses.min()
    weights = prior * (behind == 0 if regret == 0 else np.exp(-BOLDNESS * behind / regret))
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
        fill_hedge(scalars, rungs, PRIOR, LOSS, WEIGHT, regret, BOLDNESS)
        weights = weights_by_definition(prior, losses, regret)
        np.testing.assert_allclose(scalars[WEIGHT : WEIGHT + rungs], weights, rtol=1e-9, atol=1e-300)
        steps = scale * generator.normal(0.1 * np.arange(rungs), 1.0)
        if regret > 0:
            rate = BOLDNESS / regret
            mixed = steps.min() - math.log((weights * np.exp(-rate * (steps - steps.min()))).sum()) / rate
        else:
            mixed = (losses + steps).min() - losses.min()
        expected = regret + max(float(weights @ steps) - mixed, 0.0)
        scalars[STEP : STEP + rungs] = steps
        regret = hedge_step(scalars, rungs, LOSS, WEIGHT, STEP, regret, BOLDNESS)
        assert regret == pytest.approx(expected, rel=1e-9)
        losses, suffered, regret = losses + steps, suffered + float(weights @ steps), expected
        # Lemma L7: for every rung, on every path.
        assert (suffered - losses <= (1 + np.log(1 / prior) / BOLDNESS) * regret * (1 + 1e-9) + 1e-9).all()


def test_a_rung_that_is_hopeless_has_no_weight_and_no_say() -> None:
    scalars = np.zeros(20)
    scalars[PRIOR : PRIOR + 2] = 0.5
    scalars[LOSS : LOSS + 2] = 0.0, 1e6
    fill_hedge(scalars, 2, PRIOR, LOSS, WEIGHT, 1.0, BOLDNESS)
    assert scalars[WEIGHT : WEIGHT + 2].tolist() == [1.0, 0.0]
    scalars[STEP : STEP + 2] = 1.0, -1e9
    assert hedge_step(scalars, 2, LOSS, WEIGHT, STEP, 1.0, BOLDNESS) == 1.0

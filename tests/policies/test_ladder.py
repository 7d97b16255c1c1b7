"""The ladder: what its rungs are judged by, losses of any scale, and its forms for many arms."""

import dataclasses

import numpy as np
import pytest

import decoupled as dc
from decoupled.kernels.laws import ladder_state
from decoupled.kernels.laws.ladder_rungs import judge_rungs
from decoupled.kernels.state import ROUND, State
from support.centred_ftpl import CENTRED_FTPL
from support.twins import Floats, pareto_law_by_quad

RUNGS = dc.FTPL(
    c=0.5, estimator="centred", gate="soft", schedule="losses", start_at="first", lam=0.15,
    rungs=(0.5, 8.0, 1e100), mix=0.5,
)  # fmt: skip
ARMS = 5
LOSSES = np.array([0.9, 0.2, 0.4, 0.8, 0.5])


def explored(decision: dc.Decision) -> int:
    return int(decision.explore)


def played(policy: dc.FTPL, rounds: int, seed: int) -> State:
    """The state of a learner after some rounds."""
    learner = policy.start(arms=ARMS, seed=seed)
    generator = np.random.default_rng(seed)
    for _ in range(rounds):
        decision = learner.decide()
        learner.observe(decision, loss=float(generator.random() < LOSSES[explored(decision)]))
    return learner._running.state


def rung_laws(policy: dc.FTPL, state: State) -> Floats:
    """The exact law of every rung."""
    estimates = policy.layout.row(state, "estimates")
    gaps = estimates - estimates.min()
    laws = []
    for rung in range(4):
        rate = state.scalars[ladder_state.RATE + rung]
        if rate == ladder_state.FOLLOW:
            laws.append((gaps == 0) / np.count_nonzero(gaps == 0))
        elif rate < 0:
            laws.append(np.eye(ARMS)[int(state.scalars[ladder_state.LEADER])])
        else:
            laws.append(pareto_law_by_quad(state.scalars[ladder_state.ETA] * rate * gaps, policy.alpha))
    return np.array(laws)


@pytest.mark.parametrize("rounds", [7, 60])
def test_rungs_are_judged_without_bias(rounds: int) -> None:
    # The mean over the explored arm is exact, that over the hashed draws is of 1,500: an error of more than 4.5
    # standard errors has a probability below 1e-5 for each rung. Surprises of the boldest rung may be too rare for
    # its standard error to know of them, but are worth less than 1e-4.
    state, draws = played(RUNGS, rounds, seed=3), 1_500
    params, laws = RUNGS.params(), rung_laws(RUNGS, state)
    chances = RUNGS.exploration_law(state)
    baseline, highest = state.floats[ladder_state.BASELINE], state.scalars[ladder_state.HIGHEST]
    steps = np.zeros((draws, 4))
    for draw in range(draws):
        for arm in range(ARMS):
            part = State(state.scalars.copy(), state.floats.copy(), state.ints.copy())
            part.scalars[ROUND] = 10_000 + draw  # another key; nothing else in here depends on the round
            judge_rungs(params, part, arm, 1 / chances[arm], LOSSES[arm] - baseline[arm])
            steps[draw] += chances[arm] * part.scalars[ladder_state.STEP : ladder_state.STEP + 4]
    error = steps.std(axis=0) / np.sqrt(draws)
    assert (np.abs(steps.mean(axis=0) - (laws @ LOSSES - highest)) < 4.5 * error + 1e-4).all()


def test_no_observation_takes_more_than_half_an_arms_gap_off_its_estimate() -> None:
    policy = dc.FTPL.recommended()
    learner = policy.start(arms=ARMS, seed=1)
    generator = np.random.default_rng(1)
    for _ in range(400):
        state = learner._running.state
        before, rate = (
            learner.estimates(),
            state.scalars[ladder_state.ETA] * state.scalars[ladder_state.RATE],
        )
        told = learner.round > 1 and state.scalars[ladder_state.LARGEST] > 0
        least = state.scalars[ladder_state.LEAST]
        decision = learner.decide()
        loss = float(generator.random() < LOSSES[explored(decision)])
        learner.observe(decision, loss=loss)
        if told and loss >= least:
            arm = explored(decision)
            gap = before[arm] - before.min()
            fall = before[arm] - learner.estimates()[arm]
            assert fall <= 0.5 * gap + 0.5 / rate + 1e-9


def cost_of(policy: dc.FTPL, scale: float, shift: float) -> float:
    """By what factor regret grows, in units of the losses, if they are scaled and shifted."""
    generator = np.random.default_rng(5)
    table = (generator.random((3_000, 6)) < np.array([0.3, 0.5, 0.5, 0.5, 0.5, 0.5])).astype(float)
    plain, other = (
        dc.simulate([policy], dc.environments.LossTable(rows, noise="none"), 3_000, 100, seed=2, workers=1)
        .final_regret(policy)
        .mean()
        for rows in (table, shift + scale * table)
    )
    return float(other / scale / plain)


@pytest.mark.parametrize(("scale", "shift"), [(0.1, 0.0), (0.01, 0.0), (0.1, 0.7)])
def test_losses_of_any_scale_cost_the_same_share_of_regret(scale: float, shift: float) -> None:
    assert cost_of(dc.FTPL.recommended(), scale, shift) < 1.5


def test_the_hard_gate_costs_more_on_such_losses() -> None:
    """The test above can fail: the setting of version 0.1.0 does not pass it."""
    assert cost_of(CENTRED_FTPL, 0.01, 0.0) > 1.5


def test_many_arms_have_the_form_with_strata() -> None:
    policy = dc.FTPL.recommended()
    assert policy.at(4_095).gate == "soft"
    many = policy.at(4_096)
    assert (many.gate, many.ranking, many.rungs, many.c_exploit) == ("hard", "strata", (), 3.0)


def test_crossing_that_number_keeps_estimates_and_drops_what_only_rungs_know() -> None:
    learner = dc.FTPL.recommended().start(arms=4_095, seed=1)
    for _ in range(5):
        decision = learner.decide()
        learner.observe(decision, loss=0.25 * (explored(decision) % 4))
    before = learner.estimates()
    learner.add_arms(["new"])
    np.testing.assert_allclose(learner.estimates()[:4_095], before)
    learner.observe(learner.decide(), loss=0.5)
    learner.retire_arms(["new"])
    assert learner.diagnostics()["hedge_regret"] == 0.0
    learner.observe(learner.decide(), loss=0.5)
    assert np.isfinite(learner.estimates()).all()


def test_one_rung_is_the_policy_without_a_ladder() -> None:
    plain = dc.FTPL(c=1.0, c_exploit=3.0, estimator="centred", gate="soft")
    assert estimated(plain) == estimated(dataclasses.replace(plain, rungs=(3.0,), c_exploit=None))


def estimated(policy: dc.FTPL) -> list[float]:
    learner = policy.start(arms=4, seed=9)
    for number in range(50):
        decision = learner.decide()
        learner.observe(decision, loss=(explored(decision) + number) % 3 / 2)
    return [float(each) for each in learner.estimates()]

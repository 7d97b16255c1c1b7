"""`check_policy` accepts sound policies and names what is broken."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import decoupled as dc
from decoupled import testing
from decoupled.base.arrays import Floats
from decoupled.kernels.dispatch import Functions
from decoupled.kernels.jit import compiled
from decoupled.kernels.random.sampling import draw_both, total
from decoupled.kernels.state import ROUND, SHARED_SCALARS, Layout, State
from decoupled.simulation.cpu import run_streams
from decoupled.testing import engine
from decoupled.testing.case import PolicyUnderTest

SUM = len(SHARED_SCALARS)
ESTIMATES, WEIGHTS = 0, 1

# Possible mistakes in the policy below, as numbers for compiled code.
MISTAKES = (
    *(
        "none",
        "propensity",
        "weight",
        "learning",
        "forgetful",
        "nan",
        "law",
        "biased",
        "draws",
        "outside",
    ),
    *("round", "late nan", "favourite", "stale"),
)
NONE, PROPENSITY, WEIGHT, LEARNING, FORGETFUL, NAN, LAW, BIASED, DRAWS, OUTSIDE, ROUNDS, LATE = (
    range(12)
)
STALE = MISTAKES.index("stale")


class Params(NamedTuple):
    mistake: float


@compiled
def refresh(params: Any, state: Any) -> None:
    for i in range(state.floats.shape[1]):
        state.floats[WEIGHTS, i] = 1.0 / (1.0 + state.floats[ESTIMATES, i])
    if params.mistake == NAN and state.scalars[ROUND] > 100.0:
        state.floats[WEIGHTS, 1] = np.nan
    if params.mistake == LATE and state.scalars[ROUND] > 5_000.0:
        state.floats[WEIGHTS, 1] = np.nan
    state.scalars[SUM] = total(state.floats[WEIGHTS])


@compiled
def init(params: Any, state: Any) -> None:
    if params.mistake == FORGETFUL and state.scalars[ROUND] > 1.0:
        for i in range(state.floats.shape[1]):
            state.floats[WEIGHTS, i] = 1.0
        state.scalars[SUM] = state.floats.shape[1]
    else:
        refresh(params, state)


@compiled
def decide(params: Any, state: Any, stream: Any) -> tuple[int, int, float, float]:
    weights, mass = state.floats[WEIGHTS], state.scalars[SUM]
    exploit, explore, weight, propensity = draw_both(weights, mass, weights, mass, stream)
    if params.mistake == PROPENSITY:
        return exploit, explore, weight / 1.02, propensity * 1.02
    if params.mistake == WEIGHT:
        return exploit, explore, weight * 1.02, propensity
    if params.mistake == LEARNING:
        state.floats[ESTIMATES, exploit] += 1e-9
    if params.mistake == OUTSIDE and state.scalars[ROUND] > 20.0:
        explore = state.floats.shape[1]
    if params.mistake == DRAWS:
        exploit = (exploit + (1 if exploit == 0 else 0)) % state.floats.shape[1]
    return exploit, explore, weight, propensity


@compiled
def update(params: Any, state: Any, arm: int, weight: float, loss: float) -> None:
    state.floats[ESTIMATES, arm] += (0.98 if params.mistake == BIASED else 1.0) * weight * loss
    if params.mistake == STALE and weight == 0.0:
        state.floats[ESTIMATES, arm] += 0.02 * loss
    if params.mistake == ROUNDS:
        state.scalars[ROUND] += 1.0
    refresh(params, state)


@dataclass(frozen=True)
class Suspect(dc.Policy):
    """A sound policy, or one with a mistake."""

    mistake: str = "none"
    layout = Layout(scalars=("mass",), floats=("estimates", "weights"), learned=("estimates",))
    params_type = Params
    functions = Functions(init, decide, update)

    def params(self) -> Params:
        return Params(float(MISTAKES.index(self.mistake)))

    def exploitation_law(self, state: State) -> Floats:
        law: Floats = state.floats[WEIGHTS] / state.scalars[SUM]
        return law * 1.02 if self.mistake == "law" else law

    def exploration_law(self, state: State) -> Floats:
        law: Floats = state.floats[WEIGHTS] / state.scalars[SUM]
        return law

    def init_new_arms(self, state: State, first: int) -> None:
        if self.mistake != "favourite":  # a sum of 0 would be that of an arm that never lost
            super().init_new_arms(state, first)


def test_a_sound_policy_passes_and_what_is_none_is_refused() -> None:
    dc.testing.check_policy(Suspect())
    # `kept` names what the rungs will be judged with.
    engine.check_sound(PolicyUnderTest(dc.Ladder(), 5, 100, 0))
    with pytest.raises(dc.ParameterError, match=r"^policy = 3: is not a policy"):
        dc.testing.check_policy(3)  # type: ignore[arg-type]
    with pytest.raises(dc.ParameterError, match=r"^arms = 1"):
        dc.testing.check_policy(dc.FTPL(), arms=1)


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        ("propensity", "gave arm . the propensity"),
        ("weight", "weight is 1 / propensity"),
        ("learning", "decide changed the state"),
        ("forgetful", "init does not derive from estimates"),
        ("nan", "'mass' is .*nan.*not finite"),
        ("late nan", "after 100000 rounds"),
        ("law", "exploitation_law is .* which is not a law"),
        ("biased", "to the estimates on average"),
        ("draws", "would exploit"),
        ("outside", "explore = 5 of 5 arms"),
        ("round", "changed the round"),
        ("favourite", "two that came late lost 1, .* say in `init_new_arms`"),
        ("stale", "on average where an arm is retired"),
    ],
)
def test_a_broken_policy_is_told_what_is_wrong(mistake: str, message: str) -> None:
    with pytest.raises(dc.ContractError, match=message) as caught:
        dc.testing.check_policy(Suspect(mistake))
    assert str(caught.value).startswith(f"Suspect(mistake={mistake!r}): ")
    assert isinstance(caught.value, AssertionError)


def test_an_engine_that_plays_otherwise_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "run_streams", lambda seed, run: run_streams(seed, run + 1))
    with pytest.raises(dc.ContractError, match="part in round"):
        testing.check_parity(testing.PolicyUnderTest(Suspect(), 5, 1_000, 0))

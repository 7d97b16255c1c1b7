"""Parameters that are flags, whole numbers, vectors and named tuples."""

from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple

import numpy as np
import pytest

import decoupled as dc
from decoupled.base.arrays import Floats
from decoupled.extend import Functions, Layout, State, Words, compiled, draw_both, total

LAYOUT = Layout(floats=("estimates", "exploit", "explore"), learned=("estimates",))
_, R, _ = LAYOUT.places()


class Rates(NamedTuple):
    exploit: float
    explore: float


class Params(NamedTuple):
    rates: Rates
    is_even: bool
    first: int
    lifts: Annotated[tuple[float, ...], 3]


@compiled
def init(params: Params, state: State) -> None:
    floats = state.floats
    for arm in range(floats.shape[1]):
        estimate = floats[R.estimates, arm] + params.lifts[(arm + params.first) % 3]
        floats[R.exploit, arm] = 1.0 / (1.0 + params.rates.exploit * estimate)
        floats[R.explore, arm] = 1.0 / (1.0 + params.rates.explore * estimate)
        if params.is_even:
            floats[R.explore, arm] = 1.0


@compiled
def decide(params: Params, state: State, stream: Words) -> tuple[int, int, float, float]:
    exploit = state.floats[R.exploit]
    explore = state.floats[R.explore]
    return draw_both(exploit, total(exploit), explore, total(explore), stream)


@compiled
def update(params: Params, state: State, arm: int, weight: float, loss: float) -> None:
    state.floats[R.estimates, arm] += weight * loss
    init(params, state)


@dataclass(frozen=True)
class Lifted(dc.Policy):
    rates: Any = field(default=(2.0, 0.5), metadata={"depth": 1})
    is_even: Any = False
    first: Any = 1
    lifts: Any = field(default=(0.0, 0.25, 1.0), metadata={"depth": 1})

    layout = LAYOUT
    params_type = Params
    functions = Functions(init, decide, update)

    def __post_init__(self) -> None:
        for name in ("rates", "lifts"):  # lists in JSON
            object.__setattr__(self, name, tuple(getattr(self, name)))

    def exploitation_law(self, state: State) -> Floats:
        law: Floats = state.floats[R.exploit] / state.floats[R.exploit].sum()
        return law

    def exploration_law(self, state: State) -> Floats:
        law: Floats = state.floats[R.explore] / state.floats[R.explore].sum()
        return law


def test_learners_and_simulations_see_every_kind_of_parameter() -> None:
    policy = Lifted()
    assert policy.params() == Params(Rates(2.0, 0.5), False, 1, (0.0, 0.25, 1.0))
    assert policy.param_values().tolist() == [2.0, 0.5, 0.0, 1.0, 0.0, 0.25, 1.0]
    # Before the first loss the law is that of the parameters alone.
    learner = policy.start(arms=3, seed=0)
    lifts = np.array([0.25, 1.0, 0.0])
    explore = 1.0 / (1.0 + 0.5 * lifts)
    np.testing.assert_allclose(learner.exploration_probabilities(), explore / explore.sum())
    even = Lifted(is_even=True).start(arms=3, seed=0)
    np.testing.assert_allclose(even.exploration_probabilities(), 1.0 / 3.0)
    # The loop of simulations, a learner, and plain Python: the same rounds.
    dc.testing.check_policy(policy, rounds=200)


@pytest.mark.parametrize(
    "wrong", [{"is_even": 1.0}, {"first": "two"}, {"lifts": (0.0, 1.0)}, {"rates": (2.0,)}]
)
def test_a_parameter_of_another_kind_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(NotImplementedError, match=r"Lifted\.params"):
        Lifted(**wrong).params()


def test_a_check_says_which_parameter_is_of_another_kind() -> None:
    class Whole(Lifted):
        def params(self) -> Params:
            return super().params()._replace(is_even=1.0)  # type: ignore[no-any-return]

    with pytest.raises(dc.errors.ContractError, match=r"is_even = 1\.0, which is not a bool"):
        dc.testing.check_policy(dataclass(frozen=True)(Whole)())

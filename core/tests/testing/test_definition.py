"""`check_policy` explains what is wrong with a badly defined policy: what, where, and what to do."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import decoupled as dc
from decoupled.kernels.dispatch import Functions
from decoupled.kernels.jit import compiled
from decoupled.kernels.random.stream import below
from decoupled.kernels.state import ROUND, Layout, State

# A sound policy: it exploits and explores uniformly.


class Params(NamedTuple):
    unused: float


@compiled
def init(params: Any, state: Any) -> None:
    pass


@compiled
def decide(params: Any, state: Any, stream: Any) -> Any:
    arms = state.floats.shape[1]
    return below(arms, stream), below(arms, stream), float(arms), 1.0 / arms


@compiled
def update(params: Any, state: Any, arm: int, weight: float, loss: float) -> None:
    state.floats[0, arm] += weight * loss


def uniform_law(self: Any, state: State) -> Any:
    arms = state.floats.shape[1]
    return np.full(arms, 1.0 / arms)


LAYOUT = Layout(floats=("estimates",), learned=("estimates",))


def made(name: str = "Made", dataclass: Any = None, **parts: Any) -> dc.Policy:
    """The sound policy with some parts replaced; None leaves a part out."""

    class Own(Params):  # machine code is chosen by the type of the parameters
        pass

    calls = Functions(
        *(parts.pop(part, known) for part, known in Functions(init, decide, update)._asdict().items())
    )
    body: dict[str, Any] = {
        "layout": LAYOUT,
        "params_type": Own,
        "functions": calls,
        "params": lambda self: Own(0.0),
        "exploitation_law": uniform_law,
        "exploration_law": uniform_law,
        "__module__": __name__,
        **parts,
    }
    kind: Any = type(name, (dc.Policy,), {key: value for key, value in body.items() if value is not None})
    decorate = dataclasses.dataclass(frozen=True) if dataclass is None else dataclass
    policy: dc.Policy = decorate(kind)()
    return policy


class Shared(Params):
    pass


# For policies that differ in methods alone: their machine code is made once.
SOUND: dict[str, Any] = {"params_type": Shared, "params": lambda self: Shared(0.0)}


@pytest.fixture(autouse=True)
def _forget_policies() -> Iterator[None]:
    known = dict(dc.Policy._known)
    yield
    dc.Policy._known.clear()
    dc.Policy._known.update(known)


def judged(policy: Any) -> str:
    with pytest.raises(dc.ContractError) as caught:
        dc.testing.check_policy(policy, rounds=1_000)
    message = str(caught.value)
    assert message.startswith("Made: ")
    assert "\n" not in message
    assert "nopython" not in message
    return message.removeprefix("Made: ")


def test_the_sound_policy_passes() -> None:
    dc.testing.check_policy(made(**SOUND), rounds=1_000)


# Parts


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"dataclass": lambda kind: kind}, ("class Made is not a dataclass", "@dataclass(frozen=True)")),
        ({"dataclass": dataclasses.dataclass}, ("class Made can be changed", "@dataclass(frozen=True)")),
        (
            {"layout": None},
            (
                "layout = None is not a Layout",
                "layout = Layout(floats=",
                "from decoupled.extend import Layout",
            ),
        ),
        (
            {"layout": Layout(floats="estimates", learned=("estimates",))},  # type: ignore[arg-type]
            ("floats = 'estimates' must be a tuple of names", "('estimates',)"),
        ),
        (
            {"layout": LAYOUT._replace(scalars=("round",))},
            ("'round' appears twice", "give every row a name of its own"),
        ),
        (
            {"layout": LAYOUT._replace(learned=("estimate",))},
            ("learned names 'estimate', which is not one of its rows", "did you mean 'estimates'?"),
        ),
        (
            {"layout": Layout(floats=("sums",), learned=("sums",)), "cumulative": "sums"},
            ("neither a row nor a method called estimates", "add a method estimates(self, state)"),
        ),
        ({"fading": ("sums",)}, ("fading names 'sums'", "the rows are 'estimates'")),
        ({"baseline": "means"}, ("baseline = 'means' is not a row of floats", "the rows are 'estimates'")),
        ({"params_type": None}, ("params_type = None is not a NamedTuple", "class Params(NamedTuple)")),
        ({"params": None}, ("has no method params", "add one that returns Own(...)")),
        ({"params": lambda self: (0.0,)}, ("params() gave (0.0,), a tuple", "return Own(...)")),
        ({"params": lambda self: self.params_type("2")}, ("unused = '2', which is not a number", "floats")),
        ({"params": lambda self: self.gamma}, ("params() raised AttributeError", "'gamma'")),
        (
            {"functions": None},
            (
                "functions = None",
                "Functions(init, decide, update) (from decoupled.extend import Functions)",
            ),
        ),
        ({"init": None}, ("init = None is not a function", "@compiled")),
        (
            {"init": lambda params, state: None},
            (
                "init is not compiled",
                "put @compiled above def <lambda> (from decoupled.extend import compiled)",
            ),
        ),
        ({"init": decide, "decide": init}, ("init takes (params, state, stream)", "(params, state)")),
        ({"exploration_law": None}, ("no method exploration_law", "add exploration_law(self, state)")),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_parts_that_are_missing_or_wrong(parts: dict[str, Any], words: tuple[str, ...]) -> None:
    message = judged(made(**parts))
    for each in words:
        assert each in message


def test_a_class_in_the_place_of_a_policy() -> None:
    with pytest.raises(
        dc.ParameterError, match=r"is a class; give a policy with its parameters: FTPL\(\.\.\.\)"
    ):
        dc.testing.check_policy(dc.FTPL)  # type: ignore[arg-type]


# Functions


def undecorated(value: float) -> float:
    return value


@compiled
def calls_what_is_not_compiled(params: Any, state: Any) -> None:
    undecorated(1.0)


@compiled
def writes_past_the_end(params: Any, state: Any) -> None:
    state.floats[3, 0] = 1.0


@compiled
def allocates(params: Any, state: Any) -> None:
    state.floats[0] = np.zeros(state.floats.shape[1])


@compiled
def writes_nan(params: Any, state: Any) -> None:
    state.floats[0, 0] = np.nan


@compiled
def three_values(params: Any, state: Any, stream: Any) -> Any:
    return 0, 1, 2.0


@compiled
def no_value(params: Any, state: Any, stream: Any) -> Any:
    pass


@compiled
def arms_that_are_floats(params: Any, state: Any, stream: Any) -> Any:
    return 0.0, 1, 5.0, 0.2


@compiled
def an_arm_too_far(params: Any, state: Any, stream: Any) -> Any:
    return state.floats.shape[1], 0, 5.0, 0.2


@compiled
def no_propensity(params: Any, state: Any, stream: Any) -> Any:
    return 0, 1, 5.0, None


@compiled
def no_weight(params: Any, state: Any, stream: Any) -> Any:
    return 0, 1, np.nan, np.nan


@compiled
def different_lengths(params: Any, state: Any, stream: Any) -> Any:
    if state.scalars[ROUND] > 1e9:
        return 0, 1, 5.0
    return 0, 1, 5.0, 0.2


@compiled
def unknown_name(params: Any, state: Any, arm: int, weight: float, loss: float) -> None:
    state.floats[0, arm] += weight * losss  # type: ignore[name-defined]  # noqa: F821


@compiled
def forgotten_weight(params: Any, state: Any, arm: int, loss: float) -> None:
    state.floats[0, arm] += loss


@compiled
def raises(params: Any, state: Any, arm: int, weight: float, loss: float) -> None:
    if state.scalars[ROUND] > 3.0:
        raise ValueError("that is enough")


@compiled
def divides_by_zero(params: Any, state: Any, arm: int, weight: float, loss: float) -> None:
    state.floats[0, arm] += loss / (state.scalars[ROUND] - 4.0)


HERE = f"of {Path(__file__).name}"


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        (
            {"init": calls_what_is_not_compiled},
            ("init calls undecorated", HERE, "@compiled above def undecorated"),
        ),
        ({"init": writes_past_the_end}, ("init reaches outside an array", "index 3", HERE, "layout")),
        ({"init": allocates}, ("init allocates memory", "rows that the layout names")),
        (
            {"init": writes_nan},
            ("'estimates' is [nan", "after 0 observations", "look at what init and update"),
        ),
        ({"decide": three_values}, ("decide returned 3 values", "return four, (exploit, explore,")),
        (
            {"decide": no_value},
            ("decide returned nothing", "return (exploit, explore, weight, propensity)"),
        ),
        ({"decide": arms_that_are_floats}, ("exploit = 0.0, a float", "convert it with int()")),
        ({"decide": an_arm_too_far}, ("exploit = 5 of 5 arms", "numbered 0 to 4")),
        ({"decide": no_propensity}, ("propensity = None", "give math.nan")),
        ({"decide": no_weight}, ("the weight nan", "finite and above 0")),
        ({"decide": different_lengths}, ("decide returns values of different types", HERE, "same types")),
        ({"update": unknown_name}, ("update raised NameError: name 'losss' is not defined", HERE)),
        (
            {"update": forgotten_weight},
            ("update takes (params, state, arm, loss)", "must take (params, state, arm, weight, loss)"),
        ),
        ({"update": raises}, ("update raised ValueError: that is enough",)),
        ({"update": divides_by_zero}, ("'estimates' is [", "after 3 observations: not finite")),
    ],
    ids=lambda part: next(iter(part.values())).__name__ if isinstance(part, dict) else "",
)
def test_functions_that_do_not_do(parts: dict[str, Any], words: tuple[str, ...]) -> None:
    message = judged(made(**parts))
    for each in words:
        assert each in message


# Methods


def failing(self: Any, *given: Any) -> Any:
    raise KeyError("sums")


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        (
            {"exploitation_law": failing},
            ("exploitation_law raised KeyError: 'sums'", "(failing, line", HERE),
        ),
        (
            {"exploration_law": lambda self, state: None},
            ("exploration_law is None", "5 probabilities that sum to 1"),
        ),
        ({"estimates": lambda self, state: [1.0]}, ("estimates gave [1.0]", "each of 5 arms")),
        ({"estimates": lambda self, state: state.floats[0] / 0}, ("estimates gave [", "each of 5 arms")),
        (
            {"init_new_arms": failing},
            ("the check of newcomers raised KeyError: 'sums'", "(failing, line", HERE),
        ),
        ({"to_dict": lambda self: {"name": "Made", "odd": {1}}}, ("the check of saving", "set")),
    ],
    ids=lambda part: next(iter(part)) if isinstance(part, dict) else "",
)
@pytest.mark.filterwarnings("ignore:invalid value|divide by zero")
def test_methods_that_do_not_do(parts: dict[str, Any], words: tuple[str, ...]) -> None:
    message = judged(made(**SOUND, **parts))
    for each in words:
        assert each in message


def test_parameters_of_another_policy() -> None:
    other = made("Other")
    other.register()
    policy = made(params_type=type(other).params_type, params=type(other).params, update=divides_by_zero)
    assert "belongs to another policy's functions; give this policy a Params of its own" in judged(policy)

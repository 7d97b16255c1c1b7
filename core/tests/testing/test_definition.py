"""`check_policy` explains what is wrong with a badly defined policy: what, where, what to do."""

import dataclasses
import re
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
        *(
            parts.pop(part, known)
            for part, known in Functions(init, decide, update)._asdict().items()
        )
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
    kind: Any = type(
        name, (dc.Policy,), {key: value for key, value in body.items() if value is not None}
    )
    decorate = dataclasses.dataclass(frozen=True) if dataclass is None else dataclass
    policy: dc.Policy = decorate(kind)()
    return policy


class Shared(Params):
    pass


# For policies that differ in methods alone: their machine code is made once.
SOUND: dict[str, Any] = {"params_type": Shared, "params": lambda self: Shared(0.0)}


pytestmark = pytest.mark.usefixtures("forget_policies")


def judged(policy: Any) -> str:
    with pytest.raises(dc.ContractError) as caught:
        dc.testing.check_policy(policy, rounds=1_000)
    message = str(caught.value)
    assert message.startswith("Made: ")
    assert "\n" not in message
    assert "nopython" not in message
    return message.removeprefix("Made: ")


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        (
            {"dataclass": lambda kind: kind},
            r"class Made is not a dataclass.*@dataclass\(frozen=True\)",
        ),
        (
            {"dataclass": dataclasses.dataclass},
            r"class Made can be changed.*@dataclass\(frozen=True\)",
        ),
        ({"layout": None}, "layout = None is not a Layout.*from decoupled.extend import Layout"),
        (
            {"layout": LAYOUT._replace(learned=("estimate",))},
            "'estimate', .*did you mean 'estimates'",
        ),
        (
            {"layout": Layout(floats=("sums",), learned=("sums",)), "cumulative": "sums"},
            "neither a row nor a method",
        ),
        (
            {"params_type": None},
            r"params_type = None is not a NamedTuple.*class Params\(NamedTuple\)",
        ),
        ({"params": None}, r"has no method params.*returns Own\(\.\.\.\)"),
        ({"params": lambda self: self.params_type("2")}, "unused = '2', which is not a number"),
        ({"functions": None}, r"functions = None.*Functions\(init, decide, update\)"),
        (
            {"init": lambda params, state: None},
            "init is not compiled.*put @compiled above def <lambda>",
        ),
        ({"init": decide, "decide": init}, r"init takes \(params, state, stream\)"),
        (
            {"exploration_law": None},
            r"no method exploration_law.*add exploration_law\(self, state\)",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_parts_that_are_missing_or_wrong(parts: dict[str, Any], said: str) -> None:
    assert re.search(said, judged(made(**parts)))


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


def drawing(drawn: Any) -> Any:
    """A `decide` that returns this for a number of arms."""
    inner = compiled(drawn)

    @compiled
    def decide(params: Any, state: Any, stream: Any) -> Any:
        return inner(state.floats.shape[1])

    return decide


@compiled
def unknown_name(params: Any, state: Any, arm: int, weight: float, loss: float) -> None:
    state.floats[0, arm] += weight * losss  # type: ignore[name-defined]  # noqa: F821


@compiled
def divides_by_zero(params: Any, state: Any, arm: int, weight: float, loss: float) -> None:
    state.floats[0, arm] += loss / (state.scalars[ROUND] - 4.0)


HERE = f".*of {Path(__file__).name}"


@pytest.mark.parametrize(
    ("part", "function", "said"),
    [
        ("init", calls_what_is_not_compiled, f"init calls undecorated{HERE}.*@compiled above def"),
        ("init", writes_past_the_end, f"init reaches outside an array.*index 3{HERE}.*layout"),
        ("init", allocates, "init allocates memory.*rows that the layout names"),
        (
            "decide",
            drawing(lambda arms: (0, 1, 2.0)),
            r"decide returned 3 values.*return four, \(exploit",
        ),
        (
            "decide",
            drawing(lambda arms: (0.0, 1, 5.0, 0.2)),
            r"exploit = 0.0, a float.*convert it with",
        ),
        (
            "decide",
            drawing(lambda arms: (arms, 0, 5.0, 0.2)),
            "exploit = 5 of 5 arms.*numbered 0 to 4",
        ),
        (
            "decide",
            drawing(lambda arms: (0, 1, np.nan, np.nan)),
            "the weight nan.*finite and above 0",
        ),
        ("update", unknown_name, f"update raised NameError: name 'losss' is not defined{HERE}"),
        ("update", divides_by_zero, r"'estimates' is \[.*after 3 observations: not finite"),
    ],
    ids=lambda part: getattr(part, "__name__", "") if callable(part) else "",
)
def test_functions_that_do_not_do(part: str, function: Any, said: str) -> None:
    assert re.search(said, judged(made(**{part: function})))


def failing(self: Any, *given: Any) -> Any:
    raise KeyError("sums")


@pytest.mark.parametrize(
    ("name", "method", "said"),
    [
        (
            "exploitation_law",
            failing,
            rf"exploitation_law raised KeyError: 'sums'.*\(failing, line{HERE}",
        ),
        (
            "exploration_law",
            lambda *_: None,
            "exploration_law is None.*5 probabilities that sum to 1",
        ),
        ("estimates", lambda *_: [1.0], r"estimates gave \[1.0\].*each of 5 arms"),
        (
            "init_new_arms",
            failing,
            rf"the check of newcomers raised KeyError.*\(failing, line{HERE}",
        ),
        ("to_dict", lambda self: {"name": "Made", "odd": {1}}, "the check of saving.*set"),
    ],
    ids=lambda part: part if isinstance(part, str) and "_" in part else "",
)
@pytest.mark.filterwarnings("ignore:invalid value|divide by zero")
def test_methods_that_do_not_do(name: str, method: Any, said: str) -> None:
    assert re.search(said, judged(made(**SOUND, **{name: method})))


def test_parameters_of_another_policy() -> None:
    other = made("Other")
    other.register()
    policy = made(
        params_type=type(other).params_type, params=type(other).params, update=divides_by_zero
    )
    assert "belongs to another policy's functions; give this policy a Params of its own" in judged(
        policy
    )

"""A method that version 0.1.0 called otherwise can still be overridden under that name."""

import itertools
import warnings
from typing import Any

import pytest

import decoupled as dc
from decoupled.kernels.state import State

numbers = itertools.count()


def subclass(*bases: type, **methods: Any) -> Any:
    """A class of a name of its own: policies are known by name."""
    return type(f"OldName{next(numbers)}", bases, methods)


class Calls(list[str]):
    """Methods that note their names."""

    def method(self, note: str, then: str | None = None) -> Any:
        def noting(policy: Any, state: State, first: int) -> None:
            self.append(note)
            if then:
                getattr(super(type(policy), policy), then)(state, first)

        return noting


def test_the_old_name_is_still_called_and_warned_of() -> None:
    calls = Calls()
    with pytest.warns(
        DeprecationWarning, match=r"^OldName\d+\.welcome: is called init_new_arms now"
    ) as seen:
        kind = subclass(dc.FTPL, welcome=calls.method("old"))
    assert [each.filename for each in seen] == [__file__], "the class statement"
    kind().init_new_arms(None, 2)
    assert calls == ["old"]


def test_the_new_name_is_not_warned_of() -> None:
    calls = Calls()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kind = subclass(dc.FTPL, init_new_arms=calls.method("new"))
        both = subclass(dc.FTPL, init_new_arms=calls.method("new"), welcome=calls.method("old"))
        subclass(kind)
    kind().init_new_arms(None, 2)
    both().init_new_arms(None, 2)
    assert calls == ["new", "new"]


def test_the_old_name_of_a_class_that_is_mixed_in() -> None:
    calls = Calls()
    mixed = type("Mixed", (), {"welcome": calls.method("mixed")})
    with pytest.warns(DeprecationWarning, match="welcome"):
        subclass(mixed, dc.FTPL)().init_new_arms(None, 2)
    assert calls == ["mixed"]


@pytest.mark.parametrize("base_name", ["welcome", "init_new_arms"])
def test_an_old_class_may_call_the_one_that_it_overrides(base_name: str) -> None:
    calls = Calls()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        base = subclass(dc.FTPL, **{base_name: calls.method("base")})
        kind = subclass(base, welcome=calls.method("old", then="welcome"))
    kind().init_new_arms(None, 2)
    assert calls == ["old", "base"]


def test_an_old_class_may_call_the_policys_own() -> None:
    calls = Calls()
    with pytest.warns(DeprecationWarning, match="welcome"):
        kind = subclass(dc.FTPL, welcome=calls.method("old", then="welcome"))
    policy = kind()
    state = policy.layout.new_state(3)
    policy.layout.row(state, "estimates")[:2] = [4.0, 3.0]
    policy.init_new_arms(state, 2)
    assert calls == ["old"]
    assert policy.layout.row(state, "estimates").tolist() == [4.0, 3.0, 3.0]

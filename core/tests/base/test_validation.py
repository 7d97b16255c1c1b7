"""Checks at the boundary: a plain value, or an error that names argument, value, rule and remedy."""

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from decoupled.base.validation import as_float, number_in, one_of, whole_number
from decoupled.errors import ParameterError, near_name

# Numbers


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (0, 0.0),
        (-3, -3.0),
        (2.5, 2.5),
        (10**300, 1e300),
        (Fraction(1, 4), 0.25),
        (Decimal("0.5"), 0.5),
        (np.float32(0.5), 0.5),
        (np.int8(7), 7.0),
        (np.array(0.25), 0.25),
    ],
    ids=repr,
)
def test_numbers_of_any_kind_become_floats(value: Any, number: float) -> None:
    assert as_float(value) == number
    assert type(as_float(value)) is float


@pytest.mark.parametrize(
    "value",
    [
        *(math.nan, math.inf, -math.inf, 10**400, None, [], [1.0], (), {}, 1j, object),
        *(True, False, np.True_, np.False_),
        *("1", b"1", bytearray(b"1"), memoryview(b"1"), np.array("1")),  # `float` would read bytes as text
        *(
            np.complex128(0.5),
            np.complex64(0.5 + 1j),
        ),  # `float` would drop the imaginary part with a warning
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_finite_number_becomes_none(value: Any) -> None:
    assert as_float(value) is None


@pytest.mark.parametrize("value", [0, 10, -1, 11, math.nan, "5", None, True])
def test_bounds_are_strict(value: Any) -> None:
    with pytest.raises(ParameterError) as caught:
        number_in("x", value, 0.0, 10.0, "try 5")
    assert str(caught.value) == f"x = {value!r}: must be a finite number above 0 and below 10; try 5"


# Whole numbers


@pytest.mark.parametrize("value", [3, 10**30, np.int64(3), np.uint8(200)])
def test_whole_numbers_pass_as_plain_integers(value: Any) -> None:
    assert whole_number("n", value, 3, "") == value
    assert type(whole_number("n", value, 3, "")) is int


@pytest.mark.parametrize(
    "value", [2, -1, 3.0, "3", None, True, [3], math.nan, np.float64(3), np.True_], ids=repr
)
def test_what_is_no_whole_number_is_refused(value: Any) -> None:
    with pytest.raises(ParameterError) as caught:
        whole_number("n", value, 3, "give more")
    assert str(caught.value) == f"n = {value!r}: must be a whole number from 3 on; give more"


def test_a_low_bound_below_zero_admits_no_truth_values() -> None:
    assert whole_number("n", 0, -5, "") == 0
    for value in (True, False, None):
        with pytest.raises(ParameterError):
            whole_number("n", value, -5, "")
    assert near_name("gren", ["red", "green"]) == "did you mean 'green'?"
    assert near_name("x", ["red", "green"]) == "known are 'red', 'green'"
    some = ", ".join(f"'{number}'" for number in range(20))
    assert near_name("zz", range(100)) == f"known are {some}, ..."


# Words


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ("fats", "did you mean 'fast'?"),
        ("slw", "did you mean 'slow'?"),
        ("zzz", "known are 'fast', 'slow'"),
        (None, "known are 'fast', 'slow'"),
        ([], "known are 'fast', 'slow'"),
        (True, "known are 'fast', 'slow'"),
    ],
)
def test_other_words_are_refused_with_a_hint(value: Any, hint: str) -> None:
    with pytest.raises(ParameterError) as caught:
        one_of("mode", value, ("fast", "slow"))
    assert str(caught.value) == f"mode = {value!r}: must be 'fast' or 'slow'; {hint}"


# Hints

"""Checks at the boundary: a plain value, or an error that names argument, value, rule and remedy."""

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decoupled.base.validation import as_float, number_in, one_of, whole_number
from decoupled.errors import ParameterError, invalid_value, near_name

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
    [math.nan, math.inf, -math.inf, 10**400, "1", b"1", True, False, None, [], [1.0], (), {}, 1j, object],
    ids=lambda value: repr(value)[:20],
)
def test_what_is_no_finite_number_becomes_none(value: Any) -> None:
    assert as_float(value) is None


@pytest.mark.parametrize("value", [np.True_, np.False_], ids=repr)
def test_truth_values_of_numpy_are_truth_values_too(value: Any) -> None:
    assert as_float(value) is None


@pytest.mark.parametrize(
    "value", [bytearray(b"1"), memoryview(b"1"), np.array("1")], ids=["bytearray", "memoryview", "array"]
)
def test_text_in_disguise_is_no_number(value: Any) -> None:
    """`float` would read bytes as text."""
    assert as_float(value) is None


@pytest.mark.parametrize("value", [np.complex128(0.5), np.complex64(0.5 + 1j)], ids=repr)
def test_complex_numbers_of_numpy_are_refused(value: Any) -> None:
    """`float` would drop the imaginary part with a warning."""
    assert as_float(value) is None


@settings(deadline=None)
@given(value=st.floats(0, 10, exclude_min=True, exclude_max=True))
def test_a_number_within_its_bounds_passes(value: float) -> None:
    assert number_in("x", value, 0.0, 10.0) == value


@pytest.mark.parametrize("value", [0, 10, -1, 11, math.nan, "5", None, True])
def test_bounds_are_strict(value: Any) -> None:
    with pytest.raises(ParameterError) as caught:
        number_in("x", value, 0.0, 10.0, "try 5")
    assert str(caught.value) == f"x = {value!r}: must be a finite number above 0 and below 10; try 5"


def test_a_single_bound_is_named_alone() -> None:
    with pytest.raises(ParameterError) as caught:
        number_in("x", -2, -1.5)
    assert str(caught.value) == "x = -2: must be a finite number above -1.5; choose another"


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


# Words


def test_one_of_the_words_passes() -> None:
    assert one_of("mode", "fast", ("fast", "slow")) == "fast"


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


def test_a_complaint_has_four_parts() -> None:
    assert invalid_value("x", "3", "must be a number", "leave out the quotes") == (
        "x = '3': must be a number; leave out the quotes"
    )


def test_a_near_name_is_suggested_and_otherwise_some_are_listed() -> None:
    assert near_name("gren", ["red", "green"]) == "did you mean 'green'?"
    assert near_name("x", ["red", "green"]) == "known are 'red', 'green'"
    some = ", ".join(f"'{number}'" for number in range(20))
    assert near_name("zz", range(100)) == f"known are {some}, ..."

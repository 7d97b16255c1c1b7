"""Checks at the boundary: turn a user's argument into a plain value, or raise a clear error."""

import math
import operator
from collections.abc import Sequence
from numbers import Real

from ..errors import ParameterError, near_name

MOST_ROUNDS = 10**15  # whole numbers up to here are exact as floats
# Far below any real propensity, and far enough from overflow that no sum of squared weights reaches
# it.
LEAST_PROPENSITY = 1e-50
LEAST_RISK = 1e-100  # shared by any number of statements it is still a number whose inverse is one


def as_float(value: object) -> float | None:
    """`value` as a finite float, or None if it is not a number, not finite, or a boolean.

    >>> as_float(3), as_float("3"), as_float(float("nan"))
    (3.0, None, None)
    """
    if type(value) is float:  # by far the most common case, and this runs for every loss
        return value if math.isfinite(value) else None
    if isinstance(value, (bool, complex, str, bytes, bytearray, memoryview)):
        return None
    # float() would also convert NumPy's booleans, complex numbers and strings.
    if getattr(getattr(value, "dtype", None), "kind", "f") not in "iuf":
        return None
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def as_loss(value: object) -> float | None:
    """Like `as_float`, but a boolean is 1 or 0: `prediction != label` is a loss.

    >>> as_loss(True), as_loss(0.25), as_loss("no")
    (1.0, 0.25, None)
    """
    if isinstance(value, bool) or getattr(getattr(value, "dtype", None), "kind", "") == "b":
        try:
            return float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError):  # an array of several booleans
            return None
    return as_float(value)


def is_missing(value: object) -> bool:
    """Whether a value marks a missing number: None, NaN, or pandas' NA.

    >>> is_missing(None), is_missing(float("nan")), is_missing(0.0)
    (True, True, False)
    """
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    try:
        return math.isnan(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return False


def is_number(value: object) -> bool:
    """Whether a value is a boolean or a real number, be it very large, infinite or NaN."""
    return isinstance(value, Real) or as_loss(value) is not None


def kind_of(value: object) -> str:
    """The type of a value, with its article: "a str", "an int"."""
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' or name == 'ndarray' else 'a'} {name}"


def check_number(
    name: str,
    value: object,
    remedy: str,
    *,
    above: float | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
    below: float | None = None,
) -> float:
    """A finite number within bounds: `above` or `at_least` a number, `at_most` or `below` another.

    Args:
        name: the parameter, for the error.
        value: what was given.
        remedy: what the error advises.
        above: a number below every allowed one.
        at_least: the lowest allowed number.
        at_most: the highest allowed number.
        below: a number above every allowed one.

    >>> check_number("rate", 0.5, "try 0.1", above=0.0, below=1.0)
    0.5
    >>> check_number("share", 1.5, "the default is 1", at_least=0.0, at_most=1.0)
    Traceback (most recent call last):
        ...
    decoupled.errors.ParameterError: share = 1.5: must be a number from 0 to 1; the default is 1
    """
    number = as_float(value)
    is_within = (
        number is not None
        and (above is None or number > above)
        and (at_least is None or number >= at_least)
        and (at_most is None or number <= at_most)
        and (below is None or number < below)
    )
    if number is None or not is_within:
        rule = _rule_of_bounds(above, at_least, at_most, below)
        raise ParameterError.of(name, value, rule, remedy)
    return number + 0.0  # normalise -0.0


def _rule_of_bounds(
    above: float | None, at_least: float | None, at_most: float | None, below: float | None
) -> str:
    """What a number must be, in words."""
    if at_least is not None and at_most is not None:
        return f"must be a number from {at_least:g} to {at_most:g}"
    if at_least is not None and below is not None:
        return f"must be a finite number from {at_least:g} on and below {below:g}"
    bounds = []
    if above is not None:
        bounds.append(f"above {above:g}")
    if at_least is not None:
        bounds.append(f"of at least {at_least:g}")
    if at_most is not None:
        bounds.append(f"at most {at_most:g}")
    if below is not None:
        bounds.append(f"below {below:g}")
    return f"must be a finite number {' and '.join(bounds)}"


def whole_number(name: str, value: object, low: int, remedy: str, high: int | None = None) -> int:
    """An integer of at least `low`, and at most `high`.

    >>> whole_number("arms", 3, 2, "give two or more")
    3
    >>> whole_number("arms", 1, 2, "give two or more")
    Traceback (most recent call last):
    decoupled.errors.ParameterError: arms = 1: must be a whole number from 2 on; give two or more
    """
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = low - 1
    if number < low or isinstance(value, bool):
        raise ParameterError.of(name, value, f"must be a whole number from {low} on", remedy)
    if high is not None and number > high:
        raise ParameterError.of(name, value, f"must not exceed {high:,}", remedy)
    return number


def loss_ends(ends: object) -> tuple[float, float]:
    """The lowest and the highest possible loss."""
    try:
        low, high = (as_float(end) for end in ends)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        low = high = None
    if low is None or high is None or not low < high:
        rule = "must be two finite numbers, the lower first"
        raise ParameterError.of("loss_range", ends, rule, "the default is (0, 1)")
    if not math.isfinite(high - low):
        rule = "is too wide: the difference of its ends is no finite number"
        raise ParameterError.of("loss_range", ends, rule, "measure losses in a larger unit")
    return low, high


def set_number(spec: object, name: str, low: float, high: float, remedy: str) -> float:
    """Check that a field of a frozen dataclass lies between two numbers; store it as a float.

    Args:
        spec: the dataclass.
        name: the field.
        low: a number below every allowed one.
        high: a number above every allowed one; infinity for none.
        remedy: what the error advises.

    >>> from types import SimpleNamespace
    >>> set_number(SimpleNamespace(rate=1), "rate", 0.0, 2.0, "the default is 1")
    1.0
    """
    upper = None if high == math.inf else high
    number = check_number(name, getattr(spec, name), remedy, above=low, below=upper)
    object.__setattr__(spec, name, number)
    return number


def set_whole(spec: object, name: str, low: int, remedy: str, high: int | None = None) -> int:
    """Check a field of a frozen dataclass with `whole_number`, and store it as an int.

    >>> from types import SimpleNamespace
    >>> set_whole(SimpleNamespace(arms=3), "arms", 2, "give two or more")
    3
    """
    number = whole_number(name, getattr(spec, name), low, remedy, high)
    object.__setattr__(spec, name, number)
    return number


def known_horizon(horizon: object) -> int | None:
    """A number of rounds that is known in advance, or None."""
    if horizon is None:
        return None
    return whole_number("horizon", horizon, 1, "leave it out if it is not known", MOST_ROUNDS)


def one_of(name: str, value: object, choices: Sequence[str]) -> str:
    """One of the given strings.

    Args:
        name: the parameter, for the error.
        value: what was given.
        choices: the strings.

    >>> one_of("noise", "beta", ("beta", "none"))
    'beta'
    """
    if not isinstance(value, str) or value not in choices:
        rule = "must be " + " or ".join(repr(choice) for choice in choices)
        raise ParameterError.of(name, value, rule, near_name(value, choices))
    return value

"""Frozen descriptions, which print as the call that made them and survive a JSON round trip, and
the checks of their parameters.
"""

import math
import os
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import decoupled as dc
from decoupled.base.names import LONGEST_LABEL, short_labels
from decoupled.base.spec import Description
from decoupled.base.validation import as_float, check_number, one_of, whole_number
from decoupled.errors import ParameterError, near_name
from support.plain_python import ran


class Shape(Description, kind="shape"):
    """A family of its own, so that nothing here depends on the policies."""


@dataclass(frozen=True)
class Circle(Shape):
    radius: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "radius", check_number("radius", self.radius, "choose another", above=0.0)
        )


@dataclass(frozen=True)
class Rectangle(Shape):
    width: float
    height: float = 2.0


@dataclass(frozen=True)
class Square(Rectangle):
    tilt: float = 0.0


class Colour(Description, kind="colour"):
    """Another family, which must not mix with the first."""


@dataclass(frozen=True)
class Grey(Colour):
    level: int = 0


SHAPES: st.SearchStrategy[Shape] = st.one_of(
    st.builds(Circle, radius=st.floats(0, 1e9, exclude_min=True)),
    st.builds(Rectangle, width=st.floats(allow_nan=False, allow_infinity=False)),
    st.builds(Square, width=st.floats(0, 1), height=st.floats(0, 1), tilt=st.floats(-1, 1)),
)


def test_the_base_class_of_policies_is_no_policy_by_name() -> None:
    assert not {"Policy", "Definition"} & dc.Policy.known().keys()
    with pytest.raises(dc.ParameterError, match=r"^name = 'Policy': is not a known policy; "):
        dc.Policy.from_dict({"name": "Policy"})


def test_a_saved_learner_is_read_before_anything_imports_policies(tmp_path: Path) -> None:
    path = tmp_path / "learner.json"
    dc.FTPL(c=4.0).start(arms=2, seed=7).save(path)
    program = """
import sys
from decoupled.learner import Learner
assert "decoupled.policies" not in sys.modules
print(Learner.load(sys.argv[1]).policy)
"""
    assert ran("-c", program, path) == "FTPL(alpha=3.0, c=4.0, ranking='auto')\n"


@settings(deadline=None)
@given(shape=SHAPES)
def test_a_description_survives_json(shape: Shape) -> None:
    assert Shape.from_json(shape.to_json()) == shape
    assert Shape.from_dict(shape.to_dict()) == shape
    assert type(shape).from_json(shape.to_json()) == shape


def test_a_policy_is_found_by_its_name_alone() -> None:
    assert dc.Policy.from_dict({"name": "Ladder"}) == dc.Ladder()
    inside = {"name": "Forgetting", "policy": {"name": "Ladder"}, "period": 50}
    assert dc.Policy.from_dict(inside) == dc.Forgetting(dc.Ladder(), period=50)
    for wrong in ("FTPL.Ladder", "FTPL.", "FTPL.start", ".Ladder", "recommended"):
        with pytest.raises(dc.ParameterError, match="is not a known policy; "):
            dc.Policy.from_dict({"name": wrong})
    with pytest.raises(dc.ParameterError, match=r"^gamma = 1: is not a parameter of Ladder"):
        dc.Policy.from_dict({"name": "Ladder", "gamma": 1})


def test_names_come_first_defaults_are_filled_in_and_equal_values_are_equal() -> None:
    assert (
        Square(1.0, tilt=3.0).to_json()
        == '{"name": "Square", "width": 1.0, "height": 2.0, "tilt": 3.0}'
    )
    assert list(dc.FTPL().to_dict())[:3] == ["name", "alpha", "c"]
    assert Shape.from_json('{"name": "Circle"}') == Circle()
    assert Shape.from_dict({"name": "Square", "width": 4.0}) == Square(4.0, 2.0, 0.0)
    assert dc.FTPL(alpha=3, c=2) == dc.FTPL() != dc.FTPL(alpha=2.5)
    assert repr(dc.FTPL(alpha=3)) == repr(dc.FTPL())
    assert len({dc.Exp3(), dc.Exp3(c=2), dc.Exp3(c=3)}) == 2


def test_families_do_not_mix_and_a_class_reads_itself_and_its_subclasses_only() -> None:
    assert set(Shape.known()) == {"Circle", "Rectangle", "Square"}
    assert set(Colour.known()) == {"Grey"}
    with pytest.raises(dc.ParameterError, match="name = 'Grey': is not a known shape"):
        Shape.from_dict({"name": "Grey"})
    square = Square(1.0)
    assert Rectangle.from_dict(square.to_dict()) == square
    with pytest.raises(dc.ParameterError, match="name = 'Circle'"):
        Rectangle.from_dict({"name": "Circle"})
    with pytest.raises(dc.ParameterError, match="name = 'Exp3'"):
        dc.FTPL.from_dict({"name": "Exp3"})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"name": "Circel"}, "name = 'Circel': is not a known shape; did you mean 'Circle'?"),
        (
            {"name": "Zzz"},
            "name = 'Zzz': is not a known shape; known are 'Circle', 'Rectangle', 'Square'",
        ),
        (
            {"name": "Circle", "radios": 2},
            "radios = 2: is not a parameter of Circle; did you mean 'radius'?",
        ),
        (
            {"name": "Circle", "kind": 2},
            "kind = 2: is not a parameter of Circle; known are 'radius'",
        ),
        (
            {"name": "Circle", "radius": -1},
            "radius = -1: must be a finite number above 0; choose another",
        ),
        ({}, "shape = {}: must be an object with a 'name'; see to_dict()"),
        ([], "shape = []: must be an object with a 'name'; see to_dict()"),
        ("Circle", "shape = 'Circle': must be an object with a 'name'; see to_dict()"),
        (None, "shape = None: must be an object with a 'name'; see to_dict()"),
    ],
)
def test_what_describes_nothing_is_refused(values: Any, message: str) -> None:
    with pytest.raises(dc.ParameterError) as caught:
        Shape.from_dict(values)
    assert str(caught.value) == message


def test_no_other_name_and_no_other_json_is_accepted() -> None:
    names: list[Any] = [None, 3, True, ["Circle"], {}, "", "circle", "__class__"]
    for name in names:
        with pytest.raises(dc.ParameterError, match="is not a known shape"):
            Shape.from_dict({"name": name})
    for text in ("", "{", "Circle", "{'name': 'Circle'}", "\x00", "[" * 100_000):
        with pytest.raises(dc.ParameterError, match=r"shape: is not JSON \(.*\); see to_json\(\)"):
            Shape.from_json(text)
    for constant in ("NaN", "Infinity", "-Infinity", "1e999", '"1"', "null", "true"):
        with pytest.raises(
            dc.ParameterError, match=r"radius = .*: must be a finite number above 0"
        ):
            Shape.from_json(f'{{"name": "Circle", "radius": {constant}}}')
    with pytest.raises(dc.ParameterError, match="width"):
        Shape.from_dict({"name": "Rectangle"})


def test_a_class_of_ones_own_may_have_the_name_of_a_built_in_one() -> None:
    """As when a later version gets a policy of that name: files mean that one, and yours is found
    by its module.
    """
    with dc.Policy.forget_new():
        own: Any = dataclass(frozen=True)(
            type("FTPL", (dc.FTPL,), {"__module__": "mine", "__annotations__": {}})
        )
        assert dc.Policy.from_dict({"name": "FTPL", "c": 4.0}) == dc.FTPL(c=4.0)
        assert (own().label, own(c=4.0).to_dict()["name"]) == ("mine.FTPL", "mine.FTPL")
        assert type(dc.Policy.from_json(own(c=4.0).to_json())) is own
        assert dc.Policy.known()["FTPL"] is dc.FTPL
    with pytest.raises(dc.ParameterError, match="is not a known policy"):
        dc.Policy.from_dict({"name": "mine.FTPL"})
    assert Shape.from_dict({"name": f"{__name__}.Circle", "radius": 2.0}) == Circle(2.0)
    with pytest.raises(dc.ParameterError, match="elsewhere"):
        Shape.from_dict({"name": "elsewhere.Circle"})


def test_installed_packages_add_classes_by_entry_points(tmp_path: Path) -> None:
    (tmp_path / "rung_of_mine.py").write_text(
        "from dataclasses import dataclass\nimport decoupled as dc\n"
        "@dataclass(frozen=True)\nclass Mine(dc.FTPL): ...\n"
    )
    about = tmp_path / "rung_of_mine-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: rung-of-mine\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[decoupled.policies]\nMine = rung_of_mine\n")
    code = """
import decoupled as dc
assert dc.Policy.from_dict({"name": "Mine", "c": 4.0}).c == 4.0
assert {"Mine", "FTPL"} < dc.Policy.known().keys()
"""
    ran("-c", code, PYTHONPATH=os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", ""))))


EVERY = [policy for kind in dc.Policy.known().values() for policy in kind.examples()]


def test_policies_shown_together_have_names_of_their_own_and_short_ones_where_they_differ() -> None:
    names = short_labels(EVERY)
    assert len(set(names)) == len(EVERY)
    assert max(len(policy.label) for policy in EVERY) > 90  # or nothing was shortened
    for policy, name in zip(EVERY, names, strict=True):
        assert len(name) <= LONGEST_LABEL + 2 or name == policy.label
        alone = short_labels([policy])[0]
        assert len(alone) <= LONGEST_LABEL + 2
        assert alone == policy.label or "…" in alone
    for one, other in combinations(EVERY, 2):
        first, second = short_labels([one, other])
        assert first != second


def test_a_long_label_keeps_its_first_parameters() -> None:
    long = dc.Ladder(mean_rate=0.5, hedge_rate=0.25, uniform_share=0.125)
    assert short_labels([dc.Ladder(), long]) == ["Ladder", "Ladder(hedge_rate=0.25, …)"]
    near = [
        dc.Ladder(mean_rate=0.5, hedge_rate=0.25, uniform_share=share) for share in (0.125, 0.25)
    ]
    assert short_labels(near) == [policy.label for policy in near]
    sweep = [dc.FTPL(c=c) for c in (0.5, 2.0, 4.0)]
    assert short_labels(sweep) == ["FTPL(c=0.5)", "FTPL", "FTPL(c=4)"]
    # A preset has a name, and None says nothing.
    assert short_labels([dc.FTPL(), dc.Ladder()]) == ["FTPL", "Ladder"]
    assert short_labels([dc.FTPL(), dc.FTPL(c=3.0)]) == ["FTPL", "FTPL(c=3)"]


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
        *(
            "1",
            b"1",
            bytearray(b"1"),
            memoryview(b"1"),
            np.array("1"),
        ),  # `float` would read bytes as text
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
        check_number("x", value, "try 5", above=0.0, below=10.0)
    assert (
        str(caught.value) == f"x = {value!r}: must be a finite number above 0 and below 10; try 5"
    )


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

"""Layouts: the place of each named row, and states with some of the arms.

Powers with exponents written out, against the general ones.
"""

import math

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import decoupled as dc
from decoupled.kernels.powers import inverse_power, power, tidy_exponent
from decoupled.kernels.state import (
    MOST_PAIRED_ARMS,
    PERIOD,
    SHARED_SCALARS,
    Forgets,
    Layout,
    State,
    vector,
)
from decoupled.policies.contextual import state as contextual_state
from decoupled.policies.ladder import state as ladder_state

LAYOUT = Layout(
    scalars=("pace",),
    floats=("sums", "means"),
    ints=("counts", "order"),
    learned=("pace", "sums", "counts", "duels", "wins"),
    pairs=("duels", "wins"),
)


def numbered(arms: int) -> State:
    """All numbers of the state differ, so that none can be mistaken for another."""
    state = LAYOUT.new_state(arms)
    state.scalars[2:] = 77.5
    state.floats[:] = 0.5 + np.arange(state.floats.size).reshape(state.floats.shape)
    state.ints[:] = 1000 + np.arange(state.ints.size).reshape(state.ints.shape)
    return state


def test_rows_and_squares_share_no_number_and_some_arms_take_along_their_own_pairs() -> None:
    state = numbered(4)
    rows = [LAYOUT.row(state, name) for name in ("counts", "order", "duels", "wins")]
    assert [row.shape for row in rows] == [(4,), (4,), (4, 4), (4, 4)]
    assert np.array_equal(np.concatenate([row.ravel() for row in rows]), state.ints.ravel())
    rows[3][1, 2] = -1
    assert (state.ints == -1).sum() == 1  # a view: compiled code sees what is written
    assert LAYOUT.new_state(MOST_PAIRED_ARMS).ints.shape == (
        2 + 2 * MOST_PAIRED_ARMS,
        MOST_PAIRED_ARMS,
    )
    with pytest.raises(dc.ParameterError, match=r"arms = 1001: must not exceed 1000 .* fewer arms"):
        LAYOUT.new_state(MOST_PAIRED_ARMS + 1)
    LAYOUT._replace(pairs=()).new_state(MOST_PAIRED_ARMS + 1)
    state = numbered(5)
    part = LAYOUT.restrict(state, np.array([1, 4]))
    assert LAYOUT.row(part, "pace").tolist() == [77.5]
    assert LAYOUT.row(part, "counts").tolist() == LAYOUT.row(state, "counts")[[1, 4]].tolist()
    whole = LAYOUT.row(state, "wins").tolist()
    assert LAYOUT.row(part, "wins").tolist() == [[whole[i][j] for j in (1, 4)] for i in (1, 4)]
    assert not LAYOUT.row(part, "order").any()  # not learned: `init` derives it
    assert part.scalars[:2].tolist() == [1.0, 5.0]


def test_places_are_those_of_the_names() -> None:
    named = Layout(
        scalars=("pace", *vector("share", 3), "last"), floats=("sums",), ints=("counts", "order")
    )
    state = named.new_state(2)
    S, R, N = named.places()
    assert S._fields[: len(SHARED_SCALARS)] == SHARED_SCALARS
    for part, places in ((state.scalars, S), (state.floats, R), (state.ints, N)):
        for name, place in places._asdict().items():
            row = named.row(state, "share_0" if name == "share" else name)
            row[...] = 100 + place
            assert np.unique(part[place]).tolist() == [100 + place], name
    assert (S.share, S.share_0, S.share_2, S.last) == (9, 9, 11, 12)


@pytest.mark.parametrize(("numbers", "advisers"), [(0, 0), (2, 3)])
def test_the_places_of_a_contextual_ladder_are_those_of_every_layout(
    numbers: int, advisers: int
) -> None:
    S, R, _ = contextual_state.layout_for(numbers, advisers).places()
    for ours, whole in ((contextual_state.S, S), (contextual_state.R, R)):
        assert {name: getattr(whole, name) for name in ours._fields} == ours._asdict()
    if numbers:
        assert (S.number_given, R.advice) == (
            contextual_state.NUMBERS_AT,
            contextual_state.ADVICE_AT,
        )
    # Its two ladders are slices with the places of a ladder.
    ladder, shift = ladder_state.S._asdict(), S.segment_round
    assert {name: getattr(S, f"segment_{name}") - shift for name in ladder} == ladder
    own = {name: place for name, place in ladder.items() if place >= len(SHARED_SCALARS)}
    assert {name: getattr(S, name) - S.pooled_round for name in own} == own


@pytest.mark.parametrize("numbers", [1, 3])
def test_the_places_of_a_context_s_numbers_are_those_of_the_layout(numbers: int) -> None:
    names = contextual_state.layout_for(numbers, 0).all_scalars
    at = {name: place for place, name in enumerate(names)}
    kinds = {
        "given": contextual_state.AS_GIVEN,
        "scaled": contextual_state.SCALED,
        "seen": contextual_state.TIMES_SEEN,
        "mean": contextual_state.MEAN,
        "deviation": contextual_state.DEVIATION,
    }
    for number in range(numbers):
        for name, kind in kinds.items():
            place = contextual_state.number_at(kind, number, numbers)
            assert place == at[f"number_{name}_{number}"], name
        assert contextual_state.recent_at(number, numbers) == at[f"number_recent_{number}_0"]
    assert contextual_state.steps_at(numbers) == at["linear_step_0"]
    assert contextual_state.ranked_at(numbers) == at["number_ranked_0"]
    assert contextual_state.explained_at(numbers) == at["vector_explained"]
    assert contextual_state.end_of_names(numbers) == len(names)


def test_another_form_forgets_the_same_rows_which_have_other_places_there() -> None:
    before = LAYOUT._replace(forgets=Forgets(discount=0.5, fading=("means", "pace")))
    after = before._replace(scalars=("more", "pace"), floats=("more_sums", "sums", "means"))
    grown = before.extend(before.new_state(3), 1, after)
    shrunk = before.restrict(before.new_state(3), np.array([0, 2]), after)
    for found in (grown, shrunk):
        expected = after.new_state(found.floats.shape[1])
        assert found.scalars[PERIOD:].tolist() == expected.scalars[PERIOD:].tolist()
    assert after.new_state(3).scalars[-2:].tolist() == [
        2.0,
        3.0 + 9.0,
    ]  # a row, and a scalar behind three rows


def test_newcomers_find_nothing_but_room() -> None:
    state = numbered(3)
    state.scalars[0] = 9.0
    whole = LAYOUT.extend(state, 2)
    assert whole.scalars.tolist() == [
        9.0,
        5.0,
        77.5,
        77.5,
        77.5,
        0.0,
        0.0,
        9.0,
        77.5,
    ]  # it forgets nothing
    assert LAYOUT.row(whole, "sums").tolist() == [*LAYOUT.row(state, "sums").tolist(), 0.0, 0.0]
    assert LAYOUT.row(whole, "counts").tolist() == [*LAYOUT.row(state, "counts").tolist(), 0, 0]
    for name in ("duels", "wins"):
        square = LAYOUT.row(whole, name)
        assert square[:3, :3].tolist() == LAYOUT.row(state, name).tolist()
        assert not square[3:].any()
        assert not square[:, 3:].any()
    assert not LAYOUT.row(whole, "means").any()  # not learned: `init` derives it


EXPONENTS = (0.5, 1.0, 1.1, 1.5, 2.0, 2.5, 3.0, 5.5, 100.0)
# 1e3 ** -100 still is an ordinary floating-point number.
EXCESSES = st.floats(0.0, 1e3)


@pytest.mark.parametrize("exponent", EXPONENTS)
@settings(deadline=None)
@given(excess=EXCESSES)
def test_inverse_power(exponent: float, excess: float) -> None:
    with mpmath.workdps(40):
        expected = float((1 + mpmath.mpf(excess)) ** -mpmath.mpf(exponent))
    assert inverse_power(excess, exponent) == pytest.approx(expected, rel=2e-13)
    assert power(excess, exponent) == pytest.approx(1.0 / expected, rel=2e-13)


def test_inverse_power_keeps_its_digits_where_the_exponent_is_huge() -> None:
    assert inverse_power(1e-9, 1e9) == pytest.approx(math.exp(-1.0), rel=1e-8)
    assert inverse_power(3e-18, 1e17) == pytest.approx(math.exp(-0.3), rel=1e-14)


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_inverse_power_at_the_ends(exponent: float) -> None:
    assert inverse_power(0.0, exponent) == 1.0
    assert inverse_power(1e308, 7.3) == 0.0


@pytest.mark.parametrize(
    ("exponent", "tidy"),
    [
        (1 / (1 - 2 / 3), 3.0),
        ((1 - 1 / 3) / (1 - 2 / 3), 2.0),
        (1 / (1 - 0.5), 2.0),
        ((1 - 0.25) / (1 - 0.5), 1.5),
        (3.0 + 1e-9, 3.0 + 1e-9),
        (2.9, 2.9),
    ],
)
def test_tidy_exponent(exponent: float, tidy: float) -> None:
    assert tidy_exponent(exponent) == tidy

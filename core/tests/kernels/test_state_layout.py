"""Layouts: the place of each named row, and states with some of the arms."""

import numpy as np
import pytest

import decoupled as dc
from decoupled.kernels.state import MOST_PAIRED_ARMS, Layout, State

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


def test_rows_and_squares_share_no_number() -> None:
    state = numbered(4)
    rows = [LAYOUT.row(state, name) for name in ("counts", "order", "duels", "wins")]
    assert [row.shape for row in rows] == [(4,), (4,), (4, 4), (4, 4)]
    assert np.array_equal(np.concatenate([row.ravel() for row in rows]), state.ints.ravel())
    rows[3][1, 2] = -1
    assert (state.ints == -1).sum() == 1  # a view: compiled code sees what is written


def test_some_arms_take_along_their_own_pairs() -> None:
    state = numbered(5)
    part = LAYOUT.restrict(state, np.array([1, 4]))
    assert LAYOUT.row(part, "pace").tolist() == [77.5]
    assert LAYOUT.row(part, "counts").tolist() == LAYOUT.row(state, "counts")[[1, 4]].tolist()
    whole = LAYOUT.row(state, "wins").tolist()
    assert LAYOUT.row(part, "wins").tolist() == [[whole[i][j] for j in (1, 4)] for i in (1, 4)]
    assert not LAYOUT.row(part, "order").any()  # not learned: `init` derives it
    assert part.scalars[:2].tolist() == [1.0, 5.0]


def test_squares_are_refused_where_they_would_be_too_large() -> None:
    assert LAYOUT.new_state(MOST_PAIRED_ARMS).ints.shape == (2 + 2 * MOST_PAIRED_ARMS, MOST_PAIRED_ARMS)
    with pytest.raises(dc.ParameterError, match=r"arms = 1001: must not exceed 1000 .* fewer arms"):
        LAYOUT.new_state(MOST_PAIRED_ARMS + 1)
    LAYOUT._replace(pairs=()).new_state(MOST_PAIRED_ARMS + 1)


def test_newcomers_find_nothing_but_room() -> None:
    state = numbered(3)
    state.scalars[0] = 9.0
    whole = LAYOUT.extend(state, 2)
    assert whole.scalars.tolist() == [9.0, 5.0, 77.5, 77.5, 77.5]
    assert LAYOUT.row(whole, "sums").tolist() == [*LAYOUT.row(state, "sums").tolist(), 0.0, 0.0]
    assert LAYOUT.row(whole, "counts").tolist() == [*LAYOUT.row(state, "counts").tolist(), 0, 0]
    for name in ("duels", "wins"):
        square = LAYOUT.row(whole, name)
        assert square[:3, :3].tolist() == LAYOUT.row(state, name).tolist()
        assert not square[3:].any()
        assert not square[:, 3:].any()
    assert not LAYOUT.row(whole, "means").any()  # not learned: `init` derives it

"""Checks that the checks of the theory have teeth."""

from collections.abc import Iterable, Sequence

import numpy as np

from decoupled_lab.theory.inequality import Inequality, Line, Sides
from decoupled_lab.theory.moment import Moment

HERE = Moment(np.zeros(2), 1.0, 3.0)  # a state for inequalities that have none


def line_of(found: Iterable[tuple[Sides, Moment]], inequality: Inequality) -> Line:
    """What was found of one inequality."""
    line = Line(inequality)
    for sides, moment in found:
        if sides.inequality == inequality:
            line.add(sides, moment)
    assert line.evaluated, inequality.name
    return line


def check_teeth(
    found: Sequence[tuple[Sides, Moment]], inequalities: Iterable[Inequality], least: float = 1e-3
) -> None:
    """Every inequality holds, is tested, and fails if a side moves by slightly more than the slack."""
    for inequality in inequalities:
        mine = [(sides, moment) for sides, moment in found if sides.inequality == inequality]
        whole = line_of(mine, inequality)
        assert whole.violations == 0, whole
        assert whole.ratio > least, f"{inequality.name} is never tested"
        for left, right in ((1.001 / whole.ratio, 1.0), (1.0, whole.ratio / 1.001)):
            moved = [
                (
                    each._replace(
                        left=left * np.asarray(each.left), right=right * np.asarray(each.right)
                    ),
                    moment,
                )
                for each, moment in mine
            ]
            assert line_of(moved, inequality).violations > 0

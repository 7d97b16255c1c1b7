"""Arms lifted together: the order compared with a full sort by (estimate, arm)."""

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from decoupled.kernels.order.ranked import lift_arms, sort_arms

# Few distinct values, so that most arms are tied, some only by rounding.
VALUES = st.sampled_from((-3.0, 0.0, 0.25, 0.5, 0.5 + 2.0**-53, 0.75, 1.0, 1e12))
ARMS = st.lists(st.tuples(VALUES, st.booleans()), min_size=1, max_size=12)


@settings(deadline=None, max_examples=500)
@given(ARMS, st.sampled_from((0.25, 0.5, 0.3, 1.0)))
@example([(0.5 + 2.0**-53, True), (0.5, True), (0.75, False)], 0.5)  # two that rounding makes equal
@example([(0.0, True), (0.5, False), (0.0, True), (0.5, False)], 0.5)  # ties across the two kinds
def test_lifted_arms_are_ranked_as_a_full_sort_ranks_them(
    arms: list[tuple[float, bool]], lift: float
) -> None:
    estimates = np.array([estimate for estimate, _ in arms])
    lifts = np.array([lift if lifted else 0.0 for _, lifted in arms])
    count = len(arms)
    ranked, order = np.empty(count), np.empty(count, np.int64)
    sort_arms(estimates, ranked, order)
    expected = sorted((float(each), arm) for arm, each in enumerate(estimates + lifts))
    lift_arms(estimates, lifts, ranked, order, np.empty(count), np.empty(count, np.int64))
    assert list(zip(ranked.tolist(), order.tolist(), strict=True)) == expected
    assert estimates[order].tolist() == ranked.tolist()

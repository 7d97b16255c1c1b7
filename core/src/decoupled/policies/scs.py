"""Tsallis weights by SCS, a general conic solver, for comparison with Newton's method.

With beta in (0, 1) and scaled gaps g = eta * u, the weights minimise

    <w, g> - sum_i t_i / (beta * (1 - beta))   subject to   sum_i w_i = 1,   t_i <= w_i ** beta,

and (w_i, 1, t_i) lies in a power cone. O'Donoghue, B., Chu, E., Parikh, N. and Boyd, S. (2016). Conic
optimization via operator splitting and homogeneous self-dual embedding. JOTA 169.
"""

from functools import lru_cache
from typing import Any

import numpy as np

from ..base.arrays import Floats
from ..base.extras import needed_for
from ..errors import StateError

TOLERANCE = 1e-6  # SCS's absolute and relative accuracy
SMALLEST = TOLERANCE**2  # the smallest weight, so that every arm can still be explored


def solver() -> Any:
    """Import the package scs, or raise an error that says how to install it."""
    with needed_for("solver = 'scs'", otherwise="use solver='newton'"):
        import scs
    return scs


@lru_cache(maxsize=8)
def _constraints(arms: int) -> tuple[Any, Floats]:
    """The matrix A and the vector b of A x + s = b, x = (w, t), which depend on the number of arms only."""
    from scipy.sparse import csc_matrix

    each = np.arange(arms)
    values = np.concatenate([np.ones(arms), -np.ones(arms), -np.ones(arms)])
    rows = np.concatenate([np.zeros(arms, int), 1 + 3 * each, 3 + 3 * each])
    columns = np.concatenate([each, each, arms + each])
    limits = np.zeros(1 + 3 * arms)
    limits[0] = 1.0
    limits[2 + 3 * each] = 1.0
    return csc_matrix((values, (rows, columns)), shape=(1 + 3 * arms, 2 * arms)), limits


def conic_weights(gaps: Floats, beta: float) -> Floats:
    """The weights for scaled gaps, to SCS's accuracy. Each call starts afresh, so equal gaps give equal bits.

    >>> import numpy as np
    >>> from decoupled.policies.scs import conic_weights
    >>> conic_weights(np.zeros(4), beta=2/3).round(4).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    scs = solver()
    arms = len(gaps)
    matrix, limits = _constraints(arms)
    costs = np.concatenate([gaps, np.full(arms, -1.0 / (beta * (1.0 - beta)))])
    data = {"A": matrix, "b": limits, "c": costs}
    problem = scs.SCS(
        data, {"z": 1, "p": [beta] * arms}, verbose=False, eps_abs=TOLERANCE, eps_rel=TOLERANCE
    )
    solution = problem.solve()
    if solution["info"]["status"] != "solved":
        raise StateError(
            f"solver = 'scs': ended with {solution['info']['status']!r} on {arms} arms; use solver='newton'"
        )
    weights = np.maximum(solution["x"][:arms], SMALLEST)
    law: Floats = weights / weights.sum()
    return law

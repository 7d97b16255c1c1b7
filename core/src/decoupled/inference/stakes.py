"""The bets behind every statement here: a fixed list of stakes, and what their money says.

In each round a bet is worth `z >= -1`, and a stake f multiplies its money by `1 + f z`. If the mean
of z given the past is `e`, then `product of (1 + f z) * exp(-f sum of e)` is a supermartingale that
starts at 1, because 1 + u <= exp(u), and so is its mixture N over the stakes, with the shares
`PRIOR`. So, with probability 1 - risk and at every moment at once, N stays below 1 / risk, and the
sum of e above the root d of

    log sum of PRIOR(f) * product of (1 + f z) * exp(-f d) = log(1 / risk).

docs/inference.md has the derivation. `decoupled.kernels.stakes` keeps the money.
"""

import math

import numpy as np

from ..base.arrays import Floats, Ints
from ..kernels.stakes import PRIOR as PRIOR
from ..kernels.stakes import STAKES as STAKES
from .boundary import log_sum_exp, root

LOG_PRIOR: Floats = np.log(PRIOR)


def fresh_money(rows: int) -> tuple[Floats, Ints]:
    """What so many bets have won before the first round, and the powers of two that go with it.

    >>> won, powers = fresh_money(2)
    >>> round(float(won[0].sum()), 9), int(powers.sum())
    (1.0, 0)
    """
    return np.tile(PRIOR, (rows, 1)), np.zeros((rows, len(PRIOR)), np.int64)


def log_money(won: Floats, powers: Ints) -> Floats:
    """The logarithm of the money of each stake, its share `PRIOR` included.

    >>> won, powers = fresh_money(1)
    >>> bool(np.allclose(log_money(won, powers)[0], LOG_PRIOR))
    True
    """
    logs: Floats = np.log(won) + 1000.0 * math.log(2.0) * powers
    return logs


def evidence(logs: Floats, sums: Floats | float = 0.0) -> Floats:
    """The logarithm of the mixture N, if the sum of the means of z was this; by default 0.

    The last axis of `logs` is that of the stakes, and `sums` has the shape of the others.

    >>> round(float(evidence(LOG_PRIOR)), 9)
    0.0
    """
    shift = STAKES * np.asarray(sums, np.float64)[..., None]
    return log_sum_exp(logs - shift)[0]


def least_sum(logs: Floats, risk: Floats | float) -> Floats:
    """A lower bound of the sum of the means of z, for each row of logs, which holds at every moment
    at once with probability 1 - risk: the smallest sum without enough evidence against it.

    >>> won = PRIOR * (1.0 + 0.5 * STAKES) ** 100    # a hundred rounds that were worth 1/2
    >>> bool(30.0 < least_sum(np.log(won)[None, :], 0.05)[0] < 50.0)
    True
    """
    rows = np.atleast_2d(logs)
    goals = np.broadcast_to(-np.log(np.asarray(risk, np.float64)), rows.shape[:1])
    return root(STAKES, rows, np.ones(len(rows)), goals)

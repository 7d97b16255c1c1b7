"""What every bet here shares: the stakes, the money that each has won, and the level of a bet.

A bet multiplies its money by `1 + f z` in each round, for every stake f of one fixed list, where
`z >= -1` is the largest number that the round can be worth without losing more than everything.
The money is kept as `won * 2^(1000 powers)`, so it neither overflows nor vanishes.

A level, like the law of a round, may come from the losses of earlier decisions alone, in the order
of decisions. Whoever calls these functions reads the sums of an arm before it adds the round.
"""

import numpy as np

from ..base.arrays import Floats, Ints
from .jit import compiled

# Large stakes win soonest when arms differ much, small ones when they differ little.
STAKES: Floats = np.array([0.95, 0.6, 0.38, 0.24, 0.15, 0.1, 0.05, 0.025, 0.01])
_SHARES: Floats = np.array([0.2, 0.1, 0.15, 0.15, 0.15, 0.1, 0.08, 0.05, 0.02])
PRIOR: Floats = _SHARES / _SHARES.sum()  # the share of the money that each stake starts with

LEAST_LEVEL = 0.02  # a level of 0 or 1 would make a stake infinite
MOST_LEVEL = 0.98

# As powers of two they change no other digit. A positive power means 2^600 at least.
LARGE = 2.0**1000
LEAST = 2.0**-1000
MOST = 2.0**800
LESS = 2.0**-300


@compiled
def level_of(total: float, count: float) -> float:
    """The running mean of so many losses, kept away from 0 and 1; one half before the first."""
    return min(max((total + 0.5) / (count + 1.0), LEAST_LEVEL), MOST_LEVEL)


@compiled
def multiply(won: Floats, powers: Ints, row: int, k: int, factor: float) -> None:
    """Multiply what the stake k of a row has won, and keep it within the range of floats."""
    product = won[row, k] * factor
    if product > MOST:
        product *= LEAST
        powers[row, k] += 1
    elif product < LESS:
        product *= LARGE
        powers[row, k] -= 1
    won[row, k] = product


@compiled
def bet(won: Floats, powers: Ints, stakes: Floats, row: int, z: float) -> float:
    """Let every stake of a row bet on a round that is worth `z`, which is at least -1; return what
    they have together, infinite if that is beyond the range of floats.
    """
    money = 0.0
    for k in range(len(stakes)):
        multiply(won, powers, row, k, 1.0 + stakes[k] * z)
        if powers[row, k] == 0:
            money += won[row, k]
        elif powers[row, k] > 0:
            money = np.inf
    return money

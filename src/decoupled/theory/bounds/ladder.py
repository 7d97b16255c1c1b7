r"""Theorem T2: `Ladder()` itself, with its rung on means, its uniform share and a unit that comes from the losses."""

import math
from typing import NamedTuple

import numpy as np

from ...base.validation import number_in
from .arguments import size_of
from .constants import arms_of, curvature_constant, rank_sum, winner_constant
from .rungs import prior_factor

C = 0.5  # the scale of the first rung, and of exploration
PRIOR = 0.1  # of the first rung
L0 = 3.0  # the scale of AdaHedge's rate
MIX, FLOOR = 0.5, 0.2  # the largest share of the two best arms, and the part of it that they have at least
THETA = 0.01
RECORD = 1.25  # kappa: a surprise so many times larger than all before is paid for as a record
FALL = 8.0 / 3.0  # r(1/2): what a fall by half of an arm's own gap costs


class LadderTerms(NamedTuple):
    r"""The terms of theorem T2a for one number of arms, without the horizon.

    Attributes:
        stability: its part of the factor of $\sqrt{KT}$.
        penalty: the same of the penalty.
        judge: the same of AdaHedge.
        constant: what does not grow with the horizon, for a spread that is exactly $4 (1 + \theta) T$.
        drift: by how much the spread may exceed that, over $\sqrt T$.
        start: by how much it may, whatever the horizon.
    """

    stability: float
    penalty: float
    judge: float
    constant: float
    drift: float
    start: float

    @property
    def factor(self) -> float:
        r"""The factor $A(K)$ of $\sqrt{KT}$."""
        return self.stability + self.penalty + self.judge


def ladder_terms(arms: int, uniform_share: float = 0.02) -> LadderTerms:
    r"""The terms of theorem T2a, for the defaults of `Ladder` and any uniform share.

    Args:
        arms: the number of arms $K$, below 4,096, where `Ladder` has other rules.
        uniform_share: $\gamma$, above 0 and below 1.

    >>> from decoupled import theory
    >>> [round(theory.bounds.ladder_terms(arms).factor, 1) for arms in (2, 8, 64, 1024)]
    [49.5, 74.8, 99.9, 109.4]
    """
    gamma = number_in("uniform_share", uniform_share, 0.0, 1.0, "the default is 0.02")
    ranks = np.arange(1.0, arms_of(arms) + 1.0)
    k = float(arms)
    squares = float((ranks ** (-4.0 / 3.0)).sum())
    chances = float((2.0 * ranks ** (-1.0 / 3.0) / (ranks + 1.0)).sum())
    h, whole = C * k ** (-1.0 / 6.0), rank_sum(arms)
    share = whole / ((1.0 - gamma) * (1.0 - MIX))
    lift, curvature = (1.0 + h / 2.0) ** 4, curvature_constant()
    most = max(curvature * lift * FALL / 8.0 * h * share**2, curvature * lift * h * k ** (2.0 / 3.0))
    steps = RECORD**2 + 2.0 * squares * k ** (-2.0 / 3.0)
    factor = prior_factor(PRIOR, L0)
    variance = (whole * chances / (1.0 - MIX * FLOOR) + 2.0 / MIX) / (1.0 - gamma)
    span = max(share * k ** (2.0 / 3.0), 2.0 / ((1.0 - gamma) * MIX * FLOOR)) + 1.0
    records = share * (1.0 + (1.0 + h / 2.0) ** 3 * RECORD / (RECORD - 1.0))
    spread = 2.0 * math.sqrt(1.0 + THETA)
    return LadderTerms(
        stability=2.0 * most * spread / math.sqrt(k),
        penalty=winner_constant() / C * spread,
        judge=factor * math.sqrt(L0 / k) * (math.sqrt(variance) + 0.5),
        constant=1.0 + 4.0 * most * steps + k / gamma + records + factor * (2.0 * L0 / 3.0 + 1.0) * span,
        drift=math.sqrt(64.0 * k ** (1.0 / 3.0)) * share * h,
        start=4.0 + 8.0 * squares * k ** (-2.0 / 3.0),
    )


def theorem_t2(horizon: int, arms: int, uniform_share: float = 0.02) -> float:
    r"""Theorem T2a: the regret of `Ladder()` against any adversary, with feedback in the same round.

    Args:
        horizon: the number of rounds.
        arms: the number of arms, below 4,096.
        uniform_share: $\gamma$, as in `Ladder`, above 0.

    >>> from decoupled import theory
    >>> round(theory.bounds.theorem_t2(horizon=1_000_000, arms=8))
    213403
    """
    terms, size = ladder_terms(arms, uniform_share), size_of(horizon, arms)
    least = 4.0 * (1.0 + THETA) * horizon
    spread = math.sqrt((least + terms.drift * math.sqrt(horizon) + terms.start) / least)
    return (spread * (terms.stability + terms.penalty) + terms.judge) * math.sqrt(size) + terms.constant

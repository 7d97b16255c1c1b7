"""The twin of Tsallis-INF."""

import math
from typing import Any

from scipy.optimize import brentq

from support.twins import Floats, Twin, twin_for


class TsallisTwin(Twin):
    """Tsallis-INF: the multiplier x is bracketed and bisected, from nothing, every time."""

    def __init__(self, arms: int, beta: float = 2 / 3, c: float = 2.0) -> None:
        super().__init__(arms, c)
        self.beta = beta

    @property
    def eta(self) -> float:
        return self.c * math.pow(self.problem_arms, 1 / 2 - self.beta) / math.sqrt(self.round)

    def exploitation_law(self) -> Floats:
        return tsallis_law_by_brentq(self.estimates, self.eta, self.beta)

    def exploration_law(self) -> Floats:
        p = self.exploitation_law() ** (1 - self.beta / 2)
        law: Floats = p / p.sum()
        return law


def tsallis_law_by_brentq(estimates: Floats, eta: float, beta: float) -> Floats:
    """w_i = ((1 - beta) eta (L_i - x))^(-1/(1 - beta)), x from a bracketing root finder.

    Only differences matter, so L is counted from its smallest entry, which is 0 and loses no digits.
    """
    a = 1 / (1 - beta)
    gaps = estimates - estimates.min()

    def weights(x: float) -> Floats:
        w: Floats = ((1 - beta) * eta * (gaps - x)) ** -a
        return w

    def excess(x: float) -> float:
        return math.fsum(weights(x)) - 1

    # A hair beyond the bracket: at its very ends rounding may give the excess either sign.
    lowest, highest = -a * len(gaps) ** (1 / a) / eta, -a / eta
    x = brentq(
        excess, lowest * (1 + 1e-9), highest * (1 - 1e-9), xtol=1e-300, rtol=1e-15, maxiter=1000
    )
    return weights(x)


@twin_for("TsallisINF")
def tsallis_twin(policy: Any, arms: int) -> Twin:
    return TsallisTwin(arms, policy.beta, policy.c)

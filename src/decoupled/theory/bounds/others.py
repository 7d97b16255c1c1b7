"""Bounds from other papers, for comparison."""

import math
from collections.abc import Sequence

from ...base.validation import number_in
from .arguments import positive_gaps, scale_of, size_of


def rouyer_seldin(horizon: int, arms: int, beta: float = 2.0 / 3.0, c: float = 2.0) -> float:
    """Decoupled Tsallis-INF against any adversary: (c + 1 / (c beta (1 - beta))) sqrt(K T).

    Rouyer, C. and Seldin, Y. (2020). Tsallis-INF for decoupled exploration and exploitation in multi-armed
    bandits. COLT. They prove O(sqrt(K T)). Their constants were not available; these are ours, from the
    standard argument for eta_t = c K^(1/2 - beta) / sqrt(t), the rate of this package's `TsallisINF`. The
    stability of a round is at most
    eta/2 sum_i w_i^(2 - beta) / p_i = eta/2 (sum_i w_i^(1 - beta/2))^2 <= eta/2 K^beta.
    The penalty is at most (sum_i w_i^beta - 1) / (beta (1 - beta)) <= K^(1 - beta) / (beta (1 - beta)).

    >>> from decoupled import theory
    >>> round(theory.bounds.rouyer_seldin(horizon=10_000, arms=8), 1)
    1202.1
    """
    beta, c = number_in("beta", beta, 0.0, 1.0, "the paper has 2/3"), scale_of(c)
    return (c + 1.0 / (c * beta * (1.0 - beta))) * math.sqrt(size_of(horizon, arms))


def rouyer_seldin_order(gaps: Sequence[float]) -> float:
    """The order of Decoupled Tsallis-INF's stochastic bound for beta up to 2/3: K / gap_min.

    This is an order, not a bound: the constant is set to 1. The text was not available, so the order is the
    one that the paper cites (section 2.2 and below its corollary).

    >>> from decoupled import theory
    >>> theory.bounds.rouyer_seldin_order([0.125] * 7)
    64.0
    """
    others = positive_gaps(gaps)
    return (len(others) + 1) / float(others.min())


def zimmert_seldin(horizon: int, arms: int) -> float:
    """Tsallis-INF in the standard game, against any adversary: 4 sqrt(K T) + 1.

    Zimmert, J. and Seldin, Y. (2021). Tsallis-INF: an optimal algorithm for stochastic and adversarial
    bandits. JMLR 22, theorem 1, importance weighting and eta_t = 2 / sqrt(t), quoted from memory. The
    argument in `rouyer_seldin` gives the factor 4: 2 from the stability and 2 from the penalty.

    >>> from decoupled import theory
    >>> round(theory.bounds.zimmert_seldin(horizon=10_000, arms=8), 1)
    1132.4
    """
    return 4.0 * math.sqrt(size_of(horizon, arms)) + 1.0


def zimmert_seldin_stochastic(gaps: Sequence[float], horizon: int) -> float:
    """Tsallis-INF in the standard stochastic game: sum_i (4 ln T + 20) / gap_i + 4 sqrt(K).

    From the same source, quoted from memory. Self-bounding gives the leading 4 ln T / gap_i: the maximum of
    4 sqrt(w) / sqrt(t) - gap w is 4 / (gap t). The 20 and the 4 sqrt(K) were not checked against the text.

    >>> from decoupled import theory
    >>> round(theory.bounds.zimmert_seldin_stochastic([0.125] * 7, horizon=10_000), 1)
    3194.4
    """
    others = positive_gaps(gaps)
    arms = len(others) + 1
    rounds = size_of(horizon, arms) / arms
    return (4.0 * math.log(rounds) + 20.0) * float((1.0 / others).sum()) + 4.0 * math.sqrt(arms)


def lower_bound_order(horizon: int, arms: int) -> float:
    """The order of the lower bound, which no policy can beat against every adversary: sqrt(K T).

    Avner, O., Mannor, S. and Shamir, O. (2012). Decoupling exploration and exploitation in multi-armed
    bandits. ICML. This is an order, not a bound: their constant was not available and is set to 1.

    >>> from decoupled import theory
    >>> round(theory.bounds.lower_bound_order(horizon=10_000, arms=8), 1)
    282.8
    """
    return math.sqrt(size_of(horizon, arms))

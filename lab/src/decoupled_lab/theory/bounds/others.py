"""Bounds from other papers, for comparison."""

import math
from collections.abc import Sequence

from decoupled.base import number_in

from .arguments import positive_gaps, scale_of, size_of


def rouyer_seldin(horizon: int, arms: int, beta: float = 2.0 / 3.0, c: float = 2.0) -> float:
    r"""Decoupled Tsallis-INF against any adversary: $(c + 1 / (c \beta (1 - \beta))) \sqrt{KT}$.

    Rouyer, C. and Seldin, Y. (2020). Tsallis-INF for decoupled exploration and exploitation in multi-armed
    bandits. COLT. They prove $O(\sqrt{KT})$. Their constants were not available; these are ours, from the
    standard argument for $\eta_t = c K^{1/2 - \beta} / \sqrt{t}$, the rate of this package's `TsallisINF`. The
    stability of a round and the penalty are at most

    $$\frac{\eta_t}{2} \sum_i \frac{w_i^{2 - \beta}}{p_i} = \frac{\eta_t}{2} \left(\sum_i w_i^{1 - \beta/2}\right)^2
    \le \frac{\eta_t}{2} K^\beta, \qquad
    \frac{\sum_i w_i^\beta - 1}{\beta (1 - \beta) \eta_T} \le \frac{K^{1 - \beta}}{\beta (1 - \beta) \eta_T}.$$

    Args:
        horizon: the number of rounds $T$.
        arms: the number of arms $K$.
        beta: the order of the Tsallis entropy, in (0, 1).
        c: the scale of the learning rate, above 0.

    >>> from decoupled_lab import theory
    >>> round(theory.bounds.rouyer_seldin(horizon=10_000, arms=8), 1)
    1202.1
    """
    beta, c = number_in("beta", beta, 0.0, 1.0, "the paper has 2/3"), scale_of(c)
    return (c + 1.0 / (c * beta * (1.0 - beta))) * math.sqrt(size_of(horizon, arms))


def rouyer_seldin_order(gaps: Sequence[float]) -> float:
    r"""The order of Decoupled Tsallis-INF's stochastic bound for $\beta \le 2/3$: $K / \Delta_{\min}$.

    This is an order, not a bound: the constant is set to 1. The text was not available, so the order is the
    one that the paper cites (section 2.2 and below its corollary).

    Args:
        gaps: the gaps of the other arms; one 0, for the best arm, is allowed.

    >>> from decoupled_lab import theory
    >>> theory.bounds.rouyer_seldin_order([0.125] * 7)
    64.0
    """
    others = positive_gaps(gaps)
    return (len(others) + 1) / float(others.min())


def zimmert_seldin(horizon: int, arms: int) -> float:
    r"""Tsallis-INF in the standard game, against any adversary: $4 \sqrt{KT} + 1$.

    Zimmert, J. and Seldin, Y. (2021). Tsallis-INF: an optimal algorithm for stochastic and adversarial
    bandits. JMLR 22, importance weighting with Tsallis entropy of order 1/2: their third theorem, whose bound
    $2 \sqrt{4 KT} + 1$ is this one at that order. The argument in `rouyer_seldin` gives $4 \sqrt{KT}$ for
    $\eta_t = 2 / \sqrt{t}$: half of it from the stability, half from the penalty.

    Args:
        horizon: the number of rounds $T$.
        arms: the number of arms $K$.

    >>> from decoupled_lab import theory
    >>> round(theory.bounds.zimmert_seldin(horizon=10_000, arms=8), 1)
    1132.4
    """
    return 4.0 * math.sqrt(size_of(horizon, arms)) + 1.0


def lower_bound_order(horizon: int, arms: int) -> float:
    r"""The order of the lower bound, which no policy can beat against every adversary: $\sqrt{KT}$.

    Avner, O., Mannor, S. and Shamir, O. (2012). Decoupling exploration and exploitation in multi-armed
    bandits. ICML. This is an order, not a bound: their constant was not available and is set to 1.

    Args:
        horizon: the number of rounds $T$.
        arms: the number of arms $K$.

    >>> from decoupled_lab import theory
    >>> round(theory.bounds.lower_bound_order(horizon=10_000, arms=8), 1)
    282.8
    """
    return math.sqrt(size_of(horizon, arms))

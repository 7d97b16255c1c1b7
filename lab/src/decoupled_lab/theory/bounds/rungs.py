"""Theorem E: a ladder of exploitation rates, weighted by AdaHedge."""

import math
from collections.abc import Sequence

from decoupled.base import check_number

from .centred import theorem_b, theorem_c
from .constants import HALF, Gate, arms_of, positive_gaps, rank_sum, ratio_sum, shape_of, size_of


def prior_factor(prior: float, l0: float = 3.0) -> float:
    """The factor 1 + ln(1 / prior) / L0 of Delta_T in theorem E1.

    Args:
        prior: the prior probability of a rung, above 0 and at most 1.
        l0: L0, the scale of AdaHedge's rate.

    >>> from decoupled_lab import theory
    >>> round(theory.bounds.prior_factor(prior=0.05), 2)
    2.0
    """
    check_number(
        "prior", prior, "give the prior probability of the rung", above=0.0, below=1.0 + 1e-12
    )
    return 1.0 + math.log(1.0 / prior) / check_number("l0", l0, "ours is 3", above=0.0)


def mixing_overhead(horizon: int, arms: int, alpha: float = 3.0, l0: float = 3.0) -> float:
    r"""The bound on $\mathbb E[\Delta_T]$ in theorem E1: $\sqrt{L_0 V T} + (2 L_0 / 3 + 1) S$.

    $V = (S_K Z_2 + 1) / 2$ bounds the expected variance of the rungs' losses in a round, $S = S_K + 1$ their range, if
    the probabilities $w_j$ are exact. `ladder_terms` has the numbers of `Ladder`, which estimates them.

    Args:
        horizon: the number of rounds.
        arms: the number of arms.
        alpha: the shape of the perturbations, above 1.
        l0: L0, the scale of AdaHedge's rate.

    >>> from decoupled_lab import theory
    >>> round(theory.bounds.mixing_overhead(10_000, 8))
    476
    """
    alpha, rounds = shape_of(alpha), size_of(horizon, arms) / arms_of(arms)
    check_number("l0", l0, "ours is 3", above=0.0)
    total = rank_sum(arms, alpha)
    variance = 0.5 * (total * ratio_sum(alpha) + 1.0)
    return math.sqrt(l0 * variance * rounds) + (2.0 * l0 / 3.0 + 1.0) * (total + 1.0)


def theorem_e1(rung_regret: float, overhead: float, prior: float = 0.05, l0: float = 3.0) -> float:
    r"""Theorem E1: the ladder has little more regret than any of its rungs.

    With $\pi_m$ the prior of rung $m$ and $\mathrm{Reg}^{(m)}_T$ its regret,

    $$\mathrm{Reg}_T \le \mathrm{Reg}^{(m)}_T + \left(1 + \frac{\ln(1 / \pi_m)}{L_0}\right) \mathbb E[\Delta_T].$$

    Args:
        rung_regret: the regret that rung $m$ alone has on the losses that the ladder met, or a bound on it.
        overhead: $\mathbb E[\Delta_T]$, or the bound `mixing_overhead`.
        prior: the prior probability of rung $m$.
        l0: L0, the scale of AdaHedge's rate.

    >>> from decoupled_lab import theory
    >>> round(theory.bounds.theorem_e1(rung_regret=100.0, overhead=6.0))
    112
    """
    return rung_regret + prior_factor(prior, l0) * overhead


def theorem_e2(
    horizon: int,
    arms: int,
    alpha: float = 3.0,
    c_exploit: float = 0.5,
    gate: Gate = HALF,
    *,
    l0: float = 3.0,
    prior: float = 0.05,
) -> float:
    """Theorem E2: the ladder against any adversary, by its first rung.

    The first rung obeys theorem B, and theorem E1 adds the rest. The other rungs need no condition. For `Ladder`, see
    `theorem_t2`.

    Args:
        horizon: the number of rounds.
        arms: the number of arms.
        alpha: the shape of the perturbations, above 1.
        c_exploit: the scale $c_1$ of the first rung; $c$ may be at most this.
        gate: the gate of the estimator, at the first rung's rate.
        l0: L0, the scale of AdaHedge's rate.
        prior: the prior probability of the first rung.

    >>> from decoupled_lab import theory
    >>> round(theory.bounds.theorem_e2(horizon=10_000, arms=8))
    6676
    """
    first = theorem_b(horizon, arms, alpha, c_exploit, gate)
    return theorem_e1(first, mixing_overhead(horizon, arms, alpha, l0), prior, l0)


def theorem_e3(
    gaps: Sequence[float],
    horizon: int | None = None,
    alpha: float = 3.0,
    c_exploit: float = 0.5,
    zeta: float = 0.1,
    gate: Gate = HALF,
    *,
    l0: float = 3.0,
    prior: float = 0.05,
) -> float:
    r"""Theorem E3: the ladder in the stochastically constrained regime, with exact probabilities $w_j$.

    $$\mathrm{Reg}_T \le 2 \mathrm{Reg}^{(1)} + \frac{k^2 L_0 (8 S_K + 2)}{\Delta_{\min}}
    + 2 k \left(\frac{2 L_0}{3} + 1\right) (S_K + 1)$$

    with $k$ = `prior_factor` and $\mathrm{Reg}^{(1)}$ from theorem C. See `theorem_c` and `theorem_e2` for the arguments.

    Args:
        gaps: the gaps of the other arms, given the past; one 0, for the best arm, is allowed.
        horizon: the number of rounds; None for any number, which needs an alpha above 2.
        alpha: the shape of the perturbations, above 1 and at most 3.
        c_exploit: the scale of the first rung's rate, above 0.
        zeta: where the proof calls a round late, above 0 and at most the gate's a.
        gate: the gate of the estimator, at the first rung's rate.
        l0: L0, the scale of AdaHedge's rate.
        prior: the prior probability of the first rung.

    >>> from decoupled_lab import theory
    >>> f"{theory.bounds.theorem_e3([0.125] * 7):.3g}"
    '2.89e+06'
    """
    others = positive_gaps(gaps)
    total, factor = rank_sum(len(others) + 1, alpha), prior_factor(prior, l0)
    first = theorem_c(gaps, horizon, alpha, c_exploit, zeta, gate)
    mixing = factor**2 * l0 * (8.0 * total + 2.0) / float(others.min())
    return 2.0 * first + mixing + 2.0 * factor * (2.0 * l0 / 3.0 + 1.0) * (total + 1.0)

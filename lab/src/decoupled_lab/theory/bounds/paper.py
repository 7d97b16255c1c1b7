"""The bounds of the paper, theorems 3.1 and 3.2 and corollary 3.3, and those of the work that it is compared with."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from decoupled.base import check_number, whole_number

from .constants import LEAST_OFF_EVENT, positive_gaps, scale_of, shape_of, size_of, split_of


def stability_constant(alpha: float = 3.0, c: float = 2.0) -> float:
    r"""The factor of $\sqrt{KT}$ in the stability term, equation (16): $8 c e \alpha^2 (\alpha + 1) / (\alpha - 1)^2$.

    It is twice $e (\alpha + 1)$ of lemma 3.6 times the square of $2 \alpha / (\alpha - 1)$ of equation (17).

    Args:
        alpha: the shape of the perturbations, above 1.
        c: the scale of the learning rate, above 0.

    >>> from decoupled_lab import theory
    >>> round(theory.bounds.stability_constant(alpha=3.0, c=2.0), 1)
    391.4
    """
    alpha, c = shape_of(alpha), scale_of(c)
    return 8.0 * c * alpha**2 * (alpha + 1.0) * math.e / (alpha - 1.0) ** 2


def penalty_constant(alpha: float = 3.0) -> float:
    r"""The constant $C_\alpha$ of lemma 3.5.

    $$C_\alpha = \frac{2 \alpha^3 + (e - 2) \alpha^2}{(\alpha - 1) (2 \alpha - 1)}$$

    Args:
        alpha: the shape of the perturbations, above 1.

    >>> from decoupled_lab import theory
    >>> round(theory.bounds.penalty_constant(alpha=3.0), 4)
    6.0465
    """
    alpha = shape_of(alpha)
    return (2.0 * alpha**3 + (math.e - 2.0) * alpha**2) / ((alpha - 1.0) * (2.0 * alpha - 1.0))


def first_round_constant(alpha: float = 3.0) -> float:
    r"""The factor of $K^{1/\alpha}$ in the bound on the first penalty, equation (18).

    It is $\alpha \Gamma(1 - 1/\alpha) / (\alpha - 1)$.

    Args:
        alpha: the shape of the perturbations, above 1.

    >>> from decoupled_lab import theory
    >>> round(theory.bounds.first_round_constant(alpha=3.0), 4)
    2.0312
    """
    alpha = shape_of(alpha)
    return alpha * math.gamma(1.0 - 1.0 / alpha) / (alpha - 1.0)


def theorem1(horizon: int, arms: int, alpha: float = 3.0, c: float = 2.0) -> float:
    r"""Theorem 3.1 with the constants of its proof (appendix B); the statement hides them in $O(\sqrt{KT})$.

    $$\mathrm{Reg}_T \le \left(\frac{8 c e \alpha^2 (\alpha + 1)}{(\alpha - 1)^2} + \frac{C_\alpha}{c}\right) \sqrt{KT}
    + \frac{\alpha \Gamma(1 - 1/\alpha)}{\alpha - 1} \frac{\sqrt{K}}{c}$$

    for any adversary, any $\alpha > 1$ and $\eta_t = c K^{1/\alpha - 1/2} / \sqrt{t}$. No term is left out.

    Args:
        horizon: the number of rounds $T$.
        arms: the number of arms $K$, at least two.
        alpha: the shape of the perturbations, above 1.
        c: the scale of the learning rate, above 0.

    >>> from decoupled_lab import theory
    >>> round(theory.bounds.theorem1(horizon=10_000, arms=8))
    111572
    """
    size = size_of(horizon, arms)
    main = stability_constant(alpha, c) + penalty_constant(alpha) / c
    return main * math.sqrt(size) + first_round_constant(alpha) * math.sqrt(arms) / c


def surrogate_sum_bound(arms: int, alpha: float = 3.0) -> float:
    r"""The bound on the sum of $q$ in any state, equation (17): $2 \alpha K^{1/2 - 1/(2 \alpha)} / (\alpha - 1)$.

    Args:
        arms: the number of arms $K$.
        alpha: the shape of the perturbations, above 1.

    >>> from decoupled_lab import theory
    >>> round(theory.bounds.surrogate_sum_bound(arms=8), 6)
    6.0
    """
    alpha, count = shape_of(alpha), whole_number("arms", arms, 1, "give the number of arms")
    return 2.0 * alpha / (alpha - 1.0) * math.pow(count, 0.5 - 0.5 / alpha)


def self_bounding_constant(
    arms: int, alpha: float = 3.0, c: float = 2.0, zeta: float = 0.1, *, corrected: bool = False
) -> float:
    r"""$Z_1(\alpha; \zeta)$ of equation (27), the factor of $w^{1 - 1/\alpha} / \sqrt{t}$ on the event $D_t$.

    The paper's last summand, $\alpha / (c (\alpha - 1))$, comes from a penalty whose factor $1 / \sqrt{t - 1}$ was
    written as $1 / \sqrt{t}$ in the display above equation (24). `corrected=True` corrects it with
    the factor $\sqrt{2}$ that the paper uses off $D_t$.

    Args:
        arms: the number of arms $K$.
        alpha: the shape of the perturbations, above 1.
        c: the scale of the learning rate, above 0.
        zeta: where lemma D.1 splits its cases, in (0, 1).
        corrected: whether to add the factor that the penalty on $D_t$ lacks.

    >>> from decoupled_lab import theory
    >>> round(theory.bounds.self_bounding_constant(arms=8), 1)
    1920.5
    """
    alpha, c, zeta = shape_of(alpha, 3.0 + 1e-12), scale_of(c), split_of(zeta)
    others = 4.0 * c * alpha * (alpha + 1.0) * math.e / (alpha - 1.0)
    best = 4.0 * c * alpha**2 * (math.e - 1.0) / ((alpha - 1.0) * math.pow(1.0 - zeta, alpha + 1.0))
    penalty = (math.sqrt(2.0) if corrected else 1.0) * alpha / (c * (alpha - 1.0))
    scale = math.pow(2.0 * math.e**2, 1.0 - 1.0 / alpha) * math.pow(arms, 0.5 / alpha)
    return scale * (others + best + penalty)


def gap_constant(alpha: float = 3.0, c: float = 2.0) -> float:
    r"""The factor of $K / \Delta_{\min}$, from equation (29).

    $$\frac{4}{1 - e^{-1/2}} \left(\frac{8 c e \alpha^2 (\alpha + 1)}{(\alpha - 1)^2} + \frac{\sqrt{2} C_\alpha}{c}\right)^2$$

    Args:
        alpha: the shape of the perturbations, above 1.
        c: the scale of the learning rate, above 0.

    >>> from decoupled_lab import theory
    >>> round(theory.bounds.gap_constant(alpha=3.0, c=2.0))
    1591838
    """
    rounds = stability_constant(alpha, c) + penalty_constant(alpha) * math.sqrt(2.0) / c
    return 2.0 * rounds**2 / LEAST_OFF_EVENT


def early_rounds(arms: int, alpha: float = 3.0, c: float = 2.0, zeta: float = 0.1) -> float:
    r"""The number of rounds after which case (ii) of lemma D.1 ends.

    $$\frac{4 \alpha^2 c^2 K^{1/\alpha}}{(\alpha - 1)^2 \zeta^2}$$

    It replaces the paper's $O(c^2 K^{2/\alpha - 1})$, equation (37), which relies on a tail bound for geometric
    resampling that does not hold here. Case (ii) needs $\sum q > \zeta / \eta_t$, each of its rounds adds at most 1,
    and equation (17) ends it. The correction and its constant are ours.

    Args:
        arms: the number of arms $K$.
        alpha: the shape of the perturbations, above 1.
        c: the scale of the learning rate, above 0.
        zeta: where lemma D.1 splits its cases, in (0, 1).

    >>> from decoupled_lab import theory
    >>> round(theory.bounds.early_rounds(arms=8, c=0.128017), 2)
    29.5
    """
    alpha, c, zeta = shape_of(alpha), scale_of(c), split_of(zeta)
    rate = c * math.pow(arms, 1.0 / alpha - 0.5)  # eta_1
    return (surrogate_sum_bound(arms, alpha) * rate / zeta) ** 2


def theorem2(
    gaps: Sequence[float],
    horizon: int,
    alpha: float = 3.0,
    c: float = 2.0,
    zeta: float = 0.1,
    *,
    corrected: bool = False,
) -> float:
    r"""Theorem 3.2 with the constants of its proof (appendix C); the statement hides them in an O.

    $$\mathrm{Reg}_T \le \sum_{t, i} Z_2 \Delta_i^{1 - \alpha} t^{-\alpha/2} + g \frac{K}{\Delta_{\min}}
    + \frac{2 \alpha \Gamma(1 - 1/\alpha)}{\alpha - 1} \frac{\sqrt{K}}{c} + 2 n$$

    with $Z_2$ of equation (28), $g$ = `gap_constant`, $n$ = `early_rounds` and $\alpha \in (1, 3]$.

    Even the proof hides one constant, in $O(c^2 K^{2/\alpha - 1})$; `early_rounds` explains what replaces it.
    The proof assumes $\eta_{T+1} = \eta_T$, and so does this function.

    Args:
        gaps: the gaps of the other arms; one 0, for the best arm, is allowed.
        horizon: the number of rounds.
        alpha: the shape of the perturbations, above 1 and at most 3.
        c: the scale of the learning rate.
        zeta: where lemma D.1 splits its cases, in (0, 1).
        corrected: whether to add the factor that the penalty on $D_t$ lacks; see `self_bounding_constant`.

    >>> from decoupled_lab import theory
    >>> f"{theory.bounds.theorem2([0.125] * 7, horizon=10_000, c=0.128):.3g}"
    '1.9e+09'
    """
    others = positive_gaps(gaps)
    arms = len(others) + 1
    rounds = whole_number("horizon", horizon, 1, "give the number of rounds")
    first = self_bounding_constant(arms, alpha, c, zeta, corrected=corrected)
    share = (alpha - 1.0) / alpha
    second = math.pow(first, alpha) * (math.pow(share, alpha - 1.0) - math.pow(share, alpha))
    decay = float((np.arange(1, rounds + 1) ** (-0.5 * alpha)).sum())
    return (
        second * decay * float((others ** (1.0 - alpha)).sum())
        + gap_constant(alpha, c) * arms / float(others.min())
        + 2.0 * first_round_constant(alpha) * math.sqrt(arms) / c
        + 2.0
        * early_rounds(
            arms, alpha, c, check_number("zeta", zeta, "choose another", above=0.0, below=1.0)
        )
    )


class Tuned(NamedTuple):
    """The scale of the learning rate that minimises the corollary's leading constant, and that constant.

    Attributes:
        c: the scale of the learning rate.
        leading_constant: the constant at that scale.

    >>> from decoupled_lab import theory
    >>> theory.bounds.Tuned(c=1.0, leading_constant=2.0).c
    1.0
    """

    c: float
    leading_constant: float


def _coefficients(zeta: float, corrected: bool) -> tuple[float, float, float, float]:
    """The coefficients h_1 to h_4 of f(c) = (h_1 c + h_2 / c) (h_3 c + h_4 / c)^3."""
    h3 = 24.0 * math.e + 18.0 * (math.e - 1.0) / (1.0 - zeta) ** 4
    h4 = 1.5 * (math.sqrt(2.0) if corrected else 1.0)
    return 144.0 * math.e, 2.0 * penalty_constant(3.0), h3, h4


def leading_constant(c: float, zeta: float = 0.1, *, corrected: bool = False) -> float:
    r"""The factor of $\sqrt{(K / \Delta_{\min}) \sum_i 1 / \Delta_i}$ in corollary 3.3: $2 \sqrt{(32 e^4 / 27) f(c)}$.

    Equations (34) and (36). The paper calls its minimum $f(c)$. For `corrected`, see `self_bounding_constant`.

    Args:
        c: the scale of the learning rate, above 0.
        zeta: where lemma D.1 splits its cases, in (0, 1).
        corrected: whether to add the factor that the penalty on $D_t$ lacks; see `self_bounding_constant`.

    >>> from decoupled_lab import theory
    >>> round(theory.bounds.leading_constant(c=2.0))
    1530285
    """
    c = scale_of(c)
    h1, h2, h3, h4 = _coefficients(split_of(zeta), corrected)
    value = (h1 * c + h2 / c) * (h3 * c + h4 / c) ** 3
    return 2.0 * math.sqrt(32.0 * math.e**4 / 27.0 * value)


def optimal_c(zeta: float = 0.1, *, corrected: bool = False) -> Tuned:
    """The $c$ that minimises `leading_constant`, in closed form, as in appendix C ("The choice of c").

    Args:
        zeta: where lemma D.1 splits its cases, in (0, 1).
        corrected: whether to add the factor that the penalty on $D_t$ lacks; see `self_bounding_constant`.

    >>> from decoupled_lab import theory
    >>> c, constant = theory.bounds.optimal_c(zeta=0.1)
    >>> round(c, 6), round(constant, 3)
    (0.128017, 25799.36)
    >>> round(theory.bounds.optimal_c(zeta=0.1, corrected=True).leading_constant, 3)
    32753.539
    """
    h1, h2, h3, h4 = _coefficients(split_of(zeta), corrected)
    difference = h1 * h4 - h2 * h3
    square = (difference + math.sqrt(difference**2 + 16.0 * h1 * h2 * h3 * h4)) / (4.0 * h1 * h3)
    return Tuned(math.sqrt(square), leading_constant(math.sqrt(square), zeta, corrected=corrected))


def corollary(
    gaps: Sequence[float], c: float = 2.0, zeta: float = 0.1, *, corrected: bool = False
) -> float:
    r"""Corollary 3.3 ($\alpha = 3$, any horizon) with the constants of its proof; the statement hides them in an O.

    $$\mathrm{Reg}_T \le l \sqrt{\frac{K}{\Delta_{\min}} \sum_i \frac{1}{\Delta_i}} + g \frac{K}{\Delta_{\min}}
    + 3 \Gamma(2/3) \frac{\sqrt{K}}{c} + 2 n$$

    with $l$ = `leading_constant`, $g$ = `gap_constant` and $n$ = `early_rounds`, from equations (33) and (34). The last
    summand replaces $O(c^2 K^{-1/3})$; see `early_rounds`. At the $c$ that minimises the first constant, the second is larger.

    Args:
        gaps: the gaps of the other arms; one 0, for the best arm, is allowed.
        c: the scale of the learning rate, above 0.
        zeta: where lemma D.1 splits its cases, in (0, 1).
        corrected: whether to add the factor that the penalty on $D_t$ lacks; see `self_bounding_constant`.

    >>> from decoupled_lab import theory
    >>> f"{theory.bounds.corollary([0.125] * 7, c=0.128):.3g}"
    '7.03e+06'
    """
    others = positive_gaps(gaps)
    arms, smallest = len(others) + 1, float(others.min())
    root = math.sqrt(arms / smallest * float((1.0 / others).sum()))
    return (
        leading_constant(c, zeta, corrected=corrected) * root
        + gap_constant(3.0, c) * arms / smallest
        + 2.0 * first_round_constant(3.0) * math.sqrt(arms) / c
        + 2.0 * early_rounds(arms, 3.0, c, zeta)
    )


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
    beta, c = check_number("beta", beta, "the paper has 2/3", above=0.0, below=1.0), scale_of(c)
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

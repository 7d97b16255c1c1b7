"""Theorem 3.1: regret against any adversary."""

import math

from .arguments import scale_of, shape_of, size_of


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

"""Exact exploitation probabilities of the perturbed leader, and their derivatives."""

import numpy as np
from numpy.typing import ArrayLike

from decoupled.base import Floats, number_in, one_of
from decoupled.errors import ParameterError
from decoupled.extend import winner_law

from .integrals import winner_jacobian, winner_moments

FAMILIES = ("pareto", "frechet")


def weights(estimates: ArrayLike, eta: float, alpha: float = 3.0, perturbation: str = "pareto") -> Floats:
    r"""The probability $w_i$ of exploiting each arm, for all arms at once.

    $$w_i = \int_1^\infty f(z + \eta u_i) \prod_{j \ne i} F(z + \eta u_j) \, dz$$

    This is equation (6), where $u$ are the gaps to the smallest estimate. The absolute error is below 1e-12 for any estimates. A thousand arms take
    a few milliseconds. Ten thousand take a few hundredths of a second at $\alpha$ = 2 or 3, and a sixth of a
    second at other values.

    Args:
        estimates: the summed loss estimates, one finite number per arm.
        eta: the learning rate, above 0.
        alpha: the shape of the perturbations, above 1.
        perturbation: "pareto", as in the paper ($F(x) = 1 - x^{-\alpha}$ on $x \ge 1$), or "frechet"
            ($F(x) = \exp(-x^{-\alpha})$ on $x > 0$), as in Honda et al. (2023).

    >>> from decoupled_lab import theory
    >>> theory.weights([0.0, 1.0, 5.0], eta=0.5).round(4).tolist()
    [0.8123, 0.1714, 0.0163]
    >>> theory.weights([0.0, 1.0, 5.0], eta=0.5, alpha=2.0, perturbation="frechet").round(4).tolist()
    [0.6594, 0.2824, 0.0582]
    """
    shifts, shape, frechet = _checked(estimates, eta, alpha, perturbation)
    return winner_law(shifts, shape, frechet)


def slopes(estimates: ArrayLike, eta: float, alpha: float = 3.0, perturbation: str = "pareto") -> Floats:
    r"""The derivative of each arm's probability in its own coordinate, $\partial \varphi_i / \partial \lambda_i$.

    Here $\lambda = \eta \hat L$. The proof of the stability lemma (3.6) integrates these derivatives, which are never positive. The paper
    writes them as $-\alpha (\alpha + 1) I_{i, \alpha + 2}$. For an arm that leads alone, that formula misses
    the term $f(1) \prod_{j \ne i} F(1 + \lambda_j - \lambda_i)$ from the moving end of the integral. This
    function includes it.

    Args:
        estimates: the summed loss estimates, one finite number per arm.
        eta: the learning rate, above 0.
        alpha: the shape of the perturbations, above 1.
        perturbation: "pareto" or "frechet", as in `weights`.

    >>> from decoupled_lab import theory
    >>> theory.slopes([0.0, 1.0, 5.0], eta=0.5).round(4).tolist()
    [-0.311, -0.3016, -0.0127]
    """
    shifts, shape, frechet = _checked(estimates, eta, alpha, perturbation)
    return winner_moments(shifts, shape, frechet).slopes


def jacobian(estimates: ArrayLike, eta: float, alpha: float = 3.0, perturbation: str = "pareto") -> Floats:
    r"""All derivatives $\partial \varphi_i / \partial \lambda_j$ at $\lambda = \eta \hat L$: a symmetric matrix whose rows sum to zero.

    A thousand arms take a tenth of a second. Multiply by $\eta$ to get derivatives in the estimates.

    Args:
        estimates: the summed loss estimates, one finite number per arm.
        eta: the learning rate, above 0.
        alpha: the shape of the perturbations, above 1.
        perturbation: "pareto" or "frechet", as in `weights`.

    >>> from decoupled_lab import theory
    >>> theory.jacobian([0.0, 1.0, 5.0], eta=0.5).round(3).tolist()
    [[-0.311, 0.3, 0.011], [0.3, -0.302, 0.002], [0.011, 0.002, -0.013]]
    """
    shifts, shape, frechet = _checked(estimates, eta, alpha, perturbation)
    return winner_jacobian(shifts, shape, frechet)


def _checked(
    estimates: ArrayLike, eta: float, alpha: float, perturbation: str
) -> tuple[Floats, float, bool]:
    frechet = one_of("perturbation", perturbation, FAMILIES) == "frechet"
    values, rate, shape = checked_estimates(estimates, eta, alpha)
    with np.errstate(over="ignore"):  # an arm infinitely far behind never wins
        return rate * (values - values.min()), shape, frechet


def checked_estimates(estimates: ArrayLike, eta: float, alpha: float) -> tuple[Floats, float, float]:
    """Validate estimates, a learning rate and alpha."""
    rate = number_in("eta", eta, 0.0, remedy="the paper has c * K ** (1/alpha - 1/2) / sqrt(t)")
    shape = number_in("alpha", alpha, 1.0, 1e9, "the paper has 3")
    try:
        values = np.array(estimates, np.float64)
    except (TypeError, ValueError):
        values = np.array(np.nan)
    if values.ndim != 1 or not values.size or not np.isfinite(values).all():
        rule = "must be a list of finite numbers, one per arm"
        raise ParameterError.of("estimates", estimates, rule, "give the summed loss estimates")
    return values, rate, shape

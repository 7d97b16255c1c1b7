"""Exact exploitation probabilities of the perturbed leader, their derivatives, and the integrals that the proofs rest on.

Each integral is a sum over the nodes of `winner_law`: in a matrix, a row is a node and a column an arm. The nodes of
`Moments` reach further out, because a mean winning draw has a heavier tail than a probability.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from decoupled.base import Floats, check_number, one_of
from decoupled.errors import ParameterError
from decoupled.kernels.winner_law import Grid, grid, winner_law

FAMILIES = ("pareto", "frechet")


def weights(
    estimates: ArrayLike, eta: float, alpha: float = 3.0, perturbation: str = "pareto"
) -> Floats:
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


def slopes(
    estimates: ArrayLike, eta: float, alpha: float = 3.0, perturbation: str = "pareto"
) -> Floats:
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


def jacobian(
    estimates: ArrayLike, eta: float, alpha: float = 3.0, perturbation: str = "pareto"
) -> Floats:
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
    hazards, shares = _hazards(shifts, shape, frechet, grid(len(shifts), shape, frechet))
    found: Floats = (shares[:, None] * hazards).T @ hazards
    np.fill_diagonal(found, 0.0)
    np.fill_diagonal(found, -found.sum(axis=1))
    return found


def _checked(
    estimates: ArrayLike, eta: float, alpha: float, perturbation: str
) -> tuple[Floats, float, bool]:
    frechet = one_of("perturbation", perturbation, FAMILIES) == "frechet"
    values, rate, shape = checked_estimates(estimates, eta, alpha)
    with np.errstate(over="ignore"):  # an arm infinitely far behind never wins
        return rate * (values - values.min()), shape, frechet


def checked_estimates(
    estimates: ArrayLike, eta: float, alpha: float
) -> tuple[Floats, float, float]:
    """Validate estimates, a learning rate and alpha."""
    rate = check_number("eta", eta, "the paper has c * K ** (1/alpha - 1/2) / sqrt(t)", above=0.0)
    shape = check_number("alpha", alpha, "the paper has 3", above=1.0, below=1e9)
    try:
        values = np.array(estimates, np.float64)
    except (TypeError, ValueError):
        values = np.array(np.nan)
    if values.ndim != 1 or not values.size or not np.isfinite(values).all():
        rule = "must be a list of finite numbers, one per arm"
        raise ParameterError.of("estimates", estimates, rule, "give the summed loss estimates")
    return values, rate, shape


_FAR_TAIL = 1e-14


class Moments(NamedTuple):
    """One number per arm: the `law`, and integrals under it.

    `slopes` are d w_i / d v_i; `prizes` E[r_i; i wins]; `inverses` E[1 / r_i; i wins].
    """

    law: Floats
    slopes: Floats
    prizes: Floats
    inverses: Floats


def _power(excess: Floats, exponent: float) -> Floats:
    """(1 + excess) ** -exponent, accurate even for a small excess and a large exponent."""
    return np.asarray(np.exp(-exponent * np.log1p(excess)))


def _survival(excess: Floats, alpha: float, frechet: bool) -> Floats:
    """The probability that a draw exceeds 1 + excess."""
    tail = _power(excess, alpha)
    return -np.expm1(-tail) if frechet else tail


def _hazards(shifts: Floats, alpha: float, frechet: bool, at: Grid) -> tuple[Floats, Floats]:
    """The hazard f / F of every arm at every node, and the weight of each node times the product of all F."""
    excess = at.above[:, None] + shifts
    tail = _power(excess, alpha)
    hazards = alpha * tail / (1.0 + excess)
    if frechet:
        return hazards, at.weights * np.exp(-tail.sum(axis=1))
    return hazards / (1.0 - tail), at.weights * (1.0 - tail).prod(axis=1)


def winner_moments(shifts: Floats, alpha: float, frechet: bool) -> Moments:
    """All of `Moments` for shifts v = eta * gap, whose smallest is 0."""
    at = grid(len(shifts), alpha, frechet, _FAR_TAIL)
    hazards, shares = _hazards(shifts, alpha, frechet, at)
    # The largest hazard of a node stands apart from the sum of the others, in which their digits would be lost.
    node, peak = np.arange(len(hazards)), hazards.argmax(axis=1)
    smaller, largest = hazards.copy(), hazards[node, peak]
    smaller[node, peak] = 0.0
    rest = smaller.sum(axis=1)
    rivals = largest[:, None] + (rest[:, None] - smaller)
    rivals[node, peak] = rest
    wins = shares[:, None] * hazards
    levels = np.where(
        wins > 0.0, 1.0 + (at.above[:, None] + shifts), 1.0
    )  # an arm infinitely far behind never wins
    # Past the last panel no other arm matters, and f is alpha * z ** -(alpha + 1) for both families.
    past = at.last + shifts
    return Moments(
        wins.sum(axis=0) + _survival(past, alpha, frechet),
        -(wins * rivals).sum(axis=0),
        (wins * levels).sum(axis=0) + alpha / (alpha - 1.0) * _power(past, alpha - 1.0),
        (wins / levels).sum(axis=0) + alpha / (alpha + 1.0) * _power(past, alpha + 1.0),
    )


def moved_law(shifts: Floats, moves: Floats, alpha: float, frechet: bool) -> Floats:
    """The probability that arm i wins after its own shift, and no other, has grown by moves[i] >= 0."""
    at = grid(len(shifts), alpha, frechet)
    _, shares = _hazards(shifts, alpha, frechet, at)
    before = at.above[:, None] + shifts
    after = before + moves
    tail, own = _power(after, alpha), _power(before, alpha)
    densities = alpha * tail / (1.0 + after)
    densities = densities * np.exp(own - tail) if frechet else densities / (1.0 - own)
    moved: Floats = shares @ densities + _survival(at.last + shifts + moves, alpha, frechet)
    if len(shifts) > 1 and np.partition(shifts, 1)[1] > 0.0:
        # If a sole leader moves, the start of the integral moves too, so this arm needs an integral of its own.
        leader = int(np.argmin(shifts))
        alone = shifts.copy()
        alone[leader] = moves[leader]
        moved[leader] = winner_law(alone - alone.min(), alpha, frechet)[leader]
    return moved

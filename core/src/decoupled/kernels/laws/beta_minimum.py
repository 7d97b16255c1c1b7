"""The probability that each of several Beta variables is the smallest, by adaptive quadrature.

P(i is smallest) = integral over [0, 1] of f_i(x) * prod_{j != i} S_j(x), with S the survival function.
"""

from collections.abc import Callable

import numpy as np

from ...base.arrays import Floats
from ...base.extras import needed_for

_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(16)
_LEAST = 1e-300
_MOST_HALVINGS = 60


def smallest_beta_law(a: Floats, b: Floats) -> Floats:
    """The probability that each of the independent Beta(a_i, b_i) is the smallest; a, b >= 1.

    The absolute error is below 1e-12 for parameters up to thousands, and 1e-9 for millions, where the logarithm of a
    density loses digits. Variables with equal parameters are computed once.
    """
    # Loaded here, because a policy that never asks for its law needs no SciPy.
    with needed_for("exact probabilities of ThompsonSampling"):
        from scipy.special import betainc, betaln, xlog1py, xlogy

    pairs, which, count = np.unique(
        np.column_stack((a, b)), axis=0, return_inverse=True, return_counts=True
    )
    first, second = pairs.T
    constant = betaln(first, second)

    def integrand(x: Floats) -> Floats:
        at = x[..., None]
        # By symmetry: SciPy's own complement, betaincc, takes hundreds of times as long.
        log_above = np.log(np.maximum(betainc(second, first, 1.0 - at), _LEAST))
        rivals = (log_above * count).sum(axis=-1, keepdims=True) - log_above
        log_density = xlogy(first - 1.0, at) + xlog1py(second - 1.0, -at) - constant
        value: Floats = np.exp(log_density + rivals)
        return value

    mean = first / (first + second)
    spread = np.sqrt(mean * (1.0 - mean) / (first + second + 1.0))
    # The quadrature misses a narrow density unless a panel begins there.
    marks = mean + spread * np.array([-8.0, -4.0, -1.5, 0.0, 1.5, 4.0, 8.0])[:, None]
    edges = np.unique(np.concatenate(([0.0, 1.0], marks[(marks > 0.0) & (marks < 1.0)])))
    tolerance = 1e-14 + 2e-16 * float((first + second).max())
    mass = _integrate(integrand, edges, tolerance)
    mass /= mass @ count
    law: Floats = mass[which.ravel()]
    return law


def _integrate(integrand: Callable[[Floats], Floats], edges: Floats, tolerance: float) -> Floats:
    """Integrate a vector of functions, halving panels until that no longer changes them."""
    low, high = edges[:-1], edges[1:]
    whole = _panels(integrand, low, high)
    done: Floats = np.zeros(whole.shape[1])
    for _ in range(_MOST_HALVINGS):
        middle = 0.5 * (low + high)
        left, right = _panels(integrand, low, middle), _panels(integrand, middle, high)
        rough = np.abs(left + right - whole).max(axis=1) > tolerance
        done += (left + right)[~rough].sum(axis=0)
        low, high = np.append(low[rough], middle[rough]), np.append(middle[rough], high[rough])
        whole = np.concatenate((left[rough], right[rough]))
        if not rough.any():
            break
    done += whole.sum(axis=0)
    return done


def _panels(integrand: Callable[[Floats], Floats], low: Floats, high: Floats) -> Floats:
    half = 0.5 * (high - low)
    values = integrand(low[:, None] + half[:, None] * (1.0 + _NODES))
    integral: Floats = np.einsum("pna,n,p->pa", values, _NODE_WEIGHTS, half)
    return integral

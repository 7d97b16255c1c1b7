"""How often sticky serving changes the arm of one key: the bounds of lemmas S2 and S3, with their constants."""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from decoupled.base import Floats
from decoupled.errors import ParameterError
from decoupled.policies import FTPL, CentredFTPL, FollowTheLeader, Ladder, Policy

from .constants import (
    LEAST_OFF_EVENT,
    Gate,
    curvature_constant,
    first_rate,
    shape_of,
    size_of,
    split_of,
    square_sum,
)

_EXACT = 100_000  # rounds that are summed one by one
SHARE = 8.0  # lemma L6: on D_t, w is at least (1 + eta u)^-alpha / 8


def switch_constant(alpha: float = 3.0, gate: Gate | None = None, arms: int | None = None) -> float:
    r"""The factor of $\eta_t$ in the probability that a key switches because an estimate moved (S2).

    It is $C_1 Z$ with importance weighting, and $C_1 \max(2, R_1) Z$ with a soft gate, where $R_1$ is
    `Gate.switch_factor`; with a gate there is a factor $(1 + \eta_t)^{\alpha + 1}$ as well.

    Args:
        alpha: the shape of the perturbations, above 1.
        gate: the gate of the estimator; None for importance weighting.
        arms: the number of arms, for $Z_K$ in place of $Z$; None for any number.

    >>> from decoupled_lab import theory
    >>> round(2.0 * theory.bounds.switch_constant(), 2)
    25.72
    >>> round(theory.bounds.switch_constant(gate=theory.bounds.Gate()), 2)
    60.02
    """
    factor = 1.0 if gate is None else max(2.0, gate.switch_factor(alpha))
    return curvature_constant(alpha) * factor * square_sum(alpha, arms)


def rate_fall_constant(alpha: float = 3.0) -> float:
    r"""The least constant $a$ with $\sum_{t \le T} e_t (1 - e_t)^{-(\alpha + 1)} \le \frac12 \ln T + a$ for every $T$.

    Here $e_t = 1 - \sqrt{t / (t + 1)}$ is the share by which the rate falls after round $t$. The constant is rounded
    up by less than $\alpha / 10^5$.

    Args:
        alpha: the shape of the perturbations, above 1.

    >>> from decoupled_lab import theory
    >>> [round(theory.bounds.rate_fall_constant(alpha), 3) for alpha in (2.0, 2.5, 3.0)]
    [0.848, 1.093, 1.374]
    """
    return _rate_fall_constant(shape_of(alpha))


@lru_cache(maxsize=64)
def _rate_fall_constant(alpha: float) -> float:
    rounds = np.arange(1.0, _EXACT + 1.0)
    with np.errstate(over="ignore"):  # a large alpha has an infinite constant
        terms = rate_fall_cost(1.0 - np.sqrt(rounds / (rounds + 1.0)), alpha)
        ahead = np.cumsum(terms) - 0.5 * np.log(rounds)
        # A later term is at most (1 + 1/t)^b / (2 t) with b = (alpha + 1) / 2, and the logarithm grows by 1 / (2 t) or more.
        power = 0.5 * (alpha + 1.0)
        rest = 0.5 * power * np.exp((power - 1.0) * math.log1p(1.0 / _EXACT)) / _EXACT
        return float(max(ahead.max(), ahead[-1] + rest))


def rate_fall_cost(falls: ArrayLike, alpha: float) -> Floats:
    """The factor e (1 - e)^-(alpha + 1) of S2, where the rate falls by the share e."""
    e = np.asarray(falls, np.float64)
    return e * (1.0 - e) ** -(alpha + 1.0)


def late_switch_constant(alpha: float = 3.0, zeta: float = 0.1) -> float:
    r"""The constant $C'' = C_1 \max(8 (1 + (1 + \zeta)^{\alpha + 1}), Z / \mu)$ of lemma S3.

    In a late round, one with $\eta_t S_K \le \zeta$, a key switches because of the estimates with probability at most
    $C'' \eta_t (1 - w_{t, i^\star})$.

    Args:
        alpha: the shape of the perturbations, above 1.
        zeta: where the proof calls a round late, in (0, 1).

    >>> from decoupled_lab import theory
    >>> round(theory.bounds.late_switch_constant(), 1)
    70.4
    """
    rises = SHARE * (1.0 + math.pow(1.0 + split_of(zeta), shape_of(alpha) + 1.0))
    return curvature_constant(alpha) * max(rises, square_sum(alpha) / LEAST_OFF_EVENT)


def late_rate_constant(arms: int, alpha: float = 3.0) -> float:
    r"""The constant $C_1 \max(8, \ln K / \mu)$ of S3, for the switches that a fall of the rate causes."""
    return curvature_constant(alpha) * max(SHARE, math.log(arms) / LEAST_OFF_EVENT)


def switches(
    horizon: int, arms: int, policy: Policy | None = None, *, gate: Gate | None = None
) -> float:
    r"""How often one key of sticky serving changes its arm in $T$ rounds, in expectation (S2).

    With $h = c_x K^{1/\alpha - 1/2}$ and $a$ of `rate_fall_constant`,

    $$\mathbb E[\text{switches}] \le 2 C_1 Z_K h \sqrt T + C_1 \ln K \left(\tfrac12 \ln T + a\right).$$

    With a soft gate, $C_1 \max(2, R_1) Z_K \sum_t \eta_t (1 + \eta_t)^{\alpha + 1}$ is its first term. The bound holds
    for a key that is served in every round, or in any rounds that do not depend on what was served, and for losses
    that do not depend on it either. The page "Sticky serving" has the theorem.

    Args:
        horizon: the number of rounds $T$.
        arms: the number of arms $K$.
        policy: an `FTPL`; `FTPL()` if None. There is no bound for others: the error says why.
        gate: the soft gate of a centred estimator, at this policy's exploitation rate; None for importance weighting.

    >>> import decoupled as dc
    >>> import decoupled_lab as lab
    >>> round(lab.theory.bounds.switches(horizon=1_000_000, arms=8))
    21594
    >>> round(lab.theory.bounds.switches(1_000_000, 8, dc.FTPL(c=0.5), gate=lab.theory.bounds.Gate()))
    25485
    """
    policy = FTPL() if policy is None else policy
    if not isinstance(policy, FTPL):
        remedy = "dc.FTPL() has a bound, and so has a soft gate, gate=lab.theory.bounds.Gate()"
        raise ParameterError.of("policy", policy, _why(policy), remedy)
    rounds, alpha = size_of(horizon, arms) / arms, policy.alpha
    rate = first_rate(arms, alpha, policy.c)
    moved = 2.0 * rate * math.sqrt(rounds) if gate is None else _gated_sum(rounds, rate, alpha)
    slowed = math.log(arms) * (0.5 * math.log(rounds) + rate_fall_constant(alpha))
    return switch_constant(alpha, gate, arms) * moved + curvature_constant(alpha) * slowed


def _gated_sum(rounds: float, rate: float, alpha: float) -> float:
    """The sum of eta (1 + eta)^(alpha + 1) over the rounds, of which late ones count as if the second factor stayed."""
    last = min(rounds, _EXACT)
    eta = rate / np.sqrt(np.arange(1.0, last + 1.0))
    growth = (1.0 + eta) ** (alpha + 1.0)
    return float(eta @ growth + 2.0 * rate * (math.sqrt(rounds) - math.sqrt(last)) * growth[-1])


def _why(policy: Policy) -> str:
    """Why there is no bound for this policy."""
    if isinstance(policy, FollowTheLeader):
        return (
            "has an infinite rate: without perturbations a key follows every change of the leader"
        )
    if isinstance(policy, Ladder):
        if policy.top_two_share > 0.0:
            return "has a rung on means, which has an infinite rate: how often its leader changes is not bounded against an adversary"
        return "has a gate in units of the losses seen, for which the bound is open"
    if isinstance(policy, CentredFTPL):
        if policy.schedule == "losses":
            return "has rates that fall with the losses, and the bound is written out for those that fall with the rounds"
        return (
            "has a hard gate, and the bound is written out for importance weighting and soft gates"
        )
    return "must be an FTPL: the bound is about Pareto perturbations"

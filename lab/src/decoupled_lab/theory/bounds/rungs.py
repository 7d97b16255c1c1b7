"""Theorems D and E: rates that fall with the losses, and a ladder of exploitation rates, weighted by AdaHedge."""

import math
from collections.abc import Sequence

from decoupled.base import number_in, one_of, share_of

from .centred import constrained_bound, constrained_constants, theorem_b, theorem_c
from .constants import (
    HALF,
    Gate,
    arms_of,
    curvature_constant,
    first_rate,
    positive_gaps,
    rank_share,
    rank_sum,
    ratio_sum,
    scale_of,
    shape_of,
    size_of,
    square_sum,
    winner_constant,
)


def floor_of(theta: float) -> float:
    """Validate theta, the share of the rounds that counts in n_t even if no loss is seen."""
    return share_of("theta", theta, "ours is 0.01")


def largest_step(alpha: float = 3.0) -> float:
    r"""The largest step $\bar v = 4 (1 + \zeta(1 + 1/\alpha))$ of $V_t$ in one round.

    Args:
        alpha: the shape of the perturbations, above 1.

    >>> from decoupled_lab import theory
    >>> round(theory.bounds.largest_step(alpha=3.0), 1)
    18.4
    """
    return 4.0 * (1.0 + square_sum(alpha))


def largest_spread(
    horizon: int, arms: int, alpha: float = 3.0, c_exploit: float = 0.5, gate: Gate = HALF
) -> float:
    r"""A bound on $V_T$ for any losses: $4 T$ from the losses seen, and the drift mass of order $\sqrt{T}$.

    The drift mass $a_t$ of a round is at most $C / n_t \le C / (1 + a_1 + \dots + a_{t-1})$, with
    $C = 4 K^{1/\alpha} \bar\eta^2 S_K^2 / \delta^2$, because an arm below the gate has $q_i < \eta_t S_K / \delta$.
    Summing $2 a_t (1 + a_1 + \dots + a_{t-1})$ gives at most $\sqrt{1 + 2 C T}$ plus the largest $a_t$.

    Args:
        horizon: the number of rounds $T$.
        arms: the number of arms $K$.
        alpha: the shape of the perturbations, above 1.
        c_exploit: the scale of the exploitation rate, above 0.
        gate: the gate of the estimator.

    >>> from decoupled_lab import theory
    >>> round(theory.bounds.largest_spread(horizon=10_000, arms=8))
    41042
    """
    rounds = size_of(horizon, arms) / arms_of(arms)
    alpha, c = shape_of(alpha), scale_of(c_exploit)
    scale = 4.0 * math.pow(arms, 1.0 / alpha)
    reach = scale * (first_rate(arms, alpha, c) * rank_sum(arms, alpha) / gate.delta) ** 2
    return 4.0 * rounds + math.sqrt(1.0 + 2.0 * reach * rounds) + scale / arms * square_sum(alpha) - 1.0


def theorem_d1(
    horizon: int,
    arms: int,
    alpha: float = 3.0,
    c_exploit: float = 0.5,
    gate: Gate = HALF,
    *,
    theta: float = 0.01,
    spread: float | None = None,
) -> float:
    r"""Theorem D1: centred losses and rates that fall with the losses, against any adversary.

    $$\mathrm{Reg}_T \le \sqrt{K} \left(\frac{c_x C_1 F \max(\bar R s_K^2, 6)}{8} (2 \sqrt{n_{T+1}} + \bar v)
    + \frac{G}{c_x} \sqrt{n_T}\right)$$

    with $n_{T+1} = 1 + V_{T+1} + \theta T$, $F = (1 + c_x K^{1/\alpha - 1/2})^{\alpha + 1}$ and $c_x$ = `c_exploit`.

    Args:
        horizon: the number of rounds $T$.
        arms: the number of arms $K$.
        alpha: the shape of the perturbations, above 1.
        c_exploit: the scale of the exploitation rate.
        gate: the gate of the estimator.
        theta: the share of the rounds that counts in $n_t$, from 0 to 1.
        spread: the mean of $V_T$, which is small if the losses vary little; `largest_spread` if None.

    >>> from decoupled_lab import theory
    >>> worst = theory.bounds.theorem_d1(horizon=10_000, arms=8)
    >>> calm = theory.bounds.theorem_d1(horizon=10_000, arms=8, spread=400.0)
    >>> round(worst), round(calm)
    (9650, 1377)
    """
    rounds = size_of(horizon, arms) / arms_of(arms)
    alpha, c, theta = shape_of(alpha), scale_of(c_exploit), floor_of(theta)
    if spread is None:
        spread = largest_spread(horizon, arms, alpha, c, gate)
    spread = number_in("spread", spread, -1e-300, remedy="V is a sum of squares")
    count = 1.0 + spread + theta * rounds
    factor = loss_rate_factor(arms, alpha, c, gate)
    penalty = winner_constant(alpha) / c * math.sqrt(count)
    return math.sqrt(arms) * (factor * (2.0 * math.sqrt(count) + largest_step(alpha)) + penalty)


def loss_rate_factor(arms: int, alpha: float, c: float, gate: Gate) -> float:
    r"""The factor $c_x C_1 F \max(\bar R s_K^2, 6) / 8$ of theorem D1."""
    growth = math.pow(1.0 + first_rate(arms, alpha, c), alpha + 1.0)
    larger = max(gate.fall_factor(alpha) * rank_share(arms, alpha) ** 2, 6.0)
    return c * curvature_constant(alpha) * growth * larger / 8.0


def theorem_d2(variation: float, uncentred: float = 0.0, lam: float = 0.1) -> float:
    r"""Theorem D2: $V_T$ is of second order.

    $$V_T \le 8 \left(\frac{\mathrm{variation}}{1 - \lambda} + \frac{1}{4 \lambda (1 - \lambda)}\right) + \mathrm{uncentred}$$

    $V_T$ is $4 \sum (\ell_j - b_j)^2$ plus the drift mass, and $(\ell_j - b_j)^2 \le 2 (\ell_j - B)^2 + 2 d_j^2$. Lemma L8
    bounds the sum of $(\ell_j - B)^2$ by the variation of the losses seen.

    Args:
        variation: the sum of $(\ell_j - m)^2$ over the rounds, for the best constant $m$.
        uncentred: what arms that are not fully centred add, $8 \sum d_j^2$ plus the drift mass.
        lam: $\lambda$, the rate of the running mean $B$, in (0, 1).

    >>> from decoupled_lab import theory
    >>> round(theory.bounds.theorem_d2(variation=100.0), 1)
    911.1
    """
    lam = number_in("lam", lam, 0.0, 1.0, "ours is 0.1")
    return 8.0 * (variation + 0.25 / lam) / (1.0 - lam) + uncentred


def theorem_d3(
    gaps: Sequence[float],
    horizon: int | None = None,
    alpha: float = 3.0,
    c_exploit: float = 0.5,
    zeta: float = 0.1,
    gate: Gate = HALF,
    *,
    theta: float = 0.01,
    switch: int | None = None,
) -> float:
    r"""Theorem D3: theorem C for rates that fall with the losses, with a theta above 0.

    It is theorem C with the constants that `constrained_constants` gives for theta: $O(K / (\theta \Delta_{\min}))$ at
    $\alpha = 3$, for any horizon. See `theorem_c` for the other arguments.

    Args:
        gaps: the gaps of the other arms, given the past; one 0, for the best arm, is allowed.
        horizon: the number of rounds; None for any number, which needs an alpha above 2.
        alpha: the shape of the perturbations, above 1 and at most 3.
        c_exploit: the scale of the exploitation rate, above 0.
        zeta: where the proof calls a round late, above 0 and at most the gate's a.
        gate: the gate of the estimator.
        theta: the share of the rounds that counts in $n_t$, above 0 and at most 1.
        switch: $T_0$, from which the proof uses self-bounding; the best one if None.

    >>> from decoupled_lab import theory
    >>> f"{theory.bounds.theorem_d3([0.125] * 7, theta=1.0):.2g}"
    '2.1e+07'
    """
    others = positive_gaps(gaps)
    number_in("theta", theta, 0.0, remedy="with 0, theorem D3 says nothing; ours is 0.01")
    constants = constrained_constants(len(others) + 1, alpha, c_exploit, zeta, gate, theta=floor_of(theta))
    return constrained_bound(others, horizon, alpha, constants, switch)


SCHEDULES = ("rounds", "losses")


def prior_factor(prior: float, l0: float = 3.0) -> float:
    """The factor 1 + ln(1 / prior) / L0 of Delta_T in theorem E1.

    Args:
        prior: the prior probability of a rung, above 0 and at most 1.
        l0: L0, the scale of AdaHedge's rate.

    >>> from decoupled_lab import theory
    >>> round(theory.bounds.prior_factor(prior=0.05), 2)
    2.0
    """
    number_in("prior", prior, 0.0, 1.0 + 1e-12, "give the prior probability of the rung")
    return 1.0 + math.log(1.0 / prior) / number_in("l0", l0, 0.0, remedy="ours is 3")


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
    number_in("l0", l0, 0.0, remedy="ours is 3")
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
    schedule: str = "rounds",
    theta: float = 0.01,
) -> float:
    """Theorem E2: the ladder against any adversary, by its first rung.

    The first rung obeys theorem B, or theorem D1 if the rates fall with the losses; theorem E1 adds the rest. The
    other rungs need no condition. For `Ladder`, see `theorem_t2`.

    Args:
        horizon: the number of rounds.
        arms: the number of arms.
        alpha: the shape of the perturbations, above 1.
        c_exploit: the scale $c_1$ of the first rung; $c$ may be at most this.
        gate: the gate of the estimator, at the first rung's rate.
        l0: L0, the scale of AdaHedge's rate.
        prior: the prior probability of the first rung.
        schedule: "rounds" or "losses".
        theta: for rates that fall with the losses, see `theorem_d1`.

    >>> from decoupled_lab import theory
    >>> round(theory.bounds.theorem_e2(horizon=10_000, arms=8))
    6676
    """
    scale_of(c_exploit)
    if one_of("schedule", schedule, SCHEDULES) == "rounds":
        first = theorem_b(horizon, arms, alpha, c_exploit, gate)
    else:
        first = theorem_d1(horizon, arms, alpha, c_exploit, gate, theta=theta)
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
    schedule: str = "rounds",
    theta: float = 0.01,
) -> float:
    r"""Theorem E3: the ladder in the stochastically constrained regime, with exact probabilities $w_j$.

    $$\mathrm{Reg}_T \le 2 \mathrm{Reg}^{(1)} + \frac{k^2 L_0 (8 S_K + 2)}{\Delta_{\min}}
    + 2 k \left(\frac{2 L_0}{3} + 1\right) (S_K + 1)$$

    with $k$ = `prior_factor` and $\mathrm{Reg}^{(1)}$ from theorem C, or D3 if the rates fall with the losses. See `theorem_c` and `theorem_e2` for the arguments.

    Args:
        gaps: the gaps of the other arms, given the past; one 0, for the best arm, is allowed.
        horizon: the number of rounds; None for any number, which needs an alpha above 2.
        alpha: the shape of the perturbations, above 1 and at most 3.
        c_exploit: the scale of the first rung's rate, above 0.
        zeta: where the proof calls a round late, above 0 and at most the gate's a.
        gate: the gate of the estimator, at the first rung's rate.
        l0: L0, the scale of AdaHedge's rate.
        prior: the prior probability of the first rung.
        schedule: "rounds" or "losses": what the rates fall with.
        theta: for rates that fall with the losses, the share of the rounds that counts in $n_t$.

    >>> from decoupled_lab import theory
    >>> f"{theory.bounds.theorem_e3([0.125] * 7):.3g}"
    '2.89e+06'
    """
    others = positive_gaps(gaps)
    total, factor = rank_sum(len(others) + 1, alpha), prior_factor(prior, l0)
    if one_of("schedule", schedule, SCHEDULES) == "rounds":
        first = theorem_c(gaps, horizon, alpha, c_exploit, zeta, gate)
    else:
        first = theorem_d3(gaps, horizon, alpha, c_exploit, zeta, gate, theta=theta)
    mixing = factor**2 * l0 * (8.0 * total + 2.0) / float(others.min())
    return 2.0 * first + mixing + 2.0 * factor * (2.0 * l0 / 3.0 + 1.0) * (total + 1.0)

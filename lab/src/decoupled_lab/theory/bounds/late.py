r"""Theorem G: feedback that arrives after later decisions, or never. Theorem H: a coin decides who is looked at.

Delays and losses must not depend on arms and rivals drawn for decisions that are still in flight.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial

from decoupled.base import check_number, whole_number
from decoupled.errors import ParameterError
from decoupled.policies import FTPL, Ladder

from .centred import self_bounding_factor, theorem_a
from .constants import LEAST_OFF_EVENT, curvature_constant, positive_gaps, size_of, winner_constant
from .ladder import FALL, RECORD, TINY, Numbers, ladder_numbers, theorem_t2
from .switching import SHARE, switches

FALLS = 14.0 / 3.0  # how many more winners a fall by half of an arm's own gap changes than a rise
LEAST_REGRET = 1e-200  # the least Delta in the judge's rate


_delay = partial(
    whole_number, "delay", low=0, remedy="give the largest number of decisions in flight"
)


def theorem_g1(horizon: int, arms: int, delay: int, policy: FTPL | None = None) -> float:
    r"""Theorem G1: `FTPL()` with late feedback, $\left(c C_1 s_K^2 + \frac Gc\right) \sqrt{KT} + \hat d \cdot \mathrm{switches}(T)$.

    It is theorem A, plus $\hat d$ times the bound `switches` on how often one key of sticky serving changes its arm.

    Args:
        horizon: the number of decisions $T$.
        arms: the number of arms $K$.
        delay: $\hat d$, the largest number of decisions in flight at once; at most the largest delay in rounds.
        policy: the paper's policy with any alpha and c; `FTPL()` if None.

    >>> import decoupled as dc
    >>> from decoupled_lab import theory
    >>> [f"{theory.bounds.theorem_g1(10_000, 8, delay, dc.FTPL(c=0.34)):.1e}" for delay in (0, 10, 40, 200)]
    ['2.3e+03', '6.4e+03', '1.9e+04', '8.4e+04']
    """
    policy = FTPL() if policy is None else policy
    given: object = policy
    if not isinstance(given, FTPL):
        rule = "must be the paper's FTPL policy"
        raise ParameterError.of("policy", policy, rule, "see theorem_g2 for Ladder")
    flown = switches(horizon, arms, policy)
    return theorem_a(horizon, arms, policy.alpha, policy.c) + _delay(delay) * flown


def theorem_g2(horizon: int, arms: int, delay: int, policy: Ladder | None = None) -> float:
    r"""Theorem G2: `Ladder()` with late feedback, for any delays.

    The factor of $\sqrt{KT}$ is close to that of T2, and that of $\hat d \sqrt T$ falls with $K$ as $K^{-1/6}$. Its constants
    are far too large to be useful.

    Args:
        horizon: the number of decisions $T$.
        arms: the number of arms $K$.
        delay: $\hat d$, the largest number of decisions in flight at once; at most the largest delay in rounds.
        policy: the ladder, with a `uniform_share` and a `least_spread` above 0; `Ladder()` if None.

    >>> from decoupled_lab import theory
    >>> [f"{theory.bounds.theorem_g2(10_000, 8, delay):.1e}" for delay in (0, 10, 40, 200)]
    ['3.5e+04', '4.1e+06', '1.6e+07', '8.1e+07']
    """
    of = ladder_numbers(arms, policy)
    theta = check_number(
        "least_spread", of.policy.least_spread, "0 has no such bound", above=0.0, below=1.0
    )
    rounds, flying = size_of(horizon, arms) / arms, _delay(delay)
    step = 4.0 + 4.0 * theta + 4.0 * of.drift_share  # what a round adds to n at most
    # From n = (2 h K / gamma)^2 on no gate is closed, so nothing drifts.
    drift = min(
        4.0 * of.drift_share * rounds, (2.0 * of.h * of.low_cost) ** 2 + 4.0 * of.drift_share
    )
    count = 4.0 * (1.0 + theta) * rounds + 4.0 + drift
    stability = curvature_constant() * of.growth * of.h
    stability *= max(FALL / 8.0 * of.whole**2, 0.25 * (4.0 + RECORD) * math.pow(arms, 2.0 / 3.0))
    penalty = winner_constant() / of.policy.rungs[0] * math.sqrt(arms)
    first = 1.0 + (2.0 * stability + penalty) * math.sqrt(count) + 4.0 * stability * of.step
    first += 7.0 * of.low_cost + of.whole
    moved = FALLS * curvature_constant() * of.growth * of.squares * of.h
    switched = 2.0 + moved * 4.0 * math.sqrt(rounds / (3.0 * theta)) + 3.0 * of.h * of.low_cost
    switched += 4.0 * curvature_constant() * math.log(arms) * math.log(4.0 + step * rounds)
    first += _switch_cost(of) * flying * switched
    return first + _judged_late(of, rounds, flying) if of.judged else first


def _switch_cost(of: Numbers) -> float:
    """What a switch in flight costs, in units: its stability, and that an older law was played."""
    return FALL * of.growth + 2.0


def _judged_late(of: Numbers, rounds: float, flying: int) -> float:
    """What the judge adds, whose weights move while a decision is in flight."""
    gamma, share, rate = of.policy.uniform_share, of.policy.top_two_share, of.policy.hedge_rate
    # V': the weights are those of the arrival, so the worst rung counts.
    variance = max(of.sum * of.chances / ((1.0 - gamma) * (1.0 - share)), 1.0 / of.leader_share)
    regret = math.sqrt(rate * rounds) * (math.sqrt(variance) + 0.5) + of.range_cost
    grown = math.log(regret / LEAST_REGRET)
    steps = math.sqrt(max(1.0, 0.5 * rate) * rounds * (grown / math.log(2.0) + 2.0))
    drift = flying * (steps - math.log(float(of.priors.min())) * grown)
    return flying + 1.0 + of.prior_cost * (regret + LEAST_REGRET) + drift


def theorem_g3(
    gaps: Sequence[float], delay: int, policy: Ladder | None = None, zeta: float = 0.1
) -> float:
    r"""Theorem G3: a ladder of one rung in the stochastically constrained regime, for any horizon.

    It is $O((K + d^2 K^{-1/3}) / (\theta \Delta_{\min}))$ with constants that are far too large to be useful. For more
    rungs nothing is proved.

    Args:
        gaps: the gaps of the other arms, given the past; one 0, for the best arm, is allowed.
        delay: $d$, after how many more decisions every loss arrives.
        policy: a ladder of one rung; `Ladder(rungs=(0.5,), prior=(), top_two_share=0)` if None.
        zeta: where the proof calls a round late, above 0 and at most 1/2.

    >>> from decoupled_lab import theory
    >>> [f"{theory.bounds.theorem_g3([0.125] * 7, delay):.0e}" for delay in (0, 10)]
    ['9e+09', '9e+12']
    """
    policy = Ladder(rungs=(0.5,), prior=(), top_two_share=0.0) if policy is None else policy
    others = positive_gaps(gaps)
    of, least, d = (
        ladder_numbers(len(others) + 1, policy),
        float(others.min()),
        float(_delay(delay)),
    )
    if of.judged:
        raise ParameterError.of(
            "policy", policy, "must have one rung", "for more rungs nothing is proved"
        )
    any_state, on_event, late = of.self_bounded(zeta, 4.0 + RECORD)
    k, theta, cost = float(of.arms), policy.least_spread, _switch_cost(of)
    step = (
        7.0 + 4.0 * theta + 4.0 * of.drift_share
    )  # N4: what an arrival adds to n, in squared units
    late = max(late, math.ceil(step / theta))
    bracket = 8.0 * math.sqrt(2.0 * self_bounding_factor(3.0) * any_state * on_event**3)
    bracket = 4.0 / 3.0 * (bracket + 32.0 * any_state**2 / LEAST_OFF_EVENT)
    # C8 and C9: switches by estimates and by rates, over 1 - w of the best arm.
    moved = SHARE * (FALLS + 1.0) * (1.0 + zeta) ** 4
    moved += 2.0 * FALLS / LEAST_OFF_EVENT * of.growth * of.squares
    slowed = 2.0 * step * max(SHARE, math.log(k) / LEAST_OFF_EVENT)
    flown = 64.0 / 3.0 * (cost * curvature_constant() * moved * of.h * d) ** 2
    rates = 4.0 * cost * d * curvature_constant() * slowed / theta
    bound = (bracket * k + flown) / (theta * least) + rates * (
        1.0 + math.log(max(2.0 * rates / least, 1.0))
    )
    bound += 8.0 * any_state * math.sqrt(k * (late + 2.0 * d + 1.0) / theta)
    bound += 4.0 * cost * d * (late + d + 1.0) + 6.0 * cost * of.h * d * of.low_cost + d
    rest = TINY * winner_constant() / policy.rungs[0] * math.sqrt(k)
    return bound + 2.0 * (1.0 + 7.0 * of.low_cost + of.whole + rest)


def theorem_g4(bound: Callable[[int], float], horizon: int, lost: float) -> float:
    r"""Theorem G4: feedback that is lost with a probability $\varrho$, known or not: $\mathbb B((1 - \varrho) T) / (1 - \varrho)$.

    Every decision's feedback must be lost independently of all else, above all of the explored arm and its loss. It
    holds for G1, G2 and T2, with delays counted in decisions that arrive.

    Args:
        bound: $\mathbb B$, from a number of decisions to a bound, such as `lambda t: theorem_t2(t, 8)`.
        horizon: the number of decisions $T$.
        lost: $\varrho$, from 0 to below 1.

    >>> from decoupled_lab import theory
    >>> whole = theory.bounds.theorem_t2(1_000_000, 8)
    >>> half = theory.bounds.theorem_g4(lambda t: theory.bounds.theorem_t2(t, 8), 1_000_000, lost=0.5)
    >>> round(half / whole, 2)
    1.42
    """
    kept = 1.0 - check_number("lost", lost, "with 1 nothing is learned", at_least=0.0, below=1.0)
    rounds = whole_number("horizon", horizon, 1, "give the number of decisions")
    return bound(math.ceil(kept * rounds)) / kept


def theorem_h(
    horizon: int,
    arms: int,
    share: float,
    policy: FTPL | Ladder | None = None,
    *,
    in_hindsight: bool = False,
) -> float:
    r"""Theorem H1: a coin decides whether a decision explores; otherwise nothing is learned: $\mathbb B(sT) / s$.

    $\mathbb B$ is theorem T2a for a `Ladder` and theorem A for the paper's `FTPL`, constants included. A coin of
    probability $s$ is tossed for each decision, independently of all else. The adversary may react to all that happened
    before a decision, past coins included, but not to its coin.

    Args:
        horizon: the number of decisions $T$.
        arms: the number of arms $K$.
        share: $s$, the probability that a decision explores, above 0 and at most 1.
        policy: the ladder, or the paper's policy with any alpha and c; `Ladder()` if None.
        in_hindsight: compare with the arm that turns out best in each run; for a `Ladder` only.

    >>> import decoupled as dc
    >>> from decoupled_lab import theory
    >>> [round(theory.bounds.theorem_h(10_000, 8, share, dc.FTPL(c=0.34))) for share in (1.0, 0.1, 0.01)]
    [2287, 7231, 22867]
    """
    remedy = "it is a probability, and with 0 nothing is learned"
    share = check_number("share", share, remedy, above=0.0, below=math.nextafter(1.0, 2.0))
    looks = math.ceil(share * whole_number("horizon", horizon, 1, "give the number of decisions"))
    if not isinstance(policy, FTPL):
        return theorem_t2(looks, arms, policy, in_hindsight=in_hindsight) / share
    if in_hindsight:
        raise ParameterError.of(
            "in_hindsight", True, "must be False for FTPL", "it has no uniform share"
        )
    return theorem_g1(looks, arms, 0, policy) / share


def looks_lower_bound(horizon: int, arms: int, looks: float) -> float:
    r"""Theorem H2: the regret that no policy can beat with $B$ looks, $\frac{(1 - 1/K)^2}{5.04} T \sqrt{K / B}$.

    For every policy that looks at no more than $B$ losses in expectation there are independent Bernoulli losses on which
    its expected regret is at least as large. So theorem H1, with $B = sT$, has the right order.

    Proof. All means are 1/2, or that of arm $i$ is $1/2 - \varepsilon$. With $N_i$ looks at arm $i$ in the first world, the
    probability of playing $i$ differs between the two by at most $\sqrt{\mathbb E N_i \, \mathrm{kl} / 2}$ in each round
    (Pinsker), where $\mathrm{kl} = -\frac12 \ln(1 - 4 \varepsilon^2)$. In the mean over $i$, regret is at least
    $\varepsilon T (1 - \frac1K - \sqrt{B \, \mathrm{kl} / (2K)})$. Up to $\varepsilon = 0.397$,
    $\mathrm{kl} \le 2 (1.26 \varepsilon)^2$; take $\varepsilon = (1 - \frac1K) \sqrt{K / B} / 2.52$.

    The order $T / \sqrt B$ is that of Cheng, Zhou and Ji (2023, arXiv 2306.09588), whose losses come with a price for
    switches. If each look costs $\varsigma$, the best total is of order $(\varsigma K)^{1/3} T^{2/3}$, as in Seldin,
    Bartlett, Crammer and Abbasi-Yadkori (2014), both up to logarithms.

    Args:
        horizon: the number of decisions $T$.
        arms: the number of arms $K$.
        looks: $B$, the expected number of losses that are seen, from $K$ to $T$.

    >>> from decoupled_lab import theory
    >>> [round(theory.bounds.looks_lower_bound(10_000, 8, looks)) for looks in (10_000, 1_000, 100)]
    [43, 136, 430]
    """
    rounds = size_of(horizon, arms) / arms
    looks = check_number(
        "looks", looks, "a decision sees one loss at most", above=0.0, below=rounds + 1e-9
    )
    if looks < arms:
        raise ParameterError.of(
            "looks", looks, f"must be at least arms = {arms}", "the proof needs them"
        )
    return (1.0 - 1.0 / arms) ** 2 / 5.04 * rounds * math.sqrt(arms / looks)

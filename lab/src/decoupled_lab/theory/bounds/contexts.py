r"""Theorem F: `ContextualLadder` against its best rung, against the best arm for each segment, and greedy regression."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from decoupled.base import check_number, one_of, whole_number
from decoupled.errors import ParameterError
from decoupled.policies import ContextualLadder, Ladder

from .constants import arms_of, positive_gaps, size_of
from .ladder import LadderTerms, Numbers, constrained_of, ladder_numbers, terms_of
from .rungs import prior_factor


@dataclass(frozen=True)
class SharedNumbers(Numbers):
    """The numbers of T2 for a ladder that has only a share of the exploration, beside an even share of all arms.

    In a round, the two are at least those of one of the ends, or of a mean of both.
    """

    ends: tuple[tuple[float, float], ...]

    @property
    def share(self) -> float:
        """The least share of the ladder."""
        return min(share for share, _ in self.ends)

    @property
    def even(self) -> float:
        """The least even share, with those of the ladders."""
        return min(even for _, even in self.ends)

    def _least(self, own: float) -> float:
        """The least probability of an arm that the ladder by itself explores with this one, or more, beside its even share."""
        return min(share * own + even / self.arms for share, even in self.ends)

    @property
    def whole(self) -> float:
        """S'': p is at least share q / S' + even / K, and q is at most 1."""
        return 1.0 / self._least(1.0 / super().whole)

    @property
    def low_cost(self) -> float:
        """K over the least even share of the whole."""
        return self.arms / self.even

    def explored_least(self, part: float) -> float:
        """The least probability of an arm that has this part of what the leaders and their challengers share."""
        policy = self.policy
        lent = (1.0 - policy.uniform_share) * policy.top_two_share * policy.top_two_floor
        return self._least(part * lent)

    @property
    def variance(self) -> float:
        """V'': what a share of the exploration gives, or what the even share does."""
        by_even = 2.0 * self.arms / self.even
        return by_even if self.share == 0.0 else min(super().variance / self.share, by_even)

    @property
    def jump(self) -> float:
        """The largest estimated loss of a rung: a chance is at most 1."""
        return min(super().jump, self.arms / self.even)


def _policy(policy: object) -> ContextualLadder:
    if isinstance(policy, ContextualLadder):
        return policy
    if policy is None:
        return ContextualLadder(segments=("segment",))
    rule = "must be a ContextualLadder"
    raise ParameterError.of("policy", policy, rule, "theorem F is about no other")


def ladder_shares(earned: float, policy: ContextualLadder) -> dict[str, float]:
    """The share of the exploration of each ladder, once the rungs that know the context have earned so much."""
    rest = 1.0 - policy.uniform_share * earned
    if not policy.segments:
        return {"pooled": rest}
    return {"pooled": (1.0 - 0.5 * earned) * rest, "segments": 0.5 * earned * rest}


def shared_numbers(arms: int, policy: ContextualLadder, ladder: str = "pooled") -> SharedNumbers:
    """The numbers of T2 for a ladder inside a contextual one."""
    policy.at(arms)  # refuses too many
    own, first = ladder_numbers(arms, Ladder()).policy, min(1.0, 2.0 / arms)
    shares = [ladder_shares(earned, policy) for earned in (first, 1.0)]
    start, end = (each[one_of("ladder", ladder, tuple(each))] for each in shares)
    if ladder == "pooled" and policy.segments:
        # It is convex in what is earned, so above this tangent; a segment's is concave.
        start = end + 0.5 * (1.0 - first)
    even = policy.uniform_share
    evens = (u + (1.0 - u) * own.uniform_share for u in (even * first, even))
    return SharedNumbers(arms, own, tuple(zip((start, end), evens, strict=True)))


def shared_terms(
    arms: int, policy: ContextualLadder | None = None, ladder: str = "pooled"
) -> LadderTerms:
    r"""The terms of T2a for a ladder inside a `ContextualLadder`, which shares the exploration.

    Args:
        arms: the number of arms $K$, below 4,096.
        policy: the contextual ladder; one with segments if None.
        ladder: "pooled" for the ladder of all rounds, "segments" for that of a segment.

    >>> from decoupled_lab import theory
    >>> [round(theory.bounds.shared_terms(arms).factor, 1) for arms in (2, 8, 64)]
    [43.7, 137.6, 567.7]
    >>> [round(theory.bounds.shared_terms(arms, ladder="segments").factor, 1) for arms in (2, 8, 64)]
    [43.7, 1111.2, 133824.2]
    """
    return terms_of(shared_numbers(arms, _policy(policy), ladder))


def theorem_f1(
    disagreement: float, arms: int, policy: ContextualLadder | None = None, rung: str = "pooled"
) -> float:
    r"""Theorem F1: the expected regret of a `ContextualLadder` against one of its rungs, for any adversary.

    With $D_T$ the disagreement of the rungs, in all, and $\Lambda = 1 + \ln(1 / \pi_{0,m}) / L_0$,

    $$\Lambda \left[\sqrt{\frac{L_0 K}{\gamma_*} D_T} + \left(\tfrac23 L_0 + 1\right) \frac K{\gamma_*}\right] + 1,$$

    where no arm is explored with a probability below $\gamma_* / K$.

    Args:
        disagreement: $D_T$, at most twice the number of rounds in which the rungs disagree.
        arms: the number of arms $K$.
        policy: the contextual ladder; one with segments if None.
        rung: the rung that it is compared with.

    >>> from decoupled_lab import theory
    >>> round(theory.bounds.theorem_f1(disagreement=1_000, arms=2))
    157
    """
    policy = _policy(policy)
    remedy = "it is at most twice the horizon"
    apart = check_number("disagreement", disagreement, remedy, at_least=0.0)
    cost = _prior_cost(arms, policy, rung)
    return (
        cost * (math.sqrt(policy.hedge_rate * _even(arms, policy) * apart) + _range(arms, policy))
        + 1.0
    )


def _prior_cost(arms: int, policy: ContextualLadder, rung: str) -> float:
    place = policy.rung_names.index(one_of("rung", rung, policy.rung_names))
    priors = list(policy.params().priors[: len(policy.rung_names)])
    priors[0] *= max(0.5 * arms, 1.0)
    return prior_factor(priors[place] / sum(priors), policy.hedge_rate)


def _even(arms: int, policy: ContextualLadder) -> float:
    return 1.0 / policy.least_propensity(arms_of(arms))


def _range(arms: int, policy: ContextualLadder) -> float:
    return (2.0 * policy.hedge_rate / 3.0 + 1.0) * _even(arms, policy)


def theorem_f2(
    horizon: int, arms: int, segments: int | None = None, policy: ContextualLadder | None = None
) -> float:
    r"""Theorem F2a: the expected regret of a `ContextualLadder` for any adversary, with feedback in the same round.

    It is $A \sqrt{SKT} + S C$ with `shared_terms`, plus F1 with $D_T \le 2T$. With `segments` and more than a few
    arms it is too large to be useful.

    Args:
        horizon: the number of rounds $T$.
        arms: the number of arms $K$, below 4,096.
        segments: the number of segments $S$ that have a best arm each; None for one arm that is best for all.
        policy: the contextual ladder; one with segments if None.

    >>> from decoupled_lab import theory
    >>> [f"{theory.bounds.theorem_f2(1_000_000, 2, segments):.2g}" for segments in (None, 57)]
    ['6.8e+04', '4.9e+05']
    """
    policy = _policy(policy)
    own, count = _own(policy, segments)
    terms, size = shared_terms(arms, policy, own), size_of(horizon, arms)
    regret = terms.factor * math.sqrt(count * size) + count * terms.constant
    return regret + theorem_f1(2.0 * size / arms, arms, policy, own)


def _own(policy: ContextualLadder, segments: int | None) -> tuple[str, int]:
    """The rung that a bound is about, and how many ladders it has."""
    if segments is None:
        return "pooled", 1
    if not policy.segments:
        raise ParameterError.of("policy", policy, "has no segments", "name them in segments=...")
    remedy = "leave it out for one arm that is best for all"
    return "segments", whole_number("segments", segments, 1, remedy)


def theorem_f2b(
    gaps: Sequence[float], segments: int | None = None, policy: ContextualLadder | None = None
) -> float:
    r"""Theorem F2b: the same for any horizon, if the best arm leads by the gaps in every round, whatever its context.

    Its constants are, like those of `theorem_t2b`, far too large to be useful.

    Args:
        gaps: the gaps of the other arms, given the past and the context; one 0, for the best arm, is allowed.
        segments: the number of segments that have a best arm each; None for one arm that is best for all.
        policy: the contextual ladder; one with segments if None.

    >>> from decoupled_lab import theory
    >>> f"{theory.bounds.theorem_f2b([0.125] * 7):.0g}"
    '2e+10'
    """
    policy, others = _policy(policy), positive_gaps(gaps)
    arms, least = len(others) + 1, float(others.min())
    own, count = _own(policy, segments)
    cost, even = _prior_cost(arms, policy, own), _even(arms, policy)
    mixing = (
        2.0 * cost**2 * policy.hedge_rate * even / least + 2.0 * cost * _range(arms, policy) + 2.0
    )
    return 2.0 * count * constrained_of(shared_numbers(arms, policy, own), least) + mixing


def theorem_f3(
    horizon: int,
    arms: int,
    squared_regret: float,
    uniform_share: float | None = None,
    gap: float | None = None,
) -> float:
    r"""Theorem F3: the regret of the arm with the smallest predicted loss, if explored arms have an even share.

    $$\sqrt{\frac{2 K T \mathrm{Reg}_{\mathrm{sq}}}{\gamma}}, \qquad \text{and with a gap} \qquad
    \frac{2 K \mathrm{Reg}_{\mathrm{sq}}}{\gamma \Delta}.$$

    Args:
        horizon: the number of rounds $T$.
        arms: the number of arms $K$.
        squared_regret: the regressor's regret in squared loss, on what is explored; see `forecaster_regret`.
        uniform_share: $\gamma$, so that every arm is explored with probability $\gamma / K$ or more; None for that of
            `ContextualLadder` with so many arms.
        gap: $\Delta$, by which the best arm leads in every context; None for no gap.

    >>> from decoupled_lab import theory
    >>> squared = theory.bounds.forecaster_regret(10_000, arms=2, features=5)
    >>> [round(theory.bounds.theorem_f3(10_000, 2, squared, gap=gap)) for gap in (None, 0.2)]
    [2361, 2788]
    """
    size = size_of(horizon, arms)
    least = (
        arms * ContextualLadder().least_propensity(arms) if uniform_share is None else uniform_share
    )
    remedy = "leave it out for that of the policy"
    even = check_number("uniform_share", least, remedy, above=0.0, below=1.0 + 1e-12)
    squared = check_number("squared_regret", squared_regret, "see forecaster_regret", at_least=0.0)
    if gap is None:
        return math.sqrt(2.0 * size * squared / even)
    return (
        2.0
        * arms
        * squared
        / (even * check_number("gap", gap, "losses lie in [0, 1]", above=0.0, below=1.0 + 1e-12))
    )


def forecaster_regret(
    horizon: int, arms: int, features: int, norm: float = 1.0, ridge: float = 1.0
) -> float:
    r"""The squared regret of a Vovk-Azoury-Warmuth forecaster for each arm: $K (a b^2 + d \ln(1 + T / (a d K)))$.

    Features have a norm of at most 1, and losses lie in [0, 1].

    Args:
        horizon: the number of rounds $T$.
        arms: the number of arms $K$.
        features: the number of features $d$.
        norm: $b$, the largest norm of an arm's coefficients.
        ridge: $a$, what is added to the diagonal.

    >>> from decoupled_lab import theory
    >>> round(theory.bounds.forecaster_regret(10_000, arms=2, features=5), 1)
    71.1
    """
    rounds = size_of(horizon, arms) / arms
    size = float(whole_number("features", features, 1, "count the constant"))
    a = check_number("ridge", ridge, "ours is 1", above=0.0)
    b = check_number("norm", norm, "a bound on the coefficients", at_least=0.0)
    return arms * (a * b**2 + size * math.log1p(rounds / (a * size * arms)))

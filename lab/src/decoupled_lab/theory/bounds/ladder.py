"""Theorem T2: `Ladder()` itself, with its rungs on means, its uniform share and a unit that comes from the losses.

`compare` has the paper's bounds and ours side by side.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from decoupled.base import Floats, check_number
from decoupled.errors import ParameterError
from decoupled.policies import Ladder

from . import constants
from .centred import optimal_c_exploit, self_bounding_factor, theorem_a, theorem_b
from .constants import (
    LEAST_OFF_EVENT,
    arms_of,
    curvature_constant,
    positive_gaps,
    size_of,
    winner_constant,
)
from .paper import theorem1
from .rungs import prior_factor, theorem_e2

if TYPE_CHECKING:
    import pandas as pd

RECORD = 1.25  # kappa: a surprise so many times larger than all before is paid for as a record
FALL = 8.0 / 3.0  # r(1/2): what a fall by half of an arm's own gap costs
TINY = 1e-12  # the least value of sqrt(n)


@dataclass(frozen=True)
class Numbers:
    """The numbers of the proof of T2 that depend on the policy and the number of arms alone."""

    arms: int
    policy: Ladder

    @property
    def h(self) -> float:
        """The rate of the first rung, times the root of n."""
        return self.policy.rungs[0] * math.pow(self.arms, -1.0 / 6.0)

    @cached_property
    def ranks(self) -> Floats:
        """1 to K."""
        return np.arange(1.0, self.arms + 1.0)

    @property
    def sum(self) -> float:
        """S_K, the largest sum of q."""
        return constants.rank_sum(self.arms)

    @property
    def whole(self) -> float:
        """S', so that p is at least q / S'."""
        return self.sum / ((1.0 - self.policy.uniform_share) * (1.0 - self.policy.top_two_share))

    @cached_property
    def squares(self) -> float:
        """Z_K, the largest sum of q^2."""
        return constants.square_sum(3.0, self.arms)

    @cached_property
    def chances(self) -> float:
        """Z_W, which bounds the sum of E w_hat^2 / q."""
        return float((2.0 * self.ranks ** (-1.0 / 3.0) / (self.ranks + 1.0)).sum())

    @property
    def growth(self) -> float:
        """F, what the drift of a round adds to the curvature."""
        return (1.0 + 0.5 * self.h) ** 4

    @property
    def record_factor(self) -> float:
        """What a record of the surprises costs, over its probability under rung 1."""
        return (1.0 + 0.5 * self.h) ** 3

    @property
    def stability(self) -> float:
        """What stability costs of a unit of n, over the root of n."""
        jump = FALL / 8.0 * self.whole**2
        return (
            curvature_constant() * self.growth * self.h * max(jump, math.pow(self.arms, 2.0 / 3.0))
        )

    @property
    def drift_share(self) -> float:
        """2 Z_K K^(-2/3): the drift of a round is at most 4 r^2 times this."""
        return 2.0 * self.squares * math.pow(self.arms, -2.0 / 3.0)

    @property
    def step(self) -> float:
        """N: what a round without a record adds to n is at most 4 N r^2."""
        return RECORD**2 + self.drift_share

    @property
    def drift_rate(self) -> float:
        """C_delta: the drift of a round is at most C_delta r^4 / n."""
        return 32.0 * math.pow(self.arms, 1.0 / 3.0) * (self.whole * self.h) ** 2

    @property
    def low_cost(self) -> float:
        """K / gamma, what losses below all that was seen cost, over the fall of the least loss."""
        return self.arms / self.policy.uniform_share

    @property
    def unseen(self) -> float:
        """What losses beyond all that was seen cost in all: those below, those above, and records."""
        return self.low_cost + self.whole * (1.0 + self.record_factor * RECORD / (RECORD - 1.0))

    # The judge

    @property
    def judged(self) -> bool:
        """Whether there is more than one rung."""
        return self.policy.rung_count > 1

    @property
    def priors(self) -> Floats:
        """The prior weights of the rungs, which sum to 1."""
        return np.array(self.policy.params().priors[: self.policy.rung_count])

    @property
    def prior_cost(self) -> float:
        """Lambda."""
        return prior_factor(float(self.priors[0]), self.policy.hedge_rate)

    @property
    def remembers(self) -> bool:
        """Whether there are two rungs on means, of which the second follows the recent past."""
        return self.policy.memory is not None and self.policy.top_two_share > 0.0

    def explored_least(self, part: float) -> float:
        """The least probability of an arm that has this part of what the leaders and their challengers share."""
        gamma, policy = self.policy.uniform_share, self.policy
        lent = (1.0 - gamma) * policy.top_two_share * policy.top_two_floor
        return max(part * lent, gamma / self.arms)

    @property
    def leader_share(self) -> float:
        """The least probability with which the arm of a rung on means is explored; infinite without such a rung."""
        if self.policy.top_two_share == 0.0:
            return math.inf
        return self.explored_least(0.125 if self.remembers else 0.5)

    @property
    def variance(self) -> float:
        """V_A, which bounds the mean square of the rungs' estimated losses."""
        gamma, share = self.policy.uniform_share, self.policy.top_two_share
        perturbed = self.sum * self.chances / (1.0 - share * self.policy.top_two_floor)
        by_means = (4.0 if self.remembers else 2.0) / share if share > 0.0 else 0.0
        return (perturbed + by_means) / (1.0 - gamma)

    @property
    def jump(self) -> float:
        """The largest estimated loss of a rung, without its baselines."""
        return max(self.whole * math.pow(self.arms, 2.0 / 3.0), 1.0 / self.leader_share)

    @property
    def range_cost(self) -> float:
        """What the range of the rungs' losses adds to AdaHedge's regret."""
        return (2.0 * self.policy.hedge_rate / 3.0 + 1.0) * (self.jump + 1.0)

    @property
    def few(self) -> float:
        """C_W: on D_t or off it, the sum of E w_hat^2 / q without the best arm is at most C_W (1 - w_best)."""
        return max(16.0, self.chances / LEAST_OFF_EVENT)

    @property
    def small_variance(self) -> float:
        """C_A: around the best arm's loss, the mean square is at most C_A (1 - w_best)."""
        one = 1.0 / self.leader_share + self.whole * max(self.few + 2.0, 2.0 * self.chances)
        if not self.remembers:
            return one
        # One of two leaders is the best arm: the other's rung pays for both. Their parts are chi / 2 and (1 - chi) / 2.
        return max(one, 1.0 / self.explored_least(0.125) + 1.0 / self.explored_least(0.375))

    # The stochastically constrained regime

    def any_state(self, drift: float = 4.0) -> float:
        """The factor of eta r^2 in the stability of a round, in any state; `drift` is the factor of its drift."""
        jumps = 0.5 * FALL * RECORD**2 * self.whole * self.sum
        return curvature_constant() * self.growth * (jumps + drift * self.squares)

    def on_event(self, zeta: float, drift: float = 4.0) -> float:
        """The factor of eta r^2 Y in the stability of a late round on D_t."""
        others = (
            curvature_constant() * (1.0 + zeta) ** 4 * (0.5 * FALL * RECORD**2 * self.whole + drift)
        )
        return others + 1.5 * RECORD**2 * self.whole * (1.0 - zeta) ** -4

    def self_bounded(self, zeta: float, drift: float = 4.0) -> tuple[float, float, int]:
        """A0 and A1, the factors of sqrt(K) and of K^(1/6) sum (8 w)^(2/3) in a round, and j1, from which rounds are late."""
        check_number("zeta", zeta, "ours is 0.1", above=0.0, below=0.5 + 1e-12)
        theta = check_number(
            "least_spread", self.policy.least_spread, "0 has no such bound", above=0.0, below=1.0
        )
        c = self.policy.rungs[0]
        grown = (
            4.0 * (2.0 + theta + self.drift_share) / c
        )  # n grows by at most c times this times r^2 in a round
        any_state = (
            c * math.pow(self.arms, -2.0 / 3.0) * self.any_state(drift) + grown * winner_constant()
        )
        on_event = c * math.pow(self.arms, -1.0 / 3.0) * self.on_event(zeta, drift) + 1.5 * grown
        late = math.ceil((self.h * (RECORD * self.whole + 1.0) / zeta) ** 2 / theta)
        return any_state, on_event, late


class LadderTerms(NamedTuple):
    r"""The terms of theorem T2a for one number of arms: regret is at most `factor` $\sqrt{KT}$ + `constant`.

    Attributes:
        stability: its part of the factor of $\sqrt{KT}$.
        penalty: that of the penalty.
        judge: that of AdaHedge.
        constant: $C(K)$, what does not grow with the horizon.

    >>> from decoupled_lab import theory
    >>> theory.bounds.LadderTerms(stability=60.0, penalty=5.0, judge=4.0, constant=2000.0).factor
    69.0
    """

    stability: float
    penalty: float
    judge: float
    constant: float

    @property
    def factor(self) -> float:
        r"""The factor $A(K)$ of $\sqrt{KT}$."""
        return self.stability + self.penalty + self.judge


def ladder_numbers(arms: int, policy: Ladder | None = None) -> Numbers:
    """Check that T2 is about this policy with this number of arms."""
    policy = Ladder() if policy is None else policy
    if not isinstance(policy, Ladder):
        raise ParameterError.of(
            "policy", policy, "must be a Ladder", "theorem T2 is about no other"
        )
    check_number(
        "uniform_share", policy.uniform_share, "with 0 there is no bound", above=0.0, below=1.0
    )
    return Numbers(arms_of(arms), policy)


def ladder_terms(arms: int, policy: Ladder | None = None) -> LadderTerms:
    r"""The terms of theorem T2a.

    Args:
        arms: the number of arms $K$.
        policy: the ladder, with any parameters but a `uniform_share` of 0; `Ladder()` if None.

    >>> import decoupled as dc
    >>> import decoupled_lab as lab
    >>> [round(lab.theory.bounds.ladder_terms(arms).factor, 1) for arms in (2, 8, 64, 1024)]
    [51.2, 75.5, 100.1, 109.4]
    >>> round(lab.theory.bounds.ladder_terms(8, dc.Ladder(memory=None)).factor, 1)
    74.8
    >>> round(lab.theory.bounds.ladder_terms(8).constant)
    2335
    """
    return terms_of(ladder_numbers(arms, policy))


def terms_of(of: Numbers) -> LadderTerms:
    """The terms of T2a from its numbers."""
    k, theta, rate = float(of.arms), of.policy.least_spread, of.policy.hedge_rate
    penalty = winner_constant() / of.policy.rungs[0] * math.sqrt(k)
    spread = 2.0 * math.sqrt(1.0 + theta)
    # sqrt(n) <= spread sqrt(T) + excess: the drift, and what n begins with.
    excess = (math.sqrt(2.0 * of.drift_rate) + 4.0 + 4.0 * of.drift_share) / (2.0 * spread)
    judge = of.prior_cost * math.sqrt(rate) * (math.sqrt(of.variance) + 0.5) if of.judged else 0.0
    judging = of.prior_cost * of.range_cost if of.judged else 0.0
    rest = 1.0 + 4.0 * of.stability * of.step + of.unseen + judging
    return LadderTerms(
        stability=2.0 * of.stability * spread / math.sqrt(k),
        penalty=penalty * spread / math.sqrt(k),
        judge=judge / math.sqrt(k),
        constant=rest + (2.0 * of.stability + penalty) * excess,
    )


def theorem_t2(
    horizon: int,
    arms: int,
    policy: Ladder | None = None,
    *,
    width: float = 1.0,
    in_hindsight: bool = False,
) -> float:
    r"""Theorem T2a: the expected regret of `Ladder()` against each fixed arm, with feedback in the same round.

    It holds for every adversary that does not know the seed:

    $$\mathbb E \mathrm{Reg}_T \le x \left(A(K) \sqrt{KT} + C(K)\right) + 10^{-12} \frac{G}{c_1} \sqrt K$$

    Against an adversary that reacts, the arm that turns out best differs from run to run. The expected regret against it
    is larger by at most $x \left(\sqrt{2 K T \ln K / \gamma} + \frac{K}{3 \gamma} \ln K\right)$.

    Args:
        horizon: the number of rounds $T$.
        arms: the number of arms $K$.
        policy: the ladder; `Ladder()` if None.
        width: $x$, the width of an interval in $[0, 1]$ that holds all losses. The policy need not know it.
        in_hindsight: compare with the arm that turns out best in each run.

    >>> from decoupled_lab import theory
    >>> round(theory.bounds.theorem_t2(horizon=1_000_000, arms=8))
    215786
    >>> round(theory.bounds.theorem_t2(horizon=1_000_000, arms=8, in_hindsight=True))
    256850
    """
    terms, size = ladder_terms(arms, policy), size_of(horizon, arms)
    width = check_number("width", width, "losses lie in [0, 1]", above=0.0, below=1.0 + 1e-12)
    policy = Ladder() if policy is None else policy
    bound = terms.factor * math.sqrt(size) + terms.constant
    if in_hindsight:  # Bernstein's inequality for the largest of K sums of estimates less losses
        spread = 2.0 * math.log(arms) / policy.uniform_share
        bound += math.sqrt(spread * size) + spread * arms / 6.0
    return width * bound + TINY * winner_constant() / policy.rungs[0] * math.sqrt(arms)


def theorem_t2b(gaps: Sequence[float], policy: Ladder | None = None, zeta: float = 0.1) -> float:
    r"""Theorem T2b: the regret of `Ladder()` in the stochastically constrained regime, for any horizon.

    It is $O(K / (\theta \Delta_{\min}))$ with constants that are far too large to be useful.

    Args:
        gaps: the gaps of the other arms, given the past; one 0, for the best arm, is allowed.
        policy: the ladder, with a `least_spread` above 0; `Ladder()` if None.
        zeta: where the proof calls a round late, above 0 and at most 1/2.

    >>> from decoupled_lab import theory
    >>> f"{theory.bounds.theorem_t2b([0.125] * 7):.1g}"
    '7e+09'
    """
    others = positive_gaps(gaps)
    return constrained_of(ladder_numbers(len(others) + 1, policy), float(others.min()), zeta)


def constrained_of(of: Numbers, least: float, zeta: float = 0.1) -> float:
    """T2b from its numbers, for this least gap."""
    any_state, on_event, late = of.self_bounded(zeta)
    k, c, theta = float(of.arms), of.policy.rungs[0], of.policy.least_spread
    bracket = 2.0 * math.sqrt(8.0 * self_bounding_factor(3.0) * any_state * on_event**3)
    bracket = 4.0 / 3.0 * (bracket + 4.0 * any_state**2 / LEAST_OFF_EVENT)
    first = bracket * k / (theta * least) + 8.0 * any_state * math.sqrt(k * (late + 1.0) / theta)
    first += 2.0 * (1.0 + of.unseen + TINY * winner_constant() / c * math.sqrt(k))
    if not of.judged:
        return first
    mixing = of.prior_cost**2 * of.policy.hedge_rate * (2.0 * of.small_variance + 2.0) / least
    return 2.0 * first + mixing + 2.0 * of.prior_cost * of.range_cost


def useful_from(bound: Callable[[int], float]) -> int:
    """The first horizon from which a bound is below the horizon; otherwise it says nothing, as losses are in [0, 1].

    Args:
        bound: a function from a horizon to a bound. It must grow more slowly than the horizon.

    >>> from decoupled_lab import theory
    >>> theory.bounds.useful_from(lambda horizon: 10.0 * horizon**0.5)
    101
    """
    high = 1
    while bound(high) >= high and high < 2**62:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if bound(middle) >= middle else (low, middle)
    return high


def compare(arms: Sequence[int] = (2, 8, 64, 1024)) -> "pd.DataFrame":
    r"""The bounds against any adversary at $\alpha = 3$, by number of arms: the paper's and ours.

    Columns: what multiplies $\sqrt{KT}$ as $T$ grows, what does not depend on $T$, and the first horizon from which the
    bound is below the horizon. A constant times $\sqrt{KT}$ plus a term of lower order can be larger than the
    paper's bound at a short horizon, so read the three together.

    Args:
        arms: the numbers of arms to compare the bounds at.

    >>> from decoupled_lab import theory
    >>> theory.bounds.compare(arms=[8])["useful from"].tolist()
    [1244769, 4923, 523, 3597, 4727, 50123]
    """
    import pandas as pd

    rows, short, long = [], 10**12, 4 * 10**12
    for count in arms:
        best = optimal_c_exploit(count)
        bounds: dict[str, Callable[[int], float]] = {
            "theorem 3.1, c = 2 (the paper)": partial(theorem1, arms=count),
            "theorem A, c = 2": partial(theorem_a, arms=count),
            f"theorem A, c = {best:.2f}": partial(theorem_a, arms=count, c_exploit=best),
            "theorem B, HALF, c_exploit = 0.5": partial(theorem_b, arms=count),
            "theorem E2, rounds, exact": partial(theorem_e2, arms=count),
            "theorem T2, Ladder()": partial(theorem_t2, arms=count),
        }
        root = math.sqrt(float(count) * short)
        for (
            name,
            bound,
        ) in bounds.items():  # bound(T) = factor sqrt(K T) + constant at two long horizons
            factor = (bound(long) - bound(short)) / root
            rows.append(
                (count, name, factor, max(bound(short) - factor * root, 0.0), useful_from(bound))
            )
    columns = ["K", "bound", "of sqrt(K T)", "constant term", "useful from"]
    return pd.DataFrame(rows, columns=columns).set_index(["K", "bound"])

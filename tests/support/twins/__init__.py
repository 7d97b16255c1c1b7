"""Slow, obvious twins of the policies, written from their definitions and not from the package's code.

A twin keeps the sum of loss estimates, counts observations, and works out both laws from scratch each
time. Nothing is cached, kept in rank order or warm-started, so a mistake in those tricks shows up as a
difference. At the end of the file are the two statistical guards that tests share.

A policy's twin is found by `twin_of`, once a function that makes it is marked with `twin_for`, in any file of
this folder.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import chi2, norm

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Twin(ABC):
    """The part that every twin with importance-weighted estimates shares.

    `problem_arms` is K in the learning rate; it exceeds the number of estimates when the twin stands
    for a learner whose other arms are away. `knows_propensity` says whether the policy knows the probability
    of what it drew; if not, a decision's propensity is None.
    """

    knows_propensity: bool = True

    def __init__(self, arms: int, c: float = 2.0) -> None:
        self.c = c
        self.problem_arms = arms
        self.estimates: Floats = np.zeros(arms)
        self.observations = 0

    @property
    def round(self) -> int:
        return 1 + self.observations

    @property
    @abstractmethod
    def eta(self) -> float: ...

    @abstractmethod
    def exploration_law(self) -> Floats: ...

    @abstractmethod
    def exploitation_law(self) -> Floats: ...

    def update(self, arm: int, weight: float, loss: float) -> None:
        self.observations += 1
        self.estimates[arm] += weight * loss

    def follow(self, learner: Any) -> None:
        """Look at a learner that is one observation ahead, where a twin cannot know what the learner drew."""
        del learner  # most twins know everything

    def replay(self, arm: int, weight: float, loss: float) -> None:
        """Learn from a log that brings a weight and nothing else."""
        self.update(arm, weight, loss)

    def estimate_variance(self, losses: Floats) -> Floats:
        """The variance of one round's estimate of each arm's loss."""
        variance: Floats = losses**2 * (1 / self.exploration_law() - 1)
        return variance

    def gaps(self) -> Floats:
        gaps: Floats = self.estimates - self.estimates.min()
        return gaps

    def restricted(self, places: Sequence[int]) -> "Twin":
        """A twin that knows only these arms' estimates and keeps the learning rate of the whole."""
        part = object.__new__(type(self))
        part.__dict__.update(self.__dict__)
        part.estimates = self.estimates[list(places)]
        return part


MakeTwin = Callable[[Any, int], Twin]  # from a policy and a number of arms
_makers: dict[str, MakeTwin] = {}


def twin_for(policy: str) -> Callable[[MakeTwin], MakeTwin]:
    """Mark the function that makes the twins of a policy, given by the name of its class."""

    def mark(make: MakeTwin) -> MakeTwin:
        assert policy not in _makers, f"{policy} has two twins"
        _makers[policy] = make
        return make

    return mark


def twin_of(policy: Any, arms: int) -> Twin:
    """A twin of this policy that has learned nothing yet."""
    kind = type(policy)
    maker = makers().get(kind.__name__)
    if maker is None:
        file = kind.__module__.rpartition(".")[2]
        raise LookupError(
            f"{kind.__module__}.{kind.__name__} has no twin; write tests/support/twins/{file}.py with a "
            f"subclass of Twin that has its laws, and a function (policy, arms) -> Twin that is marked "
            f'@twin_for("{kind.__name__}")'
        )
    return maker(policy, arms)


@cache
def makers() -> dict[str, MakeTwin]:
    """What makes the twins of each policy, after all files of this folder are read."""
    for module in iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
    return _makers


class FTPLTwin(Twin):
    """Follow the perturbed leader: every arm gets its Pareto draw, ranks come from a full sort."""

    def __init__(self, arms: int, alpha: float = 3.0, c: float = 2.0) -> None:
        super().__init__(arms, c)
        self.alpha = alpha

    @property
    def eta(self) -> float:
        return self.c * math.pow(self.problem_arms, 1 / self.alpha - 1 / 2) / math.sqrt(self.round)

    def ranks(self) -> Ints:
        """1 for the smallest estimate; equal estimates in the order of their arms."""
        ranks = np.empty(len(self.estimates), np.int64)
        by_estimate = sorted(range(len(ranks)), key=lambda arm: (self.estimates[arm], arm))
        ranks[by_estimate] = np.arange(1, len(ranks) + 1)
        return ranks

    def rank_surrogates(self) -> Floats:
        """The paper's q, where ranks settle ties by the arms' numbers."""
        by_gap = 1 / (1 + self.eta * self.gaps())
        by_rank = self.ranks() ** (-1 / self.alpha)
        q: Floats = np.minimum(by_gap, by_rank) ** ((self.alpha + 1) / 2)
        return q

    def shared_among_ties(self, values: Floats) -> Floats:
        """For each arm the mean over all arms that have its estimate."""
        order = np.argsort(self.estimates, kind="stable")
        ranked, shared = self.estimates[order], np.empty_like(values)
        for tied in np.split(order, 1 + np.flatnonzero(ranked[1:] != ranked[:-1])):
            shared[tied] = values[tied].mean()
        return shared

    def surrogates(self) -> Floats:
        return self.shared_among_ties(self.rank_surrogates())

    def exploration_law(self) -> Floats:
        q = self.surrogates()
        law: Floats = q / q.sum()
        return law

    def exploitation_law(self) -> Floats:
        return pareto_law_by_quad(self.eta * self.gaps(), self.alpha)

    def draw_exploits(self, count: int, generator: np.random.Generator) -> Ints:
        """Perturb every arm, `count` times over."""
        uniforms = 1 - generator.random((count, len(self.estimates)))
        perturbations = uniforms ** (-1 / self.alpha)
        winners: Ints = np.argmin(self.gaps() - perturbations / self.eta, axis=1)
        return winners


class StrataTwin(FTPLTwin):
    """The same, but a decision multiplies by an estimate of sum q that is drawn apart from the arm."""

    knows_propensity = False

    def strata(self) -> list[Floats]:
        """Q by rank, cut: the stratum from rank r on, counted from 1, has half of r ranks, but one at least."""
        return cut_into_strata(np.sort(self.rank_surrogates())[::-1])

    def second_moment_of_weights(self) -> Floats:
        """E[weight^2; the arm is explored]."""
        strata = self.strata()
        whole = sum(q.sum() for q in strata)
        spread = sum(len(q) ** 2 * q.var() for q in strata)
        second: Floats = (1 + spread / whole**2) / self.exploration_law()
        return second

    def estimate_variance(self, losses: Floats) -> Floats:
        variance: Floats = losses**2 * (self.second_moment_of_weights() - 1)
        return variance


def cut_into_strata(by_rank: Floats) -> list[Floats]:
    """The ranks 1, 2, 3, 4-5, 6-8, 9-12, ... of what is given by rank."""
    cut, r = [], 1
    while r <= len(by_rank):
        cut.append(by_rank[r - 1 : r - 1 + max(1, r // 2)])
        r += len(cut[-1])
    return cut


class TsallisTwin(Twin):
    """Tsallis-INF: the multiplier x is bracketed and bisected, from nothing, every time."""

    def __init__(self, arms: int, beta: float = 2 / 3, c: float = 2.0) -> None:
        super().__init__(arms, c)
        self.beta = beta

    @property
    def eta(self) -> float:
        return self.c * math.pow(self.problem_arms, 1 / 2 - self.beta) / math.sqrt(self.round)

    def exploitation_law(self) -> Floats:
        return tsallis_law_by_brentq(self.estimates, self.eta, self.beta)

    def exploration_law(self) -> Floats:
        p = self.exploitation_law() ** (1 - self.beta / 2)
        law: Floats = p / p.sum()
        return law


class Exp3Twin(Twin):
    """Exponential weights: a softmax, and its square root."""

    @property
    def eta(self) -> float:
        return self.c * math.pow(self.problem_arms, -1 / 2) / math.sqrt(self.round)

    def exploitation_law(self) -> Floats:
        w = np.exp(-self.eta * self.gaps())
        law: Floats = w / w.sum()
        return law

    def exploration_law(self) -> Floats:
        p = np.exp(-self.eta * self.gaps() / 2)  # the square root of w, taken before w underflows
        law: Floats = p / p.sum()
        return law


class FollowTheLeaderTwin(Twin):
    """Follow the leader: all losses of every arm are kept in a list, and means are taken anew."""

    def __init__(self, arms: int) -> None:
        super().__init__(arms)
        self.seen: list[list[float]] = [[] for _ in range(arms)]

    @property
    def eta(self) -> float:
        raise NotImplementedError("follow the leader has no learning rate")

    def update(self, arm: int, weight: float, loss: float) -> None:
        self.observations += 1
        self.seen[arm].append(loss)

    def means(self) -> list[float]:
        """An arm not yet seen comes before every other: its mean is minus infinity."""
        return [sum(losses) / len(losses) if losses else -math.inf for losses in self.seen]

    def exploitation_law(self) -> Floats:
        means = self.means()
        leads = np.array([mean == min(means) for mean in means], np.float64)
        law: Floats = leads / leads.sum()
        return law

    def exploration_law(self) -> Floats:
        return np.full(len(self.seen), 1 / len(self.seen))

    def restricted(self, places: Sequence[int]) -> "FollowTheLeaderTwin":
        part = FollowTheLeaderTwin(len(places))
        part.seen = [self.seen[place] for place in places]
        return part


@twin_for("FollowTheLeader")
def follow_the_leader_twin(policy: Any, arms: int) -> Twin:
    return FollowTheLeaderTwin(arms)


def pareto_law_by_quad(shifts: ArrayLike, alpha: float) -> Floats:
    """w_i = integral_1^inf f(z + v_i) prod_{j != i} F(z + v_j) dz, with s = 1/z and one `quad` an arm."""
    v = [float(shift) for shift in np.asarray(shifts)]

    def integrand(s: float, i: int) -> float:
        # f(z + v) dz = alpha (z + v)^-(alpha + 1) dz, and (z + v) = (1 + s v) / s.
        value = alpha * math.pow(s, alpha - 1) * math.pow(1 + s * v[i], -alpha - 1)
        for j in range(len(v)):
            if j != i:
                value *= 1 - math.pow(s / (1 + s * v[j]), alpha)
        return value

    # The integrand bends where z is about as large as a shift.
    bends = sorted({1 / (1 + shift) for shift in v if shift > 0}) or None

    def chance(i: int) -> float:
        return quad(integrand, 0, 1, args=(i,), points=bends, epsabs=1e-12, epsrel=1e-11, limit=200)[0]

    return np.array([chance(i) for i in range(len(v))])


def tsallis_law_by_brentq(estimates: Floats, eta: float, beta: float) -> Floats:
    """w_i = ((1 - beta) eta (L_i - x))^(-1/(1 - beta)), x from a bracketing root finder.

    Only differences matter, so L is counted from its smallest entry, which is 0 and loses no digits.
    """
    a = 1 / (1 - beta)
    gaps = estimates - estimates.min()

    def weights(x: float) -> Floats:
        w: Floats = ((1 - beta) * eta * (gaps - x)) ** -a
        return w

    def excess(x: float) -> float:
        return math.fsum(weights(x)) - 1

    # A hair beyond the bracket: at its very ends rounding may give the excess either sign.
    lowest, highest = -a * len(gaps) ** (1 / a) / eta, -a / eta
    x = brentq(excess, lowest * (1 + 1e-9), highest * (1 - 1e-9), xtol=1e-300, rtol=1e-15, maxiter=1000)
    return weights(x)


def chi_square_p(counts: ArrayLike, law: ArrayLike, least: float = 10.0) -> float:
    """The p-value of Pearson's test that `counts` were drawn from `law`.

    Cells that expect fewer than `least` draws are pooled, into the smallest other cell if they are still
    too few together. A draw from a cell of probability zero is refused outright.
    """
    observed = np.asarray(counts, np.float64).ravel()
    chances = np.asarray(law, np.float64).ravel()
    if observed[chances == 0].any():
        return 0.0
    expected = chances / chances.sum() * observed.sum()
    by_size = np.argsort(-expected)
    observed, expected = observed[by_size], expected[by_size]
    enough = int((expected >= least).sum())
    if expected[enough:].sum() < least:
        enough -= 1
    observed = np.append(observed[:enough], observed[enough:].sum())
    expected = np.append(expected[:enough], expected[enough:].sum())
    observed, expected = observed[expected > 0], expected[expected > 0]
    if len(expected) < 2:
        return 1.0
    return float(chi2.sf(((observed - expected) ** 2 / expected).sum(), len(expected) - 1))


def means_agree(mean: Floats, expected: Floats, error: Floats, level: float) -> bool:
    """Whether every mean lies where a normal one would, but for a chance of `level` each."""
    return bool((np.abs(mean - expected) <= norm.isf(level / 2) * error + 1e-12).all())

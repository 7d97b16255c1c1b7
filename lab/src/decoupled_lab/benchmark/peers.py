"""Who plays the suite `decoupled-2`: learners of the package, and what is known from elsewhere, each as a player of one run."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Never

import numpy as np

import decoupled as dc
from decoupled.base import Floats, number_in
from decoupled.environments import ContextTable
from decoupled.errors import ParameterError, UnsupportedError
from decoupled.policies import Policy


class Peer(Policy, kind="peer"):
    """A policy that plays the suite `decoupled-2`, and runs nowhere else."""

    def __repr__(self) -> str:
        return self._short_repr()

    def start(self, *arguments: Any, **others: Any) -> Never:
        """Raise an error: there is no learner of it."""
        raise UnsupportedError(f"{self!r}: plays the suite decoupled-2 only; give --suite decoupled-2")


@dataclass(frozen=True, repr=False)
class Looking(Peer):
    """A policy that pays for a look only if a coin says so, and else serves what it knows; see theorem H.

    Args:
        policy: a policy, or a baseline, that without this looks in every round.
        share: the probability of a look where looks have a price, above 0 and below 1. Elsewhere it always looks.

    >>> import decoupled as dc
    >>> Looking(dc.Ladder(), share=0.05)
    Looking(policy=Ladder(), share=0.05)
    """

    policy: Policy
    share: float = 0.1

    def __post_init__(self) -> None:
        number_in("share", self.share, 0.0, 1.0, "try 0.1")
        if not isinstance(self.policy, Policy) or isinstance(self.policy, Looking):
            rule = "must be a policy that looks in every round"
            raise ParameterError.of("policy", self.policy, rule, "for example Ladder()")

    @property
    def in_python(self) -> bool:
        """Whether the policy is plain Python, and slow."""
        return self.policy.in_python


@dataclass(frozen=True, repr=False)
class ParetoBandit(Peer):
    r"""The rule of ParetoBandit for choosing a model, as we read it in its paper; this is not its code.

    For rewards $r = 1 - \ell$ and the features $x$ of a request, it plays the arm with the largest
    $\hat\theta_a^\top x + \alpha \sqrt{v_a}$, with
    $v_a = x^\top A_a^{-1} x / \max(\gamma^{d_a}, 1 / V_{\max})$ and $d_a$ the rounds since arm $a$ was played. Then
    $A_a \leftarrow \gamma^{e_a} A_a + x x^\top$ and $b_a \leftarrow \gamma^{e_a} b_a + r x$, $e_a$ rounds after its last
    update, and $\hat\theta_a = A_a^{-1} b_a$. A new arm is first played 20 times.

    What differs: all models cost the same here, so the pacing of a budget, which subtracts a price from the score, changes
    no choice and is left out. There is no offline data for its priors, so all arms begin as new ones. $\gamma$ = 0.997 and
    $\alpha$ = 0.01 are those it was published with, which were tuned with priors.

    Taberner-Miller, A. (2026). ParetoBandit: Budget-paced adaptive routing for non-stationary LLM serving.
    arXiv 2604.00136, algorithm 1.

    Args:
        alpha: how much uncertainty counts, above 0.
        gamma: how fast the past fades, above 0 and at most 1.
        ridge: $\lambda_0$, what $A_a$ begins with, times the identity.
        most: $V_{\max}$, how much more uncertain an arm gets while it is not played.
        burn_in: how often a new arm is played first.

    >>> ParetoBandit(alpha=0.1)
    ParetoBandit(alpha=0.1)
    """

    alpha: float = 0.01
    gamma: float = 0.997
    ridge: float = 1.0
    most: float = 200.0
    burn_in: int = 20

    def __post_init__(self) -> None:
        number_in("alpha", self.alpha, 0.0, remedy="the default is 0.01")
        number_in("gamma", self.gamma, 0.0, math.nextafter(1.0, 2.0), "the default is 0.997")


class Learning:
    """A learner plays, or one for each segment."""

    def __init__(
        self, policy: Policy, names: Sequence[str], contexts: Sequence[Mapping[str, Any]], arms: int,
        seed: np.random.SeedSequence, labels: dc.Labels | None, looks: Callable[[], bool],
    ) -> None:  # fmt: skip
        self.policy, self.names, self.contexts = policy, tuple(names), contexts
        self.arms, self.seed, self.labels, self.looks = arms, seed, labels, looks
        self.learners: dict[tuple[object, ...], Any] = {}
        self.asked: tuple[Any, dc.Decision]

    def decide(self, row: int) -> tuple[int, int | None]:
        """Serve a request, and look at an arm unless the coin says no."""
        context = self.contexts[row]
        key = tuple(context[name] for name in self.names)
        if key not in self.learners:
            [seed] = self.seed.spawn(1)
            self.learners[key] = self.policy.start(list(range(self.arms)), seed, labels=self.labels)
        learner, told = self.learners[key], {"context": context} if self.policy.contextual else {}
        look = self.looks()
        if not look and not self.policy.coupled:
            return learner.exploit(**told).exploit, None
        decision = learner.decide(**told)
        if not look:
            learner.forget(decision)
            return decision.exploit, None
        self.asked = learner, decision
        return decision.exploit, decision.explore

    def observe(self, told: float, true: float, labelled: bool) -> None:
        """Learn what is told; if `labelled`, who has no labels of its own takes the true loss instead."""
        learner, decision = self.asked
        if self.labels is None:
            learner.observe(decision, true if labelled else told)
            return
        learner.observe(decision, judged=told)
        if decision.label:
            learner.observe(decision, true)

    def add_arm(self) -> None:
        """Another arm is there."""
        for learner in self.learners.values():
            learner.add_arms([self.arms])
        self.arms += 1


class Linear:
    """A ridge regression for each arm plays, whose arms are served and looked at alike: LinUCB, and ParetoBandit's rule."""

    def __init__(
        self, rule: ParetoBandit, from_reward: float, features: Floats, arms: int,
        seed: np.random.SeedSequence, looks: Callable[[], bool],
    ) -> None:  # fmt: skip
        self.rule, self.from_reward, self.features, self.looks = rule, from_reward, features, looks
        self.draws = np.random.Generator(np.random.PCG64(seed))
        size = features.shape[1]
        self.round, self.asked = 0, (0, 0)
        self.inverse = np.empty((0, size, size))
        self.sums, self.models = np.empty((2, 0, size))
        self.updated, self.played, self.due = (np.empty(0, np.int64) for _ in range(3))
        for _ in range(arms):
            self.add_arm()

    def decide(self, row: int) -> tuple[int, int | None]:
        """Serve a request, and look at an arm unless the coin says no."""
        x, rule = self.features[row], self.rule
        if self.due.any():
            arm = int(self.due.argmax())
        else:
            stale = self.round - np.maximum(self.updated, self.played)
            fresh = np.maximum(rule.gamma**stale, 1.0 / rule.most)
            variance = (self.inverse @ x) @ x / fresh
            score = self.models @ x + rule.alpha * np.sqrt(np.maximum(variance, 0.0))
            best = np.flatnonzero(score == score.max())
            arm = int(best[0] if len(best) == 1 else self.draws.choice(best))
        self.round += 1
        self.played[arm] = self.round
        if not self.looks():
            return arm, None
        self.due[arm] = max(0, self.due[arm] - 1)
        self.asked = arm, row
        return arm, arm

    def observe(self, told: float, true: float, labelled: bool) -> None:
        """Learn what is told."""
        (arm, row), rule = self.asked, self.rule
        x, reward = self.features[row], self.from_reward - (true if labelled else told)
        faded = rule.gamma ** float(self.round - self.updated[arm])
        inverse = self.inverse[arm] / faded
        step = inverse @ x
        self.inverse[arm] = inverse - step[:, None] * (step / (1.0 + x @ step))
        self.sums[arm] = faded * self.sums[arm] + reward * x
        self.models[arm] = self.inverse[arm] @ self.sums[arm]
        self.updated[arm] = self.round

    def add_arm(self) -> None:
        """Another arm is there."""
        size = self.features.shape[1]
        self.inverse = np.concatenate([self.inverse, np.eye(size)[None] / self.rule.ridge])
        self.sums, self.models = (np.vstack([each, np.zeros(size)]) for each in (self.sums, self.models))
        self.updated, self.played = (np.append(each, self.round) for each in (self.updated, self.played))
        self.due = np.append(self.due, self.rule.burn_in)


def coin(share: float, seed: np.random.SeedSequence) -> Callable[[], bool]:
    """Whether to look, round by round: always, or by a seeded coin."""
    draws = np.random.Generator(np.random.PCG64(seed))
    return lambda: share == 1.0 or bool(draws.random() < share)


def features_of(rule: Any, table: ContextTable) -> Floats:
    """The features of each row that the package's LinUCB has: 1, an indicator for each segment, and scaled numbers."""
    places, values, size = rule.features(table)
    features = np.zeros((len(places), size))
    np.put_along_axis(features, places, values, axis=1)
    return features


def player(
    policy: Policy, table: ContextTable, contexts: Sequence[Mapping[str, Any]], arms: int,
    seed: np.random.SeedSequence, labels: dc.Labels | None, priced: bool,
) -> Learning | Linear:  # fmt: skip
    """Who plays a run for a policy, from this number of arms on."""
    share = policy.share if priced and isinstance(policy, Looking) else 1.0
    policy = policy.policy if isinstance(policy, Looking) else policy
    own, tossed = seed.spawn(2)
    looks = coin(share, tossed)
    if isinstance(policy, dc.baselines.LinUCB):
        rule = ParetoBandit(policy.alpha, 1.0, policy.ridge, burn_in=0)
        # On losses, as in the package: the reward is minus the loss.
        return Linear(rule, 0.0, features_of(policy, table), arms, own, looks)
    if isinstance(policy, ParetoBandit):
        features = features_of(dc.baselines.LinUCB(["segment"], ["x"]), table)
        return Linear(policy, 1.0, features, arms, own, looks)
    if isinstance(policy, dc.baselines.PerSegment):
        return Learning(policy.policy, policy.segments, contexts, arms, own, None, looks)
    return Learning(policy, (), contexts, arms, own, labels, looks)

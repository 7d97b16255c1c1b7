"""From the regret to theorem 3.1 in four steps: where the constant comes from."""

import math
from typing import NamedTuple

import numpy as np

from decoupled.base import whole_number
from decoupled.environments import Environment
from decoupled.policies import FTPL

from .bounds import first_round_constant, penalty_constant, theorem1
from .lemmas.paper import GAPS, STABILITY, UNIFORM, penalty, penalty_sides, stability_sides
from .trajectory import run


class Step(NamedTuple):
    """A bound on the regret and its two terms; a total without terms counts as stability.

    Attributes:
        name: the name of the bound.
        stability: the stability term.
        penalty: the penalty term.

    >>> from decoupled_lab import theory
    >>> theory.Step("some bound", stability=3.0, penalty=1.0).total
    4.0
    """

    name: str
    stability: float
    penalty: float

    @property
    def total(self) -> float:
        """The sum of stability and penalty."""
        return self.stability + self.penalty


def steps(
    environment: Environment, policy: FTPL | None = None, horizon: int = 1_000, *, seed: int = 0
) -> list[Step]:
    """The regret of one trajectory and three bounds on it, each looser than the one before.

    The first step is the regret by mean loss against the best fixed arm. The second is the two terms of
    lemma 3.4, exact, with the stability in expectation over the explored arm and a Bernoulli loss. The third
    replaces them by the bounds of lemmas 3.5 and 3.6. The fourth is theorem 3.1, which also bounds the sum of q.
    On one path, the first may exceed the second by chance.

    >>> import decoupled as dc
    >>> import decoupled_lab as lab
    >>> found = lab.theory.steps(dc.environments.Alternating(arms=4, gap=0.25), horizon=100, seed=0)
    >>> [step.name for step in found]
    ['regret', 'lemma 3.4', 'lemmas 3.5 and 3.6', 'theorem 3.1']
    """
    policy = FTPL() if policy is None else policy
    horizon = whole_number("horizon", horizon, 1, "the default is 1000")
    trajectory = run(policy, environment, horizon, seed)
    arms, best, alpha = environment.arms, trajectory.best, policy.alpha
    regret, exact, lemmas = 0.0, np.zeros(2), np.zeros(2)
    before = 0.0
    for round_ in range(1, horizon + 2):
        moment = trajectory.moment(round_, 0.1)
        growth = 1.0 / moment.eta - before
        before = 1.0 / moment.eta
        exact[1] += growth * penalty(moment)
        # The smaller right side of lemma 3.5, or that of equation (18) in round 1.
        rights = [
            each.right for each in penalty_sides(moment) if each.inequality in (GAPS, UNIFORM)
        ]
        if round_ == 1:
            rights = [first_round_constant(alpha) * math.pow(arms, 1.0 / alpha)]
        lemmas[1] += growth * min(float(np.asarray(right)) for right in rights)
        if round_ > horizon:
            break
        means = trajectory.means[round_ - 1]
        regret += float(moment.moments.law @ means) - float(means[best])
        exact[0] += float(moment.stability @ means)
        stability = next(
            sides for sides in stability_sides(moment) if sides.inequality is STABILITY
        )
        lemmas[0] += float(np.asarray(stability.right).sum())
    last = first_round_constant(alpha) * np.sqrt(arms) / policy.c
    slow = penalty_constant(alpha) / policy.c * np.sqrt(arms * horizon) + last
    whole = theorem1(horizon, arms, alpha, policy.c)
    return [
        Step("regret", regret, 0.0),
        Step("lemma 3.4", *map(float, exact)),
        Step("lemmas 3.5 and 3.6", *map(float, lemmas)),
        Step("theorem 3.1", whole - float(slow), float(slow)),
    ]

"""Runs `check` over several regimes, values of alpha and numbers of arms, for one report."""

from collections.abc import Iterator, Sequence

import numpy as np

from decoupled.environments import AdaptiveAlternating, Alternating, Bernoulli, Environment, PunishLast
from decoupled.policies import FTPL, Ladder

from .checking import check, inspect
from .drawn import drawn_report
from .lemmas.best_arm import edge_of_event
from .report import Report, combine

_DRAWN = 60  # random rounds for each alpha
_MOST_ARMS = 64  # of a ladder: more arms take seconds per round


def regimes(arms: int) -> Iterator[Environment]:
    """A stochastic environment, a stochastically constrained adversary and two adaptive adversaries."""
    yield Bernoulli([0.8, *np.linspace(0.2, 0.7, arms - 1)])
    yield Alternating(arms, 0.125)
    yield PunishLast(arms)
    yield AdaptiveAlternating(arms, gap=0.2)


def survey(
    alphas: Sequence[float] = (1.1, 1.5, 2.0, 2.5, 3.0, 4.0, 8.0),
    arms: Sequence[int] = (2, 3, 8, 64, 256),
    horizon: int = 400,
    *,
    c: float = 2.0,
    seed: int = 0,
) -> Report:
    """Check every inequality over four regimes and all given values of alpha and numbers of arms.

    For each alpha, the survey adds one state that trajectories seldom reach: the worst one for the tail bound
    of lemma D.1 with 400 arms, and 60 random rounds of the centred estimator with random sequences for the lemmas
    of the ladder. `Ladder()` itself, whose alpha is 3, is checked with up to 64 arms. The default takes about five minutes.

    >>> from decoupled_lab import theory
    >>> theory.survey(alphas=[3.0], arms=[2, 4], horizon=30).surprises
    []
    """
    played = (
        check(world, FTPL(alpha=alpha, c=c), horizon, seed=seed)
        for alpha in alphas
        for count in arms
        for world in regimes(count)
    )
    edges = (edge_of_event(400, alpha) for alpha in alphas)
    made = (inspect(edge.estimates, edge.eta, edge.alpha, edge.best, edge.zeta) for edge in edges)
    ladders = (
        check(world, Ladder(), horizon, rounds=10, seed=seed)
        for count in arms
        if count <= _MOST_ARMS
        for world in regimes(count)
    )
    drawn = (drawn_report(alpha, _DRAWN, seed) for alpha in alphas)
    return combine((*played, *made, *ladders, *drawn))

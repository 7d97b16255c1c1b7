"""`survey`: `check` over many regimes, and the lemmas in random rounds and sequences."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from decoupled.base import Floats
from decoupled.environments import (
    AdaptiveAlternating,
    Alternating,
    Bernoulli,
    Environment,
    PunishLast,
)
from decoupled.policies import FTPL, ContextualLadder, Ladder

from .bounds.constants import Gate
from .bounds.ladder import RECORD, ladder_numbers
from .checking import Report, check, combine, inspect
from .inequality import Sides, Tally
from .lemmas import centred, contexts, in_order, ladder, late, switches
from .lemmas.paper import edge_of_event
from .moment import Moment
from .rounds import CentredRound, LadderRound, shown_arms

_GATES = (Gate(), Gate(1.0, 0.25), Gate(2.0, 0.5))
_LADDERS = (
    Ladder(),
    Ladder(uniform_share=0.3, top_two_floor=0.5),
    Ladder(memory=None),
    Ladder(prior=(), top_two_share=0.0),
)


def drawn_report(alpha: float, count: int, seed: int = 0) -> Report:
    """L5 and the steps of theorems C and E in random rounds, and L7 and L8 for random sequences, `count` of each.

    With them S2 and S3 of sticky serving in these rounds, and how the weights move in these sequences.

    At alpha = 3, the shape of `Ladder`, also L9 to L16 in random rounds of ladders, and the steps of theorem F.
    """
    rng = np.random.default_rng([seed, round(1e6 * alpha)])
    tally = Tally()
    for played in drawn_rounds(rng, alpha, count):
        tally.add(centred.centred_sides(played), played.moment)
        tally.add((*switches.sides(played.moment), *switches.round_sides(played)), played.moment)
    for _ in range(count):
        run = centred.adahedge(*drawn_experts(rng))
        both = (*centred.hedge_sides(run), *switches.weight_sides(run))
        tally.add(both, Moment(run.losses.sum(axis=0), 1.0, alpha))
        losses = rng.integers(0, 2, 200) if rng.random() < 0.5 else rng.beta(2.0, 5.0, 200)
        sequence = (np.sort(losses) if rng.random() < 0.5 else losses).astype(np.float64)
        sides = centred.mean_sides(sequence, float(rng.uniform(0.01, 0.9)))
        tally.add(sides, Moment(np.zeros(2), 1.0, alpha))
    for at in drawn_ladder_rounds(rng, count) if alpha == 3.0 else ():
        tally.add(ladder.ladder_sides(at), at.moment)
        tally.add(late.arrival_sides(*drawn_arrival(rng, at)), at.moment)
    for _ in range(count if alpha == 3.0 else 0):
        tally.add(drawn_contexts(rng), Moment(np.zeros(2), 1.0, alpha))
    return Report(in_order(tally))


def drawn_rounds(rng: np.random.Generator, alpha: float, count: int) -> Iterator[CentredRound]:
    """Rounds with gaps over several orders of magnitude, two to nine arms, and losses of several kinds.

    Every third is a late round on D_t, which random gaps seldom give.
    """
    for place in range(count):
        arms = int(rng.integers(2, 10))
        eta = 10.0 ** rng.uniform(-2.5, 0.5)
        gaps = (
            rng.exponential(1.0, arms) * 10.0 ** rng.uniform(-1.0, 2.0) * (rng.random(arms) < 0.8)
        )
        if place % 3 == 0:
            eta = 10.0 ** rng.uniform(-3.0, -2.0)
            gaps = (2.0 * arms) ** (1.0 / alpha) + rng.exponential(2.0, arms)
            gaps[0] = 0.0
        eps = eta / float(rng.choice([1.0, 2.0, 6.0]))
        losses = _drawn_losses(rng, arms)
        rungs = eta * np.concatenate(
            ([1.0], 10.0 ** rng.uniform(0.0, 4.0, int(rng.integers(1, 4))))
        )
        gate = _GATES[int(rng.integers(len(_GATES)))]
        best = 0 if place % 3 == 0 else int(rng.integers(arms))
        moment = Moment(gaps / eta, eta, alpha, best)
        yield CentredRound(moment, eps, float(rng.uniform(0.05, 1.0)), losses, gate, rungs)


def drawn_ladder_rounds(rng: np.random.Generator, count: int) -> Iterator[LadderRound]:
    """Rounds of ladders in any unit, with losses below and above all that was seen; every third is late, on D_t.

    States need not lie on a path: the lemmas hold wherever (I1) to (I3) do.
    """
    for place in range(count):
        arms, late = int(rng.integers(2, 12)), place % 3 == 0
        of = ladder_numbers(arms, _LADDERS[int(rng.integers(len(_LADDERS)))])
        unit = 10.0 ** rng.uniform(-3.0, 0.0)
        slow = 10.0 ** rng.uniform(0.0, 4.0)
        if late:
            slow = (of.h * (RECORD * of.whole + 1.0) / 0.1) ** 2 * float(rng.uniform(1.0, 3.0))
        eta = of.h / (2.0 * unit * np.sqrt(slow))
        shifts = (
            rng.exponential(1.0, arms) * 10.0 ** rng.uniform(-1.0, 2.0) * (rng.random(arms) < 0.7)
        )
        if late:
            shifts = (2.0 * arms) ** (1.0 / 3.0) + rng.exponential(2.0, arms)
            shifts[0] = 0.0
        span = unit * float(rng.choice([0.0, rng.random(), 1.0]))
        least = float(rng.uniform(0.0, 1.0 - span))
        weights = rng.dirichlet(np.full(of.policy.rung_count, 0.5))
        by_means = of.policy.rung_count - len(of.policy.rungs)
        leaders = [int(arm) for arm in rng.integers(arms, size=by_means)]
        rivals = leaders + leaders[1:]  # whose challengers there are; the recent leader has two
        others = [(arm + int(rng.integers(1, arms))) % arms for arm in rivals]
        moment = Moment(shifts / eta, eta, 3.0, 0 if late else int(rng.integers(arms)))
        losses = _drawn_around(rng, arms, least, span, unit)
        rungs = [eta * rate / of.policy.rungs[0] for rate in of.policy.rungs]
        yield LadderRound(
            moment, eta, least + span, losses, rungs=rungs, numbers=of, least=least, unit=unit, weights=weights,
            leaders=tuple(leaders), shown=shown_arms(leaders, others, weights[len(rungs) :], arms),
        )  # fmt: skip


def drawn_arrival(rng: np.random.Generator, at: LadderRound) -> tuple[LadderRound, Moment]:
    """The same state for a decision that was made in another one, and that state: near, far, or at a higher rate."""
    eta, shifts = at.moment.eta, at.moment.shifts
    far = rng.exponential(10.0 ** rng.uniform(-2.0, 1.0), at.moment.arms) * rng.choice(
        [0.0, 1.0, 1.0]
    )
    decided = Moment(
        (shifts * float(rng.choice([1.0, rng.uniform(1.0, 3.0)])) + far) / eta, eta, 3.0
    )
    return replace(at, kept=replace(at, moment=decided).p), decided


def _drawn_around(
    rng: np.random.Generator, arms: int, least: float, span: float, unit: float
) -> Floats:
    """Losses in [0, 1] of several kinds: among those seen, at the end of what is no record, or beyond all seen."""
    kinds: Floats = np.array([0.0, least, least + span, least + span + RECORD * unit, 1.0])
    kind = int(rng.integers(3))
    losses = (
        kinds[rng.integers(len(kinds), size=arms)]
        if kind
        else rng.uniform(least, least + span, arms)
    )
    if kind == 2:
        losses = np.full(arms, losses[0])
    return np.clip(losses, 0.0, 1.0)


def drawn_experts(rng: np.random.Generator) -> tuple[Floats, Floats, float]:
    """Losses of a few experts over 60 rounds, of any sign and range, a prior and L0."""
    experts = int(rng.integers(2, 5))
    scale = rng.exponential(1.0, (60, 1)) ** float(rng.integers(0, 4))
    losses: Floats = scale * rng.normal(rng.uniform(-0.5, 0.5, experts), 1.0, (60, experts))
    if rng.random() < 0.3:
        losses = np.abs(losses)
        losses[::2, 0] = 0.0
    return losses, rng.dirichlet(np.ones(experts)), float(rng.uniform(0.5, 5.0))


def _drawn_losses(rng: np.random.Generator, arms: int) -> Floats:
    kind = int(rng.integers(4))
    if kind == 3:
        return rng.random(arms)
    # All 0, all 1, or each one of the two.
    return np.full(arms, float(kind)) if kind < 2 else rng.integers(0, 2, arms).astype(np.float64)


def drawn_contexts(rng: np.random.Generator) -> Iterator[Sides]:
    """A random round of rungs of every kind, one of greedy regression, and a sequence for its forecaster."""
    arms, even = int(rng.integers(2, 9)), float(rng.uniform(0.05, 1.0))
    shifts = rng.exponential(1.0, (2, arms)) * 10.0 ** rng.uniform(-1.0, 2.0)
    by_gap, ranks = (1.0 + shifts[0] - shifts[0].min()) ** -2.0, 1.0 + shifts[0].argsort().argsort()
    q = np.minimum(by_gap, ranks ** (-2 / 3))
    two_best, other = (
        rng.multinomial(2, np.full(arms, 1.0 / arms)) / 2.0,
        rng.dirichlet(np.full(arms, 0.5)),
    )
    for segments in ((), ("s",)):
        policy = ContextualLadder(segments=segments, uniform_share=even)
        yield from contexts.shared_sides(q, two_best, other, policy, float(other[0]))
    explored = (1.0 - even) * other + even / arms
    leading = rng.integers(arms, size=3) if rng.random() < 0.5 else np.full(3, rng.integers(arms))
    chances = np.array(
        [
            [*(_drawn_chances(rng, each) for each in shifts), *np.eye(arms)[leading]]
            for _ in range(20)
        ]
    )
    weights, level = rng.dirichlet(np.full(5, 0.5)), float(rng.random())
    losses = _drawn_losses(rng, arms)
    yield from contexts.judged_sides(
        contexts.JudgedRound(chances, weights, explored, losses, level, even)
    )
    truth = _drawn_losses(rng, arms)
    noise = rng.normal(0.0, 10.0 ** rng.uniform(-2.0, 0.0), arms)
    yield from contexts.greedy_sides(truth, truth + noise, explored, even)
    # The least error with which greedy takes another arm: both are off by half of their gap.
    close = np.where(truth <= np.sort(truth)[1], np.sort(truth)[:2].mean(), truth)
    close[truth.argmin()] += 1e-12
    yield from contexts.greedy_sides(truth, close, explored, even)
    features = rng.normal(0.0, 1.0, (60, int(rng.integers(1, 5))))
    features /= np.maximum(np.linalg.norm(features, axis=1, keepdims=True), 1.0)
    yield from contexts.forecast_sides(
        features, rng.random(60).round(), float(rng.uniform(0.1, 5.0))
    )


def _drawn_chances(rng: np.random.Generator, shifts: Floats) -> Floats:
    """An unbiased estimate of each arm's chance to be the perturbed leader, from draws of the others."""
    draws = (1.0 - rng.random((len(shifts), len(shifts)))) ** (-1.0 / 3.0) - shifts
    np.fill_diagonal(draws, -np.inf)
    return np.asarray(np.maximum(draws.max(axis=1) + shifts, 1.0) ** -3.0)


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

"""Random rounds and sequences for the lemmas that no trajectory of the paper's policy reaches."""

from collections.abc import Iterator

import numpy as np

from ..base.arrays import Floats
from .bounds.gates import Gate
from .centred_round import CentredRound
from .inequality import Tally
from .lemmas import hedge, in_order, one_round, running_mean
from .moment import Moment
from .report import Report

_GATES = (Gate(), Gate(1.0, 0.25), Gate(2.0, 0.5))


def drawn_report(alpha: float, count: int, seed: int = 0) -> Report:
    """L5 and the steps of theorems C and E in random rounds, and L7 and L8 for random sequences, `count` of each."""
    rng = np.random.default_rng([seed, round(1e6 * alpha)])
    tally = Tally()
    for played in drawn_rounds(rng, alpha, count):
        tally.add(one_round.sides(played), played.moment)
    for _ in range(count):
        run = hedge.adahedge(*drawn_experts(rng))
        tally.add(hedge.sides(run), Moment(run.losses.sum(axis=0), 1.0, alpha))
        losses = rng.integers(0, 2, 200) if rng.random() < 0.5 else rng.beta(2.0, 5.0, 200)
        sequence = np.sort(losses.astype(np.float64)) if rng.random() < 0.5 else losses.astype(np.float64)
        tally.add(
            running_mean.sides(sequence, float(rng.uniform(0.01, 0.9))), Moment(np.zeros(2), 1.0, alpha)
        )
    return Report(in_order(tally))


def drawn_rounds(rng: np.random.Generator, alpha: float, count: int) -> Iterator[CentredRound]:
    """Rounds with gaps over several orders of magnitude, two to nine arms, and losses of several kinds.

    Every third is a late round on D_t, which random gaps seldom give.
    """
    for place in range(count):
        arms = int(rng.integers(2, 10))
        eta = 10.0 ** rng.uniform(-2.5, 0.5)
        gaps = rng.exponential(1.0, arms) * 10.0 ** rng.uniform(-1.0, 2.0) * (rng.random(arms) < 0.8)
        if place % 3 == 0:
            eta = 10.0 ** rng.uniform(-3.0, -2.0)
            gaps = (2.0 * arms) ** (1.0 / alpha) + rng.exponential(2.0, arms)
            gaps[0] = 0.0
        eps = eta / float(rng.choice([1.0, 2.0, 6.0]))
        losses = _drawn_losses(rng, arms)
        rungs = eta * np.concatenate(([1.0], 10.0 ** rng.uniform(0.0, 4.0, int(rng.integers(1, 4)))))
        gate = _GATES[int(rng.integers(len(_GATES)))]
        best = 0 if place % 3 == 0 else int(rng.integers(arms))
        moment = Moment(gaps / eta, eta, alpha, best)
        yield CentredRound(moment, eps, float(rng.uniform(0.05, 1.0)), losses, gate, rungs)


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
    losses: Floats = np.full(arms, float(kind)) if kind < 2 else rng.integers(0, 2, arms).astype(np.float64)
    return losses

"""Rounds of every kind, and what is bet on them by the definition."""

from typing import Any

import numpy as np

from decoupled.inference import Sequences
from decoupled.inference.sums import Observation
from decoupled.kernels.observed import BAND


def drawn(count: int, means: list[float], seed: int = 0) -> list[Observation]:
    """Rounds of every kind: with a law and without, among all arms and among some."""
    rng, arms, found = np.random.default_rng(seed), len(means), []
    for _ in range(count):
        some = np.sort(rng.choice(arms, size=int(rng.integers(2, arms + 1)), replace=False))
        law = np.zeros(arms)
        law[some] = 0.1 / len(some) + 0.9 * rng.dirichlet(np.ones(len(some)))
        explore = int(rng.choice(arms, p=law))
        loss = float(rng.random() < means[explore])
        available = None if len(some) == arms else tuple(some.tolist())
        known = law if rng.random() < 0.6 else None
        found.append(Observation(explore, 1.0 / float(law[explore]), loss, None, available, known))
    return found


def fed(seen: list[Observation], arms: int, **options: Any) -> Sequences:
    sequences = Sequences(arms, **options)
    for each in seen:
        if each.rho == 1.0:
            sequences.update(*each[:6])
        else:
            sequences.update(*each[:6], rho=each.rho, label=each.label)
    return sequences


def labelled(seen: list[Observation], share: float) -> list[Observation]:
    """The same rounds with estimates by a judge and labels, which a share of the later ones has, on
    the map from [1 - 1/share, 1/share].
    """
    rng, found, width = np.random.default_rng(1), [], 2.0 / share - 1.0
    for number, each in enumerate(seen):
        rho, expected = 1.0 if number < 50 else share, float(rng.random())
        wanted = rng.random() < rho
        estimate = expected + (each.loss - expected) / rho if wanted else expected
        label = each.loss if wanted and rho < 1.0 else None
        found.append(each._replace(loss=0.5 + (estimate - 0.5) / width, rho=rho, label=label))
    return found


def level_of(one: int, two: int, totals: list[float], counts: list[int]) -> float:
    """The running mean of the arm that was seen more often, drawn a little to one half."""
    arm = min(one, two) if counts[one] == counts[two] else max(one, two, key=counts.__getitem__)
    return min(max((totals[arm] + 0.5) / (counts[arm] + 1), 0.02), 0.98)


def bet_by_law(
    each: Observation, one: int, two: int, level: float, width: float
) -> tuple[float, float]:
    """What is bet on "arm one is worse" in a round with a law, and its weight: the largest at which
    no loss costs more than everything, found by trying the extreme ones.
    """
    assert each.law is not None
    rho, chances = each.rho, (float(each.law[one]), float(each.law[two]))
    low, high = max(level - BAND, 0.0), min(level + BAND, 1.0)

    def x_of(expected: float, label: float | None) -> float:
        clipped = min(max(expected, low), high)
        return clipped if label is None else clipped + (label - clipped) / rho

    extremes = [x_of(f, g) for f in (low, high) for g in (0.0, 1.0, None)]
    if rho == 1.0:
        extremes = [0.0, 1.0]
    worst = max(
        max(-rho * (x - level) / chances[0], rho * (x - level) / chances[1]) for x in extremes
    )
    weight = 1.0 / worst
    estimate = 0.5 + width * (each.loss - 0.5)
    if rho < 1.0:
        label = each.label
        expected = estimate
        if label is not None:
            expected = (estimate - label / rho) / (1.0 - 1.0 / rho)
        estimate = x_of(expected, label)
    sign = (each.explore == one) / chances[0] - (each.explore == two) / chances[1]
    return weight * rho * sign * (estimate - level), weight * rho


def parts(
    seen: list[Observation], one: int, two: int, width: float = 1.0
) -> tuple[list[float], list[float]]:
    """What is bet on "arm one is worse than arm two" in each round, and its weight, by the
    definition.
    """
    totals, counts = [0.0] * 3, [0] * 3
    bet_on, weights = [], []
    for each in seen:
        part = share = 0.0
        if each.law is not None:
            if each.law[one] > 0.0 and each.law[two] > 0.0:
                level = level_of(one, two, totals, counts)
                part, share = bet_by_law(each, one, two, level, width)
        elif each.available is None or {one, two} <= set(each.available):
            assert each.weight is not None
            share = 1.0 / (3 if each.available is None else len(each.available))
            part = share * (
                (each.explore == one) * each.weight * each.loss
                + (each.explore == two) * each.weight * (1.0 - each.loss)
                - 1.0
            )
            share /= width
        bet_on.append(part)
        weights.append(share)
        totals[each.explore] += 0.5 + width * (each.loss - 0.5)
        counts[each.explore] += 1
    return bet_on, weights

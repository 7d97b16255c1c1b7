"""How soon a verdict comes: arms that are out after so many rounds, on tables of scores and on
simple worlds.

The tables are read from the folder that DECOUPLED_DATA names, and are left out without it.
"""

import csv
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np

from decoupled.base import Floats
from decoupled.policies import Ladder

from .timing import Rate, Reading

LOOKS = (1_000, 3_000, 10_000)
EVERY = 25  # rounds between two looks whether all arms but one are out

# The losses of all arms in one round.
Losses: TypeAlias = Callable[[np.random.Generator], Floats]


class World(NamedTuple):
    """A world, and what is expected of it.

    Attributes:
        name: its name.
        arms: how many arms there are.
        losses: draws the losses of a round.
        least: the least mean number of arms that are out after each of `LOOKS`; 0 for no target.
        most: the most rounds, by the median, until all arms but one are out; 0 for no target.
    """

    name: str
    arms: int
    losses: Losses
    least: tuple[float, ...] = (0.0, 0.0, 0.0)
    most: float = 0.0


def zero_one(*means: float) -> Losses:
    """Losses of 0 and 1 with these means.

    >>> zero_one(0.0, 1.0)(np.random.default_rng(1)).tolist()
    [0.0, 1.0]
    """
    return lambda rng: (rng.random(len(means)) < np.array(means)).astype(np.float64)


def normal(deviation: float, *means: float) -> Losses:
    """Normal losses, cut off at 0 and 1."""
    return lambda rng: np.clip(rng.normal(means, deviation), 0.0, 1.0)


def rows_of(table: Floats) -> Losses:
    """Losses that are a random row of a table."""
    return lambda rng: np.asarray(table[rng.integers(len(table))])


def read_scores(path: Path) -> Floats:
    """People's losses: a row for each item that has all arms, and a column for each arm."""
    by_item: dict[str, dict[str, float]] = defaultdict(dict)
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            if row["human"]:
                by_item[row["item"]][row["arm"]] = float(row["human"])
    arms = sorted({arm for scores in by_item.values() for arm in scores})
    rows = [
        [scores[arm] for arm in arms] for scores in by_item.values() if len(scores) == len(arms)
    ]
    return np.array(rows)


def worlds() -> Iterator[World]:
    """The worlds, those with a table only where the table is."""
    folder = Path(os.environ.get("DECOUPLED_DATA", "no folder")) / "judges"
    summaries = folder / "summeval" / "summeval.csv"
    if summaries.exists():
        table = read_scores(summaries)
        least = (7.0, 9.0, 9.0)
        yield World("summaries, people's scores", table.shape[1], rows_of(table), least)
    translations = folder / "wmt21-zhen" / "wmt21-zhen.csv"
    if translations.exists():
        table = read_scores(translations)
        yield World("translation", table.shape[1], rows_of(table), (0.0, 0.0, 1.4))
    yield World("normal .45 .5 .55 .6 (.15)", 4, normal(0.15, 0.45, 0.5, 0.55, 0.6), most=600.0)
    yield World("0/1: .45 .35 .2", 3, zero_one(0.45, 0.35, 0.2), most=525.0)
    yield World("0/1: .5 .4", 2, zero_one(0.5, 0.4), most=550.0)
    yield World("0/1: .3 .25", 2, zero_one(0.3, 0.25))
    yield World("0/1: .02 .05 .03 .06", 4, zero_one(0.02, 0.05, 0.03, 0.06), (0.0, 1.1, 2.4))
    yield World("0/1: .3 and eleven of .4", 12, zero_one(0.3, *[0.4] * 11))


def played(
    world: World, seed: int, *, looks: Sequence[int] = LOOKS, drift: bool = True
) -> tuple[list[int], int]:
    """The arms that are out after each of `looks`, and the round in which all but one were.

    0 stands for a round that did not come.
    """
    rng = np.random.default_rng(seed)
    learner = Ladder().start(world.arms, seed=seed)
    learner.watch(drift=drift)
    counts = [0] * len(looks)
    all_out = 0
    for number in range(1, looks[-1] + 1):
        decision = learner.decide()
        losses = world.losses(rng)
        learner.observe(decision, loss=float(losses[int(decision.explore)]))
        if number in looks:
            counts[looks.index(number)] = len(learner.inference.verdict().out)
        if all_out == 0 and number % EVERY == 0 and world.most > 0.0:
            is_decided = len(learner.inference.verdict().left) <= 1
            all_out = number if is_decided else 0
            if is_decided:
                break
    return counts, all_out


def measure(repetitions: int = 20) -> Iterator[Rate | Reading]:
    """The mean number of arms that are out after each of `LOOKS`, or the median round in which all
    but one are.
    """
    for world in worlds():
        runs = [played(world, seed) for seed in range(repetitions)]
        if world.most > 0.0:
            decided = [all_out or 10 * LOOKS[-1] for _, all_out in runs]
            name = f"{world.name}: all out"
            yield Reading(name, float(np.median(decided)), "rounds", world.most)
            continue
        for place, rounds in enumerate(LOOKS):
            value = float(np.mean([counts[place] for counts, _ in runs]))
            name = f"{world.name}: out after {rounds:,}"
            yield Rate(name, value, f"of {world.arms - 1}", world.least[place])

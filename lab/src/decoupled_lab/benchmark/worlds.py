"""The worlds of the suite `decoupled-1`, frozen: an experiment of the reproduction may change, these may not.

Random numbers are made of PCG64's words, an order that NumPy never changes, and rounded to four digits, so that the last
digit of a processor's functions does not matter. Worlds of public data, which is not part of the package, come from a folder.
"""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from decoupled.base import Floats
from decoupled.environments import (
    AdaptiveAlternating,
    Alternating,
    Bernoulli,
    ContextTable,
    Environment,
    LossTable,
    PunishLast,
)
from decoupled.errors import ParameterError

SEED = 3701  # no value of a policy was chosen on it, but for the two of the memory of `Ladder`
DIGITS = 4
ROWS = 2_000  # of the made-up requests
SEGMENTS_OF_REQUESTS = 6

EASY = Bernoulli(rewards=(0.55, 0.6, 0.45, 0.3, 0.2))
HARD = Bernoulli(rewards=(0.905, 0.91, 0.89, 0.908, 0.88))
ALTERNATING = Alternating(arms=8, gap=0.125)


class Draws:
    """Random numbers that are the same everywhere."""

    def __init__(self, place: int) -> None:
        self._words = np.random.PCG64(np.random.SeedSequence((SEED, place)))

    def uniform(self, *shape: int) -> Floats:
        """Numbers in [0, 1)."""
        words = self._words.random_raw(int(np.prod(shape)))
        return np.asarray((words >> np.uint64(11)).reshape(shape) * 2.0**-53, np.float64)

    def between(self, low: float, high: float, *shape: int) -> Floats:
        """Numbers between two others."""
        return np.round(low + (high - low) * self.uniform(*shape), DIGITS)

    def number(self, low: float, high: float) -> float:
        """One number between two others."""
        return float(self.between(low, high, 1)[0])

    def ratio(self, low: float, high: float) -> float:
        """One number between two others, evenly on a logarithmic scale."""
        return round(float(low * (high / low) ** self.uniform(1)[0]), DIGITS)

    def whole(self, count: int, size: int) -> list[int]:
        """Whole numbers from 0 to `count` - 1."""
        return (count * self.uniform(size)).astype(int).tolist()  # type: ignore[no-any-return]

    def bell(self, width: float, *shape: int) -> Floats:
        """Numbers around 0 with this standard deviation: sums of twelve, which take no function of the processor."""
        return np.asarray(np.round(width * (self.uniform(*shape, 12).sum(axis=-1) - 6.0), DIGITS))

    def gaps(self, arms: int) -> Floats:
        """How much worse each arm is than the best: at least a least gap."""
        gaps = np.minimum(self.ratio(0.03, 0.3) * (1.0 + self.between(0.0, 2.0, arms)), 0.7)
        gaps[self.whole(arms, 1)[0]] = 0.0
        return np.asarray(np.round(gaps, DIGITS), np.float64)


def stochastic(draw: Draws, arms: int) -> Environment:
    """Fixed means."""
    gaps = draw.gaps(arms)
    return LossTable([np.round(draw.number(0.0, 1.0 - gaps.max()) + gaps, DIGITS)], [0])


def levels(draw: Draws, arms: int) -> Environment:
    """Constant gaps under a level that jumps after each stretch."""
    gaps = draw.gaps(arms)
    heights = draw.between(0.0, 1.0 - gaps.max(), 12, 1)
    stretch = int(draw.ratio(2.0, 400.0))
    return LossTable(np.round(heights + gaps, DIGITS), np.repeat(np.arange(12), stretch))


def alternating(draw: Draws, arms: int) -> Environment:
    """The paper's adversary with other gaps and phases."""
    return Alternating(arms, draw.ratio(0.04, 0.3), draw.number(1.2, 3.0))


def users(draw: Draws, arms: int) -> Environment:
    """Users with a level and tastes, each of whom comes for some rounds in a row."""
    worth, tastes = (
        draw.bell(draw.number(0.05, 0.2), arms),
        draw.bell(draw.number(0.05, 0.2), 60, arms),
    )
    rows = np.clip(draw.between(0.3, 0.7, 60, 1) + worth + tastes, 0.0, 1.0)
    visits = np.repeat(draw.whole(60, 600), int(draw.ratio(1.0, 20.0)))
    return LossTable(np.round(rows, DIGITS), visits)


def punishing(draw: Draws, arms: int) -> Environment:
    """The adversary that punishes what was exploited most."""
    level = draw.number(0.3, 0.8)
    window = (1, 5, 50)[draw.whole(3, 1)[0]]
    return PunishLast(arms, window, round(level * draw.number(0.05, 0.5), DIGITS), level)


def answering(draw: Draws, arms: int) -> Environment:
    """The adversary whose level answers what was exploited."""
    return AdaptiveAlternating(arms, draw.ratio(0.04, 0.3))


KINDS = (stochastic, levels, alternating, users, punishing, answering)
HELD_OUT_ARMS = (3, 12, 6, 24, 5, 10, 20, 7, 40, 3, 12, 6)  # twice through the kinds


def held_out() -> Iterator[tuple[str, Environment]]:
    """Two of each kind: neither tuned on nor looked at while the values of a policy were chosen."""
    for place, arms in enumerate(HELD_OUT_ARMS):
        kind = KINDS[place % len(KINDS)]
        yield f"held-out-{kind.__name__}-{arms}", kind(Draws(place), arms)


def late_bloomer(rounds: int, third: float) -> Environment:
    """Arm 1 costs more than the others for five sevenths of the rounds and nothing afterwards."""
    before = rounds * 10 // 14
    index = [0] * before + [1] * (rounds - before)
    return LossTable([[0.5, 0.6, third], [0.5, 0.0, third]], index, noise="none")


def redrawn(rounds: int) -> Environment:
    """Another of 16 arms is the best in each eighth of the rounds."""
    means = np.where(
        np.arange(16) == np.array([[3], [11], [0], [7], [14], [5], [9], [2]]), 0.3, 0.5
    )
    return LossTable(means, np.repeat(np.arange(8), -(-rounds // 8))[:rounds])


def requests(kind: str) -> ContextTable:
    """Made-up requests for three arms, with the columns `segment`, `band` and `x`, in another order in each run.

    Which arm is the best depends on the segment, on the number x, or on neither: then the columns tell nothing.
    """
    draw = Draws(("segments", "numbers", "noise").index(kind) + 100)
    segment, x = np.array(draw.whole(SEGMENTS_OF_REQUESTS, ROWS)), draw.between(-1.0, 1.0, ROWS)
    band = np.minimum((4.5 * (x + 1.0)).astype(int), 8)
    if kind == "segments":
        means = np.where(np.arange(3) == segment[:, None] % 3, 0.3, 0.5)
        against = ["segment"]
    elif kind == "numbers":
        means = np.stack([0.5 - 0.3 * x, 0.5 + 0.3 * x, np.full(ROWS, 0.42)], axis=1)
        against = ["band"]
    else:
        means, against = np.tile([0.5, 0.4, 0.5], (ROWS, 1)), []
    losses = (draw.uniform(ROWS, 3) < np.round(means, DIGITS)).astype(float)
    names = {"segment": [f"s{each}" for each in segment], "band": [f"b{each}" for each in band]}
    return ContextTable(losses, {**names, "x": x.tolist()}, against, order="shuffled")


PRICE = 0.1  # of the dear model's answer
# The tables that the suite means: a file of the same name with other values is refused.
RECORDED = {
    "chicago-forecast": "4da9dad5c2654ab27a6606ab1e42a7fa10e66a317e619841bc630afa05d121eb",
    "digits-01-x3": "de3d0e75ad39d27b9ce66584c6905294dbc9573dc974d5a6454da8a70755c0ab",
    "flights-carrier": "05287ff65e0e250f9ea7645840c12ad3ec1900b33dc0b8e408978ba3073d2d16",
    "phishing-01": "163fc40cb02c70898b0e92d2b183ea2fd6cfa7ca8ac055d23cc3a7e24c87834b",
}
MMLU = "ffa322279dab22917a77d2259bb15436a6dc71edb49b9496b3153d3ac720bed2"
# Arms and rounds, by which an entry is known to have played them.
SHAPES = {
    "chicago-forecast": (13, 5_298),
    "digits-01-x3": (16, 4_791),
    "flights-carrier": (9, 5_840),
    "phishing-01": (16, 1_150),
    "mmlu": (2, 6_000),
}


def recorded(folder: Path) -> Iterator[tuple[str, Environment, int]]:
    """The recorded tables in `folder`/real, in their order, and their rounds."""
    for name, digest in RECORDED.items():
        file = folder / "real" / f"{name}.npz"
        if file.is_file():
            with np.load(file) as kept:
                losses = np.asarray(kept["losses"], np.float64)
            _check(file, digest, losses)
            yield name, LossTable(losses, noise="none"), len(losses)


def mmlu(folder: Path) -> ContextTable | None:
    """Questions to a cheap and a dear model, with their subject and length: `folder`/context/mmlu.npz."""
    file = folder / "context" / "mmlu.npz"
    if not file.is_file():
        return None
    with np.load(file) as kept:
        wrong = np.asarray(kept["wrong"], np.float64)
        subject, length = kept["names"][kept["segment"]], np.asarray(kept["length"], np.int64)
    _check(file, MMLU, wrong, subject, length)
    bands = np.searchsorted(np.quantile(length, (1 / 3, 2 / 3)), length).tolist()
    columns = {
        "segment": subject.tolist(),
        "band": [f"b{each}" for each in bands],
        "x": length.tolist(),
    }
    losses = (wrong + np.array([0.0, PRICE])) / (1.0 + PRICE)
    return ContextTable(losses, columns, ["segment"], order="shuffled")


def _check(file: Path, digest: str, *columns: np.ndarray[Any, Any]) -> None:
    found = hashlib.sha256(json.dumps([each.tolist() for each in columns]).encode())
    if found.hexdigest() != digest:
        remedy = "leave out the folder, or take the suite's file"
        raise ParameterError(
            f"{file}: holds other values than the suite's, so entries could not be compared; {remedy}"
        )

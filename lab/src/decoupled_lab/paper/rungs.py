"""Beyond the paper: which rungs the ladder uses, where committing pays and where it is punished."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from decoupled.base import Floats, Ints
from decoupled.environments import Alternating
from decoupled.extend import diagnostics
from decoupled.plots import Panel, Picture, Series
from decoupled.policies import Ladder

from ..report.claims import Claim, judged_above, judged_below, mean_of
from ..report.section import Section
from .base import Advance, Recorded, Scale

RUNGS = ("slow: c = 0.5", "fast: c = 8", "the best mean")
ARMS, ROUNDS = 8, 3_000
BENIGN, PUNISHING = "alternating: committing pays", "punish last: committing is punished"

# From the round, the arm exploited last (-1 at first) and a random generator to the losses of all arms.
Losses: TypeAlias = Callable[[int, int, np.random.Generator], Floats]
ALTERNATING = Alternating(ARMS, gap=0.125).table(ROUNDS)


def alternating_losses(t: int, played: int, draw: np.random.Generator) -> Floats:
    """The losses of `Alternating(8, 0.125)`."""
    return np.asarray(draw.random(ARMS) < ALTERNATING.rows[ALTERNATING.row_at[t]], float)


def punishing_losses(t: int, played: int, draw: np.random.Generator) -> Floats:
    """The losses of `PunishLast(8)`."""
    losses = np.full(ARMS, 0.5)
    losses[0] = 0.45
    if played >= 0:
        losses[played] = 1.0
    return losses


WORLDS: dict[str, Losses] = {BENIGN: alternating_losses, PUNISHING: punishing_losses}


def marks() -> Ints:
    """The rounds after which weights are kept."""
    return np.unique(np.logspace(0, np.log10(ROUNDS), 60).round().astype(np.int64))


def weights_by_round(losses_after: Losses, seed: int) -> Floats:
    """The weights of the rungs after some of the rounds, marks x rungs; a simulation does not keep them."""
    learner, draw = Ladder().start(arms=ARMS, seed=seed), np.random.default_rng(seed)
    wanted, played, kept = set(marks().tolist()), -1, []
    for t in range(ROUNDS):
        losses = losses_after(t, played, draw)
        decision = learner.decide()
        played = int(decision.exploit or 0)  # the arms are numbers
        learner.observe(decision, loss=losses[int(decision.explore)])
        if t + 1 in wanted:
            inside = diagnostics(learner)
            kept.append([inside[f"rung_weight_{rung}"] for rung in range(len(RUNGS))])
    return np.array(kept)


class Rungs(Recorded):
    """Learners, one for each run, whose weights are read as they learn."""

    unit = "runs"

    def runs(self, scale: Scale) -> int:
        """A learner in Python takes longer than a simulation."""
        return scale.fewer(10)

    def units(self, scale: Scale) -> int:
        return len(WORLDS) * self.runs(scale)

    def record(self, scale: Scale, advance: Advance) -> dict[str, Any]:
        weights: dict[str, list[Any]] = {}
        for world, losses_after in WORLDS.items():
            weights[world] = []
            for run in range(self.runs(scale)):
                weights[world].append(weights_by_round(losses_after, scale.seed + run).tolist())
                advance(1)
        return {"weights": weights}

    def weights(self, folder: Path) -> dict[str, Floats]:
        """For each world, runs x marks x rungs."""
        return {world: np.array(each) for world, each in self.saved(folder)["weights"].items()}

    def extent(self, folder: Path) -> str:
        return f"{len(self.weights(folder)[BENIGN])} runs of {ROUNDS:,} rounds in each world."

    def section(self, folder: Path) -> Section:
        weights = self.weights(folder)
        rounds = marks().astype(float)
        panels = tuple(
            Panel(world, series(rounds, each), "round", "weight of the rung", log_x=True)
            for world, each in weights.items()
        )
        picture = Picture(
            "rungs",
            "Weights of the three rungs by round",
            f"Means of {len(weights[BENIGN])} runs with {ARMS} arms.",
            panels,
            columns=2,
        )
        text = (
            "The ladder exploits in three ways: a slow and a fast perturbed leader, and the arm with the smallest mean loss. It learns from the losses seen how often to use each. "
            "The slow rung hardly commits, which protects against an adversary that punishes committing. Where committing pays, the slow rung should lose its weight."
        )
        return Section(text, tuple(claims(weights)), (picture,))


def series(rounds: Floats, weights: Floats) -> tuple[Series, ...]:
    """A curve for each rung."""
    return tuple(
        Series(name, rounds, weights[:, :, rung].mean(axis=0), None, rung)
        for rung, name in enumerate(RUNGS)
    )


def claims(weights: dict[str, Floats]) -> list[Claim]:
    """The claims about the last round."""
    statistic = f"weight of the slow rung after {ROUNDS:,} rounds"
    slow = {world: mean_of(world, each[:, -1, 0]) for world, each in weights.items()}
    return [
        judged_below(
            "rungs-benign",
            "ours",
            "On alternating losses, the ladder stops using its slow rung.",
            statistic,
            [slow[BENIGN]],
            0.05,
        ),
        judged_above(
            "rungs-punished",
            "ours",
            "Against an adversary that punishes the arm exploited last, the ladder uses almost only its slow rung.",
            statistic,
            [slow[PUNISHING]],
            0.9,
        ),
    ]

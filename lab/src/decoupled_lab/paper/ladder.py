"""Beyond the paper: which rungs the ladder uses, and an arm that becomes good late."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from decoupled.base import Floats, Ints
from decoupled.environments import Alternating, LossTable
from decoupled.extend import diagnostics
from decoupled.plots import Panel, Picture, Series
from decoupled.policies import FTPL, Ladder, Policy
from decoupled.simulation import Plan, make_plan

from ..report.claims import Claim, Measure, mean_of
from ..report.page import Section
from .base import Advance, Recorded, Scale, Simulated, judge, told
from .setup import regret_picture, regret_table

# The names of the rungs here, and in what the learner tells of itself.
RUNGS = {
    "slow: c = 0.5": "0.5",
    "fast: c = 8": "8",
    "the best mean": "means",
    "the best recent mean": "recent",
}
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
            kept.append([inside[f"weight of {rung}"] for rung in RUNGS.values()])
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
        panels = []
        for world, each in weights.items():
            means = zip(RUNGS, each.mean(axis=0).T, strict=True)
            series = tuple(
                Series(name, rounds, mean, None, rung) for rung, (name, mean) in enumerate(means)
            )
            panels.append(Panel(world, series, y_label="weight of the rung", log_x=True))
        caption = f"Means of {len(weights[BENIGN])} runs with {ARMS} arms."
        picture = Picture(
            "rungs", "Weights of the rungs by round", caption, tuple(panels), columns=2
        )
        return Section(told("rungs"), tuple(claims(weights)), (picture,))


def claims(weights: dict[str, Floats]) -> list[Claim]:
    """The claims about the last round."""
    slow = {world: mean_of(world, each[:, -1, 0]) for world, each in weights.items()}
    return [judge("rungs-benign", [slow[BENIGN]]), judge("rungs-punished", [slow[PUNISHING]])]


BLOOMER_ARMS = 3
HORIZONS = (14_000, 56_000)
OURS, WITHOUT = Ladder(), Ladder(uniform_share=0.0)
BLOOMER_POLICIES: tuple[Policy, ...] = (FTPL(), OURS, WITHOUT)
BLOOMER_NAMES = {
    FTPL().label: "FTPL",
    OURS.label: "Ladder()",
    WITHOUT.label: "Ladder(uniform_share=0)",
}


def late_bloomer(horizon: int, third: float = 0.5) -> LossTable:
    """Arm 0 always costs 0.5 and arm 2 as much, or a little more; arm 1 costs 0.6 and, from horizon / 1.4 on, nothing.

    >>> late_bloomer(14).table(14).row_at.tolist()
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1]
    """
    good = horizon - horizon * 10 // 14
    index = [0] * (horizon - good) + [1] * good
    return LossTable([[0.5, 0.6, third], [0.5, 0.0, third]], index, noise="none")


class LateBloomer(Simulated):
    """The instance on which the ladder had linear regret before it explored all arms a little."""

    def plans(self, scale: Scale) -> dict[str, Plan]:
        thirds = {"": 0.5, ", third arm at 0.501": 0.501}
        return {
            f"T = {horizon:,}{name}": make_plan(
                BLOOMER_POLICIES,
                late_bloomer(horizon, third),
                horizon,
                scale.fewer(20),
                scale.seed,
                50,
            )
            for horizon in HORIZONS[: 1 if scale.quick else None]
            for name, third in thirds.items()
        }

    def section(self, folder: Path) -> Section:
        cells = self.results(folder)
        more = "Regret is against the best arm of all rounds."
        title = "An arm that becomes good late"
        picture = regret_picture("late-bloomer", title, cells, 2, names=BLOOMER_NAMES, more=more)

        def scaled(policy: Policy) -> list[Measure]:
            shares = {
                name: each.final_regret(policy) / np.sqrt(BLOOMER_ARMS * each.horizon)
                for name, each in cells.items()
            }
            return [mean_of(name, share, len(cells)) for name, share in shares.items()]

        # The ladder's regret against sqrt(KT), and what the uniform share is worth.
        claims = (
            judge("late-bloomer-mended", scaled(OURS)),
            judge("late-bloomer-share", scaled(WITHOUT)),
        )
        return Section(
            told("late-bloomer"), claims, (picture,), (regret_table(cells, BLOOMER_NAMES),)
        )

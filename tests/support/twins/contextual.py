"""The slow, obvious twin of the contextual ladder: every loss is kept in a list with its context.

Like the twin of the ladder, it takes from the learner what comes from hashed draws: the estimated losses of the ladders'
rungs, and which of (nearly) tied arms leads.
"""

import math
from collections.abc import Sequence
from statistics import fmean
from typing import Any

import numpy as np

import decoupled as dc
from decoupled.extend import diagnostics
from support.twins import Floats, Twin, twin_for
from support.twins.ladder import LadderTwin

PRIORS = {"pooled": 2.0, "segments": 1.0, "shrunk": 4.0, "linear": 2.0}


class PartTwin(LadderTwin):
    """A ladder whose arms are explored by a law that is not its own."""

    def __init__(self, arms: int, prefix: str) -> None:
        super().__init__(arms, dc.Ladder())
        self.prefix, self.law = prefix, np.zeros(arms)

    def tell(self, told: dict[str, float]) -> None:
        start = len(self.prefix)
        self.told = {
            name[start:]: each for name, each in told.items() if name.startswith(self.prefix)
        }

    def baseline(self, law: Floats | None = None) -> Floats:
        if not self.history:
            return np.zeros(len(self.law))
        if self.largest == 0:
            return np.full(len(self.law), self.mean)
        fall = (1 + self.eta * self.gaps()) / (2 * self.eta)
        b: Floats = np.minimum(self.mean, self.least + self.law * fall)
        return b

    def drift(self) -> float:
        b = self.baseline()
        return float(((b.max() - b) * self.surrogates() ** 2).sum())

    def learn_by(
        self, law: Floats, arm: int, weight: float, loss: float, told: dict[str, float]
    ) -> None:
        """Learn a loss; `told` is what the learner says of the update."""
        self.law, self.learner = law, self
        self.tell(told)
        b, drift = self.baseline(), self.drift()
        if (
            weight * law[arm] > 1 + 1e-9 and self.largest > 0
        ):  # a log may say that the arm was less likely
            fall = (1 + self.eta * self.gaps()[arm]) / (2 * self.eta)
            b[arm] = min(b[arm], self.least + fall / weight)
        self._learn(arm, weight, loss, b, drift)

    def _hedge_on(self, weight: float) -> None:
        steps = np.array([self.told[f"rung_step_{m}"] for m in range(len(self.rates))])
        weights = self.hedge()
        self.regret += hedge_gap(self.prior, self.rung_losses, steps, weights, self.regret, 3.0)
        self.rung_losses = self.rung_losses + steps


def hedge_gap(
    prior: Floats, losses: Floats, steps: Floats, weights: Floats, regret: float, hedge_rate: float
) -> float:
    """The mixability gap of a step of AdaHedge."""
    after = losses + steps
    if regret > 0:
        rate = hedge_rate / regret
        sums = [np.logaddexp.reduce(np.log(prior) - rate * (x - x.min())) for x in (losses, after)]
        mixed = float(after.min() - losses.min() - (sums[1] - sums[0]) / rate)
    else:
        mixed = float(after.min() - losses.min())
    return max(float(weights @ steps) - mixed, 0.0)


def fenced(values: list[float], recent: list[float]) -> Floats:
    """Values clipped to the quartiles of recent ones and three times their distance beyond."""
    low, high = np.sort(recent)[[len(recent) // 4, len(recent) - 1 - len(recent) // 4]]
    clipped: Floats = np.clip(values, low - 3 * (high - low), high + 3 * (high - low))
    return clipped


def moments(known: list[float]) -> tuple[float, float]:
    """The mean and the deviation of a number's values; those before the last thousand fade."""
    later = [fenced(known[k : k + 1], known[k - 15 : k + 1])[0] for k in range(16, len(known))]
    values = np.array([*fenced(known[:16], known[:16]), *later])
    steps = 1 / np.minimum(np.arange(1, len(values) + 1), 1000)
    weights = steps * np.append(np.cumprod((1 - steps[1:])[::-1])[::-1], 1.0)
    mean = float(weights @ values)
    return mean, math.sqrt(float(weights @ (values - mean) ** 2))


class ContextualTwin(Twin):
    """It is told the context of a round by `enter`; until then everything is missing."""

    def __init__(self, policy: Any, arms: int) -> None:
        super().__init__(arms)
        self.policy, self.rungs = policy, policy.rung_names
        self.pooled, self.by_segment = PartTwin(arms, ""), dict[Any, PartTwin]()
        self.serials = list(range(arms))
        self.history: list[tuple[Any, int, float]] = []  # segment, arm, loss
        self.said: list[
            tuple[float, float]
        ] = []  # what numbers made of a prediction, and what else was left
        self.rows: list[
            tuple[int, Floats, float]
        ] = []  # arm, coordinates, what the regression was to predict
        self.seen_numbers: list[list[float | None]] = []
        self.between: dict[Any, tuple[float, float, float]] = {}
        self.losses, self.regret = np.zeros(len(self.rungs)), 0.0
        self.learner: Any = None
        self.enter({}, {})

    def enter(self, context: dict[str, Any], advice: dict[str, Floats]) -> None:
        self.segment_name = tuple(context.get(name) for name in self.policy.segments)
        self.numbers = [context.get(name) for name in self.policy.all_numbers]
        self.advice = advice

    def follow(self, learner: Any) -> None:
        self.learner = learner
        self._listen()

    def _listen(self) -> None:
        if self.learner is not None:
            told = diagnostics(self.learner)
            self.told = told
            self.pooled.tell(told)
            self.segment.tell(told)

    @property
    def segment(self) -> PartTwin:
        return self.by_segment.setdefault(
            self.segment_name, PartTwin(len(self.estimates), "segment_")
        )

    @property
    def prior(self) -> Floats:
        """That of the ladder of all rounds is larger with more than two arms."""
        arms = len(self.estimates)
        prior: Floats = np.array(
            [
                PRIORS.get(name, 1.0) * (max(arms / 2, 1) if name == "pooled" else 1)
                for name in self.rungs
            ]
        )
        prior /= prior.sum()
        return prior

    # Rungs

    def losses_of(self, arm: int, segment: Any = None) -> list[float]:
        mine = self.serials[arm]
        return [x for name, each, x in self.history if each == mine and segment in (None, name)]

    def level(self) -> tuple[float, int]:
        """What the segment's losses differ from the arms' means, in the mean, and how many there are."""
        apart: list[float] = []
        for arm in range(len(self.serials)):
            if here := self.losses_of(arm, self.segment_name):
                mean = fmean(self.losses_of(arm))
                apart += [loss - mean for loss in here]
        return (fmean(apart) if apart else 0.0), len(apart)

    def components(self) -> tuple[float, float]:
        """The variances within and between segments."""
        cells: dict[Any, list[float]] = {}
        for name, arm, loss in self.history:
            cells.setdefault((name, arm), []).append(loss)
        free = len(self.history) - len(cells)
        noise = sum(len(x) * float(np.var(x)) for x in cells.values()) / free if free else 0.0
        squares, free_between, size = (
            sum(each[k] for each in self.between.values()) for k in range(3)
        )
        return noise, (max((squares - free_between * noise) / size, 0.0) if size > 0 else 0.0)

    def values(self) -> Floats:
        noise, variety = self.components()
        level, _ = self.level()
        found = np.empty(len(self.estimates))
        for arm in range(len(found)):
            mean = fmean(self.losses_of(arm)) if self.losses_of(arm) else self.pooled.mean
            here = self.losses_of(arm, self.segment_name)
            if here and variety > 0:
                apart = fmean(here) - mean - level
                mean += apart * len(here) * variety / (len(here) * variety + noise)
            found[arm] = mean
        return found

    def coordinates(self) -> Floats:
        found = [1.0]
        for place, number in enumerate(self.numbers):
            known = [float(row[place]) for row in self.seen_numbers if row[place] is not None]  # type: ignore[arg-type]
            scaled = 0.0
            if number is not None and known:
                mean, deviation = moments(known)
                apart = number - mean
                far = math.copysign(math.inf, apart) if apart else 0.0
                scaled = float(np.clip(apart / deviation if deviation > 0 else far, -5.0, 5.0))
            found.append(scaled)
        return np.array(found)

    def starting(self) -> Floats:
        return self.values() if self.policy.segments else np.full(len(self.estimates), 0.5)

    def predictions(self, trust: float | None = None) -> Floats:
        found, x = self.starting(), self.coordinates()
        x[1:] *= (self.trust() if self.policy.vectors else 1.0) if trust is None else trust
        for arm in range(len(found)):
            rows = [(z, y) for each, z, y in self.rows if each == self.serials[arm]]
            spread: Any = np.eye(len(x))
            coefficients: Floats = np.zeros(len(x))
            for z, y in rows:
                spread = np.linalg.inv(np.linalg.inv(spread) + np.outer(z, z))
                coefficients = coefficients + spread @ z * (y - z @ coefficients)
                spread = spread + 1e-7 * (np.eye(len(x)) - spread)
            found[arm] += x @ coefficients
        return found

    def trust(self) -> float:
        """The slope of what numbers left of losses on what they said of them, through the origin."""
        said, left = np.array(self.said or [(0.0, 0.0)]).T
        return float(np.clip(said @ left / (said @ said), 0, 1)) if said.any() else 0.0

    def leader(self, rung: int, values: Floats) -> Floats:
        arms = len(values)
        known = {arm: float(values[arm]) for arm in range(arms) if self.losses_of(arm)}
        if not known:
            return np.full(arms, 1 / arms)
        smallest = min(known.values())
        best = [arm for arm, value in known.items() if value <= smallest + 1e-9]
        told = int(self.told[f"outer_arm_{rung}"]) if self.learner is not None else best[0]
        law: Floats = np.eye(arms)[told if told in best else best[0]]
        return law

    def rung_law(self, rung: int) -> Floats:
        name = self.rungs[rung]
        if name == "segments":
            return self.segment.exploitation_law()
        if name in ("shrunk", "linear"):
            return self.leader(rung, self.values() if name == "shrunk" else self.predictions())
        return self.advice[name] if name in self.advice else self.pooled.exploitation_law()

    def weights(self) -> Floats:
        behind = self.losses - self.losses.min()
        rate = self.policy.hedge_rate / self.regret if self.regret > 0 else math.inf
        grown = np.where(behind == 0, 1.0, np.exp(-rate * np.maximum(behind, 1e-300)))
        law: Floats = self.prior * grown / (self.prior * grown).sum()
        return law

    def exploitation_law(self) -> Floats:
        laws = [self.rung_law(rung) for rung in range(len(self.rungs))]
        law: Floats = np.sum(self.weights()[:, None] * np.array(laws), axis=0)
        return law

    def exploration_law(self) -> Floats:
        law: Floats = self.pooled.exploration_law()
        earned = max(min(1, 2 / len(law)), 1 - self.weights()[0] / self.prior[0])
        if self.policy.segments:
            law = (1 - earned / 2) * law + earned / 2 * self.segment.exploration_law()
        even = self.policy.uniform_share * earned
        mixed: Floats = even / len(law) + (1 - even) * law
        return mixed

    # Learning

    def update(self, arm: int, weight: float, loss: float) -> None:
        told, law = diagnostics(self.learner), self.exploration_law()
        if self.history and len(self.rungs) > 1:
            surprise = weight * (loss - self.pooled.mean)
            steps = np.array([told[f"outer_step_{m}"] for m in range(len(self.rungs))])
            for rung, name in enumerate(self.rungs):
                if name in ("shrunk", "linear") or name in self.advice:
                    assert abs(steps[rung] - surprise * self.rung_law(rung)[arm]) < 1e-9
            self.regret += hedge_gap(
                self.prior, self.losses, steps, self.weights(), self.regret, self.policy.hedge_rate
            )
            self.losses = self.losses + steps
        if self.policy.all_numbers:
            level, count = self.level() if self.policy.segments else (0.0, 0)
            target = loss - level * count / (count + 2) - float(self.starting()[arm])
            bare, full = (self.predictions(trust)[arm] for trust in (0.0, 1.0))
            self.said.append((full - bare, target + float(self.starting()[arm]) - bare))
            self.rows.append((arm, self.coordinates(), target))
            self.seen_numbers.append(self.numbers)
        self.pooled.learn_by(law, arm, weight, loss, told)
        if self.policy.segments:
            self.segment.learn_by(law, arm, weight, loss, told)
        self.history.append((self.segment_name, arm, loss))
        level, _ = self.level()
        cells = {
            arm: np.array(self.losses_of(arm, self.segment_name))
            for arm in range(len(self.estimates))
            if self.losses_of(arm, self.segment_name)
        }
        apart = [
            len(x) * (x.mean() - np.mean(self.losses_of(i)) - level) ** 2 for i, x in cells.items()
        ]
        counts = np.array([len(x) for x in cells.values()])
        size = counts.sum() - (counts**2).sum() / counts.sum()
        self.between[self.segment_name] = (float(np.sum(apart)), len(cells) - 1.0, float(size))
        self.observations += 1
        self.estimates = self.pooled.estimates
        self._listen()

    def estimate_variance(self, losses: Floats) -> Floats:
        self.pooled.law = self.exploration_law()
        variance: Floats = (losses - self.pooled.baseline()) ** 2 * (1 / self.pooled.law - 1)
        return variance

    def restricted(self, places: Sequence[int]) -> Twin:
        part = super().restricted(places)
        assert isinstance(part, ContextualTwin)
        part.serials = [self.serials[place] for place in places]
        part.pooled = self.pooled.restricted(places)  # type: ignore[assignment]
        part.by_segment = {name: each.restricted(places) for name, each in self.by_segment.items()}  # type: ignore[misc]
        part.advice = {
            name: law[list(places)] / law[list(places)].sum() for name, law in self.advice.items()
        }
        part.learner = None
        return part


@twin_for("ContextualLadder")
def contextual_twin(policy: Any, arms: int) -> Twin:
    return ContextualTwin(policy, arms)

"""The slow, obvious twin of the ladder, from the definitions on the page "Beyond the paper".

Two things it takes from the learner that it follows, because they come from hashed draws: the rungs' estimated losses
(their law has tests of its own) and which of several tied arms leads by mean or challenges.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from support.twins import Floats, FTPLTwin, Twin, pareto_law_by_quad

SLACK = 0.1


class LadderTwin(FTPLTwin):
    """Every loss is kept in a list, and everything is worked out from the lists each time."""

    def __init__(self, arms: int, policy: Any) -> None:
        super().__init__(arms, policy.alpha, policy.c)
        self.policy = policy
        one = policy.c if policy.c_exploit is None else policy.c_exploit
        self.rates = [*(policy.rungs or (one,)), *(["means"] if policy.mix > 0 else [])]
        prior = np.array(policy.prior or [1.0] * len(self.rates))
        self.prior = prior / prior.sum()
        self.first = policy.start_at == "first"
        self.history: list[tuple[int, float, float]] = []  # arm, loss, and B at the time
        self.serials = list(range(arms))
        self.mean, self.spread, self.largest, self.least = 0.5, 0.0, 0.0, 0.0
        self.rung_losses = np.zeros(len(self.rates))
        self.regret = 0.0
        self.learner: Any = None
        self.told: dict[str, float] = {}

    def follow(self, learner: Any) -> None:
        self.learner = learner
        self.told = learner.diagnostics()  # of the state that the twin is in

    @property
    def eta(self) -> float:
        passed = float(self.round)
        if self.policy.schedule == "losses":
            unit = max(4 * self.largest**2, 1e-24) if self.first else 1.0
            passed = unit * (1 + self.policy.theta * (self.round - 1)) + self.spread
        return self.c * math.pow(self.problem_arms, 1 / self.alpha - 1 / 2) / math.sqrt(passed)

    def hedge(self) -> Floats:
        behind = self.rung_losses - self.rung_losses.min()
        if self.regret > 0:
            weights = self.prior * np.exp(-self.policy.boldness * behind / self.regret)
        else:
            weights = self.prior * (behind == 0)
        law: Floats = weights / weights.sum()
        return law

    def mixed(self) -> float:
        return float(self.policy.mix * max(self.hedge()[-1], self.policy.floor)) if self.policy.mix else 0.0

    # The two best arms

    def raw(self, arm: int) -> list[float]:
        return [loss for each, loss, _ in self.history if each == self.serials[arm]]

    def centred(self, arm: int) -> list[float]:
        return [loss - mean for each, loss, mean in self.history if each == self.serials[arm]]

    def prediction_errors(self) -> tuple[float, float]:
        raw_error = centred_error = 0.0
        raw: dict[int, list[float]] = {}
        centred: dict[int, list[float]] = {}
        for arm, loss, mean in self.history:
            if arm in raw:
                raw_error += float(loss - np.mean(raw[arm])) ** 2
                centred_error += float(loss - mean - np.mean(centred[arm])) ** 2
            raw.setdefault(arm, []).append(loss)
            centred.setdefault(arm, []).append(loss - mean)
        return raw_error, centred_error

    def two_best(self) -> tuple[int, int, list[int]]:
        """The leader, its challenger (-1 for none) and the unseen arms."""
        raw_error, centred_error = self.prediction_errors()
        close = abs(raw_error - centred_error) <= 1e-12 * (raw_error + centred_error)
        seen = self.raw if raw_error <= centred_error or close else self.centred
        arms = range(len(self.estimates))
        unseen = [arm for arm in arms if not self.raw(arm)]
        means = {arm: float(np.mean(seen(arm))) for arm in arms if arm not in unseen}
        if not means:
            return -1, -1, unseen
        told = self.told
        leader = self._settled(means, told.get("leader"))
        if unseen or len(means) == 1:
            return leader, -1, unseen
        deviation = math.sqrt(self.spread / 4 / max(len(self.history), 1))
        costs = {
            arm: (mean - means[leader] + SLACK * deviation) ** 2
            / (1 / len(self.raw(arm)) + 1 / len(self.raw(leader)))
            for arm, mean in means.items()
            if arm != leader
        }
        return leader, self._settled(costs, told.get("challenger")), unseen

    def _settled(self, values: dict[int, float], told: float | None) -> int:
        """The arm with the smallest value; of (nearly) tied ones, the learner's."""
        smallest = min(values.values())
        best = [arm for arm, value in values.items() if value <= smallest + 1e-12 * (1 + abs(smallest))]
        if told is not None and len(self.estimates) == self.problem_arms and int(told) in best:
            return int(told)
        return best[0]

    # Laws

    def exploration_law(self) -> Floats:
        q = self.surrogates()
        mixed = self.mixed()
        law: Floats = (1 - mixed) * q / q.sum()
        if mixed:
            leader, challenger, unseen = self.two_best()
            others = mixed
            if leader >= 0:
                law[leader] += mixed / 2
                others = mixed / 2
            if unseen:
                law[unseen] += others / len(unseen)
            else:
                law[leader if challenger < 0 else challenger] += others
        return law

    def rung_law(self, rate: Any) -> Floats:
        gaps = self.gaps()
        if rate == "means":
            leader = self.two_best()[0]
            everyone = np.full(len(gaps), 1 / len(gaps))
            return everyone if leader < 0 else np.eye(len(gaps))[leader]
        if rate >= 1e100:
            law: Floats = (gaps == 0) / np.count_nonzero(gaps == 0)
            return law
        return pareto_law_by_quad(self.eta * rate / self.c * gaps, self.alpha)

    def exploitation_law(self) -> Floats:
        pairs = zip(self.hedge(), self.rates, strict=True)
        law: Floats = np.sum([weight * self.rung_law(rate) for weight, rate in pairs], axis=0)
        return law

    # Learning

    def baseline(self) -> Floats:
        law, gaps = self.exploration_law(), self.gaps()
        first = self.rates[0] if self.rates[0] != "means" else self.c
        rate = self.eta * first / self.c
        if self.first and not self.history:
            return np.zeros(len(law))
        if self.first and self.largest == 0:
            return np.full(len(law), self.mean)
        b: Floats = np.minimum(self.mean, self.least + law * (1 + rate * gaps) / (2 * rate))
        return b

    def drift(self) -> float:
        """What the baselines lack, weighed by q^2; the highest counts the extra share of the two best, the sum does not."""
        q, gaps = self.surrogates(), self.gaps()
        rate = self.eta * self.rates[0] / self.c
        by_surrogate = np.full(len(q), self.mean)
        if not (self.first and self.largest == 0):
            share = (1 - self.mixed()) * q / q.sum()
            by_surrogate = np.minimum(self.mean, self.least + share * (1 + rate * gaps) / (2 * rate))
        return float(((self.baseline().max() - by_surrogate) * q**2).sum())

    def update(self, arm: int, weight: float, loss: float) -> None:
        self.learn(arm, weight, loss, self.baseline())

    def replay(self, arm: int, weight: float, loss: float) -> None:
        b = self.baseline()
        if not (self.first and self.largest == 0):
            rate = self.eta * self.rates[0] / self.c
            b[arm] = min(b[arm], self.least + (1 + rate * self.gaps()[arm]) / (2 * rate) / weight)
        self.learn(arm, weight, loss, b)

    def learn(self, arm: int, weight: float, loss: float, b: Floats) -> None:
        self._learn(arm, weight, loss, b)
        if self.learner is not None:
            self.told = self.learner.diagnostics()

    def _learn(self, arm: int, weight: float, loss: float, b: Floats) -> None:
        if self.first and not self.history:
            self.mean = self.least = loss
            self.history.append((self.serials[arm], loss, loss))
            self.observations += 1
            return
        drift = self.drift() * (min(1.0, 2 * self.largest) if self.first else 1.0)
        self._hedge_on(weight)
        estimate = b.copy()
        estimate[arm] += weight * (loss - b[arm])
        self.estimates = self.estimates + estimate
        self.spread += 4 * ((loss - b[arm]) ** 2 + drift * self.problem_arms ** (1 / self.alpha - 1))
        self.largest = max(self.largest, abs(loss - b[arm]))
        self.history.append((self.serials[arm], loss, self.mean))
        pace = self.policy.lam
        if self.first:
            self.least = min(self.least, loss)
            pace = max(pace, 1 / len(self.history))
        self.mean += pace * (loss - self.mean)
        self.observations += 1

    def _hedge_on(self, weight: float) -> None:
        if len(self.rates) == 1 or weight == 0 or self.learner is None:
            return
        told = self.learner.diagnostics()
        steps = np.array([told[f"rung_step_{m}"] for m in range(len(self.rates))])
        weights = self.hedge()
        if self.regret > 0:
            rate = self.policy.boldness / self.regret
            there = weights > 0
            least = steps[there].min()
            mixed = least - math.log((weights[there] * np.exp(-rate * (steps[there] - least))).sum()) / rate
        else:
            mixed = (self.rung_losses + steps).min() - self.rung_losses.min()
        self.regret += max(float(weights @ steps) - mixed, 0.0)
        self.rung_losses = self.rung_losses + steps

    def estimate_variance(self, losses: Floats) -> Floats:
        variance: Floats = (losses - self.baseline()) ** 2 * (1 / self.exploration_law() - 1)
        return variance

    def restricted(self, places: Sequence[int]) -> Twin:
        part = super().restricted(places)
        part.serials = [self.serials[place] for place in places]  # type: ignore[attr-defined]
        return part

"""The slow, obvious twin of the ladder, from the definitions on the page "Beyond the paper".

Two things it takes from the learner that it follows, because they come from hashed draws: the rungs' estimated losses
(their law has tests of its own) and which of several tied arms leads by mean or challenges. The recent memory is
discounted at once, arm by arm, where the policy has one factor for all.
"""

import math
from collections.abc import Sequence
from statistics import fmean
from typing import Any

import numpy as np

from decoupled.extend import diagnostics
from support.twins import Floats, Twin, twin_for
from support.twins.ftpl import FTPLTwin, pareto_law_by_quad

SLACK = 0.1
MARGIN = TRUST = 3.0
LEAST_WEIGHT = 0.1


class LadderTwin(FTPLTwin):
    """Every loss is kept in a list, and everything is worked out from the lists each time."""

    def __init__(self, arms: int, policy: Any) -> None:
        super().__init__(arms, 3.0, policy.rungs[0])
        self.policy = policy
        self.rates: list[Any] = [*policy.rungs, *(["means"] if policy.top_two_share > 0 else [])]
        prior = np.array(policy.prior or [1.0] * len(self.rates))
        prior = prior / prior.sum()
        self.remembers = policy.memory is not None and policy.top_two_share > 0
        if self.remembers:
            self.rates.append("recent")
            prior = np.append(prior, policy.memory_prior)
        self.prior = prior / prior.sum()
        # Of every arm: how much was seen of it of late, and the sums of its losses and of its centred losses.
        self.recent = np.zeros((arms, 3))
        self.errors = np.zeros(
            (2, 2)
        )  # of all means and of recent ones; of losses and of centred ones
        self.error_count = 0.0
        self.history: list[tuple[int, float, float]] = []  # arm, loss, and B at the time
        self.serials = list(range(arms))
        self.mean, self.largest, self.least = 0.5, 0.0, 0.0
        self.spread = self.spread_floor = 0.0
        self.rung_losses = np.zeros(len(self.rates))
        self.regret = 0.0
        self.learner: Any = None
        self.told: dict[str, float] = {}

    def follow(self, learner: Any) -> None:
        self.learner = learner
        self.told = diagnostics(learner)  # of the state that the twin is in

    @property
    def eta(self) -> float:
        passed = max(4 * self.largest**2, 1e-24) + self.spread + self.spread_floor
        return self.c * math.pow(self.problem_arms, 1 / self.alpha - 1 / 2) / math.sqrt(passed)

    def hedge(self) -> Floats:
        behind = self.rung_losses - self.rung_losses.min()
        if self.regret > 0:
            weights = self.prior * np.exp(-self.policy.hedge_rate * behind / self.regret)
        else:
            weights = self.prior * (behind == 0)
        law: Floats = weights / weights.sum()
        return law

    def mixed(self) -> float:
        share, floor = self.policy.top_two_share, self.policy.top_two_floor
        weights = [
            weight
            for weight, rate in zip(self.hedge(), self.rates, strict=True)
            if rate in ("means", "recent")
        ]
        return float(share * max(sum(weights), floor)) if share else 0.0

    # The two best arms

    def raw(self, arm: int) -> list[float]:
        serial = self.serials[arm]
        return [loss for each, loss, _ in self.history if each == serial]

    def centred(self, arm: int) -> list[float]:
        serial = self.serials[arm]
        return [loss - mean for each, loss, mean in self.history if each == serial]

    def prediction_errors(self) -> tuple[float, float]:
        raw_error = centred_error = 0.0
        raw: dict[int, list[float]] = {}
        centred: dict[int, list[float]] = {}
        for arm, loss, mean in self.history:
            if arm in raw:
                raw_error += (loss - fmean(raw[arm])) ** 2
                centred_error += (loss - mean - fmean(centred[arm])) ** 2
            raw.setdefault(arm, []).append(loss)
            centred.setdefault(arm, []).append(loss - mean)
        return raw_error, centred_error

    def two_best(self) -> tuple[int, int, list[int]]:
        """The leader, its challenger (-1 for none) and the unseen arms."""
        seen = self.centred if self.kind else self.raw
        arms = range(len(self.estimates))
        unseen = [arm for arm in arms if not self.raw(arm)]
        means = {arm: fmean(seen(arm)) for arm in arms if arm not in unseen}
        if not means:
            return -1, -1, unseen
        told = self.told
        leader = self._settled(means, told.get("leader"))
        if unseen or len(means) == 1:
            return leader, -1, unseen
        costs = {
            arm: (mean - means[leader] + self.slack) ** 2
            / (1 / len(self.raw(arm)) + 1 / len(self.raw(leader)))
            for arm, mean in means.items()
            if arm != leader
        }
        return leader, self._settled(costs, told.get("challenger")), unseen

    @property
    def slack(self) -> float:
        return SLACK * math.sqrt(self.spread / 4 / max(len(self.history), 1))

    @property
    def kind(self) -> int:
        """Which means have predicted better so far: of losses (0) or of centred ones (1)."""
        raw_error, centred_error = self.prediction_errors()
        close = abs(raw_error - centred_error) <= 1e-12 * (raw_error + centred_error)
        return 0 if raw_error <= centred_error or close else 1

    def recent_mean(self, arm: int, kind: int) -> float:
        weight, *sums = self.recent[self.serials[arm]]
        mean = fmean((self.raw, self.centred)[kind](arm))
        return float((sums[kind] + TRUST * mean) / (weight + TRUST))

    def recent_best(self) -> tuple[int, int, bool]:
        """The recent leader, the recent challenger, and whether the recent means are trusted."""
        leader, _, unseen = self.two_best()
        arms, kind = range(len(self.estimates)), self.kind
        if unseen or len(arms) == 1:
            return leader, -1, False
        past, recent = self.errors[:, kind]
        trusted = bool(recent + MARGIN * past / max(self.error_count, 1) < past)
        means = {arm: self.recent_mean(arm, kind) for arm in arms}
        if trusted:
            leader = self._settled(means, self.told.get("recent_leader"))
        weights = {arm: self.recent[self.serials[arm], 0] + LEAST_WEIGHT for arm in arms}
        costs = {
            arm: (max(means[arm] - means[leader], 0) + self.slack) ** 2
            / (1 / weights[arm] + 1 / weights[leader])
            for arm in arms
            if arm != leader
        }
        return leader, self._settled(costs, self.told.get("recent_challenger")), trusted

    def best_shares(self) -> Floats:
        """What the best arms are explored, together 1."""
        shares = np.zeros(len(self.estimates))
        leader, challenger, _ = self.two_best()
        if not self.remembers:
            shares[leader] += 0.5
            shares[challenger] += 0.5
            return shares
        recent, recent_challenger, trusted = self.recent_best()
        weights = dict(zip(map(str, self.rates), self.hedge(), strict=True))
        both = weights["means"] + weights["recent"]
        r = 0.25 + 0.5 * (weights["recent"] / both if both > 0 else 0)
        shares[leader] += (1 - r) / 2
        shares[recent] += r / 2
        shares[challenger] += 3 * (1 - r) / 8
        shares[recent_challenger if trusted else challenger] += 3 * r / 8
        shares[recent_challenger] += 1 / 8
        return shares

    def _settled(self, values: dict[int, float], told: float | None) -> int:
        """The arm with the smallest value; of (nearly) tied ones, the learner's."""
        smallest = min(values.values())
        best = [
            arm for arm, value in values.items() if value <= smallest + 1e-12 * (1 + abs(smallest))
        ]
        if told is not None and len(self.estimates) == self.problem_arms and int(told) in best:
            return int(told)
        return best[0]

    # Laws

    def exploration_law(self) -> Floats:
        q = self.surrogates()
        mixed = self.mixed()
        even = self.policy.uniform_share
        law: Floats = (1 - even) * (1 - mixed) * q / q.sum() + even / len(q)
        mixed *= 1 - even
        if mixed:
            leader, _, unseen = self.two_best()
            if len(q) == 1:
                law[0] += mixed
            elif unseen:
                law[unseen] += (mixed if leader < 0 else mixed / 2) / len(unseen)
                law[leader] += 0.0 if leader < 0 else mixed / 2
            else:
                law += mixed * self.best_shares()
        return law

    def rung_law(self, rate: Any) -> Floats:
        gaps = self.gaps()
        if rate in ("means", "recent"):
            leader = self.two_best()[0] if rate == "means" else self.recent_best()[0]
            return np.full(len(gaps), 1 / len(gaps)) if leader < 0 else np.eye(len(gaps))[leader]
        return pareto_law_by_quad(self.eta * rate / self.c * gaps, self.alpha)

    def exploitation_law(self) -> Floats:
        pairs = zip(self.hedge(), self.rates, strict=True)
        law: Floats = np.sum([weight * self.rung_law(rate) for weight, rate in pairs], axis=0)
        return law

    # Learning

    def baseline(self, law: Floats | None = None) -> Floats:
        """The soft gate, for the law by which a decision explored: that of this state, if none is given."""
        law, gaps = self.exploration_law() if law is None else law, self.gaps()
        if not self.history:
            return np.zeros(len(law))
        if self.largest == 0:
            return np.full(len(law), self.mean)
        b: Floats = np.minimum(self.mean, self.least + law * (1 + self.eta * gaps) / (2 * self.eta))
        return b

    def drift(self) -> float:
        """What the baselines lack, weighed by q^2; the highest counts the extra share of the two best, the sum does not."""
        q, gaps = self.surrogates(), self.gaps()
        by_surrogate = np.full(len(q), self.mean)
        if self.largest > 0:
            even = self.policy.uniform_share
            share = (1 - even) * (1 - self.mixed()) * q / q.sum() + even / len(q)
            by_surrogate = np.minimum(
                self.mean, self.least + share * (1 + self.eta * gaps) / (2 * self.eta)
            )
        return float(((self.baseline().max() - by_surrogate) * q**2).sum())

    def update(self, arm: int, weight: float, loss: float) -> None:
        self.learn(arm, weight, loss, self.baseline())

    def replay(self, arm: int, weight: float, loss: float) -> None:
        b = self.baseline()
        if self.largest > 0:
            fall = (1 + self.eta * self.gaps()[arm]) / (2 * self.eta)
            b[arm] = min(b[arm], self.least + fall / weight)
        self.learn(arm, weight, loss, b)

    def learn(self, arm: int, weight: float, loss: float, b: Floats) -> None:
        self._learn(arm, weight, loss, b, self.drift())
        if self.learner is not None:
            self.told = diagnostics(self.learner)

    def learn_late(
        self, arm: int, weight: float, loss: float, law: Floats, *, is_judged: bool
    ) -> None:
        """Learn the loss of a decision of an earlier state, which explored by this law.

        It judges the rungs unless it was made before the first loss.
        """
        b, q = self.baseline(law), self.surrogates()
        drift = float(((b.max() - b) * q**2).sum())
        self._learn(arm, weight, loss, b, drift, is_judged=is_judged)
        if self.learner is not None:
            self.told = diagnostics(self.learner)

    def remember(self, arm: int, loss: float, mean: float) -> None:
        if not self.remembers:
            return
        if self.raw(arm):
            kept = 1 - 1 / (5 * self.policy.memory)
            self.errors *= kept
            self.error_count = kept * self.error_count + 1
            for kind, told in enumerate((loss, loss - mean)):
                self.errors[0, kind] += (told - fmean((self.raw, self.centred)[kind](arm))) ** 2
                self.errors[1, kind] += (told - self.recent_mean(arm, kind)) ** 2
        self.recent = self.recent * (1 - 1 / self.policy.memory)
        self.recent[self.serials[arm]] += (1.0, loss, loss - mean)

    def _learn(
        self,
        arm: int,
        weight: float,
        loss: float,
        b: Floats,
        drift: float,
        *,
        is_judged: bool = True,
    ) -> None:
        self.remember(arm, loss, self.mean if self.history else loss)
        if not self.history:
            self.mean = self.least = loss
            self.history.append((self.serials[arm], loss, loss))
            self.observations += 1
            return
        drift *= min(1.0, 2 * self.largest)
        if is_judged:
            self._hedge_on(weight)
        estimate = b.copy()
        estimate[arm] += weight * (loss - b[arm])
        self.estimates = self.estimates + estimate
        self.spread += 4 * (
            (loss - b[arm]) ** 2 + drift * self.problem_arms ** (1 / self.alpha - 1)
        )
        surprise = abs(loss - b[arm])
        self.history.append((self.serials[arm], loss, self.mean))
        self.least = min(self.least, loss)
        self.mean += max(self.policy.mean_rate, 1 / len(self.history)) * (loss - self.mean)
        self.largest = max(self.largest, surprise, self.mean - self.least)
        self.spread_floor += 4 * self.policy.least_spread * self.largest**2
        self.observations += 1

    def _hedge_on(self, weight: float) -> None:
        if len(self.rates) == 1 or weight == 0 or self.learner is None:
            return
        told = diagnostics(self.learner)
        steps = np.array([told[f"rung_step_{m}"] for m in range(len(self.rates))])
        weights = self.hedge()
        if self.regret > 0:
            rate = self.policy.hedge_rate / self.regret
            before, after = self.rung_losses, self.rung_losses + steps
            sums = [
                np.logaddexp.reduce(np.log(self.prior) - rate * (each - each.min()))
                for each in (before, after)
            ]
            mixed = float(after.min() - before.min() - (sums[1] - sums[0]) / rate)
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


@twin_for("Ladder")
def ladder_twin(policy: Any, arms: int) -> Twin:
    return LadderTwin(arms, policy)

"""Top two: the published sampler under prompt feedback, and its counts under late feedback."""

import math
from typing import Any, cast

import numpy as np
import pytest

import decoupled as dc
from decoupled.extend import diagnostics
from decoupled.testing import state_of
from support.statistics import chi_square_p


def counts(learner: dc.Learner, name: str) -> list[Any]:
    """A learned row or square."""
    return cast(list[Any], state_of(learner)[name].tolist())


class Published:
    """EB-TC_eps as published, on rewards: one object that pulls arms, without a learner."""

    def __init__(self, arms: int, epsilon: float, beta: float) -> None:
        self.epsilon, self.beta = epsilon, beta
        self.pulls = np.zeros(arms, int)
        self.rewards = np.zeros(arms)
        self.met: dict[tuple[int, int], int] = {}
        self.challenger_pulled: dict[tuple[int, int], int] = {}

    def step(self) -> tuple[int, int]:
        """The leader and the arm to pull."""
        means = self.rewards / self.pulls
        leader = int(means.argmax())
        costs = (means[leader] - means + self.epsilon) / np.sqrt(
            1 / self.pulls[leader] + 1 / self.pulls
        )
        costs[leader] = math.inf
        pair = leader, int(costs.argmin())
        self.met[pair] = self.met.get(pair, 0) + 1
        if self.challenger_pulled.get(pair, 0) <= (1 - self.beta) * self.met[pair]:
            self.challenger_pulled[pair] = self.challenger_pulled.get(pair, 0) + 1
            return pair
        return leader, leader


@pytest.mark.parametrize(("epsilon", "beta"), [(0.1, 0.5), (0.01, 0.25)])
def test_with_prompt_feedback_it_is_the_published_sampler(epsilon: float, beta: float) -> None:
    # Losses of many digits, so that no two means or costs are equal.
    generator = np.random.default_rng(3)
    learner = dc.TopTwo(epsilon=epsilon, beta=beta).start(arms=6, seed=1)
    published = Published(6, epsilon, beta)
    for t in range(3000):
        decision = learner.decide()
        arm = cast(int, decision.explore)
        if t < 6:
            assert published.pulls[arm] == 0
        else:
            assert (decision.exploit, arm) == published.step()
        loss = float(np.clip(generator.normal(0.4 + 0.005 * arm, 0.2), 0, 1))
        learner.observe(decision, loss=loss)
        published.pulls[arm] += 1
        published.rewards[arm] += 1.0 - loss
    for (leader, challenger), met in published.met.items():
        assert counts(learner, "duels")[leader][challenger] == met
        pulled = published.challenger_pulled[leader, challenger]
        assert counts(learner, "challenger_explored")[leader][challenger] == pulled
    assert sum(map(sum, counts(learner, "duels"))) == 2994
    assert len(published.met) > 8  # the leader changed now and then


def started(losses: list[float]) -> dc.Learner:
    learner = dc.TopTwo().start(arms=len(losses), seed=0)
    learner.replay([(arm, 1.0, loss) for arm, loss in enumerate(losses)])
    return learner


def test_without_feedback_every_decision_explores_the_same_arm() -> None:
    learner = started([0.1, 0.2, 0.9])
    decisions = learner.decide(count=100)
    assert {(d.exploit, d.explore, d.weight, d.propensity) for d in decisions} == {(0, 1, 1.0, 1.0)}
    assert counts(learner, "duels") == [[0] * 3] * 3
    # False alarm: 1e-4. All losses are equal, so the leader is the arm seen first, and that is
    # random.
    leaders = []
    for seed in range(500):
        learner = dc.TopTwo().start(arms=5, seed=seed)
        for _ in range(9):
            learner.observe(learner.decide(), loss=0.5)
        leaders.append(learner.exploit().exploit)
    assert chi_square_p(np.bincount(cast(list[int], leaders), minlength=5), np.full(5, 0.2)) > 1e-4
    learner = dc.TopTwo().start(arms=5, seed=0)
    generator = np.random.default_rng(0)
    learner.replay([(int(generator.integers(5)), 0.2, generator.random()) for _ in range(2000)])
    duels, explored = (np.array(counts(learner, name)) for name in ("duels", "challenger_explored"))
    assert (explored <= duels).all()
    assert not duels.diagonal().any()
    assert sum(counts(learner, "counts")) == 2000
    assert learner.decide().propensity == 1.0


def test_late_observations_count_for_the_leader_at_their_arrival() -> None:
    learner = started([0.1, 0.2, 0.9])
    late = learner.decide(count=3)
    learner.observe(late[0], loss=0.2)  # arm 1, the challenger of arm 0
    assert counts(learner, "duels") == [[0, 1, 0], [0, 0, 0], [0, 0, 0]]
    assert counts(learner, "challenger_explored") == [[0, 1, 0], [0, 0, 0], [0, 0, 0]]
    learner.replay(
        [(0, 1.0, 1.0)] * 2
    )  # arm 0 observed twice: first as the leader, then as a rival
    assert learner.exploit().exploit == 1
    assert counts(learner, "duels") == [[0, 2, 0], [1, 0, 0], [0, 0, 0]]
    assert counts(learner, "challenger_explored") == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
    challenger = int(diagnostics(learner)["challenger"])
    learner.observe(late[1], loss=0.2)  # arm 1 was a challenger when it was chosen, and now leads
    assert counts(learner, "duels")[1][challenger] == 1 + (challenger == 0)
    assert counts(learner, "challenger_explored")[1] == [1, 0, 0]

"""A policy's step, decide and update: as a reader of the paper would write it in NumPy, and compiled, with its time."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from decoupled.base import Floats, Words
from decoupled.environments import Alternating
from decoupled.extend import State, Table, compiled, decide, new_stream, update
from decoupled.policies import Policy


class TextbookFTPL:
    """FTPL, with ranks from sorting each round or, if `improved`, from moving the one arm that changed."""

    def __init__(
        self, arms: int, alpha: float = 3.0, c: float = 2.0, improved: bool = False
    ) -> None:
        self.alpha, self.scale, self.improved = alpha, c * arms ** (1 / alpha - 0.5), improved
        self.estimates = np.zeros(arms)
        self.order = np.arange(arms)  # arms from the best to the worst
        self.t = 1

    def decide(self, rng: np.random.Generator) -> tuple[int, int, float]:
        """Return the arm to exploit, the arm to explore and its probability."""
        arms, eta = len(self.estimates), self.scale / np.sqrt(self.t)
        gaps = self.estimates - self.estimates.min()
        perturbations = (1.0 - rng.random(arms)) ** (-1 / self.alpha)
        exploit = int(np.argmin(gaps - perturbations / eta))
        if not self.improved:
            self.order = np.argsort(self.estimates)
        ranks = np.empty(arms)
        ranks[self.order] = np.arange(1, arms + 1)
        q = np.minimum(1.0 / (1.0 + eta * gaps), ranks ** (-1 / self.alpha)) ** (
            (self.alpha + 1) / 2
        )
        p = q / q.sum()
        explore = _draw(p, rng)
        return exploit, explore, float(p[explore])

    def learn(self, arm: int, probability: float, loss: float) -> None:
        """Add the importance-weighted loss; `improved` moves the arm to its new rank."""
        self.t += 1
        if not self.improved:
            self.estimates[arm] += loss / probability
            return
        ranked = self.estimates[self.order]
        old = int(np.searchsorted(ranked, self.estimates[arm]))
        while self.order[old] != arm:
            old += 1
        self.estimates[arm] += loss / probability
        new = int(np.searchsorted(ranked, self.estimates[arm])) - 1
        if new > old:
            self.order[old:new] = self.order[old + 1 : new + 1]
            self.order[new] = arm


class TextbookTsallis:
    """Decoupled Tsallis-INF by Newton's method, starting from the last solution.

    A step that would jump past the pole stops at the right end of the bracket. From there, Newton's method
    is monotone.
    """

    def __init__(self, arms: int, beta: float = 2 / 3, c: float = 2.0) -> None:
        self.beta, self.scale = beta, c * arms ** (0.5 - beta)
        self.estimates = np.zeros(arms)
        self.x = np.inf
        self.t = 1

    def weights(self, tolerance: float = 1e-10) -> Floats:
        """Solve sum w = 1, w = ((1 - beta) * eta * (L - x)) ** (-1 / (1 - beta))."""
        eta, power = self.scale / np.sqrt(self.t), 1 / (1 - self.beta)
        right = self.estimates.min() - power / eta  # where the best arm alone has weight 1
        x = min(self.x, right)
        for _ in range(100):
            w = (eta / power * (self.estimates - x)) ** -power
            excess = w.sum() - 1.0
            if abs(excess) < tolerance:
                break
            x = min(x - excess / (eta * (w ** (2 - self.beta)).sum()), right)
        self.x = x
        return np.asarray(w / w.sum())

    def decide(self, rng: np.random.Generator) -> tuple[int, int, float]:
        """Return the arm to exploit, the arm to explore and its probability."""
        w = self.weights()
        p = w ** (1 - self.beta / 2)
        p = p / p.sum()
        explore = _draw(p, rng)
        return _draw(w, rng), explore, float(p[explore])

    def learn(self, arm: int, probability: float, loss: float) -> None:
        """Add the importance-weighted loss."""
        self.t += 1
        self.estimates[arm] += loss / probability


def _draw(p: Floats, rng: np.random.Generator) -> int:
    return min(int(np.searchsorted(np.cumsum(p), rng.random())), len(p) - 1)


def play(policy: TextbookFTPL | TextbookTsallis, table: Table, rounds: int, seed: int) -> float:
    """Play on Bernoulli losses; return the loss suffered."""
    rng = np.random.default_rng(seed)
    suffered = 0.0
    for t in range(rounds):
        means = table.rows[table.row_at[t]]
        exploit, explore, probability = policy.decide(rng)
        policy.learn(explore, probability, float(rng.random() < means[explore]))
        suffered += means[exploit]
    return suffered


def lockstep_ftpl(
    table: Table, rounds: int, runs: int, seed: int, alpha: float = 3.0, c: float = 2.0
) -> Floats:
    """Play FTPL on Bernoulli losses; return the loss that each run suffered."""
    rng = np.random.default_rng(seed)
    arms = table.rows.shape[1]
    estimates = np.zeros((runs, arms))
    suffered = np.zeros(runs)
    every = np.arange(runs)
    limit = np.arange(1, arms + 1) ** (-(alpha + 1) / (2 * alpha))
    for t in range(1, rounds + 1):
        eta = c * arms ** (1 / alpha - 0.5) / np.sqrt(t)
        gaps = eta * (estimates - estimates.min(axis=1, keepdims=True))
        perturbations = (1.0 - rng.random((runs, arms))) ** (-1 / alpha)
        exploit = np.argmax(perturbations - gaps, axis=1)
        order = np.argsort(estimates, axis=1)
        q = np.minimum((1.0 + np.take_along_axis(gaps, order, 1)) ** (-(alpha + 1) / 2), limit)
        sums = np.cumsum(q, axis=1)
        targets = rng.random(runs) * sums[:, -1]
        rank = np.minimum((sums < targets[:, None]).sum(axis=1), arms - 1)
        explore = order[every, rank]
        means = table.rows[table.row_at[t - 1]]
        losses = rng.random(runs) < means[explore]
        estimates[every, explore] += losses * sums[:, -1] / q[every, rank]
        suffered += means[exploit]
    return suffered


@compiled
def further_rounds(params: Any, state: State, stream: Words, table: Table, luck: Floats) -> None:
    """Decide and update once for each number in `luck`, which determines the losses."""
    for t in range(len(luck)):
        _, explore, weight, _ = decide(params, state, stream)
        loss = 1.0 if luck[t] <= table.rows[table.row_at[t], explore] else 0.0
        update(params, state, explore, weight, loss)


def compiled_step(policy: Policy, arms: int, rounds: int, seed: int = 0) -> float:
    """Seconds per round of the compiled policy, on the paper's alternating environment."""
    learner, begin = _learner(policy, arms, seed)
    table, luck = _world(arms, rounds, seed)
    start = time.perf_counter()
    begin()
    further_rounds(*learner, table, luck)
    return (time.perf_counter() - start) / rounds


def running(policy: Policy, arms: int, rounds: int, seed: int = 0) -> Callable[[], None]:
    """A call that plays `rounds` more rounds; the first round, which sorts all arms, is already played."""
    learner, begin = _learner(policy, arms, seed)
    table, luck = _world(arms, rounds, seed)
    begin()
    further_rounds(*learner, table, luck[:1])
    return lambda: further_rounds(*learner, table, luck)


def textbook_step(policy: TextbookFTPL | TextbookTsallis, rounds: int, seed: int = 0) -> float:
    """Seconds per round of a policy written in plain NumPy, on the same environment."""
    table, luck = _world(len(policy.estimates), rounds, seed)
    losses = (luck[:, None] <= table.rows[table.row_at]).astype(float)
    rng = np.random.default_rng(seed)
    start = time.perf_counter()
    for t in range(rounds):
        _, explore, probability = policy.decide(rng)
        policy.learn(explore, probability, losses[t, explore])
    return (time.perf_counter() - start) / rounds


def _learner(
    policy: Policy, arms: int, seed: int
) -> tuple[tuple[Any, State, Words], Callable[[], None]]:
    """The arguments of `further_rounds`, and a call that makes the state a new one."""
    policy = policy.at(arms)
    init, values = policy.entries().init, policy.param_values()
    state, stream = policy.layout.new_state(arms), new_stream(np.random.SeedSequence(seed))
    return (policy.params(), state, stream), lambda: init(values, *state)


def _world(arms: int, rounds: int, seed: int) -> tuple[Table, Floats]:
    table = Alternating(arms=arms, gap=0.125).table(rounds)
    return table, 1.0 - np.random.default_rng(seed).random(rounds)

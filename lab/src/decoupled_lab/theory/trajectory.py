"""FTPL in an environment, one round at a time, with everything recorded."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from decoupled.base import Floats, Ints, Words
from decoupled.environments import Adversary, Environment
from decoupled.extend import BERNOULLI, draw_loss, fill_losses, new_stream, note_play
from decoupled.policies import FTPL

from .moment import Moment


@dataclass(frozen=True, eq=False)
class Trajectory:
    """A recorded run: row t - 1 belongs to round t, and estimates and rates have one extra row."""

    alpha: float
    estimates: Floats  # before each round, and after the last
    rates: Floats
    exploited: Ints
    explored: Ints
    weights: Floats
    losses: Floats  # observed
    means: Floats  # of every arm
    policy_law: Floats  # the policy's own exploration law

    @property
    def horizon(self) -> int:
        """The number of rounds played."""
        return len(self.explored)

    @property
    def best(self) -> int:
        """The best fixed arm by mean loss."""
        return int(np.argmin(self.means.sum(axis=0)))

    def moment(self, round_: int, zeta: float) -> Moment:
        """The state in round 1, 2, ..., horizon + 1."""
        place = round_ - 1
        return Moment(self.estimates[place], float(self.rates[place]), self.alpha, self.best, zeta, round_)


def run(policy: FTPL, environment: Environment, horizon: int, seed: int) -> Trajectory:
    """Play `horizon` rounds with the policy's own compiled functions."""
    arms = environment.arms
    policy = policy.at(arms)
    policy_seed, noise_seed = np.random.SeedSequence(seed).spawn(2)
    stream, noise, local = new_stream(policy_seed), new_stream(noise_seed), np.zeros(2, np.uint64)
    entries, params = policy.entries(), np.array(policy.params(), np.float64)
    state = policy.layout.new_state(arms)
    entries.init(params, *state)
    eta, estimates = policy.layout.row(state, "eta"), policy.layout.row(state, "estimates")
    world = World(environment, horizon)
    kept = Trajectory(
        policy.alpha,
        np.empty((horizon + 1, arms)),
        np.empty(horizon + 1),
        np.empty(horizon, np.int64),
        np.empty(horizon, np.int64),
        np.empty(horizon),
        np.empty(horizon),
        np.empty((horizon, arms)),
        np.empty((horizon, arms)),
    )
    for t in range(horizon):
        kept.estimates[t], kept.rates[t] = estimates, eta[0]
        kept.policy_law[t] = policy.exploration_law(state)
        kept.means[t] = world.means(t)
        exploit, explore, weight, _ = entries.decide(params, *state, stream)
        world.note(t, exploit)
        loss = world.draw(float(kept.means[t, explore]), noise, local)
        kept.exploited[t], kept.explored[t] = exploit, explore
        kept.weights[t], kept.losses[t] = weight, loss
        entries.update(params, *state, explore, weight, loss)
    kept.estimates[horizon], kept.rates[horizon] = estimates, eta[0]
    return kept


class World:
    """Mean losses round by round, from a table or an adaptive adversary."""

    means: Callable[[int], Floats]
    note: Callable[[int, int], None]

    def __init__(self, environment: Environment, horizon: int) -> None:
        self._kind, self._concentration = BERNOULLI, 1.0
        if isinstance(environment, Adversary):
            environment.prepare()
            params, memory, row = environment.params(), environment.memory(), np.empty(environment.arms)

            def means(t: int) -> Floats:
                fill_losses(params, memory, t, row)
                return row

            self.means, self.note = means, lambda t, exploit: note_play(params, memory, t, exploit)
            return
        table = environment.table(horizon)
        self._kind, self._concentration = table.noise, table.concentration
        self.means, self.note = lambda t: table.rows[table.row_at[t]], lambda t, exploit: None

    def draw(self, mean: float, noise: Words, local: Words) -> float:
        """A loss with this mean."""
        return draw_loss(self._kind, self._concentration, mean, noise, local)

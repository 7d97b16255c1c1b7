"""FTPL and `Ladder` in an environment, one round at a time with their own compiled functions, and everything recorded."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from decoupled.base import Floats, Ints, Words
from decoupled.environments import Adversary, Environment
from decoupled.extend import BERNOULLI, State, draw_loss, fill_losses, new_stream, note_play
from decoupled.policies import FTPL, Ladder
from decoupled.policies.ladder.state import START

from .bounds.ladder import ladder_numbers
from .moment import Moment
from .rounds import LadderRound, shown_arms


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
        return Moment(
            self.estimates[place], float(self.rates[place]), self.alpha, self.best, zeta, round_
        )


def run(policy: FTPL, environment: Environment, horizon: int, seed: int) -> Trajectory:
    """Play `horizon` rounds with the policy's own compiled functions."""
    arms = environment.arms
    policy = policy.at(arms)
    policy_seed, noise_seed = np.random.SeedSequence(seed).spawn(2)
    stream, noise, local = new_stream(policy_seed), new_stream(noise_seed), np.zeros(2, np.uint64)
    entries, params = policy.entries(), policy.param_values()
    state = policy.layout.new_state(arms)
    entries.init(params, *state)
    eta, estimates = policy.layout.row(state, "eta"), policy.layout.row(state, "estimates")
    world = world_of(environment, horizon)
    chosen, observed, by_arm = (
        np.empty((2, horizon), np.int64),
        np.empty((2, horizon)),
        np.empty((2, horizon, arms)),
    )
    states = np.empty((horizon + 1, arms)), np.empty(horizon + 1)
    kept = Trajectory(policy.alpha, *states, *chosen, *observed, *by_arm)
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


class World(NamedTuple):
    """An environment round by round: the means of a round, what to do once an arm is exploited there, and a loss by its mean."""

    means: Callable[[int], Floats]
    note: Callable[[int, int], None]
    draw: Callable[[float, Words, Words], float]


def world_of(environment: Environment, horizon: int) -> World:
    """A table, or an adaptive adversary, round by round."""
    if isinstance(environment, Adversary):
        environment.prepare()
        params, memory, row = environment.params(), environment.memory(), np.empty(environment.arms)

        def means(t: int) -> Floats:
            fill_losses(params, memory, t, row)
            return row

        return World(means, partial(note_play, params, memory), partial(draw_loss, BERNOULLI, 1.0))
    table = environment.table(horizon)
    draw = partial(draw_loss, table.noise, table.concentration)
    return World(lambda t: table.rows[table.row_at[t]], lambda t, exploit: None, draw)


ALPHA = 3.0


@dataclass(eq=False)
class LadderPath:
    """A recorded run: entry t of a list belongs to round t + 2, because the first loss only sets the level.

    Estimates, levels, units, counts and regrets have one more entry, for the state after the last round.
    """

    policy: Ladder
    rounds: list[LadderRound] = field(default_factory=list)
    laws: list[Floats] = field(default_factory=list)  # the policy's own exploration law
    baselines: list[Floats] = field(default_factory=list)  # and baselines
    explored: list[int] = field(default_factory=list)
    estimates: list[Floats] = field(default_factory=list)
    ranges: list[float] = field(default_factory=list)  # B - a
    units: list[float] = field(default_factory=list)
    counts: list[float] = field(default_factory=list)  # n
    rung_losses: list[Floats] = field(default_factory=list)
    regrets: list[float] = field(default_factory=list)  # Delta


def run_ladder(policy: Ladder, environment: Environment, horizon: int, seed: int) -> LadderPath:
    """Play `horizon` rounds after the first. All losses of a round are drawn before the policy decides."""
    arms = environment.arms
    ladder_numbers(arms, policy)  # is the theorem about it?
    entries = policy.entries()
    policy_seed, noise_seed = np.random.SeedSequence(seed).spawn(2)
    stream, noise, local = new_stream(policy_seed), new_stream(noise_seed), np.zeros(2, np.uint64)
    params, state = policy.param_values(), policy.layout.new_state(arms)
    entries.init(params, *state)
    world, path = world_of(environment, horizon + 1), LadderPath(policy)
    for t in range(horizon + 1):
        losses = np.array([world.draw(float(mean), noise, local) for mean in world.means(t)])
        if t:
            path.rounds.append(_view(policy, state, losses))
            path.laws.append(policy.exploration_law(state))
            path.baselines.append(policy.layout.row(state, "baseline").copy())
            _note(path, state)
        exploit, explore, weight, _ = entries.decide(params, *state, stream)
        world.note(t, exploit)
        if t:
            path.explored.append(int(explore))
        entries.update(params, *state, explore, weight, float(losses[explore]))
    _note(path, state)
    return path


def _note(path: LadderPath, state: State) -> None:
    """Record what the state has between two rounds."""
    one = _Scalars(path.policy, state)
    path.estimates.append(path.policy.layout.row(state, "estimates").copy())
    path.ranges.append(START + one["rise"] - one["least"])
    path.units.append(one["largest"])
    unit = max(4.0 * one["largest"] ** 2, 1e-24)
    path.counts.append(unit + one["spread"] + one["spread_floor"])
    path.rung_losses.append(one.rungs("rung_loss"))
    path.regrets.append(one["hedge_regret"])


def _view(policy: Ladder, state: State, losses: Floats) -> LadderRound:
    """The round that a state stands before, in the terms of the proof."""
    one, arms = _Scalars(policy, state), len(losses)
    eta, weights = one["eta"], one.rungs("rung_weight")
    rates = [eta * rate / policy.rungs[0] for rate in policy.rungs]
    leaders = [int(one[name]) for name in ("leader", "recent_leader")[: len(weights) - len(rates)]]
    unseen = policy.layout.row(state, "counts") == 0.0
    shown = np.zeros(arms)
    if (
        leaders and unseen.any()
    ):  # then these have the challengers' half, and both leaders are one arm
        shown = 0.5 * unseen / unseen.sum()
        shown[leaders[0]] += 0.5
    elif leaders:
        shown = shown_arms(leaders, _challengers(one, len(leaders)), weights[len(rates) :], arms)
    moment = Moment(
        policy.layout.row(state, "estimates").copy(), eta, ALPHA, round=int(one["round"])
    )
    return LadderRound(
        moment, eta, START + one["rise"], losses, rungs=rates, numbers=ladder_numbers(arms, policy),
        least=one["least"], unit=one["largest"], weights=weights, leaders=tuple(leaders), shown=shown,
    )  # fmt: skip


def _challengers(one: "_Scalars", leaders: int) -> list[int]:
    """The challenger of each leader, and the recent challenger if there are two."""
    if leaders == 1:
        return [int(one["challenger"])]
    kind = "raw" if one["raw_error"] <= one["centred_error"] else "centred"
    past, recent = one[f"past_{kind}_error"], one[f"recent_{kind}_error"]
    trusted = (
        recent + 3.0 * past / max(one["error_count"], 1.0) < past
    )  # the recent means predict better
    both = int(one["challenger"]), int(one["recent_challenger"])
    return [both[0], both[trusted], both[1]]


class _Scalars:
    """The numbers of a state by name."""

    def __init__(self, policy: Ladder, state: State) -> None:
        self._policy, self._state = policy, state

    def __getitem__(self, name: str) -> float:
        return float(self._policy.layout.row(self._state, name)[0])

    def rungs(self, name: str) -> Floats:
        return np.array([self[f"{name}_{rung}"] for rung in range(self._policy.rung_count)])

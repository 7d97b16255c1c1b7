"""`Ladder` in an environment, one round at a time with its own compiled functions, and everything recorded."""

from dataclasses import dataclass, field

import numpy as np

from decoupled.base import Floats
from decoupled.environments import Environment
from decoupled.extend import State, new_stream
from decoupled.kernels.compose import START
from decoupled.policies import Ladder

from .bounds.ladder import ladder_numbers
from .ladder_round import LadderRound
from .moment import Moment
from .trajectory import World

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
    params, state = np.array(policy.params(), np.float64), policy.layout.new_state(arms)
    entries.init(params, *state)
    world, path = World(environment, horizon + 1), LadderPath(policy)
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
    eta, leader = one["eta"], int(one["leader"])
    rates = [eta * rate / policy.rungs[0] for rate in policy.rungs]
    two_best = np.zeros(arms)
    if policy.top_two_share > 0.0:
        others = (
            policy.layout.row(state, "counts") == 0.0
        )  # unseen arms, and the challenger if there are none
        if not others.any():
            others[int(one["challenger"])] = True
        two_best = 0.5 * others / others.sum()
        two_best[leader] += 0.5
    moment = Moment(policy.layout.row(state, "estimates").copy(), eta, ALPHA, round=int(one["round"]))
    return LadderRound(
        moment,
        eta,
        START + one["rise"],
        losses,
        rungs=rates,
        numbers=ladder_numbers(arms, policy),
        least=one["least"],
        unit=one["largest"],
        weights=one.rungs("rung_weight"),
        two_best=two_best,
        leader=leader if policy.top_two_share > 0.0 else -1,
    )


class _Scalars:
    """The numbers of a state by name."""

    def __init__(self, policy: Ladder, state: State) -> None:
        self._policy, self._state = policy, state

    def __getitem__(self, name: str) -> float:
        return float(self._policy.layout.row(self._state, name)[0])

    def rungs(self, name: str) -> Floats:
        return np.array([self[f"{name}_{rung}"] for rung in range(self._policy.rung_count)])

"""A policy and an adversary as a user would write them in a script, which any device must run."""

from dataclasses import dataclass
from typing import NamedTuple

import decoupled as dc
from decoupled.base.arrays import Floats, Words
from decoupled.kernels.dispatch import AdversaryFunctions, Functions, Memory
from decoupled.kernels.jit import compiled
from decoupled.kernels.random.stream import below, uniform
from decoupled.kernels.state import Layout, State


class GreedyParams(NamedTuple):
    epsilon: float


@compiled
def init(params: GreedyParams, state: State) -> None:
    pass


@compiled
def decide(params: GreedyParams, state: State, stream: Words) -> tuple[int, int, float, float]:
    sums, arms = state.floats[0], state.floats.shape[1]
    best = 0
    for arm in range(arms):
        if sums[arm] < sums[best]:
            best = arm
    exploit = below(arms, stream) if uniform(stream) < params.epsilon else best
    return exploit, below(arms, stream), float(arms), 1.0 / arms


@compiled
def update(params: GreedyParams, state: State, arm: int, weight: float, loss: float) -> None:
    state.floats[0, arm] += weight * loss
    state.ints[0, arm] += 1


@dataclass(frozen=True)
class ScriptedGreedy(dc.Policy):
    """Exploit the least estimate, but with probability epsilon any arm."""

    epsilon: float = 0.1

    layout = Layout(floats=("estimates",), ints=("seen",), learned=("estimates", "seen"))
    params_type = GreedyParams
    functions = Functions(init, decide, update)


class GrudgeParams(NamedTuple):
    price: float


@compiled
def losses(params: GrudgeParams, memory: Memory, t: int, out: Floats) -> None:
    for arm in range(len(out)):
        out[arm] = min(1.0, params.price * memory.floats[arm])


@compiled
def note(params: GrudgeParams, memory: Memory, t: int, exploit: int) -> None:
    for arm in range(len(memory.floats)):
        memory.floats[arm] *= 0.9
    memory.floats[exploit] += 1.0


@dataclass(frozen=True)
class ScriptedGrudge(dc.environments.Adversary):
    """An arm costs more the more often it was recently exploited."""

    arms: int
    price: float = 0.1

    params_type = GrudgeParams
    functions = AdversaryFunctions(losses, note)

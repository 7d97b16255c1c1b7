"""Measures the table of late feedback in `ladder-proof.md`: `python docs/tools/measure.py late`."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import regrets

import decoupled as dc
from decoupled.base.arrays import Floats

POLICIES: dict[str, dc.Policy] = {
    "recommended": dc.Ladder(),
    "ftpl": dc.FTPL(),
    "tsallis": dc.TsallisINF(),
}
DELAYS: dict[str, Any] = {
    "0": 0,
    "40": 40,
    "200": 200,
    "geometric": ("geometric", 40),
}
BENIGN = {name: regrets.INSTANCES[name] for name in ("alternating", "easy")}
BENIGN_RUNS = 400
CHASED, CHASED_ROUNDS, CHASED_RUNS = "chased", 16_000, 20


def chased(policy: dc.Policy, delay: Any, seed: int) -> float:
    """The regret of a run in which the leader costs 1, and the other of two arms nothing.

    The leader has the smaller mean of the losses that have arrived; of equal arms, it is the last leader.
    """
    learner, draw = policy.start(arms=2, seed=seed), np.random.default_rng(seed)
    if isinstance(delay, tuple):
        delays = draw.geometric(1.0 / (1.0 + delay[1]), CHASED_ROUNDS) - 1
    else:
        delays = np.full(CHASED_ROUNDS, delay)
    due: dict[int, list[tuple[dc.Decision, float]]] = defaultdict(list)
    means, counts, costs = [0.0, 0.0], [0, 0], [0, 0]
    suffered = leader = 0
    for t, late in enumerate(delays.tolist()):
        if means[1 - leader] < means[leader]:
            leader = 1 - leader
        decision = learner.decide()
        suffered += decision.exploit == leader
        costs[leader] += 1
        due[t + late].append((decision, float(decision.explore == leader)))
        for early, loss in due.pop(t, ()):
            learner.observe(early, loss=loss)
            arm = int(early.explore)
            counts[arm] += 1
            means[arm] += (loss - means[arm]) / counts[arm]
    return float(suffered - min(costs))


def finals(world: str, policy: dc.Policy, delay: Any) -> Floats:
    """The regret of every run."""
    if world == CHASED:
        return np.array([chased(policy, delay, seed) for seed in range(CHASED_RUNS)])
    return regrets.finals(world, policy, BENIGN_RUNS, traffic=dc.Traffic(delay=delay))


def measure() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every record of this group."""
    for world in (CHASED, *BENIGN):
        label = "two arms of which the leader costs 1" if world == CHASED else BENIGN[world].label
        for kind, delay in DELAYS.items():
            for name, policy in POLICIES.items():
                what = f"{policy.label} on {label} with delay={delay}"
                record = regrets.mean_record(finals(world, policy, delay), what)
                print(world, kind, name, round(record["value"]), flush=True)
                yield f"late.{world}.{kind}.{name}", record

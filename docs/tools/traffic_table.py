"""Simulates the tables of real traffic in `simulation.md`: `python docs/tools/measure.py traffic`.

The tables take their direct feedback from the group `regret`, which has the same runs.
"""

from collections.abc import Iterator
from typing import Any

import regrets

import decoupled as dc
from decoupled.base.arrays import Floats
from decoupled.report.claims import mean_of

WORLDS = {name: regrets.INSTANCES[name] for name in ("alternating", "easy")}
POLICIES = {name: regrets.CONTENDERS[name] for name in ("ftpl", "recommended", "exp3", "tsallis")}
TRAFFIC: dict[str, dict[str, Any]] = {
    "direct": {},
    "delay": {"delay": 100},
    "geometric": {"delay": ("geometric", 100)},
    "missing": {"missing": 0.5},
    "slice": {"slice": 0.05},
    "noise": {"reported": ("noise", 0.5)},
    "flip": {"reported": ("flip", 0.2)},
}


def finals(world: str, kind: str, runs: int = regrets.RUNS) -> dict[str, Floats]:
    """The regret of every run, by policy."""
    policies, how = list(POLICIES.values()), TRAFFIC[kind]
    results = dc.simulate(
        policies,
        WORLDS[world],
        regrets.ROUNDS,
        runs,
        seed=regrets.SEED,
        checkpoints=1,
        traffic=dc.Traffic(**how),
    )
    return {name: results.final_regret(policy) for name, policy in POLICIES.items()}


def measure(runs: int = regrets.RUNS) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every record of this group."""
    more: dict[str, list[float]] = {"missing": [], "delay": []}
    for world in WORLDS:
        direct: dict[str, Floats] = {}
        for kind in TRAFFIC:
            found = finals(world, kind, runs)
            direct = direct or found
            for name, regret in found.items():
                if kind in more and (kind == "missing" or name == "recommended"):
                    more[kind].append(round(float(regret.mean() / direct[name].mean()), 1))
                if kind != "direct":
                    yield f"traffic.{world}.{kind}.{name}", _of(regret, name, world, kind)
    for kind, ratios in more.items():
        yield f"traffic.{kind}", {"low": min(ratios), "high": max(ratios), "unit": "ratio"}


def _of(regret: Floats, name: str, world: str, kind: str) -> dict[str, Any]:
    mean = mean_of("", regret)
    what = f"mean regret of {POLICIES[name].label} on {WORLDS[world].label} with {TRAFFIC[kind]}"
    ends = {"value": mean.value, "low": mean.low, "high": mean.high}
    return {**ends, "unit": "regret", "what": what, "decimals": 0}

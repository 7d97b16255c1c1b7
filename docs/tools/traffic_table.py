"""Simulates the tables of real traffic in `simulation.md`: `python docs/tools/measure.py traffic`.

The tables take their direct feedback from the group `regret`, which has the same runs.
"""

from collections.abc import Iterator
from typing import Any

import regrets

import decoupled as dc
from decoupled.base.arrays import Floats

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
    traffic = dc.Traffic(**TRAFFIC[kind])
    return {name: regrets.finals(world, policy, runs, traffic=traffic) for name, policy in POLICIES.items()}


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
                    what = f"{POLICIES[name].label} on {WORLDS[world].label} with {TRAFFIC[kind]}"
                    yield f"traffic.{world}.{kind}.{name}", regrets.mean_record(regret, what)
    for kind, ratios in more.items():
        yield f"traffic.{kind}", {"low": min(ratios), "high": max(ratios), "unit": "ratio"}

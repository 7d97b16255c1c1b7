"""Measures the tables of real traffic in `simulation.md`.

python docs/tools/traffic_table.py              # about two minutes on two cores
python docs/tools/traffic_table.py --runs 100
"""

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np

import decoupled as dc

ROUNDS = 10_000
WORLDS: dict[str, dc.environments.Environment] = {
    "alternating K = 8, gap 0.125": dc.environments.Alternating(arms=8, gap=0.125),
    "stochastic mu1": dc.environments.Bernoulli(rewards=[0.55, 0.6, 0.45, 0.3, 0.2]),
}
POLICIES = {
    "`FTPL()`": dc.FTPL(),
    "`FTPL.recommended()`": dc.FTPL.recommended(),
    "`Exp3()`": dc.Exp3(),
    "`TsallisINF()`": dc.TsallisINF(),
}
TRAFFIC: dict[str, dict[str, Any]] = {
    "direct": {},
    "`delay=100`": {"delay": 100},
    '`delay=("geometric", 100)`': {"delay": ("geometric", 100)},
    "`missing=0.5`": {"missing": 0.5},
    "`slice=0.05`": {"slice": 0.05},
    '`reported=("noise", 0.5)`': {"reported": ("noise", 0.5)},
    '`reported=("flip", 0.2)`': {"reported": ("flip", 0.2)},
}


def rows(world: dc.environments.Environment, runs: int) -> Iterator[tuple[str, list[str]]]:
    """A row for each kind of traffic: mean regret and the half-width of its 95 % interval, for each policy."""
    for name, how in TRAFFIC.items():
        results = dc.simulate(list(POLICIES.values()), world, ROUNDS, runs, seed=0, checkpoints=1, **how)
        cells = []
        for policy in POLICIES.values():
            regret = results.final_regret(policy)
            half = 1.96 * regret.std(ddof=1) / np.sqrt(runs)
            cells.append(f"{regret.mean():,.0f} ± {half:,.0f}")
        yield name, cells


def main() -> None:
    """Print both tables in Markdown."""
    parser = argparse.ArgumentParser(description="The tables of real traffic in simulation.md.")
    parser.add_argument("--runs", type=int, default=1_000)
    runs = parser.parse_args().runs
    for title, world in WORLDS.items():
        print(f"\n| {title} | {' | '.join(POLICIES)} |\n|{'---|' * (1 + len(POLICIES))}")
        for name, cells in rows(world, runs):
            print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()

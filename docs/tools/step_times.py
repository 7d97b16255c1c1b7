"""Times the compiled step of every policy, `decide` and `update`, for the table of `choosing.md`."""

import statistics
from collections.abc import Iterator
from typing import Any

import regrets

from decoupled.policies import Policy
from decoupled_lab.bench.steps import compiled_step

ROUNDS = {8: 20_000, 64: 5_000}
POLICIES: dict[str, Policy] = {
    **{name: regrets.CONTENDERS[name] for name in ("recommended", "ftpl", "tsallis", "exp3", "leader")},
    **regrets.COMPARED,
}


def measure(repetitions: int = 9) -> Iterator[tuple[str, dict[str, Any]]]:
    """Microseconds of a step: medians of interleaved repetitions, after one that is not counted."""
    for arms, rounds in ROUNDS.items():
        times: dict[str, list[float]] = {name: [] for name in POLICIES}
        for turn in range(1 + repetitions):
            for name, policy in POLICIES.items():
                seconds = compiled_step(policy, arms, rounds)
                times[name] += [seconds] * (turn > 0)
        for name, found in times.items():
            what = f"the policy's own step, decide and update, of {POLICIES[name].label} with {arms} arms"
            value = float(f"{1e6 * statistics.median(found):.2g}")
            yield f"steps.{name}.{arms}", {"value": value, "unit": "µs", "what": what}

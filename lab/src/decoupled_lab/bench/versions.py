"""Times two versions of the package in turn: this one, and the checkout that `--against` names."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from decoupled.errors import ParameterError, UnsupportedError

from .timing import Ratio

ROUNDS = 10_000
CASES = [(p, k) for p in ("FTPL()", "Ladder()", "TsallisINF()", "Exp3()") for k in (8, 64)]

# It uses only what every version has had under the same name, and reports processor time, which a loaded
# machine disturbs less than the clock on the wall.
WORKER = """
import json, sys, time
import decoupled as dc
for line in sys.stdin:
    task = json.loads(line)
    policy = eval(f"dc.{task['policy']}")
    world = dc.environments.Alternating(arms=task["arms"], gap=0.125)
    begun = time.process_time()
    result = dc.simulate(policy, world, task["rounds"], task["runs"], seed=0, workers=1, checkpoints=1)
    print(json.dumps([time.process_time() - begun, float(result.data.final_regret.mean())]), flush=True)
"""


class Timing(NamedTuple):
    """The processor time of some runs, and their mean regret."""

    seconds: float
    regret: float


class Version:
    """A process that simulates with the package of one checkout."""

    def __init__(self, checkout: Path) -> None:
        self._checkout = checkout
        environment = {**os.environ, "PYTHONPATH": str(checkout / "core/src")}
        self._process = subprocess.Popen(
            [sys.executable, "-c", WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )

    def run(self, policy: str, arms: int, runs: int) -> Timing:
        """Time `runs` runs of a policy."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        task = {"policy": policy, "arms": arms, "rounds": ROUNDS, "runs": runs}
        self._process.stdin.write(json.dumps(task) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise UnsupportedError(f"{self._checkout}: {policy} could not be simulated; its error is above")
        return Timing(*json.loads(answer))

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def measure(against: Path, repetitions: int = 15) -> Iterator[Ratio]:
    """One line for each policy and number of arms; a ratio above 1 means that this version is faster."""
    if not (against / "core/src/decoupled/__init__.py").is_file():
        rule = "is not a checkout of decoupled"
        raise ParameterError.of("--against", str(against), rule, "try one made by git worktree add")
    this, other = Version(Path(__file__).parents[4]), Version(against.resolve())
    try:
        for policy, arms in CASES:
            yield _race(this, other, policy, arms, repetitions)
    finally:
        this.close()
        other.close()


def _race(this: Version, other: Version, policy: str, arms: int, repetitions: int) -> Ratio:
    runs = max(1, 12_000 // (arms + 10))
    regrets = [version.run(policy, arms, runs).regret for version in (this, other)]  # and compile
    pairs = np.array(
        [
            (this.run(policy, arms, runs).seconds, other.run(policy, arms, runs).seconds)
            for _ in range(repetitions)
        ]
    ) / (ROUNDS * runs)
    same = "same regret" if regrets[0] == regrets[1] else "another regret"
    return Ratio.of(f"{policy}, K = {arms}", f"the other version ({same})", pairs)

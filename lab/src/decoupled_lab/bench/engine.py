"""The round loop, beside NumPy, other policies, and another version of the package.

What runs on one thread is timed in processor time, which other programs disturb less.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from decoupled.environments import Alternating, ContextTable, Environment
from decoupled.errors import ParameterError, UnsupportedError
from decoupled.extend import Table
from decoupled.policies import (
    FTPL,
    CentredFTPL,
    ContextualLadder,
    Exp3,
    Ladder,
    Policy,
    TsallisINF,
)
from decoupled.simulation import run_block, simulate

from .steps import TextbookFTPL, lockstep_ftpl, play, running
from .timing import Ratio, race

ROUNDS, TEXTBOOK_ROUNDS = 10_000, 2_000
FIGURE_ARMS = (2, 6, 10, 18, 34, 66, 130, 254)  # a sample of the paper's K = 4x + 2
MANY_ARMS = (1_024, 4_096, 16_384)
STRATA_ARMS = (1_024, 2_048, 4_096, 16_384)
MILLION = 1_000_000
DENSE = FTPL(ranking="improved")


def runs_of(policy: Policy, arms: int, rounds: int, runs: int) -> Callable[[], object]:
    """A call that plays some runs of the compiled loop on one thread."""
    environment: Environment = Alternating(arms=arms, gap=0.125)
    if policy.contextual:
        environment = context_table(arms)
    last = np.array([rounds])
    return lambda: run_block(policy, environment, rounds, last, 0, range(runs))


def context_table(arms: int) -> ContextTable:
    """Random losses with a context of four segments and a number."""
    rng = np.random.default_rng(0)
    rows = 4_000
    context = {"s": [str(row % 4) for row in range(rows)], "x": rng.random(rows).tolist()}
    return ContextTable(rng.random((rows, arms)), context, segments=("s",))


def enough_runs(arms: int) -> int:
    """Enough runs that a timing takes tens of milliseconds."""
    return max(1, 600 // (arms + 10))


def measure(repetitions: int = 15) -> Iterator[Ratio]:
    """Every line of this group."""
    yield from against_numpy(repetitions)
    yield from rounds_of_policies(repetitions)
    yield from against_policies(repetitions)
    yield from strata(repetitions)
    run = partial(simulate, FTPL(), Alternating(arms=8, gap=0.125), ROUNDS, 400, 0)
    sides = (
        "400 runs, K = 8, two threads",
        partial(run, workers=2),
        "one thread",
        partial(run, workers=1),
    )
    yield race(*sides, units=400 * ROUNDS, repetitions=repetitions)


def against_numpy(repetitions: int) -> Iterator[Ratio]:
    """The compiled loop and NumPy: 1,000 runs in lock step, and one run at a time."""

    def compared(
        arms: int, rival: str, function: Callable[[Table], object], rival_units: int
    ) -> Ratio:
        table, runs = Alternating(arms=arms, gap=0.125).table(ROUNDS), enough_runs(arms)
        return race(
            f"FTPL compiled, K = {arms}",
            runs_of(FTPL(), arms, ROUNDS, runs),
            rival,
            lambda: function(table),
            units=ROUNDS * runs,
            rival_units=rival_units,
            repetitions=repetitions,
            clock=time.process_time,
        )

    for arms, rounds in ((8, 200), (64, 60), (256, 20)):
        lockstep = partial(lockstep_ftpl, rounds=rounds, runs=1_000, seed=0)
        yield compared(arms, "NumPy, 1,000 runs in lock step", lockstep, 1_000 * rounds)
    for arms in (8, 256):

        def from_the_first_round(table: Table, arms: int = arms) -> float:
            return play(TextbookFTPL(arms), table, TEXTBOOK_ROUNDS, 0)

        yield compared(arms, "NumPy, textbook step", from_the_first_round, TEXTBOOK_ROUNDS)


def compiled_race(
    ours: tuple[str, Policy], rival: tuple[str, Policy], arms: int, rounds: int, repetitions: int
) -> Ratio:
    """Two policies, each with its name, in the compiled loop."""
    runs = enough_runs(arms)
    (name, policy), (rival_name, other) = ours, rival
    sides = runs_of(policy, arms, rounds, runs), rival_name, runs_of(other, arms, rounds, runs)
    return race(
        f"{name}, K = {arms}",
        *sides,
        units=rounds * runs,
        repetitions=repetitions,
        clock=time.process_time,
    )


def rounds_of_policies(repetitions: int) -> Iterator[Ratio]:
    """A round of the policies that people serve, beside one of FTPL."""
    contextual = ContextualLadder(segments=("s",), numbers=("x",))
    others = {
        "Tsallis-INF": TsallisINF(),
        "Exp3": Exp3(),
        "Ladder": Ladder(),
        "ContextualLadder": contextual,
    }
    for arms in (8, 64):
        for name, policy in others.items():
            yield compiled_race((name, policy), ("FTPL", FTPL()), arms, ROUNDS, repetitions)


def against_policies(repetitions: int) -> Iterator[Ratio]:
    """FTPL and Tsallis-INF, both as fast as we can make them; and the ladder and the single rate recommended before it."""
    for arms in FIGURE_ARMS + MANY_ARMS:
        rounds = ROUNDS if arms < 1_000 else max(500, 2_000_000 // arms)
        yield compiled_race(
            ("FTPL", DENSE), ("Tsallis-INF, Newton", TsallisINF()), arms, rounds, repetitions
        )
    before = CentredFTPL(c=0.5, exploit_c=3.0, mean_rate=0.1, schedule="losses")
    for arms in (8, 64, 256):
        yield compiled_race(
            ("Ladder", Ladder()), ("centred FTPL", before), arms, ROUNDS, repetitions
        )


def strata(repetitions: int) -> Iterator[Ratio]:
    """FTPL in strata, compared with the dense round, with 100 times the arms, and with Tsallis-INF."""
    policy = FTPL(ranking="strata")

    def compared(
        arms: int, rival: Policy, rival_arms: int, rounds: int, rival_rounds: int
    ) -> Ratio:
        return race(
            f"{policy.label}, K = {arms}",
            running(policy, arms, rounds),
            f"{rival.label}, K = {rival_arms}",
            running(rival, rival_arms, rival_rounds),
            units=rounds,
            rival_units=rival_rounds,
            repetitions=repetitions,
            clock=time.process_time,
        )

    for arms in STRATA_ARMS:
        yield compared(arms, DENSE, arms, 20_000, 20_000_000 // arms)
    yield compared(10_000, policy, MILLION, 20_000, 20_000)
    yield compared(MILLION, TsallisINF(), MILLION, 20_000, 8)


POLICIES = (
    "FTPL()",
    "TsallisINF()",
    "Exp3()",
    "Ladder()",
    "ContextualLadder(segments=('s',), numbers=('x',))",
)
CASES = [(policy, arms) for policy in POLICIES for arms in (8, 64)]

# It uses only what every version has had under the same name, and reports processor time, which a loaded
# machine disturbs less than the clock on the wall.
WORKER = """
import json, sys, time
import numpy as np
import decoupled as dc
def contexts(arms):
    rng = np.random.default_rng(0)
    context = {"s": [str(row % 4) for row in range(4000)], "x": rng.random(4000).tolist()}
    return dc.environments.ContextTable(rng.random((4000, arms)), context, segments=("s",))
for line in sys.stdin:
    task = json.loads(line)
    policy = eval(f"dc.{task['policy']}")
    if policy.contextual:
        world = contexts(task["arms"])
    else:
        world = dc.environments.Alternating(arms=task["arms"], gap=0.125)
    begun = time.process_time()
    result = dc.simulate(policy, world, task["rounds"], task["runs"], seed=0, workers=1, checkpoints=1)
    print(json.dumps([time.process_time() - begun, float(result.data.final_regret.mean())]), flush=True)
"""


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

    def run(self, policy: str, arms: int, runs: int) -> tuple[float, float]:
        """The processor time of some runs of a policy, and their mean regret."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        task = {"policy": policy, "arms": arms, "rounds": ROUNDS, "runs": runs}
        self._process.stdin.write(json.dumps(task) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise UnsupportedError(
                f"{self._checkout}: {policy} could not be simulated; its error is above"
            )
        seconds, regret = json.loads(answer)
        return seconds, regret

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def measure_against(against: Path, repetitions: int = 15) -> Iterator[Ratio]:
    """One line for each policy and number of arms; a ratio above 1 means that this version is faster."""
    if not (against / "core/src/decoupled/__init__.py").is_file():
        rule = "is not a checkout of decoupled"
        raise ParameterError.of("--against", str(against), rule, "try one made by git worktree add")
    this, other = Version(Path(__file__).parents[4]), Version(against.resolve())
    try:
        for policy, arms in CASES:
            yield _race_versions(this, other, policy, arms, repetitions)
    finally:
        this.close()
        other.close()


def _race_versions(
    this: Version, other: Version, policy: str, arms: int, repetitions: int
) -> Ratio:
    runs = max(1, 12_000 // (arms + 10))
    # Turn by turn, the times and the regrets of both; the first turn compiles.
    turns = [
        [each.run(policy, arms, runs) for each in (this, other)] for _ in range(repetitions + 1)
    ]
    times, regrets = np.moveaxis(np.array(turns), -1, 0)
    same = "same regret" if regrets[0, 0] == regrets[0, 1] else "another regret"
    return Ratio.of(
        f"{policy}, K = {arms}", f"the other version ({same})", times[1:] / (ROUNDS * runs)
    )

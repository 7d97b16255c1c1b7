"""The round loop: compiled and NumPy, FTPL and Tsallis-INF, the ladder, very many arms, one or two threads."""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from decoupled.environments import Alternating
from decoupled.extend import Table
from decoupled.policies import FTPL, Ladder, Policy, TsallisINF
from decoupled.simulation import run_block, simulate

from .steps import running
from .textbook import TextbookFTPL, lockstep_ftpl, play
from .timing import Ratio, race

ROUNDS, TEXTBOOK_ROUNDS = 10_000, 2_000
FIGURE_ARMS = (2, 6, 10, 18, 34, 66, 130, 254)  # a sample of the paper's K = 4x + 2
MANY_ARMS = (1_024, 4_096, 16_384)
STRATA_ARMS = (1_024, 2_048, 4_096, 16_384)
MILLION = 1_000_000


def runs_of(policy: Policy, arms: int, rounds: int, runs: int) -> Callable[[], None]:
    """A call that plays some runs of the compiled loop on one thread."""
    environment = Alternating(arms=arms, gap=0.125)
    last = np.array([rounds])
    return lambda: void(run_block(policy, environment, rounds, last, 0, 0, runs))


def enough_runs(arms: int) -> int:
    """Enough runs that a timing takes tens of milliseconds."""
    return max(1, 600 // (arms + 10))


def textbook_run(table: Table) -> float:
    """A run of the textbook policy from its first round."""
    return play(TextbookFTPL(table.rows.shape[1]), table, TEXTBOOK_ROUNDS, 0)


def void(_: object) -> None:
    """Drop a result."""


def measure(repetitions: int = 15) -> Iterator[Ratio]:
    """Every line of this group."""
    yield from against_numpy(repetitions)
    yield from against_tsallis(repetitions)
    yield from ladder(repetitions)
    yield from strata(repetitions)
    yield two_threads(repetitions)


def against_numpy(repetitions: int) -> Iterator[Ratio]:
    """The compiled loop and NumPy: 1,000 runs in lock step, and one run at a time."""

    def compared(arms: int, rival: str, function: Callable[[Table], object], rival_units: int) -> Ratio:
        table, runs = Alternating(arms=arms, gap=0.125).table(ROUNDS), enough_runs(arms)
        return race(
            f"FTPL compiled, K = {arms}",
            runs_of(FTPL(), arms, ROUNDS, runs),
            rival,
            lambda: void(function(table)),
            units=ROUNDS * runs,
            rival_units=rival_units,
            repetitions=repetitions,
        )

    for arms, rounds in ((8, 200), (64, 60), (256, 20)):
        lockstep = partial(lockstep_ftpl, rounds=rounds, runs=1_000, seed=0)
        yield compared(arms, "NumPy, 1,000 runs in lock step", lockstep, 1_000 * rounds)
    for arms in (8, 256):
        yield compared(arms, "NumPy, textbook step", textbook_run, TEXTBOOK_ROUNDS)


def against_tsallis(repetitions: int) -> Iterator[Ratio]:
    """FTPL and Tsallis-INF, both as fast as we can make them."""
    for arms in FIGURE_ARMS + MANY_ARMS:
        rounds = ROUNDS if arms < 1_000 else max(500, 2_000_000 // arms)
        runs = enough_runs(arms)
        yield race(
            f"FTPL, K = {arms}",
            runs_of(FTPL(), arms, rounds, runs),
            "Tsallis-INF, Newton",
            runs_of(TsallisINF(), arms, rounds, runs),
            units=rounds * runs,
            repetitions=repetitions,
        )


def ladder(repetitions: int) -> Iterator[Ratio]:
    """The ladder and the single rate that was recommended before it."""
    before = FTPL(c=0.5, estimator="centred", c_exploit=3.0, lam=0.1, schedule="losses")
    for arms in (8, 64, 256):
        runs = enough_runs(arms)
        yield race(
            f"Ladder, K = {arms}",
            runs_of(Ladder(), arms, ROUNDS, runs),
            "centred FTPL",
            runs_of(before, arms, ROUNDS, runs),
            units=ROUNDS * runs,
            repetitions=repetitions,
        )


def strata(repetitions: int) -> Iterator[Ratio]:
    """FTPL in strata, compared with the dense round, with 100 times the arms, and with Tsallis-INF."""
    policy = FTPL(ranking="strata")

    def compared(arms: int, rival: Policy, rival_arms: int, rounds: int, rival_rounds: int) -> Ratio:
        return race(
            f"{policy.label}, K = {arms}",
            running(policy, arms, rounds),
            f"{rival.label}, K = {rival_arms}",
            running(rival, rival_arms, rival_rounds),
            units=rounds,
            rival_units=rival_rounds,
            repetitions=repetitions,
        )

    for arms in STRATA_ARMS:
        yield compared(arms, FTPL(), arms, 20_000, 20_000_000 // arms)
    yield compared(10_000, policy, MILLION, 20_000, 20_000)
    yield compared(MILLION, TsallisINF(), MILLION, 20_000, 8)


def two_threads(repetitions: int) -> Ratio:
    """How much faster two threads are than one."""
    environment = Alternating(arms=8, gap=0.125)

    def run(workers: int) -> Callable[[], None]:
        return lambda: void(simulate(FTPL(), environment, ROUNDS, 400, 0, workers=workers))

    return race(
        "400 runs, K = 8, two threads",
        run(2),
        "one thread",
        run(1),
        units=400 * ROUNDS,
        repetitions=repetitions,
    )

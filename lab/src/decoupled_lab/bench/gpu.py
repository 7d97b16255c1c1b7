"""A GPU: rounds per second, the paper's whole grid, a million runs, and the CPU for comparison. Needs the extra cuda."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np

from decoupled.environments import Alternating
from decoupled.policies import FTPL, Exp3, Policy, TsallisINF
from decoupled.simulation import run_block, simulate

from .timing import Rate, Reading

ROUNDS = 10_000
ARMS = (4, 8, 16, 32, 64)
POLICIES: tuple[Policy, ...] = (FTPL(), TsallisINF(), Exp3())
GRID_ARMS, GRID_GAPS = (64, 32, 16, 4), (0.03125, 0.0625, 0.125, 0.25)
MILLION = 1_000_000
UNIT = "billion rounds a second"
# The targets for one H200; the other policies have a third of those for FTPL.
LEAST = {("FTPL", 8): 15.0, ("FTPL", 64): 1.2} | {
    (name, arms): least for name in ("TsallisINF", "Exp3") for arms, least in ((8, 5.0), (64, 0.4))
}


def measure(repetitions: int = 15) -> Iterator[Rate | Reading]:
    """Every line of this group: the best of a few repetitions, after compilation."""
    few = min(repetitions, 3)
    for policy in POLICIES:
        for arms in ARMS:
            yield rate(policy, arms, few)
    for arms in (8, 64):
        yield rate(FTPL(), arms, few, 1_000)
    world, last = Alternating(8, 0.125), np.array([ROUNDS])
    seconds = best(lambda: run_block(FTPL(), world, ROUNDS, last, 0, range(30)), 3)
    yield Rate("FTPL, K = 8, one core of the CPU", 30 * ROUNDS / seconds / 1e9, UNIT)
    name = "the paper's grid, 16 instances x 3 policies x 1,000 runs"
    yield Reading(name, best(whole_grid, few), "s", 2.0)
    for checkpoints in (1, 100):
        # The paper's first experiment, a thousand times larger.
        million = partial(
            simulate, FTPL(), world, ROUNDS, MILLION, 0, checkpoints=checkpoints, device="cuda"
        )
        name = f"a million runs of FTPL, K = 8, {checkpoints} checkpoints"
        yield Reading(name, best(million, few), "s", 1.0)


def best(function: Callable[[], object], repetitions: int) -> float:
    """The seconds of the fastest call, after one call that compiles."""
    function()
    seconds = []
    for _ in range(repetitions):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def rate(policy: Policy, arms: int, repetitions: int, runs: int | None = None) -> Rate:
    """Rounds per second, for whole waves of runs or a given number."""
    from decoupled.simulation.gpu.launch import run_block_on
    from decoupled.simulation.gpu.memory import devices, resident_threads, shape_of

    device, world = devices()[0], Alternating(arms, 0.125)
    at_once = device.processors * resident_threads(shape_of(policy, world))
    count = runs or at_once * (2 if arms < 32 else 1)
    last = np.array([ROUNDS])
    seconds = best(
        lambda: run_block_on(policy, world, ROUNDS, last, 0, range(count), device=device),
        repetitions,
    )
    name, told = f"{type(policy).__name__}, K = {arms}", f"{count:,} runs"
    value = count * ROUNDS / seconds / 1e9
    if runs is not None:
        return Rate(f"{name}, {told}", value, UNIT)
    return Rate(name, value, f"{UNIT}, {told}", LEAST.get((type(policy).__name__, arms), 0.0))


def whole_grid() -> None:
    """All instances, several at once, as in `decoupled reproduce grid --device cuda`."""
    worlds = [Alternating(arms, gap) for arms in GRID_ARMS for gap in GRID_GAPS]
    with ThreadPoolExecutor(len(worlds)) as threads:
        list(threads.map(lambda world: simulate(
            POLICIES, world, ROUNDS, 1_000, 0, checkpoints=50, curves="moments", device="cuda"), worlds))  # fmt: skip

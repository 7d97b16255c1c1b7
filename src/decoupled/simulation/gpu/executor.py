"""Plans on devices: what is refused, and threads that each work for one device."""

import time
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import cycle
from threading import Lock, local
from typing import Any

from ...errors import UnsupportedError
from ...kernels.random.seed_sequence import MOST_RUNS
from ..cpu import BlockResult
from ..plan import Plan
from .devices import REMEDY, Card, cards
from .launch import run_block_on
from .memory import WORKERS, Needs, check_fits
from .shapes import shape_of

_mine = local()  # the device of a thread


def devices_for(plan: Plan) -> tuple[Card, ...]:
    """The devices that will run a plan, or a refusal that says what stands in the way."""
    found = cards()
    if plan.runs > MOST_RUNS:
        raise UnsupportedError(f"runs = {plan.runs}: a device numbers them up to {MOST_RUNS}; {REMEDY}")
    for policy in plan.policies:
        shape = shape_of(policy.at(plan.environment.arms), plan.environment)
        for card in found:
            needs = Needs(shape, plan.horizon, len(plan.checkpoints))
            check_fits(needs, card, policy.label)
    return found


@contextmanager
def device_executor(found: tuple[Card, ...]) -> Iterator[tuple[Executor, int]]:
    """Threads that take turns in choosing a device, a few for each, and their number."""
    turns, lock = cycle(found), Lock()

    def choose() -> None:
        with lock:
            _mine.card = next(turns)

    workers = WORKERS * len(found)
    threads = ThreadPoolExecutor(workers, "decoupled-cuda", initializer=choose)
    try:
        yield threads, workers
    finally:
        threads.shutdown(wait=True, cancel_futures=True)


def timed_on_device(*arguments: Any) -> tuple[BlockResult, float]:
    """A block on this thread's device, and how long it took."""
    start = time.perf_counter()
    try:
        result = run_block_on(_mine.card, *arguments)
    except Exception as error:
        if "OUT_OF_MEMORY" not in str(error):
            raise
        raise UnsupportedError(
            f"device = 'cuda': {_mine.card.name} has no memory left, which another program may hold; "
            f"wait for it, record fewer checkpoints, give a smaller block, or {REMEDY}"
        ) from error
    return result, time.perf_counter() - start

"""Plans on devices: checks, and threads that each serve one device."""

import time
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import cycle
from threading import Lock, local
from typing import Any

from ...errors import UnsupportedError
from ...kernels.random.stream import MOST_RUNS
from ..cpu import BlockResult
from ..plan import Plan
from ..traffic import pending_bytes
from .devices import REMEDY, Card, cards
from .launch import run_block_on
from .memory import WORKERS, Needs, check_fits
from .shapes import shape_of

_mine = local()  # the device of a thread


def devices_for(plan: Plan) -> tuple[Card, ...]:
    """The devices that will run a plan, or an error that says what prevents it."""
    found = cards()
    if plan.runs > MOST_RUNS:
        raise UnsupportedError(f"runs = {plan.runs}: must be at most {MOST_RUNS} on a device; {REMEDY}")
    for policy in plan.policies:
        form = policy.at(plan.environment.arms)
        pending = pending_bytes(form, plan.environment.arms, plan.traffic, plan.horizon)
        needs = Needs(shape_of(form, plan.environment), plan.horizon, len(plan.checkpoints), pending)
        for card in found:
            check_fits(needs, card, policy.label)
    return found


@contextmanager
def device_executor(found: tuple[Card, ...]) -> Iterator[tuple[Executor, int]]:
    """A pool of threads, a few for each device, and their number."""
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
    """Run a block on this thread's device; return its result and the seconds it took."""
    start = time.perf_counter()
    try:
        result = run_block_on(_mine.card, *arguments)
    except Exception as error:
        if "OUT_OF_MEMORY" not in str(error):
            raise
        raise UnsupportedError(
            f"device = 'cuda': {_mine.card.name} is out of memory; another program may be using it; "
            f"wait for that program, record fewer checkpoints, use a smaller block, or {REMEDY}"
        ) from error
    return result, time.perf_counter() - start

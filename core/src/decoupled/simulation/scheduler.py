"""Blocks through any executor, in a window that bounds memory."""

import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TypeAlias

from .blocks import BlockStore
from .cpu import BlockResult, run_block
from .plan import Block, Plan, as_rounds

Report: TypeAlias = Callable[[int, float], None]
"""Called with the rounds of a finished block and the seconds that they took, 0 if they were on disk."""

WINDOW = 4  # blocks under way for each worker


@contextmanager
def own_executor(executor: Executor | None, workers: int | None) -> Iterator[tuple[Executor, int]]:
    """The given executor, or threads of our own: compiled code runs without the interpreter lock."""
    count = workers or os.cpu_count() or 1
    if executor is not None:
        yield executor, workers or max(count, 8)
        return
    threads = ThreadPoolExecutor(max_workers=count, thread_name_prefix="decoupled")
    try:
        yield threads, count
    finally:
        # After an interruption, what has not begun is dropped and what runs is let finish.
        threads.shutdown(wait=True, cancel_futures=True)


def execute(
    plan: Plan, size: int, store: BlockStore | None, executor: Executor, workers: int, report: Report
) -> Iterator[tuple[Block, BlockResult]]:
    """Every block with its result, in the order of the plan; each is stored as soon as it is finished."""
    todo = plan.blocks(size)
    order: deque[Block] = deque()
    ready: dict[Block, BlockResult] = {}
    running: dict[Future[tuple[BlockResult, float]], Block] = {}
    exhausted = False
    try:
        while True:
            while not exhausted and len(order) < WINDOW * workers:
                block = next(todo, None)
                if block is None:
                    exhausted = True
                    break
                order.append(block)
                held = store.load(block) if store else None
                if held is not None:
                    ready[block] = held
                    report(_rounds(plan, block), 0.0)
                else:
                    running[_submit(executor, plan, block)] = block
            while order and order[0] in ready:
                block = order.popleft()
                yield block, ready.pop(block)
            if not order and exhausted:
                return
            if running and (order and order[0] not in ready):
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    block = running.pop(future)
                    result, seconds = future.result()
                    if store:
                        store.save(block, result)
                    ready[block] = result
                    report(_rounds(plan, block), seconds)
    finally:
        for future in running:
            future.cancel()


def _rounds(plan: Plan, block: Block) -> int:
    return (block.last - block.first) * plan.horizon


def _submit(executor: Executor, plan: Plan, block: Block) -> Future[tuple[BlockResult, float]]:
    return executor.submit(
        timed_block if plan.device == "cpu" else _on_device(),
        plan.policies[block.policy],
        plan.environment,
        plan.horizon,
        as_rounds(plan),
        plan.seed,
        block.first,
        block.last,
        plan.traffic,
    )


def _on_device() -> Callable[..., tuple[BlockResult, float]]:
    from .gpu.executor import timed_on_device

    return timed_on_device


def timed_block(*arguments: object) -> tuple[BlockResult, float]:
    """A block, and how long it took; the time is separate because results must have the same bits every time."""
    start = time.perf_counter()
    result = run_block(*arguments)  # type: ignore[arg-type]
    return result, time.perf_counter() - start

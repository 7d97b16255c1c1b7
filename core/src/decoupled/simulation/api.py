"""`simulate`: policies against an environment, many runs at once."""

import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from ..base.arrays import Floats
from ..base.files import write_atomically
from ..base.validation import one_of, whole_number
from ..environments import ContextTable, Environment
from ..errors import ParameterError
from ..policies import Policy
from .admission import check_memory
from .contextual import check_context
from .cpu import BlockResult
from .labelled import CurveMoments
from .plan import DEFAULT_CHECKPOINTS, Block, Checkpoints, Plan, make_plan
from .results import Results, assemble, check_can_save
from .scheduler import (
    RESULTS_FILE,
    TIMINGS_FILE,
    BlockStore,
    Report,
    execute,
    explained,
    own_executor,
)
from .traffic import DIRECT, Traffic

MOST_NUMBERS = 20_000_000  # curves of single runs are kept up to this many numbers (160 MB)


def simulate(
    policies: Policy | Sequence[Policy],
    environment: Environment,
    horizon: int,
    runs: int,
    seed: int = 0,
    *,
    checkpoints: Checkpoints = DEFAULT_CHECKPOINTS,
    curves: str = "auto",
    workers: int | None = None,
    executor: Executor | None = None,
    out: str | os.PathLike[str] | None = None,
    block: int | None = None,
    device: str = "cpu",
    traffic: Traffic = DIRECT,
    report: Report = lambda rounds, seconds: None,
) -> Results:
    """Run every policy `runs` times for `horizon` rounds.

    All policies meet the same losses, unless the environment is an adversary that reacts to them.

    The results depend only on the first five arguments, the checkpoints and the traffic: any number of workers, any
    executor and any block size give the same bits. The traffic has its own random numbers, so it does not change the
    losses. Regret always counts the losses suffered.

    Args:
        policies: one policy, or several that differ; with a `ContextTable`, `baselines` as well.
        environment: where losses come from.
        horizon: rounds of a run.
        runs: runs of each policy. Run r draws from seeds derived from (seed, r).
        seed: the seed of all randomness.
        checkpoints: when regret is recorded: a number (evenly spaced), "log", "all", {"count": n,
            "spacing": "log"}, or a list of rounds. The horizon is always one of them.
        curves: "runs" keeps the curve of every run, "moments" only their mean and standard deviation,
            "auto" the former while it takes less than 160 MB.
        workers: threads to use; all cores if not given.
        executor: any `concurrent.futures.Executor` instead of threads, such as Dask's `client.get_executor()`. Set
            `workers` to the number that it has, to keep them all busy.
        out: a folder for finished blocks, so that the same call continues after a crash, then results.nc and timings.json.
        block: runs in a block; chosen by cost if not given.
        device: "cpu", or "cuda" for NVIDIA GPUs, all that the machine has (extra `cuda`).
            Losses and draws are the same, and results are equal up to the rounding of functions such as
            exp; any number of devices and any block size give the same bits there, too.
        traffic: whether feedback is late, lost, rare or altered, and which keys arrive.
        report: called with the rounds of each finished block and the seconds they took.

    >>> import decoupled as dc
    >>> environment = dc.environments.Alternating(arms=8, gap=0.125)
    >>> results = dc.simulate([dc.FTPL(), dc.Exp3()], environment, horizon=1_000, runs=100, seed=0)
    >>> results.summary()["mean"].round(1).to_dict()
    {'FTPL': 65.9, 'Exp3': 82.5}
    >>> traffic = dc.Traffic(delay=100, missing=0.5)
    >>> late = dc.simulate(dc.FTPL(), environment, horizon=1_000, runs=100, seed=0, traffic=traffic)
    >>> late.summary()["mean"].round(1).to_dict()
    {'FTPL': 96.6}
    """
    _check_kind("traffic", traffic, Traffic, "for example dc.Traffic(delay=100)")
    plan = make_plan(policies, environment, horizon, runs, seed, checkpoints, device, traffic)
    return run_plan(
        plan, curves=curves, workers=workers, executor=executor, out=out, block=block, report=report
    )


def run_plan(
    plan: Plan,
    *,
    curves: str = "auto",
    workers: int | None = None,
    executor: Executor | None = None,
    out: str | os.PathLike[str] | None = None,
    block: int | None = None,
    report: Report = lambda rounds, seconds: None,
) -> Results:
    """Run a checked plan; the other arguments are those of `simulate`.

    >>> import decoupled as dc
    >>> from decoupled.simulation.plan import make_plan
    >>> plan = make_plan(dc.FTPL(), dc.environments.Alternating(arms=8, gap=0.125), 1_000, 100, seed=0)
    >>> run_plan(plan).summary()["mean"].round(1).to_dict()
    {'FTPL': 65.9}
    """
    one_of("curves", curves, ("auto", "runs", "moments"))
    size = (
        None if block is None else whole_number("block", block, 1, "leave it out to have it chosen")
    )
    if workers is not None:
        workers = whole_number("workers", workers, 1, "leave it out for all cores")
    _check_kind("executor", executor, Executor, "for Dask, client.get_executor()")
    _check_kind("out", out, (str, os.PathLike), "give the path of a folder")
    if out is not None:  # before hours of work, not after them
        check_can_save("out")
    for name, value in (("workers", workers), ("executor", executor)):
        if plan.device != "cpu" and value is not None:
            rule = f"is for the CPU, and device = {plan.device!r} has threads of its own"
            raise ParameterError.of(name, value, rule, "leave one of them out")
    numbers = len(plan.policies) * plan.runs * len(plan.checkpoints)
    if curves == "runs":
        check_memory(
            "curves", "runs", 8 * numbers, "use curves='moments', or choose fewer checkpoints"
        )
    keep = curves == "runs" or (curves == "auto" and numbers <= MOST_NUMBERS)
    suited, threads = _threads(plan, executor, workers)
    size = size or suited
    store = None if out is None else BlockStore(out, plan, size)
    timings: list[dict[str, float]] = store.timings() if store else []

    def note(rounds: int, seconds: float) -> None:
        if seconds:
            timings.append({"rounds": rounds, "seconds": seconds})
        report(rounds, seconds)

    with threads as (pool, count):
        size = store.block_size if store else size
        results = _gather(plan, execute(plan, size, store, pool, count, note), keep)
    if store:
        with explained(store.folder):
            results.save(store.folder / RESULTS_FILE)
            write_atomically(store.folder / TIMINGS_FILE, json.dumps(timings))
    return results


def _threads(
    plan: Plan, executor: Executor | None, workers: int | None
) -> tuple[int, AbstractContextManager[tuple[Executor, int]]]:
    """The runs that a block should hold, and what runs the blocks."""
    if plan.device == "cpu":
        return plan.block_size(workers or 1), own_executor(executor, workers)
    # Again, because the plan may have been for the CPU at first.
    check_context(plan.policies, plan.environment, plan.device, plan.traffic)
    from .gpu.launch import device_executor, devices_for
    from .gpu.memory import block_size

    found = devices_for(plan)
    return block_size(plan, found), device_executor(found)


def _check_kind(name: str, value: object, kind: Any, remedy: str) -> None:
    if value is not None and not isinstance(value, kind):
        raise ParameterError.of(name, value, "is of the wrong kind", remedy)


def _gather(plan: Plan, blocks: Iterator[tuple[Block, BlockResult]], keep: bool) -> Results:
    count, width = len(plan.policies), len(plan.checkpoints)
    final = np.empty((count, plan.runs))
    curves = np.empty((count, plan.runs, width)) if keep else None
    plays = np.zeros((count, 2, plan.environment.arms), np.int64)
    moments = [CurveMoments(width) for _ in plan.policies]
    switches = np.empty((count, plan.runs, width)) if plan.traffic.keys else None
    for block, result in blocks:
        span = slice(block.first, block.last)
        final[block.policy, span] = result.regret[:, -1]
        if curves is not None:
            curves[block.policy, span] = result.regret
        if switches is not None:
            switches[block.policy, span] = result.switches
        plays[block.policy] += result.plays
        moments[block.policy].add(result.regret)
    for each in moments:
        each.finish()
    means = np.stack([each.mean for each in moments])
    deviations = np.stack([each.standard_deviation for each in moments])
    return assemble(plan, final, curves, means, deviations, plays, switches, _available(plan))


def _available(plan: Plan) -> Floats | None:
    """What the best arm for each segment gains over the best arm in each run, where there are contexts."""
    table, runs = plan.environment, range(plan.runs)
    if not isinstance(table, ContextTable):
        return None
    if (
        table.order == "given" or plan.horizon % len(table.losses) == 0
    ):  # the same rows in every run
        runs = range(1)
    found = [table.available(table.row_at(plan.horizon, plan.seed, run)) for run in runs]
    return np.resize(found, plan.runs)

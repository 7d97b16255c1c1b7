"""`simulate`: policies against an environment, many runs at once."""

import json
import os
from collections.abc import Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from typing import Any

from ..base.files import write_atomically
from ..base.validation import one_of, whole_number
from ..environments import Environment
from ..errors import ParameterError
from ..policies import Policy
from .admission import check_memory
from .contextual import check_context
from .plan import DEFAULT_CHECKPOINTS, Checkpoints, Plan, make_plan
from .results import ResultCollector, Results, check_can_save
from .scheduler import (
    RESULTS_FILE,
    TIMINGS_FILE,
    BlockStore,
    Report,
    Workers,
    cpu_workers,
    execute,
    explained,
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

    The results depend only on the first five arguments, the checkpoints and the traffic: any number
    of workers, any executor and any block size give the same bits. The traffic has its own random
    numbers, so it does not change the losses. Regret always counts the losses suffered.

    Args:
        policies: one policy, or several that differ; with a `ContextTable`, `baselines` as well.
        environment: where losses come from.
        horizon: rounds of a run.
        runs: runs of each policy. Run r draws from seeds derived from (seed, r).
        seed: the seed of all randomness.
        checkpoints: when regret is recorded: a number (evenly spaced), "log", "all", {"count": n,
            "spacing": "log"}, or a list of rounds. The horizon is always one of them.
        curves: "runs" keeps the curve of every run, "moments" only their mean and standard
            deviation, "auto" the former while it takes less than 160 MB.
        workers: threads to use; all cores if not given.
        executor: any `concurrent.futures.Executor` instead of threads, such as Dask's
            `client.get_executor()`. Set `workers` to the number that it has, to keep them all busy.
        out: a folder for finished blocks, so that the same call continues after a crash, then
            results.nc and timings.json.
        block: runs in a block; chosen by cost if not given.
        device: "cpu", or "cuda" for NVIDIA GPUs, all that the machine has (extra `cuda`).
            Losses and draws are the same, and results are equal up to the rounding of functions
            such as exp; any number of devices and any block size give the same bits there, too.
        traffic: whether feedback is late, lost or rare.
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
    plan = make_plan(
        policies, environment, horizon, runs, seed, checkpoints, device=device, traffic=traffic
    )
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
    >>> environment = dc.environments.Alternating(arms=8, gap=0.125)
    >>> plan = make_plan(dc.FTPL(), environment, horizon=1_000, runs=100, seed=0)
    >>> run_plan(plan).summary()["mean"].round(1).to_dict()
    {'FTPL': 65.9}
    """
    one_of("curves", curves, ("auto", "runs", "moments"))
    if block is not None:
        block = whole_number("block", block, 1, "leave it out to have it chosen")
    if workers is not None:
        workers = whole_number("workers", workers, 1, "leave it out for all cores")
    _check_execution(plan, workers, executor, out)
    numbers = len(plan.policies) * plan.runs * len(plan.checkpoints)
    if curves == "runs":
        remedy = "use curves='moments', or choose fewer checkpoints"
        check_memory("curves", "runs", 8 * numbers, remedy)
    suited_size, pool = _workers_for(plan, executor, workers)
    size = block or suited_size
    store = None
    timings: list[dict[str, float]] = []
    if out is not None:
        store = BlockStore(out, plan, size)
        size = store.block_size
        timings = store.timings()

    def note(rounds: int, seconds: float) -> None:
        if seconds:
            timings.append({"rounds": rounds, "seconds": seconds})
        report(rounds, seconds)

    keep_curves = curves == "runs" or (curves == "auto" and numbers <= MOST_NUMBERS)
    collector = ResultCollector(plan, keep_curves=keep_curves)
    with pool as started:
        for finished, result in execute(plan, size, store, started, note):
            collector.add(finished, result)
    results = collector.results()
    if store is not None:
        with explained(store.folder):
            results.save(store.folder / RESULTS_FILE)
            write_atomically(store.folder / TIMINGS_FILE, json.dumps(timings))
    return results


def _check_execution(plan: Plan, workers: object, executor: object, out: object) -> None:
    """Raise an error if these cannot run the plan, before hours of work instead of after them."""
    _check_kind("executor", executor, Executor, "for Dask, client.get_executor()")
    _check_kind("out", out, (str, os.PathLike), "give the path of a folder")
    if out is not None:
        check_can_save("out")
    if plan.device == "cpu":
        return
    for name, value in (("workers", workers), ("executor", executor)):
        if value is not None:
            rule = f"is for the CPU, and device = {plan.device!r} has threads of its own"
            raise ParameterError.of(name, value, rule, "leave one of them out")


def _check_kind(name: str, value: object, kind: Any, remedy: str) -> None:
    if value is not None and not isinstance(value, kind):
        raise ParameterError.of(name, value, "is of the wrong kind", remedy)


def _workers_for(
    plan: Plan, executor: Executor | None, workers: int | None
) -> tuple[int, AbstractContextManager[Workers]]:
    """The runs that a block should hold, and what runs the blocks."""
    if plan.device == "cpu":
        return plan.block_size(workers or 1), cpu_workers(executor, workers)
    # Checked again, because the plan may have been for the CPU at first.
    check_context(plan.policies, plan.environment, plan.device, plan.traffic)
    from .gpu.launch import device_workers, devices_for
    from .gpu.memory import block_size

    devices = devices_for(plan)
    return block_size(plan, devices), device_workers(devices)

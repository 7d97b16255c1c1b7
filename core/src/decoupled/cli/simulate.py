"""Runs plans, prints tables and writes figures: `decoupled simulate`."""

import os
import re
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from ..base.extras import needed_for
from ..base.progress import duration, progress_bar
from ..base.validation import one_of
from ..simulation.api import run_plan
from ..simulation.cpu import run_block
from ..simulation.plan import DEVICES, Plan
from ..simulation.results import REGRET_HEAD, SEGMENT_HEAD, Results, regret_rows
from ..simulation.scheduler import RESULTS_FILE

TABLE_FILE = "table.tex"


def run_all(
    plans: Sequence[Plan],
    out: Path,
    *,
    workers: int | None,
    dask: str | None,
    device: str,
    quiet: bool,
    latex: bool,
) -> None:
    """Run every plan into a folder of its own under `out`, or resume it there."""
    with dask_executor(dask) as (executor, size):
        count = workers or size
        for number, specified in enumerate(plans):
            plan = replace(specified, device=one_of("device", device, DEVICES))
            name = re.sub(r"[^A-Za-z0-9.]+", "-", plan.environment.label).strip("-")[:60]
            folder = out / f"{number:02d}-{name}"
            folder.mkdir(parents=True, exist_ok=True)  # first, so that a failure here loses no work
            with progress_bar(plan.rounds, quiet=quiet) as report:
                results = run_plan(
                    plan, workers=count, executor=executor, out=folder, report=report
                )
            show(plan, results, folder, latex=latex)


def show(plan: Plan, results: Results, folder: Path, *, latex: bool) -> None:
    """Print the table of a plan, and write its figure."""
    Console().print(summary_table(plan, results))
    results.plot(folder / "regret.png")
    (folder / "summary.csv").write_text(results.summary().to_csv(), encoding="utf-8")
    if latex:
        results.plot(folder / "regret.pdf")
        (folder / TABLE_FILE).write_text(results.to_latex(), encoding="utf-8")
    also = f"{TABLE_FILE}, regret.pdf, " if latex else ""
    print(f"{RESULTS_FILE}, {also}summary.csv and regret.png are in {folder}")


def summary_table(plan: Plan, results: Results) -> Table:
    """The summary of final regret, for a terminal."""
    title = f"{results.setting}: regret after {plan.horizon:,} rounds, {plan.runs:,} runs"
    segments = results.has_segments
    table = Table(title=title)
    for number, name in enumerate(REGRET_HEAD + (SEGMENT_HEAD if segments else ())):
        table.add_column(name, justify="right" if number else "left")
    for row in regret_rows(results, results.names(None), segments=segments, paired=False):
        table.add_row(*row)
    return table


def estimate(plans: Sequence[Plan], workers: int | None, device: str = "cpu") -> str:
    """Describe the plans and estimate their time on this machine."""
    count = workers or os.cpu_count() or 1
    where = f"{count} threads"
    if one_of("device", device, DEVICES) != "cpu":
        from ..simulation.gpu.memory import block_size, devices

        count = len(devices())
        where = " and ".join(device.name for device in devices())
        plans = [replace(plan, device=device) for plan in plans]
    lines = []
    all_seconds = 0.0
    for plan in plans:
        seconds = sum(_seconds_a_round(plan, number) for number in range(len(plan.policies)))
        seconds *= plan.runs * plan.horizon / count
        all_seconds += seconds
        size = plan.block_size() if plan.device == "cpu" else block_size(plan, devices())
        blocks = plan.block_count(size)
        lines += [
            ", ".join(filter(None, (f"{plan.environment!r}", plan.traffic.label))),
            *(f"    {policy!r}" for policy in plan.policies),
            f"    {plan.runs:,} runs of {plan.horizon:,} rounds each, seed {plan.seed}, "
            f"{len(plan.checkpoints)} checkpoints, {blocks} blocks: about {duration(seconds)}",
        ]
    return "\n".join([*lines, f"In total about {duration(all_seconds)} on {where}."])


def _seconds_a_round(plan: Plan, policy: int, budget: float = 0.2) -> float:
    """Time a few short runs. Rounds get cheaper as a policy converges, so this overestimates."""
    if plan.device != "cpu":
        return _seconds_on_device(plan, policy)
    rounds = min(plan.horizon, 1_000)
    arguments = (plan.policies[policy], plan.environment, rounds, np.array([rounds]), plan.seed)
    run_block(*arguments, range(1), traffic=plan.traffic)  # compile
    start = time.perf_counter()
    runs = 0
    while time.perf_counter() - start < budget:
        run_block(*arguments, range(runs, runs + 1), traffic=plan.traffic)
        runs += 1
    return (time.perf_counter() - start) / (runs * rounds)


def _seconds_on_device(plan: Plan, policy: int) -> float:
    """Time one block of runs on a device, which plays many runs at once."""
    from ..simulation.gpu.launch import devices_for, run_block_on
    from ..simulation.gpu.memory import block_size

    devices = devices_for(plan)
    rounds = min(plan.horizon, 1_000)
    runs = block_size(plan, devices)
    arguments = (plan.policies[policy], plan.environment, rounds, np.array([rounds]), plan.seed)
    run_block_on(*arguments, range(1), device=devices[0], traffic=plan.traffic)  # compile
    start = time.perf_counter()
    run_block_on(*arguments, range(runs), device=devices[0], traffic=plan.traffic)
    return (time.perf_counter() - start) / (runs * rounds)


@contextmanager
def dask_executor(address: str | None) -> Iterator[tuple[Executor | None, int | None]]:
    """The executor of a Dask cluster and its number of threads, None without an address."""
    if address is None:
        yield None, None
        return
    with needed_for("--dask"):
        from distributed import Client
    connect: Any = Client
    with connect(address) as client:
        yield client.get_executor(), max(1, sum(client.ncores().values()))

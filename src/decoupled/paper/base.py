"""What every experiment is: something to measure, once, and a section drawn from what was saved."""

import json
import re
import shutil
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from ..base.files import write_atomically
from ..environments import Adversary, Alternating
from ..report.section import Section
from ..simulation import Results
from ..simulation.api import run_plan
from ..simulation.blocks import BLOCKS, PLAN_FILE, RESULTS_FILE
from ..simulation.cpu import run_block
from ..simulation.plan import Plan

Advance: TypeAlias = Callable[[int], None]  # so many units of work were done

HORIZON = 10_000
PLANS_ON_DEVICE = 8  # at once
ORDER_FILE = "plans.json"
TIMES_FILE = "times.json"


class Scale(NamedTuple):
    """How much is run; results depend on it and on nothing else."""

    runs: int = 1_000
    quick: bool = False
    seed: int = 0
    device: str = "cpu"  # of simulations; what is timed is timed on the CPU

    def most(self, quick: int) -> int:
        """All runs, or in the quick version no more than so many: for what is slow."""
        return min(self.runs, quick) if self.quick else self.runs

    def fewer(self, part: int, least: int = 4) -> int:
        """A part of the runs, for what needs fewer."""
        return max(least, self.runs // part)


class Experiment:
    """One experiment. `measure` fills a folder; `section` reads that folder and nothing else."""

    name: ClassVar[str]  # as `decoupled.paper` lists it
    title: ClassVar[str]
    about: ClassVar[str]  # what it is, in a line of the documentation
    origin: ClassVar[str]  # the section of the paper, or "ours"
    unit: ClassVar[str] = "rounds"
    in_quick: ClassVar[bool] = True  # whether the quick version of everything has it
    on_device: ClassVar[bool] = False  # whether all of it can run on a GPU

    def units(self, scale: Scale) -> int:
        """How much work there is, for the progress bar."""
        raise NotImplementedError

    def code(self, scale: Scale) -> dict[object, Callable[[], object]]:
        """Calls that compile what will be run, by a key that two experiments share if the code is the same."""
        return {}

    def measure(self, scale: Scale, folder: Path, advance: Advance) -> None:
        """Do the work that is not there yet, and save it."""
        raise NotImplementedError

    def section(self, folder: Path) -> Section:
        """What the saved results say."""
        raise NotImplementedError

    def extent(self, folder: Path) -> str:
        """How much was run, by what is saved: a reader of the section has to know."""
        raise NotImplementedError


class Simulated(Experiment):
    """An experiment made of plans, each run into a folder of its own."""

    on_device = True
    keep_runs: ClassVar[bool] = False  # whether the curve of every run is kept, or their moments alone

    def plans(self, scale: Scale) -> dict[str, Plan]:
        """What is simulated, by the name of its folder."""
        raise NotImplementedError

    def units(self, scale: Scale) -> int:
        return sum(plan.rounds for plan in self.plans(scale).values())

    def code(self, scale: Scale) -> dict[object, Callable[[], object]]:
        calls: dict[object, Callable[[], object]] = {}
        if scale.device != "cpu":
            return device_code(self.plans(scale).values())
        for plan in self.plans(scale).values():
            # One loop serves all tables, so the smallest will do; each adversary has a loop of its own.
            adversary = isinstance(plan.environment, Adversary)
            world = plan.environment if adversary else Alternating(arms=2, gap=0.5)
            for policy in plan.policies:
                calls[type(policy), type(world)] = partial(
                    run_block, policy, world, 2, np.array([2]), 0, 0, 1
                )
        return calls

    def measure(self, scale: Scale, folder: Path, advance: Advance) -> None:
        plans = {name: replace(plan, device=scale.device) for name, plan in self.plans(scale).items()}
        if scale.device != "cpu":
            # A GPU has room for several plans of a thousand runs; a CPU is kept busy by one.
            with ThreadPoolExecutor(PLANS_ON_DEVICE) as threads:
                ends = [
                    threads.submit(finish, plan, _place(folder, name), advance, self.keep_runs)
                    for name, plan in plans.items()
                ]
            for end in ends:
                end.result()
        for name, plan in plans.items():
            simulated(
                plan, folder, name, advance if scale.device == "cpu" else lambda done: None, self.keep_runs
            )

    def results(self, folder: Path) -> dict[str, Results]:
        """The saved results by name, in the order they were planned."""
        order = json.loads((folder / ORDER_FILE).read_text())
        return {name: Results.load(_place(folder, name) / RESULTS_FILE) for name in order}

    def extent(self, folder: Path) -> str:
        order = json.loads((folder / ORDER_FILE).read_text())
        kept = [json.loads((_place(folder, name) / PLAN_FILE).read_text())["plan"] for name in order]
        return formatted_extent((plan["runs"], plan["horizon"]) for plan in kept)


def formatted_extent(sizes: Iterable[tuple[int, int]]) -> str:
    """Runs and rounds, each pair of them once, the longest first.

    >>> formatted_extent([(8, 1_000), (4, 100_000), (8, 1_000)])
    '4 runs of 100,000 rounds, 8 runs of 1,000 rounds, for each policy.'
    """
    distinct = sorted(set(sizes), key=lambda size: (-size[1], -size[0]))
    listed = [f"{runs:,} runs of {horizon:,} rounds" for runs, horizon in distinct]
    return f"{', '.join(listed)}{',' if len(listed) > 1 else ''} for each policy."


def simulated(plan: Plan, folder: Path, name: str, advance: Advance, keep_runs: bool = False) -> None:
    """See that the results of a plan are there, under a name."""
    finish(plan, _place(folder, name), advance, keep_runs)
    note(folder, name)


def finish(plan: Plan, place: Path, advance: Advance, keep_runs: bool) -> None:
    """Unless the results of a plan are there, run it, or go on where a killed run was."""
    if (place / RESULTS_FILE).exists() and _digest(place) == plan.digest():
        advance(plan.rounds)
    else:
        curves = "runs" if keep_runs else "moments"
        run_plan(plan, curves=curves, out=place, report=lambda done, seconds: advance(done))
        # The results hold all of it now; were the run killed here, they would be read, not run again.
        shutil.rmtree(place / BLOCKS)


def note(folder: Path, name: str) -> None:
    """Add a name to those whose results are there."""
    path = folder / ORDER_FILE
    known = json.loads(path.read_text()) if path.exists() else []
    if name not in known:
        write_atomically(path, json.dumps([*known, name]))


def device_code(plans: Iterable[Plan]) -> dict[object, Callable[[], object]]:
    """Calls that compile the kernels of plans; one kernel serves a number of arms."""
    from ..simulation.gpu.launch import compile_kernel, kernel_name

    return {
        ("cuda", kernel_name(policy, plan.environment)): partial(compile_kernel, policy, plan.environment)
        for plan in plans
        for policy in plan.policies
    }


def _place(folder: Path, name: str) -> Path:
    """The folder of a plan: its name in letters and digits, which every file system and link can hold."""
    return folder / re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-")


def _digest(folder: Path) -> str | None:
    try:
        digest: str = json.loads((folder / PLAN_FILE).read_text())["digest"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return digest


class Timed(Experiment):
    """An experiment that measures times; a finished one is not measured again when a run goes on."""

    unit = "timings"

    def times(self, scale: Scale, advance: Advance) -> dict[str, Any]:
        """Measure, and give what was measured as plain values."""
        raise NotImplementedError

    def measure(self, scale: Scale, folder: Path, advance: Advance) -> None:
        path = folder / TIMES_FILE
        if path.exists() and json.loads(path.read_text()).get("scale") == scale._asdict():
            advance(self.units(scale))
            return
        folder.mkdir(parents=True, exist_ok=True)
        measured = self.times(scale, advance)
        write_atomically(path, json.dumps({"scale": scale._asdict(), **measured}, indent=1))

    def saved(self, folder: Path) -> dict[str, Any]:
        """What was measured."""
        measured: dict[str, Any] = json.loads((folder / TIMES_FILE).read_text())
        return measured

"""The base classes of experiments: each measures once, and draws its section from saved results. Its texts are in
`sections.toml`; claims, and the numbers that decide them, in `claims.toml`.
"""

import json
import math
import multiprocessing
import re
import shutil
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from importlib.resources import files
from itertools import repeat
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from decoupled.base import write_atomically
from decoupled.environments import Adversary, Alternating
from decoupled.policies.warmup import form
from decoupled.simulation import (
    BLOCKS,
    PLAN_FILE,
    RESULTS_FILE,
    Block,
    BlockResult,
    Plan,
    ResultCollector,
    Results,
    run_block,
    run_plan,
)

from ..report.claims import LEAST_RUNS, Claim, Measure, judged, not_judged
from ..report.page import Section

Advance: TypeAlias = Callable[[int], None]  # takes the number of finished units of work

HORIZON = 10_000
PLANS_ON_DEVICE = 8  # at once
ORDER_FILE = "plans.json"
TIMES_FILE = "times.json"


class Scale(NamedTuple):
    """The size of a run. Results depend on nothing else."""

    runs: int = 1_000
    quick: bool = False
    seed: int = 0
    device: str = "cpu"  # for simulations; timings always use the CPU

    def most(self, quick: int) -> int:
        """The number of runs, but at most `quick` in the quick version; for slow experiments."""
        return min(self.runs, quick) if self.quick else self.runs

    def fewer(self, part: int) -> int:
        """A fraction of the runs, for experiments that need fewer; at least as many as a verdict takes, if there are so many."""
        return max(min(LEAST_RUNS, self.runs), self.runs // part)


class PaperExperiment:
    """One of the experiments that `decoupled_lab.paper` lists. `measure` fills a folder; `section` reads that folder alone."""

    unit: ClassVar[str] = "rounds"
    on_device: ClassVar[bool] = False  # whether all of it can run on a GPU
    times: ClassVar[bool] = (
        False  # whether it measures times, which other work on the machine disturbs
    )
    file: ClassVar[str] = ""  # of its plain values, if it has any

    def units(self, scale: Scale) -> int:
        """The amount of work, for the progress bar."""
        raise NotImplementedError

    def code(self, scale: Scale) -> dict[object, Callable[[], object]]:
        """Calls that compile the code to run. Experiments with the same code share a key."""
        return {}

    def measure(self, scale: Scale, folder: Path, advance: Advance) -> None:
        """Do the work that is not saved yet, and save it."""
        raise NotImplementedError

    def section(self, folder: Path) -> Section:
        """The section of the report, from the saved results."""
        raise NotImplementedError

    def extent(self, folder: Path) -> str:
        """The number of runs and rounds in the saved results, for the reader of the section."""
        raise NotImplementedError

    def saved(self, folder: Path) -> dict[str, Any]:
        """The saved plain values."""
        values: dict[str, Any] = json.loads((folder / self.file).read_text("utf-8"))
        return values


class Simulated(PaperExperiment):
    """An experiment that consists of plans, each with its own folder."""

    on_device = True
    keep_runs: ClassVar[bool] = False  # whether to keep the curve of every run, or only moments

    def plans(self, scale: Scale) -> dict[str, Plan]:
        """The plans by the names of their folders."""
        raise NotImplementedError

    def beside(self, scale: Scale) -> dict[str, Any]:
        """What `file` holds, if there is one: plain values that come from no plan."""
        raise NotImplementedError

    def units(self, scale: Scale) -> int:
        return sum(plan.rounds for plan in self.plans(scale).values())

    def code(self, scale: Scale) -> dict[object, Callable[[], object]]:
        return code_of(self.plans(scale).values(), scale.device)

    def measure(self, scale: Scale, folder: Path, advance: Advance) -> None:
        plans = {
            name: replace(plan, device=scale.device) for name, plan in self.plans(scale).items()
        }
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
                plan,
                folder,
                name,
                advance if scale.device == "cpu" else lambda done: None,
                self.keep_runs,
            )
        if self.file and not (folder / self.file).exists():
            write_atomically(folder / self.file, json.dumps(self.beside(scale), indent=1))

    def results(self, folder: Path) -> dict[str, Results]:
        """The saved results by name, in the order of the plans."""
        return {name: Results.load(_place(folder, name) / RESULTS_FILE) for name in _order(folder)}

    def extent(self, folder: Path) -> str:
        kept = [_plan(_place(folder, name))["plan"] for name in _order(folder)]
        return formatted_extent((plan["runs"], plan["horizon"]) for plan in kept)


class PlayedByLearners(Simulated):
    """An experiment of plans whose rounds learners play, because a simulation has no such rules."""

    on_device = False

    def play(self, name: str, plan: Plan, block: Block) -> dict[str, BlockResult]:
        """Play one run of one policy of a plan.

        Return what comes of it, by what follows the plan's name in the name of the results.
        """
        raise NotImplementedError

    def code(self, scale: Scale) -> dict[object, Callable[[], object]]:
        return {}  # a learner's calls ship

    def measure(self, scale: Scale, folder: Path, advance: Advance) -> None:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(mp_context=context) as processes:
            for name, plan in self.plans(scale).items():
                self._finish(name, plan, folder, advance, processes)
        if self.file and not (folder / self.file).exists():
            write_atomically(folder / self.file, json.dumps(self.beside(scale), indent=1))

    def _finish(
        self, name: str, plan: Plan, folder: Path, advance: Advance, processes: Executor
    ) -> None:
        """Play the runs of a plan unless their results are saved."""
        marker = _place(folder, name) / PLAN_FILE
        if marker.exists() and _digest(marker.parent) == plan.digest():
            advance(plan.rounds)
            return
        collectors: dict[str, ResultCollector] = {}
        blocks = list(plan.blocks(1))
        results = processes.map(self.play, repeat(name), repeat(plan), blocks, chunksize=4)
        for block, parts in zip(blocks, results, strict=True):
            for ending, result in parts.items():
                if ending not in collectors:
                    collectors[ending] = ResultCollector(plan, keep_curves=True)
                collectors[ending].add(block, result)
            advance(plan.horizon)
        # The plan of the first results is written last: it says that all are there.
        content = json.dumps({"digest": plan.digest(), "plan": plan.to_dict()}, indent=1)
        for ending in reversed(collectors):
            place = _place(folder, name + ending)
            place.mkdir(parents=True, exist_ok=True)
            collectors[ending].results().save(place / RESULTS_FILE)
            write_atomically(place / PLAN_FILE, content)
        for ending in collectors:
            note(folder, name + ending)


def formatted_extent(sizes: Iterable[tuple[int, int]]) -> str:
    """The distinct pairs of runs and rounds, longest first.

    >>> formatted_extent([(8, 1_000), (4, 100_000), (8, 1_000)])
    '4 runs of 100,000 rounds, 8 runs of 1,000 rounds, for each policy.'
    """
    distinct = sorted(set(sizes), key=lambda size: (-size[1], -size[0]))
    listed = [f"{runs:,} runs of {horizon:,} rounds" for runs, horizon in distinct]
    return f"{', '.join(listed)}{',' if len(listed) > 1 else ''} for each policy."


def simulated(
    plan: Plan, folder: Path, name: str, advance: Advance, keep_runs: bool = False
) -> None:
    """Make sure that the results of a plan are saved, under a name."""
    finish(plan, _place(folder, name), advance, keep_runs)
    note(folder, name)


def finish(plan: Plan, place: Path, advance: Advance, keep_runs: bool) -> None:
    """Run a plan unless its results are saved; resume a run that was killed."""
    if (place / RESULTS_FILE).exists() and _digest(place) == plan.digest():
        advance(plan.rounds)
    else:
        curves = "runs" if keep_runs else "moments"
        run_plan(plan, curves=curves, out=place, report=lambda done, seconds: advance(done))
        # The results are complete now. If the run is killed here, they are read, not computed again.
        shutil.rmtree(place / BLOCKS)


def note(folder: Path, name: str) -> None:
    """Add a name to the list of saved results."""
    known = _order(folder) if (folder / ORDER_FILE).exists() else []
    if name not in known:
        write_atomically(folder / ORDER_FILE, json.dumps([*known, name]))


def code_of(plans: Iterable[Plan], device: str) -> dict[object, Callable[[], object]]:
    """Calls that compile what plans run."""
    if device != "cpu":
        return device_code(plans)
    calls: dict[object, Callable[[], object]] = {}
    for plan in plans:
        # One loop serves all tables, so compiling the smallest suffices; each adversary has its own loop, and so has late feedback.
        adversary = isinstance(plan.environment, Adversary)
        world = plan.environment if adversary else Alternating(arms=2, gap=0.5)
        for policy in plan.policies:
            calls[form(policy, world.arms), type(world), plan.traffic.is_direct] = partial(
                run_block, policy, world, 2, np.array([2]), 0, range(1), traffic=plan.traffic
            )
    return calls


def device_code(plans: Iterable[Plan]) -> dict[object, Callable[[], object]]:
    """Calls that compile the kernels of plans. One kernel serves several numbers of arms."""
    from decoupled.simulation.gpu.launch import compile_kernel, kernel_name

    return {
        ("cuda", kernel_name(policy, plan.environment)): partial(
            compile_kernel, policy, plan.environment
        )
        for plan in plans
        for policy in plan.policies
    }


def _place(folder: Path, name: str) -> Path:
    """The folder of a plan: its name in letters and digits, which are valid in every file system and link."""
    return folder / re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-")


def _order(folder: Path) -> Any:
    """The names of the saved results."""
    return json.loads((folder / ORDER_FILE).read_text("utf-8"))


def _plan(place: Path) -> Any:
    return json.loads((place / PLAN_FILE).read_text("utf-8"))


def _digest(place: Path) -> Any:
    with suppress(OSError, ValueError, KeyError, TypeError):
        return _plan(place)["digest"]


class Recorded(PaperExperiment):
    """An experiment that saves plain values. A resumed run does not repeat a finished measurement."""

    file = "values.json"

    def record(self, scale: Scale, advance: Advance) -> dict[str, Any]:
        """Measure, and return the results as plain values."""
        raise NotImplementedError

    def measure(self, scale: Scale, folder: Path, advance: Advance) -> None:
        path = folder / self.file
        if path.exists() and json.loads(path.read_text("utf-8")).get("scale") == scale._asdict():
            advance(self.units(scale))
            return
        folder.mkdir(parents=True, exist_ok=True)
        measured = self.record(scale, advance)
        write_atomically(path, json.dumps({"scale": scale._asdict(), **measured}, indent=1))


class Timed(Recorded):
    """An experiment that measures times."""

    unit = "timings"
    times = True
    file = TIMES_FILE


@cache
def read_texts(name: str) -> dict[str, Any]:
    """The texts of a file beside this one."""
    return tomllib.loads(files(__package__).joinpath(name).read_text("utf-8"))


def sheet() -> dict[str, dict[str, Any]]:
    """Every claim by its name."""
    return read_texts("claims.toml")


def told(name: str) -> str:
    """The text of an experiment's section."""
    return " ".join(read_texts("sections.toml")[name].split())


def judge(name: str, parts: Sequence[Measure], ending: str = "", **filled: str) -> Claim:
    """The verdict on a claim. `filled` are its words that a run decides; `ending` is added to its name.

    >>> judge("horizon-constant", [Measure("easy", 0.02, 0.01, 0.03)], last="100", logarithm="0.50").verdict
    'holds'
    """
    said, words = sheet()[name], _words(name, filled)
    low, high = said.get("between", (said.get("above", -math.inf), said.get("below", math.inf)))
    return judged(name + ending, *words, parts, low, high)


def unmeasured(name: str, reason: str) -> Claim:
    """A claim for which nothing could be measured."""
    return not_judged(Claim(name, *_words(name, {}), "", (), ""), reason)


def _words(name: str, filled: Mapping[str, str]) -> tuple[str, str, str]:
    """The place, the statement and the statistic."""
    said = {"place": "ours", **sheet()[name]}
    place, statement, statistic = (
        re.sub(r"<<(\w+)>>", lambda found: filled[found[1]], said[part])
        for part in ("place", "statement", "statistic")
    )
    return place, statement, statistic

"""Runs the experiments and writes their report: `decoupled reproduce` and `decoupled report`."""

import hashlib
import json
import multiprocessing
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any

from decoupled.base import duration, one_of, progress_bar, write_atomically
from decoupled.errors import ParameterError, StorageError, near_name
from decoupled.kernels.jit import cache_folder
from decoupled.simulation import DEVICES

from ..bench.timing import describe
from ..report.page import Section, write_report
from . import EXPERIMENTS, GROUPS
from .base import PaperExperiment, Scale
from .notes import notes, reading_of


def load(name: str) -> PaperExperiment:
    """The experiment that `decoupled_lab.paper` lists under this name."""
    module, _, kind = EXPERIMENTS[name].where.rpartition(".")
    found: PaperExperiment = getattr(import_module(f".{module}", __package__), kind)()
    return found


PAPERS = {name for name, each in EXPERIMENTS.items() if each.in_quick}  # what judges the paper
RUN_FILE = "run.json"
# The errors of files that were changed or cut off.
MISREAD = (AttributeError, IndexError, KeyError, TypeError, ValueError)
FULL_RUNS, QUICK_RUNS = 1_000, 40
TITLE = "Follow-the-Perturbed-Leader for Decoupled Bandits, reproduced"


def reproduce(
    names: Sequence[str], scale: Scale, out: Path, *, resume: bool, quiet: bool, latex: bool = False
) -> list[Section]:
    """Run the experiments named, or all, and write the report; with `resume`, keep what is finished."""
    known = (*EXPERIMENTS, *GROUPS)
    if (unknown := next((name for name in names if name not in known), None)) is not None:
        raise ParameterError.of("experiment", unknown, "is not known", near_name(unknown, known))
    default = [name for name, each in EXPERIMENTS.items() if each.in_quick or not scale.quick]
    wanted = [each for name in names for each in GROUPS.get(name, (name,))] or default
    if one_of("device", scale.device, DEVICES) != "cpu":
        wanted = fit_for_devices(wanted, bool(names))
    chosen = {name: load(name) for name in EXPERIMENTS if name in wanted}
    out.mkdir(parents=True, exist_ok=True)
    record = begin(out, scale, resume)
    compile_all({key: call for each in chosen.values() for key, call in each.code(scale).items()})
    for number, (name, experiment) in enumerate(chosen.items(), 1):
        folder = out / name
        if not resume:
            shutil.rmtree(folder, ignore_errors=True)
        start = time.perf_counter()
        # How many processes wanted to run over the last minute; 0 where the system does not say.
        busy = round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else 0.0
        if resume:  # what is finished is not measured again
            busy = record["experiments"].get(name, {}).get("load", busy)
        label = f"[{number}/{len(chosen)}] {name}"
        with progress_bar(
            experiment.units(scale), quiet=quiet, label=label, unit=experiment.unit
        ) as report:
            experiment.measure(scale, folder, lambda done, report=report: report(done, 0.0))  # type: ignore[misc]
        seconds = time.perf_counter() - start
        record["experiments"][name] = {"seconds": round(seconds, 1), "load": busy}
        write_atomically(out / RUN_FILE, json.dumps(record, indent=1))
        if not quiet:
            print(f"{label}: {duration(seconds)}", flush=True)
    return rebuild(out, latex=latex)


def fit_for_devices(wanted: Sequence[str], asked: bool) -> list[str]:
    """The experiments that a GPU can run. One that was asked for by name and is not among them is refused."""
    unfit = [name for name in wanted if not load(name).on_device]
    rule = "cannot run on a GPU: it times the CPU, or has too many arms"
    if asked and unfit:
        raise ParameterError.of("experiment", unfit[0], rule, "leave it out, or use --device cpu")
    if unfit:
        print(
            f"Left out with --device cuda: {', '.join(unfit)}; they time the CPU, or have too many arms."
        )
    return [name for name in wanted if name not in unfit]


def begin(out: Path, scale: Scale, resume: bool) -> dict[str, Any]:
    """The record of what was run in this folder; experiments of another scale, machine or version are not mixed in."""
    record: dict[str, Any] = {
        "scale": scale._asdict(),
        "machine": describe(),
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "experiments": {},
    }
    if not (out / RUN_FILE).exists():
        return record
    before = read_record(out)
    differs = [key for key in ("scale", "machine") if before.get(key) != record[key]]
    if not differs:
        record["experiments"] = before["experiments"]
        if (begun := before.get("commit")) != record["commit"]:
            record["commit"] = f"{begun}, continued with {record['commit']}"
    elif resume:
        key = differs[0]
        raise StorageError(
            f"{out}: holds a run with {before.get(key)}, not {record[key]}; "
            "give the same options on the same machine and versions, or another folder with --out"
        )
    return record


def commit() -> str | None:
    """The commit that this file is part of, and whether the checkout has changes; None outside of a checkout."""
    file = Path(__file__)
    for asked in (
        ("ls-files", "--error-unmatch", file.name),
        ("describe", "--always", "--abbrev=12", "--dirty"),
    ):
        command = ["git", "-C", str(file.parent), *asked]
        try:
            found = subprocess.run(command, capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError):
            return None
    return found.stdout.strip()


def read_record(folder: Path) -> dict[str, Any]:
    """What was run in a folder."""
    path = folder / RUN_FILE
    try:
        record: dict[str, Any] = json.loads(path.read_text("utf-8"))
        facts(record)
    except FileNotFoundError:
        reason = f"{path}: does not exist; give a folder that decoupled reproduce wrote"
        raise StorageError(reason) from None
    except MISREAD as error:
        reason = f"{type(error).__name__}: {error}"
        raise StorageError(
            f"{path}: is not readable ({reason}); run decoupled reproduce again"
        ) from None
    return record


def rebuild(folder: Path, *, latex: bool = False) -> list[Section]:
    """Judge and draw everything again from what is saved, also for LaTeX if wanted; nothing is run."""
    record = read_record(folder)
    names = [name for name in EXPERIMENTS if name in record["experiments"]]
    sections = [section_of(name, load(name), folder / name, record) for name in names]
    shown = [*sections, *notes()]
    write_report(folder, TITLE, lead(record, sections), facts(record), shown, latex=latex)
    return sections


def section_of(
    name: str, experiment: PaperExperiment, folder: Path, record: dict[str, Any]
) -> Section:
    """The section of an experiment, with how much was run, and a warning if its times were measured on a busy machine."""
    title = EXPERIMENTS[name].title
    try:
        extent = experiment.extent(folder)
        section = experiment.section(folder)
        text = f"{section.text} {reading_of(name)}".strip()
        section = section._replace(text=text, name=name, title=title, extent=extent)
        busy, cores = record["experiments"][name].get("load", 0.0), record["machine"]["processors"]
        if not experiment.times or busy <= cores + 1:  # one for this program's own last experiment
            return section
    except MISREAD as error:
        reason = f"{type(error).__name__}: {error}"
        remedy = f"run decoupled reproduce {name} again"
        raise StorageError(
            f"{folder}: cannot be drawn from its files ({reason}); {remedy}"
        ) from error
    warning = (
        f"{title}: the machine was busy when this was measured (load {busy:.1f} on {cores} cores). "
        "Do not trust verdicts on times; run it again on an idle machine."
    )
    return section._replace(warnings=(*section.warnings, warning))


def lead(record: dict[str, Any], sections: Sequence[Section]) -> str:
    """What the reader is looking at."""
    scale = Scale(**record["scale"])
    quick = ""
    if scale.quick:
        quick = (
            " This is the <b>quick</b> version, with few runs: many claims stay undecided. "
            "The full one is <code>decoupled reproduce</code>."
        )
    paper = "the paper by Kim, Lee and Oh (ICML 2026)"
    if {section.name for section in sections} >= PAPERS:
        what = (
            f"Every figure of {paper}, drawn again, and a verdict on each of its empirical claims"
        )
    else:
        titles = ", ".join(escape(section.title) for section in sections)
        what = f"Some of the experiments around {paper}, run again, with the claims they judge. Here: {titles}"
    return f"{what}. Each section says how many runs it has; the seed is {scale.seed}.{quick}"


def facts(record: dict[str, Any]) -> dict[str, str]:
    """Machine, versions, seeds, times."""
    scale = Scale(**record["scale"])
    times = ", ".join(
        f"{name} {each['seconds']:.0f} s" for name, each in record["experiments"].items()
    )
    whole = sum(each["seconds"] for each in record["experiments"].values())
    return {
        "runs": f"{scale.runs:,} asked for; each section says how many it has, which may be more or fewer",
        "device": scale.device,
        "seed": f"{scale.seed} (environment noise and policy draws are children of it, by run number)",
        "started": str(record["when"]),
        "commit": str(record.get("commit")),
        "time": f"{duration(whole)} in all: {times}",
        **{name: str(value) for name, value in record["machine"].items()},
    }


MOST_PROCESSES = 16  # each may also use a GPU


def compile_all(code: Mapping[object, Callable[[], object]]) -> None:
    """Make every call in another process, so that its machine code is cached; once per version of the code."""
    folder, cores = cache_folder(), min(os.cpu_count() or 1, MOST_PROCESSES)
    if folder is None or cores < 2 or len(code) < 2:
        return
    done = Path(folder) / hashlib.sha256(repr(sorted(map(str, code))).encode()).hexdigest()[:16]
    if done.exists():
        return
    # A forked child would inherit the locks of threads that it does not have.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(cores, mp_context=context) as processes:
        for future in [processes.submit(call) for call in code.values()]:
            future.result()
    done.touch()

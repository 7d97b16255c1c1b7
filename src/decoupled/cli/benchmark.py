"""Runs the benchmark and says what came out: `decoupled benchmark`."""

import os
import re
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from ..base.progress import duration
from ..benchmark.entry import FILE
from ..benchmark.run import run
from ..benchmark.suite import REFERENCES, SUITE
from ..environments.movielens.files import FOLDER_VARIABLE


def run_benchmark(
    policy: str,
    name: str | None,
    *,
    quick: bool,
    out: Path | None,
    workers: int | None,
    data: Path | None,
    time_limit: float,
    quiet: bool,
) -> None:
    """Run the suite with a policy, write its entry and print how it compares."""
    folder = out or Path("out/benchmark") / default_folder(policy, name)
    known = data or os.environ.get(FOLDER_VARIABLE) or None
    size = "quick" if quick else "standard"
    entry = run(
        policy, size, folder, name=name, workers=workers, data=known, time_limit=time_limit, quiet=quiet
    )
    Console().print(group_table(entry))
    print(
        "Below 1 is less regret than the reference's, as a geometric mean over tasks; *: beyond chance (95 %)."
    )
    took = duration(entry["environment"]["seconds"])
    print(f"{folder / FILE} has every number; {took} of processor time, digest {entry['digest'][:12]}.")


def default_folder(policy: str, name: str | None) -> str:
    """The name of the folder of a policy's results."""
    stem = Path(policy).stem if policy.endswith(".py") else policy
    shown = stem if name is None else f"{stem}-{name}"
    return re.sub(r"[^A-Za-z0-9.]+", "-", shown).strip("-")[:60] or "policy"


def group_table(entry: dict[str, Any]) -> Table:
    """The ratios of every group, for a terminal."""
    table = Table(title=f"{entry['policy']['name']} on {SUITE.name}, {entry['size']}")
    table.add_column("group")
    for reference in REFERENCES:
        table.add_column(f"/ {reference}", justify="right")
    for group in entry["groups"]:
        cells = (group["ratios"][reference] for reference in REFERENCES)
        table.add_row(group["title"], *(f"{each['ratio']:.2f}{_mark(each)}" for each in cells))
    return table


def _mark(ratio: dict[str, float]) -> str:
    return "  " if ratio["low"] <= 1.0 <= ratio["high"] else " *"

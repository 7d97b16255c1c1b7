"""Runs the benchmark and says what came out: `decoupled benchmark`."""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from decoupled.base import duration, write_atomically

from ..benchmark.entry import FILE
from ..benchmark.picture import draw
from ..benchmark.run import run
from ..benchmark.table import BOLD, groups_to_markdown, to_latex, to_markdown
from ..movielens.files import FOLDER_VARIABLE


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
    latex: bool,
) -> None:
    """Run the suite with a policy, write its entry, tables and picture, and print how it compares."""
    folder = out or Path("out/benchmark") / default_folder(policy, name)
    known = data or os.environ.get(FOLDER_VARIABLE) or None
    size = "quick" if quick else "standard"
    entry = run(
        policy, size, folder, name=name, workers=workers, data=known, time_limit=time_limit, quiet=quiet
    )
    print(
        f"{entry['policy']['name']} on {entry['suite']}, {entry['size']}: regret as a multiple of each reference's\n"
    )
    print(groups_to_markdown(entry, intervals=False))
    print(f"\nGeometric means over the tasks of a group. Below 1 is better;\n{BOLD.format(1)}.")
    files = [FILE, *write_shown(entry, folder, latex=latex)]
    took = duration(entry["environment"]["seconds"])
    print(f"Written to {folder}: {', '.join(files)}.")
    print(f"{took} of processor time, digest {entry['digest'][:12]}.")


def write_shown(entry: Mapping[str, Any], folder: Path, *, latex: bool) -> Iterator[str]:
    """Write what is shown of an entry; the names of the files."""
    texts = {"table.md": to_markdown} | ({"table.tex": to_latex} if latex else {})
    for name, write in texts.items():
        write_atomically(folder / name, write(entry))
        yield name
    for name in ("picture.png", "picture.pdf")[: 1 + latex]:
        draw(entry, folder / name)
        yield name


def default_folder(policy: str, name: str | None) -> str:
    """The name of the folder of a policy's results."""
    stem = Path(policy).stem if policy.endswith(".py") else policy
    shown = stem if name is None else f"{stem}-{name}"
    return re.sub(r"[^A-Za-z0-9.]+", "-", shown).strip("-")[:60] or "policy"

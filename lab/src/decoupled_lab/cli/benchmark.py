"""`decoupled benchmark`: runs the benchmark and says what came out. It imports what it needs when it runs."""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from decoupled.base import duration, write_atomically
from decoupled.cli import report_errors


def benchmark(
    policy: Annotated[
        str,
        typer.Argument(
            metavar="POLICY", help="A Python file such as my_policy.py, or a call such as 'Ladder()'."
        ),
    ],
    name: Annotated[
        str | None,
        typer.Option(
            "--policy", metavar="NAME", help="Which policy of the file: a name, or a call with its values."
        ),
    ] = None,
    suite: Annotated[
        str,
        typer.Option(
            metavar="SUITE", help="decoupled-1, or decoupled-2, with contexts and faulty feedback."
        ),
    ] = "decoupled-1",
    quick: Annotated[bool, typer.Option("--quick", help="A small version: a minute.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for results; a rerun resumes there. Default: out/benchmark/POLICY."),
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes. Default: all cores.")] = None,
    data: Annotated[
        Path | None, typer.Option(help="Folder with recorded tables, for the tasks that need them.")
    ] = None,
    time_limit: Annotated[
        float, typer.Option(metavar="SECONDS", help="Seconds that the runs of one task may take.")
    ] = 900.0,
    latex: Annotated[
        bool, typer.Option("--latex", help="Write table.tex and picture.pdf as well, for a paper.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress bar.")] = False,
) -> None:
    """Run a frozen suite with your own policy, or one of the package, and compare it with references."""
    from ..benchmark.entry import FILE
    from ..benchmark.run import run
    from ..benchmark.table import BOLD, groups_to_markdown
    from ..movielens.files import FOLDER_VARIABLE

    folder = out or Path("out/benchmark") / default_folder(policy, name)
    known, size = data or os.environ.get(FOLDER_VARIABLE) or None, "quick" if quick else "standard"
    kept = "finished tasks are kept; run the same command to continue"
    with report_errors(kept, arguments=("policy", "time_limit", "suite")):
        entry = run(
            policy, size, folder, name=name, workers=workers, data=known, time_limit=time_limit, quiet=quiet,
            suite=suite,
        )  # fmt: skip
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
    from ..benchmark.picture import draw
    from ..benchmark.table import to_latex, to_markdown

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

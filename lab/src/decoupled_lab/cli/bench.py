"""`decoupled bench` measures speed, and `decoupled benchmark` compares a policy with others.

They import what they need when they run.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer

from decoupled.base import duration, write_atomically
from decoupled.cli import report_errors
from decoupled.errors import ParameterError, near_name

GROUPS = ("learner", "engine", "service", "mirror", "gpu", "verdict")
DEFAULT = GROUPS[:2]  # the others need an extra and an otherwise idle machine


@report_errors(arguments=("group",))
def bench(
    groups: Annotated[
        list[str] | None,
        typer.Argument(help=f"Any of {', '.join(GROUPS)}. Default: the first two."),
    ] = None,
    repetitions: Annotated[int, typer.Option(min=3, help="Repetitions of every line.")] = 15,
    out: Annotated[Path, typer.Option(help="File for the lines as JSON.")] = Path("out/bench.json"),
    soak: Annotated[
        float,
        typer.Option(min=0.0, help="With service: extra minutes, to check that memory stays flat."),
    ] = 0.0,
    against: Annotated[
        Path | None,
        typer.Option(
            metavar="CHECKOUT", help="With engine: compare with the package of another checkout."
        ),
    ] = None,
) -> None:
    """Measure speed, mostly as ratios of two programs that take turns, and how soon a verdict comes."""
    from ..bench import engine, service, timing

    for name in groups or ():
        if name not in GROUPS:
            raise ParameterError.of("group", name, "is not known", near_name(name, GROUPS))
    if against is not None and "engine" not in (groups or DEFAULT):
        rule = "compares simulated rounds, which only the group engine measures"
        raise ParameterError.of("--against", str(against), rule, "add engine to the groups")
    check_out(out)
    out.parent.mkdir(parents=True, exist_ok=True)  # first, so that a failure here loses no work
    lines = []
    for name in groups or DEFAULT:
        print(f"\n{name}")
        lengthy = service.soak(60.0 * soak) if name == "service" and soak else ()
        measured: Iterator[Any]
        if name == "engine" and against is not None:
            measured = engine.measure_against(against, repetitions)
        else:
            measured = import_module(f"decoupled_lab.bench.{name}").measure(repetitions)
        for line in chain(measured, lengthy):
            print(formatted(line), flush=True)
            lines.append({"group": name, "line": line.name, **line._asdict()})
    write_atomically(
        out, json.dumps({"machine": timing.describe(), "lines": lines}, indent=1) + "\n"
    )
    print(f"\nWritten to {out}")


def check_out(out: Path) -> None:
    """Raise an error if the file exists and `decoupled bench` did not write it."""
    if not out.exists():
        return
    try:
        held = json.loads(out.read_bytes())
    except (OSError, ValueError):
        held = None
    if not isinstance(held, dict) or held.keys() != {"machine", "lines"}:
        rule = "exists, but decoupled bench did not write it"
        raise ParameterError.of("--out", str(out), rule, "choose another file")


def formatted(line: Any) -> str:
    """A measurement as a line of the table."""
    from ..bench.timing import Rate, Ratio

    if isinstance(line, Ratio):
        return (
            f"  {line.name:<58} {line.seconds * 1e6:9.3f} us   {line.rival:<31} {line.rival_seconds * 1e6:9.3f} us"
            f"   ratio {line.ratio:7.2f}  ({line.lowest:.2f} to {line.highest:.2f})"
        )
    if isinstance(line, Rate):
        target = f"   (target: at least {line.least:g})" if line.least else ""
        return f"  {line.name:<58} {line.value:9.3f} {line.unit}{target}"
    return f"  {line.name:<58} {line.value:9.2f} {line.unit}   (target: below {line.limit:g})"


def benchmark(
    policy: Annotated[
        str,
        typer.Argument(
            metavar="POLICY",
            help="A Python file such as my_policy.py, or a call such as 'Ladder()'.",
        ),
    ],
    name: Annotated[
        str | None,
        typer.Option(
            "--policy",
            metavar="NAME",
            help="Which policy of the file: a name, or a call with its values.",
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A small version: a minute.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for results; a rerun resumes there. Default: out/benchmark/POLICY."
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes. Default: all cores.")
    ] = None,
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
    with report_errors(kept, arguments=("policy", "time_limit")):
        entry = run(
            policy,
            size,
            folder,
            name=name,
            workers=workers,
            data=known,
            time_limit=time_limit,
            quiet=quiet,
        )
        where = f"{entry['policy']['name']} on {entry['suite']}, {entry['size']}"
        print(f"{where}: regret as a multiple of each reference's\n")
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

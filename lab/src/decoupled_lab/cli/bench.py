"""`decoupled bench`: prints what it measures, and writes it to a file. It imports what it needs when it runs."""

import json
from collections.abc import Sequence
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer

from decoupled.base import write_atomically
from decoupled.cli import report_errors
from decoupled.errors import ParameterError, near_name

GROUPS = ("learner", "engine", "start", "service", "limits", "mirror", "gpu")
DEFAULT = GROUPS[:3]  # the others need an extra and an otherwise idle machine


def bench(
    groups: Annotated[
        list[str] | None,
        typer.Argument(help=f"Any of {', '.join(GROUPS)}. Default: the first three."),
    ] = None,
    repetitions: Annotated[int, typer.Option(min=3, help="Repetitions of every line.")] = 15,
    out: Annotated[Path, typer.Option(help="File for the lines as JSON.")] = Path("out/bench.json"),
    soak: Annotated[
        float, typer.Option(min=0.0, help="With service: extra minutes, to check that memory stays flat.")
    ] = 0.0,
    against: Annotated[
        Path | None,
        typer.Option(metavar="CHECKOUT", help="With engine: compare with the package of another checkout."),
    ] = None,
) -> None:
    """Measure speed, mostly as ratios of two programs that take turns."""
    with report_errors(arguments=("group",)):
        run_bench(groups or [], repetitions, out, soak, against)


def run_bench(
    groups: Sequence[str], repetitions: int, out: Path, soak: float = 0.0, against: Path | None = None
) -> None:
    """Measure the named groups, or the default ones; print each line as it is measured. `soak` is in minutes."""
    from ..bench import engine, service, timing

    for name in groups:
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
        measured = import_module(f"decoupled_lab.bench.{name}").measure(repetitions)
        if name == "engine" and against is not None:
            measured = engine.measure_against(against, repetitions)
        for line in chain(measured, lengthy):
            print(formatted(line), flush=True)
            lines.append({"group": name, "line": line.name, **line._asdict()})
    write_atomically(out, json.dumps({"machine": timing.describe(), "lines": lines}, indent=1) + "\n")
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

"""Measures what the page of measurements shows, and writes it to `docs/data/measurements.json`, one group or several at a time.

    python docs/tools/measure.py regret                       # ten minutes on two cores; needs MovieLens
    python docs/tools/measure.py regret --only alternating    # records that begin with regret.alternating
    python docs/tools/measure.py engine service --times 3 --machine newer-xeon

The site shows the new numbers at once. Pages that quote one of them have it as plain text: change them by hand.

Groups that are not named stay as they are. What a group of `decoupled bench` measures goes to the records that name one
of its lines. A ratio has its own range; other numbers get the range over `--times`. Times are only worth keeping from a
machine that has nothing else to do.
"""

import argparse
import importlib
import json
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import context_gains
import measurements
import regrets

import decoupled as dc
from decoupled_lab.bench.steps import compiled_step
from decoupled_lab.bench.timing import Ratio

BENCHES = ("learner", "engine", "start", "service", "limits", "mirror", "gpu")
SCALES = {"µs": 1e6, "ms": 1e3, "s": 1.0}
SEEDED = "seeded"  # the machine of what is simulated with a seed
Found = Iterator[tuple[str, dict[str, Any]]]


def from_bench(bench: str, held: dict[str, Any], options: argparse.Namespace) -> Found:
    """Run a group of `decoupled bench`, and take what its records name."""
    lines: dict[str, list[Any]] = defaultdict(list)
    module = importlib.import_module(f"decoupled_lab.bench.{bench}")
    for _ in range(options.times):
        for line in module.measure(options.repetitions):
            lines[key(line)].append(line)
            print(key(line), flush=True)
    for name, record in held.items():
        if record.get("line") in lines:
            yield name, numbers(record, lines[record["line"]])


def key(line: Any) -> str:
    """The name of a line, as a record gives it."""
    return f"{line.name} | {line.rival}" if isinstance(line, Ratio) else str(line.name)


def numbers(record: dict[str, Any], lines: list[Any]) -> dict[str, float]:
    """The value of a record, or its range, or both: what it had before.

    >>> numbers({"low": 1.0, "high": 2.0, "unit": "µs"}, [Ratio("a", 3e-6, "b", 1.0, 5.0, 4.0, 6.0)])
    {'low': 3.0, 'high': 3.0}
    >>> numbers({"value": 1.0, "low": 1.0, "unit": "ratio"}, [Ratio("a", 3e-6, "b", 1.0, 5.0, 4.0, 6.0)])
    {'value': 5.0, 'low': 4.0, 'high': 6.0}
    """
    ratios = isinstance(lines[0], Ratio) and record["unit"] == "ratio"
    if ratios:
        values = [line.ratio for line in lines]
    elif isinstance(lines[0], Ratio):
        values = [line.seconds * SCALES[record["unit"]] for line in lines]
    else:
        values = [line.value for line in lines]
    low = min(line.lowest for line in lines) if ratios else min(values)
    high = max(line.highest for line in lines) if ratios else max(values)
    found = {
        "value": rounded(statistics.median(values)),
        "low": rounded(low),
        "high": rounded(high),
    }
    kept = {"value"} & record.keys() | ({"low", "high"} if "low" in record else set())
    return {name: number for name, number in found.items() if name in kept}


def rounded(number: float) -> float:
    """To three significant digits, as a time is not known any better."""
    return float(f"{number:.3g}")


def steps(repetitions: int) -> Found:
    """Microseconds of the compiled step of every policy: medians of interleaved repetitions, after one that is not counted."""
    players = {name: each for name, each in regrets.CONTENDERS.items() if "centred" not in name}
    players |= regrets.COMPARED
    for arms, rounds in {8: 20_000, 64: 5_000}.items():
        times: dict[str, list[float]] = {name: [] for name in players}
        for turn in range(1 + repetitions):
            for name, policy in players.items():
                seconds = compiled_step(policy, arms, rounds)
                times[name] += [seconds] * (turn > 0)
        for name, found in times.items():
            what = f"the policy's own step, decide and update, of {players[name].label} with {arms} arms"
            value = float(f"{1e6 * statistics.median(found):.2g}")
            yield f"steps.{name}.{arms}", {"value": value, "unit": "µs", "what": what}


SIMULATED: dict[str, Callable[[argparse.Namespace], Found]] = {
    "regret": lambda options: regrets.measure(options.only),
    "traffic": lambda options: regrets.measure_traffic(),
    "late": lambda options: regrets.measure_late(),
    "losing": lambda options: regrets.measure_losing(),
    "recorded": lambda options: regrets.measure_recorded(),
    "context": lambda options: context_gains.measure(),
    "vectors": lambda options: context_gains.measure_vectors(),
}


def measured(group: str, held: dict[str, Any], options: argparse.Namespace) -> Found:
    """The records of a group."""
    if group in SIMULATED:
        return SIMULATED[group](options)
    return steps(options.repetitions) if group == "steps" else from_bench(group, held, options)


GROUPS = (*SIMULATED, "steps", *BENCHES)


def main() -> None:
    """Measure the groups asked for and write the file."""
    content = json.loads(measurements.FILE.read_text())
    parser = argparse.ArgumentParser(description="Measures what the pages quote.")
    parser.add_argument(
        "groups", nargs="+", choices=sorted(GROUPS), metavar="group", help=", ".join(GROUPS)
    )
    parser.add_argument(
        "--only", default="", help="of regrets: instances whose name begins like this"
    )
    parser.add_argument(
        "--times", type=int, default=1, help="how often to run a group of decoupled bench"
    )
    parser.add_argument("--repetitions", type=int, default=15, help="of everything that is timed")
    parser.add_argument(
        "--machine", choices=sorted(content["machines"]), help="where times are measured"
    )
    parser.add_argument(
        "--out", type=Path, default=measurements.FILE, help="another file, to try it"
    )
    options = parser.parse_args()
    for name in options.groups:
        machine = SEEDED if name in SIMULATED else options.machine
        if machine is None:
            parser.error(
                f"--machine: is needed for {name}; it is one of {', '.join(content['machines'])}"
            )
        group = content["groups"][name]
        made = {"machine": machine, "version": dc.__version__}
        for record, found in measured(name, group["records"], options):
            old = {
                each: text
                for each, text in group["records"].get(record, {}).items()
                if each not in made
            }
            own = {each: text for each, text in made.items() if text != group[each]}
            group["records"][record] = old | found | own
            print(record, found, flush=True)
        measurements.save(content, options.out)


if __name__ == "__main__":
    main()

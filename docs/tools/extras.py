"""Measure what each extra takes: its size when installed, and the processor time of a first use.

    .venv/bin/python docs/tools/measure.py extras --machine virtual-xeon      # make install cuda first

It reads the packages of this environment, which has the locked versions of the extras; one that is not installed is left
out. `litellm` has an environment of its own, made by `make litellm`: run this with its Python. The files of the packages that
an extra needs are added up, without bytecode. A time is the least of five processes.
"""

import re
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "decoupled-bandits"
REPETITIONS = 5
FIRST_DECISION = "import decoupled as dc; dc.FTPL().start(arms=3, seed=0).decide()"
# The shortest program that needs the extra.
FIRST_USE = {
    "core": FIRST_DECISION,
    "simulate": "import decoupled as dc; dc.simulate(dc.FTPL(), dc.environments.Bernoulli([0.2, 0.7]), 100, 10)",
    "plots": "from decoupled.plots import Panel, Picture, Series, draw; import numpy as np; x = np.arange(3.0);"
    "draw(Picture('a', 'a', '', (Panel('', (Series('a', x, x),)),))).savefig('a.png')",
    "cli": "import sys; sys.argv = ['decoupled', '--help']; import decoupled.cli; decoupled.cli.main()",
    "jit": "from decoupled.extend import compiled; compiled(lambda x: 2.0 * x)(1.0)",
    "conic": "import decoupled as dc; dc.TsallisINF(solver='scs').start(arms=3, seed=0).decide()",
    "dask": "import distributed",
    "otel": "import decoupled_serve.service.http.observe.telemetry_settings; from opentelemetry.sdk.trace import TracerProvider;"
    "from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter;"
    "OTLPSpanExporter(); TracerProvider()",
    "parquet": "import pandas, pyarrow.parquet",
    "postgres": "import psycopg",
    "service": "import decoupled_serve.service.http.app",
    "sklearn": "from decoupled_lab.sklearn import DecoupledBandit; DecoupledBandit(arms=2).fit([0, 1], [0, 1], 0.5)",
    "cuda": "import numba.cuda",
    "litellm": "from decoupled_serve.litellm import Plugin; Plugin('chat', ['a', 'b'], {'status': 1.0})",
    "all": FIRST_DECISION,
}


def packages(extra: str) -> dict[str, Distribution]:
    """Everything that installing the package with an extra brings, by name."""
    found: dict[str, Distribution] = {}
    todo = [(PACKAGE, frozenset() if extra == "core" else frozenset({extra}))]
    seen = set()
    while todo:
        asked = todo.pop()
        if asked in seen:
            continue
        seen.add(asked)
        name, extras = asked
        found[name] = distribution(name)
        for line in found[name].requires or ():
            needed = Requirement(line)
            if needed.marker is None or any(
                needed.marker.evaluate({"extra": each}) for each in extras | {""}
            ):
                todo.append((re.sub(r"[-_.]+", "-", needed.name).lower(), frozenset(needed.extras)))
    return found


def size(extra: str) -> int:
    """The bytes that a package and an extra take."""
    # This package may be installed in a way that leaves its files in the checkout.
    own = [path for path in (ROOT / "core/src").rglob("*") if path.is_file()]
    others = (
        Path(str(each.locate_file(file)))
        for name, each in packages(extra).items()
        if name != PACKAGE
        for file in each.files or ()
    )
    kept = (path for path in (*own, *others) if path.suffix != ".pyc" and path.is_file())
    return sum(path.stat().st_size for path in kept)


def seconds(code: str, folder: str) -> float:
    """The processor time of a program: the least of several runs, after one that is not counted."""
    found = []
    for _ in range(1 + REPETITIONS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode:
            raise SystemExit(done.stderr)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return round(min(found[1:]), 2)


def measure() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every record of this group."""
    with tempfile.TemporaryDirectory() as folder:
        for extra, code in FIRST_USE.items():
            try:
                packages(extra)
            except PackageNotFoundError:
                continue
            yield f"extras.{extra}.size", {"value": round(size(extra) / 1e6, 1)}
            yield f"extras.{extra}.first-use", {"value": seconds(code, folder)}

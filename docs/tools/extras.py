"""Measure what each extra takes: installed size, and processor time until it is of use.

    .venv/bin/python docs/tools/extras.py dist/decoupled_bandits-*.whl >docs/data/extras.json

Each extra is installed from the wheel into an empty environment, in the locked versions. Times are the least of
five processes. `docs/tools/lists.py` makes the table on the page from the file.
"""

import json
import re
import resource
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
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
    "parquet": "import pandas, pyarrow.parquet",
    "postgres": "import psycopg",
    "service": "import decoupled.service.http.app",
    "cuda": "import numba.cuda",
    "all": FIRST_DECISION,
}


def measured(wheel: Path, extra: str, folder: Path) -> dict[str, float]:
    """Install one extra into an empty environment, and measure it there."""
    python = folder / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    [site] = folder.glob("lib/python*/site-packages")
    what = str(wheel) if extra == "core" else f"{wheel}[{extra}]"
    versions = folder / "versions.txt"
    versions.write_text(locked("cuda" if extra == "cuda" else "dev"))
    install = ["install", "--quiet", "--constraint", str(versions), what]
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python)]
    subprocess.run([*pip, *install], check=True, stdout=sys.stderr)
    return {
        "packages": len(list(site.glob("*.dist-info"))),
        "megabytes": round(
            sum(path.lstat().st_size for path in site.rglob("*") if path.is_file()) / 1e6, 1
        ),
        "first decision": seconds(python, FIRST_DECISION, folder),
        "first use": seconds(python, FIRST_USE[extra], folder),
    }


def locked(name: str) -> str:
    """The locked versions, without their hashes, which a wheel of our own does not have."""
    text = (ROOT / "requirements" / f"{name}.txt").read_text()
    return "\n".join(re.findall(r"^([a-z0-9][^\\\n]*==[^\\\n]*?) *\\?$", text, re.MULTILINE))


def seconds(python: Path, code: str, folder: Path) -> float:
    """The processor time of a program: the least of several runs, after one that is not counted."""
    found = []
    for _ in range(1 + REPETITIONS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([python, "-c", code], cwd=folder, capture_output=True, text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode:
            raise SystemExit(done.stderr)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return round(min(found[1:]), 2)


def main() -> None:
    """Measure every extra, or those named after the wheel."""
    wheel, extras = Path(sys.argv[1]).resolve(), sys.argv[2:]
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    found = {}
    for extra in extras or ["core", *declared]:
        with tempfile.TemporaryDirectory() as folder:
            found[extra] = measured(wheel, extra, Path(folder))
        print(extra, found[extra], file=sys.stderr, flush=True)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()

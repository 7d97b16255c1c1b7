"""Without an extra, what needs it says which to install, and everything else works."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from typer.main import get_command

import decoupled as dc
from decoupled import cli
from decoupled.base.extras import EXTRA_OF, as_missing_extra, how_to_install, needed_for
from decoupled.cli.main import app
from support.pages import ROOT
from support.plain_python import ran

PROJECT, SERVE, LAB = (
    tomllib.loads((ROOT / package / "pyproject.toml").read_text())["project"]
    for package in ("core", "serve", "lab")
)
# What a distribution is imported as, where the names differ.
MODULES = dict.fromkeys(
    ("opentelemetry-exporter-otlp-proto-http", "opentelemetry-sdk"), "opentelemetry"
)
MODULES |= {
    "prometheus-client": "prometheus_client",
    "numba-cuda": "numba",
    "scikit-learn": "sklearn",
}

# Every optional package is hidden; so is what they bring along. Each line is tried by itself.
SCRIPT = """
import sys
for hidden in {hidden!r}:
    sys.modules[hidden] = None
import decoupled as dc
world = dc.environments.Bernoulli([0.2, 0.7])
for attempt in {attempts!r}:
    try:
        exec(attempt)
    except dc.MissingExtraError as error:
        print(error)
    else:
        print("works")
"""


# The packages outside of Python's library that a simulation of several policies loads.
SIMULATION = """
import sys
import decoupled as dc
world = dc.environments.Alternating(arms=8, gap=0.125)
results = dc.simulate([dc.FTPL(), dc.Ladder()], world, horizon=100, runs=10, seed=0)
results.final_regret("FTPL"), results.labels
packages = {name.partition(".")[0] for name in sys.modules}
known = (*sys.stdlib_module_names, "cython_runtime", "sitecustomize", "usercustomize")
for name in sorted(packages.difference(known)):
    if not name.startswith("_"):
        print(name)
"""


def attempted(*attempts: str, hidden: list[str], cwd: Path | None = None) -> list[str]:
    return ran("-c", SCRIPT.format(hidden=hidden, attempts=attempts), cwd=cwd).splitlines()


def test_every_optional_package_is_known_with_an_extra_that_brings_it() -> None:
    requirements = [*SERVE["dependencies"], *LAB["dependencies"]]
    for project in (PROJECT, SERVE, LAB):
        requirements += [
            each for some in project["optional-dependencies"].values() for each in some
        ]
    for requirement in requirements:
        name = re.match(r"[\w-]+", requirement)[0]  # type: ignore[index]
        if not name.startswith(PROJECT["name"]):
            assert MODULES.get(name, name) in EXTRA_OF, f"{name} is missing in base/extras.py"
    assert set(EXTRA_OF.values()) <= set(PROJECT["optional-dependencies"])
    assert set(cli.EXTRAS) <= set(get_command(app).commands)  # type: ignore[attr-defined]
    assert {each for extras in cli.EXTRAS.values() for each in extras.split(",")} <= set(
        PROJECT["optional-dependencies"]
    )
    assert [re.split(r"\W", each)[0] for each in PROJECT["dependencies"]] == ["numpy"]


@pytest.mark.slow
def test_what_is_missing_is_named_with_its_extra(tmp_path: Path) -> None:
    (tmp_path / "losses.csv").write_text("a,b\n0.1,0.9\n")
    (tmp_path / "contexts.csv").write_text("subject,a,b\nlaw,0.1,0.9\n")
    (tmp_path / "decisions.csv").write_text(
        "explore,propensity,loss\n" + "a,0.5,0.2\nb,0.5,0.7\n" * 5
    )
    (tmp_path / "losses.parquet").write_bytes(b"")
    (tmp_path / "decisions.parquet").write_bytes(b"")

    def needs(purpose: str, package: str) -> str:
        problem = f"{purpose}: needs the package {package}, which is not installed"
        return f"{problem}; {how_to_install(EXTRA_OF[package])}"

    simulation = "dc.simulate(dc.FTPL(), world, horizon=100, runs=9"
    assert attempted(
        "dc.FTPL().start(arms=3, seed=0).decide()",
        f"results = {simulation})",
        "results.final_regret('FTPL'), results.labels, results.specification, results.short_labels",
        "results.data",
        "results.summary()",
        "results.statistics()",
        "results.to_pandas()",
        "results.save('results.nc')",
        "dc.Results.load('results.nc')",
        f"{simulation}, out='folder')",
        "dc.environments.LossTable('losses.csv')",
        "dc.environments.ContextTable('contexts.csv', ['subject'])",
        "dc.evaluate('decisions.csv', policy='a')",
        "dc.environments.LossTable('losses.parquet')",
        "dc.evaluate('decisions.parquet', policy='a')",
        "from decoupled.plots import draw, Picture; draw(Picture('a', 'b', 'c', ()))",
        hidden=list(EXTRA_OF),
        cwd=tmp_path,
    ) == [
        "works",
        "works",
        "works",
        needs("results.data", "xarray"),
        needs("summary()", "pandas"),
        needs("statistics of results", "scipy"),
        needs("to_pandas()", "pandas"),
        needs("save()", "xarray"),
        needs("Results.load()", "xarray"),
        needs("out", "xarray"),
        "works",
        "works",
        "works",
        needs("a Parquet file", "pyarrow") + ", or export it as CSV",
        needs("a Parquet file", "pyarrow") + ", or export it as CSV",
        needs("a picture", "matplotlib"),
    ]
    with pytest.raises(ModuleNotFoundError, match="nonsense"), needed_for("this"):
        import nonsense  # type: ignore[import-not-found]  # noqa: F401
    assert as_missing_extra(ModuleNotFoundError("no name"), "this") is None
    error = as_missing_extra(
        ModuleNotFoundError(name="scs"), "solver = 'scs'", "use solver='newton'"
    )
    assert isinstance(error, dc.MissingExtraError)

    assert str(error).endswith(f"{how_to_install('conic')}, or use solver='newton'")


def test_a_simulation_loads_numpy_alone_if_machine_code_ships() -> None:
    printed = ran("-c", SIMULATION)
    assert printed.splitlines() == ["decoupled", "numpy"]


def test_the_check_of_a_policy_needs_no_compiler_if_machine_code_ships() -> None:
    assert attempted(
        "dc.testing.check_policy(dc.FTPL(), rounds=100)", hidden=["numba", "llvmlite"]
    ) == ["works"]


@pytest.mark.parametrize(
    ("arguments", "extras"), [([], "cli"), (["serve"], "serve"), (["reproduce"], "lab")]
)
def test_the_command_line_without_its_packages(arguments: list[str], extras: str) -> None:
    script = "import sys; sys.modules['typer'] = None\nfrom decoupled.cli import main\nmain()"
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stderr == (
        "error: the command line: needs the package typer, which is not installed; "
        f"{how_to_install(extras)}\n"
    )

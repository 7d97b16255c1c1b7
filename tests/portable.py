"""What works on every system: import everything, learn, save, simulate, use the command line and the service's store.

python tests/portable.py                  # as the release runs it on macOS and Windows
python tests/portable.py --without-posix  # as on Windows, as far as another system can show it
"""

import os
import pkgutil
import signal
import socket
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path

# What Windows does not have, of that which a package may well use.
MODULES = ("fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty", "uvloop")
NAMES: dict[object, tuple[str, ...]] = {
    os: (
        *(
            "fork",
            "forkpty",
            "getloadavg",
            "getpgid",
            "getuid",
            "geteuid",
            "killpg",
            "nice",
            "register_at_fork",
        ),
        *("sched_getaffinity", "setsid", "statvfs", "sysconf", "uname", "wait3"),
    ),
    signal: ("SIGALRM", "SIGCHLD", "SIGHUP", "SIGKILL", "SIGUSR1", "alarm", "pthread_kill", "setitimer"),
    socket: ("AF_UNIX", "SO_REUSEPORT"),
}
# Libraries make their own choices by `sys.platform`, so they are loaded before anything is taken away.
LIBRARIES = (
    *(
        "apsw",
        "asyncio",
        "distributed",
        "fastapi",
        "h5netcdf",
        "httpx",
        "matplotlib.pyplot",
        "multiprocessing",
    ),
    *("numba", "opentelemetry.sdk", "plotly", "prometheus_client", "psycopg", "pyarrow", "rich.progress"),
    *("scipy.optimize", "subprocess", "typer.testing", "uvicorn", "xarray"),
)
OTHERS = (
    "__main__",
    ".simulation.gpu.",
    ".integrations.litellm.plugin",
)  # need a GPU or LiteLLM, or are programs
SPECIFICATION = """
horizon = 20
runs = 2
[[policy]]
name = "FTPL"
[[environment]]
name = "Alternating"
arms = 3
gap = 0.25
"""


def without_posix() -> None:
    """Take away what Windows does not have."""
    for library in LIBRARIES:
        with suppress(ModuleNotFoundError):
            import_module(library)
    for module in MODULES:
        sys.modules[module] = None  # type: ignore[assignment]
    for home, names in NAMES.items():
        for name in names:
            if hasattr(home, name):
                delattr(home, name)
    # Windows reads and writes text in another encoding, unless one is given.
    warnings.filterwarnings("error", category=EncodingWarning, module=r"decoupled\b")


def steps(folder: Path) -> Iterator[str]:
    """Do one thing after the other, and name what is done."""
    import decoupled as dc

    yield f"import decoupled {dc.__version__}"
    found = [
        each.name for each in pkgutil.walk_packages(dc.__path__, "decoupled.") if not left_out(each.name)
    ]
    for name in found:
        import_module(name)
    yield f"import its {len(found)} modules"

    learner = dc.FTPL().start(arms=["é", "b", "c"], seed=7)
    learner.observe(learner.decide(), loss=0.25)
    learner.save(folder / "learner.json")
    learner.save(folder / "learner.json")  # over the file that is there
    assert dc.Learner.load(folder / "learner.json").decide() == learner.decide()
    yield "decide, observe, save and load"

    results = dc.simulate(
        dc.FTPL(), dc.environments.Bernoulli([0.2, 0.7]), horizon=20, runs=2, out=folder / "runs"
    )
    results.save(folder / "results.nc")
    assert dc.Results.load(folder / "results.nc").summary() is not None
    yield "simulate, save and load results"

    from decoupled.cli.main import app

    (folder / "spec.toml").write_text(SPECIFICATION, encoding="utf-8")
    app(["policies"], standalone_mode=False)
    app(
        ["simulate", str(folder / "spec.toml"), "--out", str(folder / "out"), "--quiet"],
        standalone_mode=False,
    )
    yield "decoupled policies, decoupled simulate"

    from decoupled_serve.service.analysis.doctor import examine
    from decoupled_serve.service.experiment.records import Settings
    from decoupled_serve.service.service import open_service

    service = open_service(folder / "store.db")
    try:
        colours = Settings({"name": "FTPL"}, ("red", "blue"))
        service.experiments.put("local", "colours", colours, seed=7).result()
        [decision] = service.decisions.decide("local", "colours").result()
        assert service.decisions.feedback("local", decision.id, loss=0.3).result().status == "applied"
    finally:
        service.close()
    assert [each.finding for each in examine(str(folder / "store.db")) if not each.good] == []
    yield "the service's store: an experiment, a decision, its loss, and `doctor`"


def left_out(module: str) -> bool:
    """Whether a module cannot be imported everywhere."""
    return any(part in f"{module}." for part in OTHERS)


def main() -> None:
    """Run it all."""
    if "--without-posix" in sys.argv[1:]:
        without_posix()
    # What is still open cannot be removed on Windows.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        for done in steps(Path(folder)):
            print(f"done: {done}", flush=True)


if __name__ == "__main__":
    main()

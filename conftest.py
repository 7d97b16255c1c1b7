"""What all tests share: Ctrl-C as at a terminal, examples in docstrings, and `--quick`, a sample
without processes.
"""

import gc
import signal
import subprocess
from collections.abc import Generator, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

import pytest

from support.quick import sample

if find_spec("decoupled_serve"):
    from support.client_examples import client_examples, example_service

    __all__ = ["client_examples", "example_service"]
else:  # the examples of the client need a service
    collect_ignore = ["core/src/decoupled/client"]

# A shell starts jobs in the background without Ctrl-C. It works here, and in every process that a
# test starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

DOCS = Path(__file__).parent / "tests" / "docs"
pytest_plugins = ["support.mirrors.upstreams"] if find_spec("decoupled_serve") else []


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--quick", action="store_true", help="a sample of the tests, without processes"
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    # What is imported for the tests stays until the end. To look for garbage in it, again and
    # again, would take longer than many tests do.
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        gc.set_threshold(
            100_000, 20, 20
        )  # compiling makes many objects and few cycles: a twelfth less time


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(
    file_path: Path,
) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    # Doctests are in the packages: nobody has to look for them in every test.
    found = yield
    if "tests" in file_path.parts:
        found = [each for each in found if type(each).__name__ != "DoctestModule"]
    return found


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if DOCS in item.path.parents or {"browser", "pdflatex", "quick"} & {
            *getattr(item, "fixturenames", ())
        }:
            item.add_marker("pages")
    if config.getoption("--quick"):
        kept = sample(items)
        config.hook.pytest_deselected(items=list(set(items) - set(kept)))
        items[:] = kept


@pytest.fixture(autouse=True)
def _no_processes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*arguments: object, **options: object) -> NoReturn:
        pytest.skip("starts a process")

    if request.config.getoption("--quick"):
        monkeypatch.setattr(subprocess, "Popen", start)


@pytest.fixture
def forget_policies() -> Iterator[None]:
    """Forget the policies that a test defines: their names are taken until then."""
    from decoupled import Policy

    with Policy.forget_new():
        yield

"""The public surface: every name has a docstring with an example, which runs as a doctest."""

import inspect
import subprocess
import sys

import pytest

import decoupled as dc

NAMES = [name for name in dc.__all__ if not inspect.ismodule(getattr(dc, name))]
ENVIRONMENTS = [f"environments.{name}" for name in dc.environments.__all__]


def lookup(path: str) -> object:
    found: object = dc
    for part in path.split("."):
        found = getattr(found, part)
    return found


@pytest.mark.parametrize("name", NAMES + ENVIRONMENTS)
def test_public_name_has_an_example(name: str) -> None:
    assert ">>>" in (inspect.getdoc(lookup(name)) or "")


@pytest.mark.parametrize(
    "name",
    [name for name, _ in inspect.getmembers(dc.Learner, inspect.isroutine) if not name.startswith("_")],
)
def test_learner_methods_are_documented(name: str) -> None:
    assert inspect.getdoc(getattr(dc.Learner, name))


def test_every_public_name_can_be_had() -> None:
    assert set(dc.__all__) <= set(dir(dc))
    with pytest.raises(AttributeError, match="no_such_name"):
        dc.no_such_name  # noqa: B018


def test_import_is_lazy() -> None:
    # The command line's help must not wait for the compiler to load.
    code = (
        "import sys, decoupled.cli; assert 'numba' not in sys.modules and 'matplotlib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_one_policy_does_not_wait_for_the_others() -> None:
    text = dc.FTPL().start(arms=2, seed=0).to_json()
    code = f"""
import sys, decoupled as dc
dc.FTPL().start(arms=2, seed=0)
dc.Learner.from_json({text!r})
read = {{name for name in sys.modules if name.startswith("decoupled.policies.")}}
needed = ("base", "registry", "composed", "ftpl")
assert read == {{"decoupled.policies." + name for name in needed}}, read
assert {{"TopTwo", "FTPL"}} < dc.Policy.known().keys()
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_name_of_the_package_is_taken_before_its_file_is_read() -> None:
    code = """
import sys, decoupled as dc
assert "decoupled.policies.top_two" not in sys.modules
try:
    class TopTwo(dc.Policy): ...
except dc.ParameterError as error:
    assert "decoupled.policies.top_two has a policy of that name" in str(error)
else:
    raise SystemExit("the name was given twice")
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_loading_a_learner_needs_no_other_import() -> None:
    text = dc.FTPL().start(arms=2, seed=0).to_json()
    code = f"import decoupled as dc; print(dc.Learner.from_json({text!r}).round)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "1"

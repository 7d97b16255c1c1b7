"""The public surface: every name has a docstring with an example, which runs as a doctest."""

import inspect
import pickle
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import assert_type

import pytest

import decoupled as dc
from decoupled.base import lazy
from decoupled.base.lazy import exports
from decoupled.client import errors
from support.plain_python import ran

ROOT = Path(__file__).parents[2]
NAMES = [name for name in exports("decoupled") if not inspect.ismodule(getattr(dc, name))]
ENVIRONMENTS = [f"environments.{name}" for name in exports("decoupled.environments")]


def lookup(path: str) -> object:
    found: object = dc
    for part in path.split("."):
        found = getattr(found, part)
    return found


DOORS = ["base", "cli", "client", "environments", "extend", "inference", "learner"]
DOORS += ["policies", "simulation", "testing"]


def names_of(door: str) -> dict[str, object]:
    """The public names of a package, without modules, errors of the service, and those of the lists
    of `dc`.
    """
    module = import_module(f"decoupled.{door}")
    generated = {name for name, each in vars(errors).items() if inspect.isclass(each)}
    generated |= {*dc.Policy.homes, *dc.environments.Environment.homes}
    names = getattr(module, "__all__", None) or vars(module)
    found = {
        name: getattr(module, name) for name in names if name[0] != "_" and name not in generated
    }
    return {name: each for name, each in found.items() if not inspect.ismodule(each)}


@pytest.mark.parametrize("door", DOORS)
def test_public_names_have_an_example_and_a_place_in_the_reference(door: str) -> None:
    assert [
        name
        for name, each in names_of(door).items()
        if (inspect.isfunction(each) or inspect.isclass(each))
        and each.__module__.startswith("decoupled.")
        and not each.__module__.startswith("decoupled.kernels.")  # `Functions` has their example
        and ">>>" not in (each.__doc__ or "")
    ] == []
    pages = "".join(page.read_text() for page in (ROOT / "docs" / "api").glob("*.md"))
    assert [
        name for name in names_of(door) if f".{name}\n" not in pages and f"`{name}`" not in pages
    ] == []


def test_every_public_name_can_be_had_and_has_a_type_and_an_example() -> None:
    assert set(exports("decoupled")) < set(dir(dc))
    assert "__version__" in dir(dc)
    with pytest.raises(AttributeError, match="no_such_name"):
        dc.no_such_name  # type: ignore[attr-defined] # noqa: B018
    # Mypy reads this as any user's code; where a name has no type it is Any, which is none of
    # these.
    learner = assert_type(dc.FTPL().start(arms=2, seed=0), dc.Learner)
    assert_type(learner.decide(), dc.Decision)
    assert_type(dc.environments.Alternating(arms=2, gap=0.5).arms, int)
    assert_type(dc.Ladder(), dc.Ladder)
    assert [
        name for name in NAMES + ENVIRONMENTS if ">>>" not in (inspect.getdoc(lookup(name)) or "")
    ] == []


@pytest.mark.parametrize("package", ["decoupled", "decoupled.policies", "decoupled.environments"])
def test_everything_that_is_exported_can_be_imported_with_a_star(package: str) -> None:
    names: dict[str, object] = {}
    exec(f"from {package} import *", names)
    assert names.keys() - {"__builtins__"} == exports(package).keys() - {"Client"}  # needs an extra


@pytest.mark.parametrize("family", [dc.Policy, dc.environments.Environment])
def test_every_class_is_on_its_list_and_defined_in_the_file_of_its_line(
    family: type[dc.Policy],
) -> None:
    known = family.known()
    assert {name: known[name].__module__ for name in family.homes} == family.homes
    package = family.__module__.rpartition(".")[0]
    for module in walk_packages(import_module(package).__path__, f"{package}."):
        import_module(module.name)
    # Other tests, and examples in docstrings, may define policies of their own.
    ours = {
        name: cls for name, cls in family.known().items() if cls.__module__.startswith("decoupled.")
    }
    defined = {name for name, cls in ours.items() if hasattr(import_module(cls.__module__), name)}
    assert defined == family.homes.keys(), f"add a line to the __init__.pyi of {package}"


@pytest.mark.parametrize("name", dc.Policy.homes)
def test_policies_can_be_pickled(name: str) -> None:
    for policy in dc.Policy.known()[name].examples():
        assert pickle.loads(pickle.dumps(policy)) == policy


def test_import_is_lazy() -> None:
    # The command line's help must not wait for the compiler to load.
    code = (
        "import sys, decoupled.cli.main; "
        "assert 'numba' not in sys.modules and 'matplotlib' not in sys.modules"
    )
    ran("-c", code)


def test_the_client_comes_with_the_extra_service() -> None:
    code = """
import sys
sys.modules["httpx"] = None  # as if it were not installed
import decoupled as dc
from decoupled import *
assert "FTPL" in dir(dc) and "Client" not in dir(dc)
try:
    from decoupled import Client
except dc.MissingExtraError as error:
    assert "decoupled.Client: needs the package httpx" in str(error)
    assert "decoupled-bandits[client]" in str(error)
else:
    raise SystemExit("there is a client without its packages")
"""
    ran("-c", code)
    assert "Client" in dir(dc)
    assert dc.Client is import_module("decoupled.client").Client


def test_one_policy_is_loaded_without_the_others_whose_names_stay_theirs() -> None:
    text = dc.FTPL().start(arms=2, seed=0).to_json()
    code = f"""
import sys, decoupled as dc
assert dc.Learner.from_json({text!r}).round == 1  # which needs no other import
dc.FTPL().start(arms=2, seed=0)
read = {{name for name in sys.modules if name.startswith("decoupled.policies.")}}
needed = ("base", "ftpl", "strata", "strata.leader", "strata.surrogate")
assert read == {{"decoupled.policies." + name for name in needed}}, read
class TopTwo(dc.Policy): ...
assert dc.Policy.known()["TopTwo"].__module__ == "decoupled.policies.top_two"
assert {{"TopTwo", "FTPL"}} < dc.Policy.known().keys()
"""
    ran("-c", code)


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    texts: dict[str, str] = {}
    monkeypatch.setattr(lazy, "_stub", texts.__getitem__)
    return texts


def test_every_kind_of_line(stub: dict[str, str]) -> None:
    stub["a.b"] = (
        "# from .x import X as X\nfrom ..c.d import One as One\nfrom .e import Two as Two  # why\n"
    )
    stub["a"] = (
        "from . import f as f\nfrom .b import *\nfrom .g import Three as Three\n"
        "\n__version__: str\n"
    )
    assert lazy.exports("a.b") == {"One": "a.c.d", "Two": "a.b.e"}
    assert lazy.exports("a") == {"f": "a", "One": "a.b", "Two": "a.b", "Three": "a.g"}


def test_a_stub_that_was_not_installed_is_named() -> None:
    with pytest.raises(
        ImportError, match=r"__init__\.pyi: is missing.*install .* with its \.pyi files"
    ):
        lazy.exports("decoupled.kernels")

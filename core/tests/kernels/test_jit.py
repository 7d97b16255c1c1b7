"""The cache of machine code is never stale and never causes an error.

Functions that are compiled on first use: they travel to other processes, by name or by value.
"""

import ast
import importlib
import os
import pickle
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numba
import pytest

import decoupled
import decoupled as dc
from decoupled.kernels.jit import COMPILED, UNUSED_FOR, cache_folder, compiled, source_digest
from decoupled.kernels.rounds import play_rounds
from support.plain_python import ran

typeof: Any = numba.typeof  # its stubs do not say what it returns

SOURCES = Path(decoupled.__file__).parent


def digests_of(root: Path) -> list[str]:
    """Digests of the compiled sources, and of all sources."""
    code = (
        "from decoupled.kernels.jit import COMPILED, source_digest;"
        "print(source_digest(*COMPILED), source_digest())"
    )
    return ran("-c", code, PYTHONPATH=str(root)).split()


def test_digest_changes_with_the_sources_of_machine_code_alone(tmp_path: Path) -> None:
    copy = tmp_path / "decoupled"
    shutil.copytree(SOURCES, copy, ignore=shutil.ignore_patterns("__pycache__"))
    machine_code, everything = digests_of(tmp_path)
    assert [machine_code, everything] == [source_digest(*COMPILED), source_digest()]
    with (copy / "learner.py").open("a") as file:
        file.write("# changed\n")
    edited = digests_of(tmp_path)
    assert edited[0] == machine_code
    assert edited[1] != everything
    with (copy / "kernels" / "powers.py").open("a") as file:
        file.write("# changed\n")
    assert digests_of(tmp_path)[0] != machine_code


def test_compiled_code_elsewhere_calls_only_what_the_digest_covers() -> None:
    """A file outside `COMPILED` imports compiled functions only from those folders."""
    outside = [
        path
        for path in SOURCES.rglob("*.py")
        if path.relative_to(SOURCES).parts[0] not in COMPILED and "@compiled" in path.read_text()
    ]
    assert {path.stem for path in outside}  # such files exist
    for path in outside:
        imported = {
            alias.name: getattr(
                importlib.import_module(f".{node.module}", _package(path, node.level)), alias.name
            )
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.ImportFrom) and node.level
            for alias in node.names
        }
        for name, thing in imported.items():
            if hasattr(thing, "py_func"):
                assert thing.py_func.__module__.split(".")[1] in COMPILED, (path, name)


def _package(path: Path, level: int) -> str:
    """The package that a relative import with this many dots starts from."""
    parts = ("decoupled", *path.relative_to(SOURCES).parts[:-1])
    return ".".join(parts[: len(parts) - level + 1])


def test_works_where_no_folder_can_be_written(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("a file where the folder should be")
    code = (
        "import decoupled as dc; from decoupled.kernels.jit import cache_folder;"
        "assert cache_folder() is None;"
        "print(dc.FollowTheLeader().start(arms=2, seed=0).decide().round)"
    )
    assert ran("-c", code, NUMBA_CACHE_DIR=str(blocker), DECOUPLED_NATIVE="off").strip() == "1"


def test_old_folders_are_swept(tmp_path: Path) -> None:
    root = tmp_path / "decoupled" / "compiled"
    old, recent, foreign = root / ("0" * 16), root / ("1" * 16), root / "photographs"
    for folder in (old, recent, foreign):
        folder.mkdir(parents=True)
    past = old.stat().st_mtime - 2 * UNUSED_FOR
    for folder in (old, foreign):
        os.utime(folder, (past, past))
    code = "from decoupled.kernels.jit import cache_folder; print(cache_folder())"
    ran("-c", code, NUMBA_CACHE_DIR=str(tmp_path))
    assert not old.exists()
    assert recent.exists()
    assert foreign.exists()


def test_functions_from_elsewhere_are_not_kept() -> None:
    @compiled
    def double(x: float) -> float:
        return 2.0 * x

    assert double(1.5) == 3.0
    folder = cache_folder()
    assert folder is None or not list(Path(folder).rglob("*test_jit*"))


OWN_ADVERSARY = """
from dataclasses import dataclass
from typing import NamedTuple
import numpy as np
import decoupled as dc
from decoupled.extend import AdversaryFunctions, Memory, compiled

class Own(NamedTuple):
    level: float

@compiled
def losses(params, memory, t, out):
    for arm in range(len(out)):
        out[arm] = params.level * LARGEST * arm

@compiled
def note(params, memory, t, exploit):
    pass

@dataclass(frozen=True)
class Rising(dc.environments.Adversary):
    arms: int
    params_type = Own
    functions = AdversaryFunctions(losses, note)
    level: float = 1.0

    def memory(self):
        return Memory(np.zeros(1), np.zeros(1, np.int64))

def play():
    result = dc.simulate(dc.UCB1(), Rising(arms=2), horizon=40, runs=1, seed=0)
    print(result.summary()["mean"].iloc[0])
"""


def test_code_with_a_users_parameters_is_not_kept(tmp_path: Path) -> None:
    # It contains the user's functions, which the digest does not cover: after an edit, the old code
    # ran. A process that could not import the parameters could not read the cache at all.
    def regret(module: str) -> float:
        code = f"import {module}; {module}.play()"
        cache = str(tmp_path / "cache")
        return float(ran("-c", code, NUMBA_CACHE_DIR=cache, PYTHONPATH=str(tmp_path)))

    module = tmp_path / "own.py"
    module.write_text(OWN_ADVERSARY.replace("LARGEST", "0.0"))
    assert regret("own") == 0.0
    module.write_text(OWN_ADVERSARY.replace("LARGEST", "1.0"))
    assert regret("own") > 0.0
    module.rename(tmp_path / "other.py")
    assert regret("other") > 0.0


def test_compiling_threads_keep_to_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The setting for the folder is global in Numba: threads must not change it for each other, or
    # machine code lands in the working folder.
    code = """
import sys
from concurrent.futures import ThreadPoolExecutor
sys.setswitchinterval(1e-6)
from decoupled.kernels.jit import translate
from decoupled.kernels import powers

def decorate(_):
    function = translate(powers.tidy_exponent, keep=True, counting=False)
    return function._cache.cache_path

with ThreadPoolExecutor(8) as executor:
    paths = set(executor.map(decorate, range(2000)))
assert len(paths) == 1, paths
"""
    monkeypatch.chdir(tmp_path)
    ran("-c", code, NUMBA_CACHE_DIR=str(tmp_path / "cache"))
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]


SHARED = """
import pathlib, sys, time
from numba.core.caching import IndexDataCacheFile
from decoupled.kernels.jit import translate

# Similar functions, like the entry points of policies: they have the same name and signature, and
# different contents.
def make(number):
    def add(x):
        return x + number
    return translate(add, keep=True, counting=False)

read = IndexDataCacheFile._load_index

def read_slowly(self):
    index = read(self)
    time.sleep(0.2)  # enough time for another process to read the same index
    return index

first, what, go = int(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
if what == "compile":
    IndexDataCacheFile._load_index = read_slowly
    go.with_name(f"ready {first}").touch()
    while not go.exists():  # start together
        time.sleep(0.001)
    assert make(first)(0.0) == first
else:
    for number in range(first):
        function = make(number)
        assert function(0.0) == number, (number, function(0.0))
        assert not function.stats.cache_misses, number
"""


def test_processes_that_compile_at_once_do_not_mix_up_their_code(tmp_path: Path) -> None:
    # They start at the same time, each with another variant of one function.
    script = tmp_path / "shared.py"
    script.write_text(SHARED)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    go = tmp_path / "go"

    def command(number: int, what: str) -> list[str]:
        return [sys.executable, str(script), str(number), what, str(go)]

    started = [subprocess.Popen(command(number, "compile"), env=environment) for number in range(2)]
    while len(list(tmp_path.glob("ready *"))) < 2 and all(
        process.poll() is None for process in started
    ):
        time.sleep(0.01)
    go.touch()
    assert [process.wait() for process in started] == [0] * 2
    # A later process finds both variants, and each is the right one.
    subprocess.run(command(2, "load"), check=True, env=environment)


def test_no_two_policies_share_a_name_in_machine_code() -> None:
    # Code is linked by the names of functions and argument types. With the same name twice, a
    # process that loaded what two others compiled ran UCB1 as Exp3: both have Params of a single
    # number.
    kinds = [
        kind for kind in dc.Policy.known().values() if kind.__module__.startswith("decoupled.")
    ]
    policies = [
        kind() for kind in kinds if kind is not dc.Forgetting
    ]  # which has the code of its policy
    entries = [policy.entries() for policy in policies]
    assert len({typeof(policy.params()).name for policy in policies}) == len(policies) > 4
    assert len({each.__qualname__ for entry in entries for each in entry}) == 3 * len(policies)
    adversaries = [dc.environments.PunishLast(4), dc.environments.AdaptiveAlternating(4, gap=0.1)]
    for adversary in adversaries:
        adversary.prepare()
    assert len({typeof(adversary.params()).name for adversary in adversaries}) == 2


SCRIPT = """
import pickle, sys
from decoupled.extend import compiled

@compiled
def doubled(x):
    return 2.0 * x

pickle.dump(doubled, open(sys.argv[1], "wb"))
"""


def test_a_function_of_the_package_travels_by_name_and_others_by_value(tmp_path: Path) -> None:
    assert pickle.loads(pickle.dumps(play_rounds)) is play_rounds
    assert len(pickle.dumps(play_rounds)) < 200
    factor = 3.0

    @compiled
    def scaled(x: float) -> float:
        return factor * x

    assert pickle.loads(pickle.dumps(scaled))(2.0) == 6.0
    ran("-c", SCRIPT, tmp_path / "doubled")
    sent = (tmp_path / "doubled").read_bytes()
    assert pickle.loads(sent)(1.5) == 3.0
    assert pickle.loads(sent) is pickle.loads(sent)

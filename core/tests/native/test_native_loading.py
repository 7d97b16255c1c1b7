"""Whatever is amiss with the library, functions are compiled as if none had been shipped."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import decoupled
from decoupled.native import load

SOURCES = Path(decoupled.__file__).parent

V2 = "fpu sse sse2 cx16 lahf_lm popcnt ssse3 sse4_1 sse4_2"
V3 = f"{V2} abm avx avx2 bmi1 bmi2 f16c fma movbe xsave"

needs_library = pytest.mark.skipif(
    load.unavailable_reason() is not None,
    reason=f"of the shipped machine code: {load.unavailable_reason()}; make native",
)

NO_NUMBA = "import sys; sys.modules['numba'] = sys.modules['llvmlite'] = None\n"

EVERYTHING = """
import decoupled as dc
from decoupled.policies.warmup import warm
# First, since warming makes known what a simulation has to find by itself.
easy = dc.environments.Alternating(arms=4, gap=0.125)
dc.simulate([dc.FTPL(), dc.Ladder(), dc.UCB1()], easy, horizon=100, runs=60, seed=0)
dc.simulate([dc.Ladder()], easy, horizon=100, runs=2, seed=0, traffic=dc.Traffic(delay=5))
forgetting = [dc.Forgetting(dc.FTPL()), dc.Forgetting(dc.Ladder(), discount=0.99)]
dc.simulate(forgetting, easy, horizon=100, runs=2, seed=0)
dc.simulate(forgetting, easy, horizon=100, runs=2, seed=0, traffic=dc.Traffic(delay=5))
for name, kind in dc.Policy.known().items():
    for policy in kind.forms()[:1]:
        warm(policy, 2)
        if "duels" not in policy.layout.pairs and not policy.contextual:
            # From 1,024 arms FTPL draws in strata, which are compiled on first use.
            warm(policy, 1_000 if hasattr(getattr(policy, "policy", policy), "ranking") else 5_000)
policy = dc.ContextualLadder(segments=("s",), numbers=("x",), advisers=("a",))
routing = policy.start(arms=2, seed=0)
routing.observe(routing.decide(context={"s": "t", "x": 1.0}, advice={"a": 1}, key="k"), loss=0.5)
routing.replay([{"explore": 0, "propensity": 0.5, "loss": 0.5, "context": {"s": "u"}}])
routing.add_arms([2])
dc.Learner.from_json(routing.to_json()).exploitation_probabilities(context={"s": "t"})
world = dc.environments.ContextTable([[0.1, 0.2]] * 50, {"s": ["t", "u"] * 25})
dc.simulate([dc.ContextualLadder(segments=("s",))], world, horizon=50, runs=2, seed=0)
warm(dc.Ladder(), 3)
warm(dc.Ladder(), 5_000)
warm(dc.Forgetting(dc.TsallisINF(), discount=0.9), 3)
"""

OWN_POLICY = """
import decoupled as dc
from decoupled.extend import compiled
@compiled
def double(x):
    return 2.0 * x
double(1.0)
"""


def python(
    code: str, /, root: Path = SOURCES.parent, **environment: str
) -> "subprocess.CompletedProcess[str]":
    settings = {**os.environ, "PYTHONPATH": str(root), **environment}
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=settings
    )


@needs_library
def test_nothing_of_the_package_needs_a_compiler_or_loads_one() -> None:
    done = python(NO_NUMBA + EVERYTHING)
    assert done.returncode == 0, done.stderr
    code = (
        "import sys, decoupled as dc; dc.{}.start(arms=8).decide(); "
        "assert 'numba' not in sys.modules"
    )
    for policy in ("FTPL()", "Ladder()"):
        done = python(code.format(policy))
        assert done.returncode == 0, done.stderr
    # Parameters of a policy of ours with functions of another: the library's code for them is not
    # meant.
    from decoupled.policies import avner, exp3

    assert not load.allow_shipped(avner.Params, (avner.init, exp3.decide, avner.update))
    assert load.allow_shipped(avner.Params, (avner.init, avner.decide, avner.update))


@pytest.mark.parametrize(
    ("code", "switch"),
    [(OWN_POLICY, ""), ("import decoupled as dc; dc.UCB1().start(arms=2).decide()", "off")],
    ids=["a function of one's own", "switched off"],
)
def test_without_numba_the_message_names_the_extra(code: str, switch: str) -> None:
    done = python(NO_NUMBA + code, DECOUPLED_NATIVE=switch)
    assert "MissingExtraError" in done.stderr
    assert "pip install 'decoupled-bandits[jit]'" in done.stderr


ELSEWHERE = "import platform; platform.system, platform.machine = (lambda: {!r}), (lambda: {!r})\n"


@needs_library
@pytest.mark.parametrize("place", [("Windows", "AMD64"), ("Darwin", "arm64"), ("Linux", "riscv64")])
def test_on_another_platform_numba_compiles_or_the_message_names_the_extra(
    place: tuple[str, str],
) -> None:
    code = (
        ELSEWHERE.format(*place)
        + "import decoupled as dc; dc.FollowTheLeader().start(arms=2).decide()"
    )
    done = python(NO_NUMBA + code)
    assert f"it is for {load.machine()}" in done.stderr
    assert "pip install 'decoupled-bandits[jit]'" in done.stderr
    done = python(f"{code}; import sys; assert 'numba' in sys.modules")
    assert done.returncode == 0, done.stderr


def test_other_sources_are_compiled(tmp_path: Path) -> None:
    shutil.copytree(SOURCES, tmp_path / "decoupled", ignore=shutil.ignore_patterns("__pycache__"))
    with (tmp_path / "decoupled" / "kernels" / "powers.py").open("a") as file:
        file.write("CHANGED = True\n")
    code = (
        "import sys, decoupled as dc; from decoupled.native import load; "
        "print(load.unavailable_reason());"
        "dc.FollowTheLeader().start(arms=2, seed=0).decide(); assert 'numba' in sys.modules"
    )
    done = python(code, tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "cache"))
    assert done.returncode == 0, done.stderr
    expected = "it was made of other sources" if load.FOLDER.exists() else "none is installed"
    assert done.stdout.strip() == expected


def test_without_a_library_there_is_a_reason(tmp_path: Path) -> None:
    with pytest.raises(load.UnusableError, match="none is installed"):
        load.load(tmp_path)


def changed(**values: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / load.MANIFEST
        path.write_text(json.dumps({**json.loads(path.read_text()), **values}))

    return change


def without(pattern: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        for path in folder.glob(pattern):
            path.unlink()

    return change


def written(pattern: str, content: bytes) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        for path in folder.glob(pattern):
            path.write_bytes(content)

    return change


MISSING_SYMBOL = {"f": {"symbol": "decoupled_missing", "takes": [], "returns": []}}


@needs_library
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (changed(digest="0" * 16, code="0" * 16), "other sources"),
        (changed(format=-1), "another version"),
        (changed(machine="Plan9-vax"), "for Plan9-vax"),
        (changed(libraries={}), "other processors"),
        (changed(libraries=None), "do not go together"),
        (changed(functions=MISSING_SYMBOL), "do not go together"),
        (changed(functions={"f": {}}), "do not go together"),
        (changed(built_from=None), "do not go together"),
        (without(load.MANIFEST), "none is installed"),
        (without("decoupled-*"), "cannot be loaded"),
        (written("decoupled-*", b"not a library"), "cannot be loaded"),
        (written(load.MANIFEST, b"\xff{"), "cannot be read"),
        (written(load.MANIFEST, b"[]"), "cannot be read"),
        (written(load.MANIFEST, b"{}"), "do not go together"),
    ],
)
def test_what_does_not_suit_is_unused(
    change: Callable[[Path], None], reason: str, tmp_path: Path
) -> None:
    folder = tmp_path / "lib"
    shutil.copytree(load.FOLDER, folder)
    load.check(
        load.read_manifest(folder)
    )  # a library that was loaded stays, whatever becomes of its file
    change(folder)
    with pytest.raises(load.UnusableError, match=reason):
        load.load(folder)


@pytest.mark.skipif(load.targets() == ("generic",), reason="levels are those of x86-64")
@pytest.mark.parametrize(
    ("flags", "expected"),
    [(V3, ("x86-64-v3", "x86-64-v2")), (V2, ("x86-64-v2",)), ("fpu sse sse2", ())],
)
def test_the_level_of_the_processor(flags: str, expected: tuple[str, ...], tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(f"processor\t: 0\nflags\t\t: {flags}\n")
    assert load.runnable(cpuinfo) == expected
    assert load.runnable(tmp_path / "missing") == ()

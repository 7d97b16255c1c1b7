"""Policies, environments and adversaries that users write: they run at compiled speed, and are
validated.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import decoupled as dc
from decoupled.base.arrays import Floats, Ints
from decoupled.kernels.dispatch import AdversaryFunctions
from decoupled.kernels.jit import compiled
from decoupled.kernels.rounds import Table
from decoupled.simulation.admission import find_outside
from decoupled.simulation.plan import make_plan

PRETENDER = """
from dataclasses import dataclass
import decoupled as dc
from decoupled.kernels.jit import compiled
from decoupled.kernels.dispatch import Functions

@compiled
def always_the_last(params, state, stream):
    last = state.floats.shape[1] - 1
    return last, last, 1.0, 1.0

@dataclass(frozen=True)
class Pretender(dc.Exp3):
    functions = Functions(dc.Exp3().functions.init, always_the_last, dc.Exp3().functions.update)

# Whichever comes first, the other is refused, and neither is cached on disk under the name of Exp3.
first, second = {order}
assert first().start(2, seed=0).decide().propensity is not None
try:
    second().start(2, seed=0)
except dc.ParameterError as error:
    print(error)
"""


@pytest.mark.parametrize("order", ["dc.Exp3, Pretender", "Pretender, dc.Exp3"])
def test_a_policy_may_not_run_under_the_parameters_of_another(order: str, tmp_path: Path) -> None:
    # Its code would be cached on disk as that of Exp3, and Exp3 would be wrong in every later
    # process.
    script = tmp_path / "pretender.py"
    script.write_text(PRETENDER.replace("{order}", order))
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, env=environment
    )
    assert "Params of its own" in done.stdout, done.stderr
    honest = "import decoupled as dc; print(dc.Exp3().start(2, seed=0).decide().propensity)"
    later = subprocess.run(
        [sys.executable, "-c", honest], capture_output=True, text=True, env=environment
    )
    assert 0.0 < float(later.stdout) < 1.0


@dataclass(frozen=True)
class Custom(dc.environments.Environment):
    """A table made by the function that a test names."""

    arms: int
    which: str

    def table(self, horizon: int) -> Table:
        return TABLES[self.which](horizon)


TABLES: dict[str, Callable[[int], Table]] = {
    "good": lambda horizon: Table(np.array([[0, 1, 1]]), np.zeros(horizon, np.int32)),
    "short": lambda horizon: Table(np.zeros((1, 3)), np.zeros(horizon // 2, np.int64)),
    "narrow": lambda horizon: Table(np.zeros((1, 2)), np.zeros(horizon, np.int64)),
    "outside": lambda horizon: Table(np.full((1, 3), 2.5), np.zeros(horizon, np.int64)),
    "missing": lambda horizon: Table(np.full((1, 3), np.nan), np.zeros(horizon, np.int64)),
    "beyond": lambda horizon: Table(np.zeros((1, 3)), np.ones(horizon, np.int64)),
}


@pytest.mark.parametrize("kind", [kind for kind in TABLES if kind != "good"])
def test_an_invalid_table_is_refused(kind: str) -> None:
    with pytest.raises(dc.ParameterError, match=r"Custom\.table"):
        dc.simulate(dc.FTPL(), Custom(3, kind), 100, 2, seed=0)


def test_a_valid_table_of_integers_runs_and_an_adversary_that_leaves_the_range_is_refused() -> None:
    results = dc.simulate(dc.FollowTheLeader(), Custom(3, "good"), 1_000, 5, seed=0)
    assert results.final_regret("FollowTheLeader").max() < 50
    policy = dc.FollowTheLeader()  # compiles in the least time
    results = dc.simulate(policy, Loud(3, 0.5), 50, 2, seed=0)
    assert results.final_regret(policy).tolist() == [0.0, 0.0]
    with pytest.raises(
        dc.ParameterError, match=r"Loud\.losses: .* with 1\.5 for arm 0 at t = 0; fix"
    ):
        dc.simulate(policy, Loud(3, 1.5), 50, 2, seed=0)


class Params(NamedTuple):
    level: float


@compiled
def too_high(params: Any, memory: Any, t: int, out: Any) -> None:
    for arm in range(len(out)):
        out[arm] = params.level


@compiled
def forget(params: Any, memory: Any, t: int, exploit: int) -> None:
    pass


@dataclass(frozen=True)
class Loud(dc.environments.Adversary):
    """Every arm costs the same."""

    arms: int
    level: float
    params_type = Params
    functions = AdversaryFunctions(too_high, forget)


@pytest.mark.parametrize("wrong", [1.25, -3.0, float("nan")])
@pytest.mark.parametrize("checkpoints", [[5_000], [1_233, 5_000], [1_234, 5_000], [1_235, 5_000]])
def test_the_loss_that_goes_outside_is_found(wrong: float, checkpoints: list[int]) -> None:
    losses = np.ones((5_000, 3))
    losses[1_234:, 2] = wrong

    def replay(rounds: Ints) -> Floats:
        return np.asarray(losses.cumsum(axis=0)[rounds - 1])

    found = find_outside(replay, np.array(checkpoints), replay(np.array(checkpoints)))
    assert found[:2] == (1_234 if wrong != -3.0 else 1_234 + 411, 2)
    assert found.loss == pytest.approx(wrong, nan_ok=True)


@dataclass(frozen=True)
class Unhashable(dc.environments.Environment):
    """A parameter of any type, such as a list."""

    arms: int
    values: Any

    def table(self, horizon: int) -> Table:
        return Table(np.zeros((1, self.arms)), np.zeros(horizon, np.int64))


@pytest.mark.parametrize("values", [[1, 2], np.arange(3), np.int64(3), float("nan")], ids=repr)
def test_parameters_must_be_plain_values(values: Any) -> None:
    with pytest.raises(dc.ParameterError, match="not a plain value"):
        dc.simulate(dc.FTPL(), Unhashable(2, values), 10, 2, seed=0)


def test_changed_code_does_not_resume_old_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = make_plan(dc.FTPL(), Custom(3, "good"), 100, 2, 0)
    before = plan.digest()
    monkeypatch.setattr("decoupled.simulation.plan.inspect.getsource", lambda each: "edited")
    assert plan.digest() != before
    dc.simulate(dc.FTPL(), Custom(3, "good"), 100, 2, seed=0, out=tmp_path)
    monkeypatch.undo()
    with pytest.raises(dc.StorageError, match="other code"):
        dc.simulate(dc.FTPL(), Custom(3, "good"), 100, 2, seed=0, out=tmp_path)

"""Sizes that no machine has are refused by name, at once, with the memory that they would take."""

from typing import Any

import numpy as np
import pytest

import decoupled as dc
from decoupled.simulation import admission
from decoupled.simulation.admission import as_memory, whole_memory
from decoupled.simulation.plan import Plan, make_plan

WORLD = dc.environments.Alternating(arms=4, gap=0.25)


def planned(horizon: Any = 100, runs: Any = 10, checkpoints: Any = 10, environment: Any = WORLD) -> Plan:
    return make_plan([dc.FTPL(), dc.Exp3()], environment, horizon, runs, 0, checkpoints)


@pytest.fixture(autouse=True)
def small_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "whole_memory", lambda: 10**9)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"horizon": 10**12}, "horizon = 1000000000000: needs 16 TB of memory, and there are 1 GB; choose"),
        ({"horizon": 10**30}, "must not exceed 1,000,000,000,000,000; the paper has 10,000"),
        ({"runs": 10**9}, "runs = 1000000000: needs 48 GB of memory, and there are 1 GB; choose fewer"),
        ({"runs": 10**30}, "must not exceed 1,000,000,000,000,000; the paper has 1,000"),
        ({"horizon": 50_000_000, "checkpoints": "all"}, "checkpoints = 'all': needs 5 GB of memory"),
        ({"checkpoints": 10**12}, "checkpoints = 1000000000000: needs 100 TB of memory"),
        ({"checkpoints": {"count": 10**12, "spacing": "log"}}, "needs 100 TB of memory"),
    ],
)
def test_what_no_machine_has_is_refused(sizes: dict[str, Any], message: str) -> None:
    with pytest.raises(dc.ParameterError) as error:
        planned(**sizes)
    assert message in str(error.value)


def test_what_fits_is_planned_and_blocks_are_counted_and_not_made() -> None:
    plan = planned(horizon=np.int64(1_000_000), runs=np.int64(1_000_000))
    assert (plan.horizon, plan.runs) == (1_000_000, 1_000_000)
    assert type(plan.horizon) is type(plan.runs) is int, "it is written as JSON"
    adversary = dc.environments.PunishLast(arms=4, gap=0.25)
    assert planned(horizon=10**12, environment=adversary).horizon == 10**12, "it has no table of rounds"
    with pytest.raises(dc.ParameterError, match=r"curves = 'runs': needs 16 GB of memory.*curves="):
        dc.simulate(
            [dc.FTPL(), dc.Exp3()], WORLD, horizon=10_000, runs=100_000, checkpoints=10_000, curves="runs"
        )
    plan = planned(runs=10**7)
    assert plan.block_count(3) == 2 * 3_333_334
    assert planned(runs=10).block_count(3) == len(list(planned(runs=10).blocks(3)))


def test_memory() -> None:
    assert whole_memory() > 10**8
    assert [as_memory(size) for size in (0, 999, 8e12, 5e18)] == [
        "0 bytes",
        "999 bytes",
        "8 TB",
        "5,000 PB",
    ]

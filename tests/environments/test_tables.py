"""Environments as tables: what they hold, what they refuse."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.stats

import decoupled as dc

envs = dc.environments
ALL = [
    envs.Alternating(arms=8, gap=0.125),
    envs.Bernoulli([0.2, 0.7]),
    envs.Drifting(arms=4, gap=0.2, period=7, level=0.6),
    envs.LossTable([[0.1, 0.9], [0.8, 0.2]], [0, 1, 1], noise="beta", concentration=4.0),
    envs.Catalogue(500, gap=0.25, top=0.8, seed=3),
    envs.PunishLast(8, window=3),
    envs.AdaptiveAlternating(8, gap=0.125),
    envs.MovieLens(32, order="iid", noise="beta", concentration=4.0, seed=3, data="stand-in"),
]


@pytest.mark.parametrize("environment", ALL, ids=lambda each: type(each).__name__)
def test_contract(environment: dc.environments.Environment) -> None:
    again = envs.Environment.from_json(environment.to_json())
    assert again == environment
    assert hash(again) == hash(environment)
    with pytest.raises(AttributeError):
        environment.arms = 3
    if not isinstance(environment, envs.LossTable):
        assert eval(repr(environment), vars(envs)) == environment


@pytest.mark.parametrize("environment", ALL[:5], ids=lambda each: type(each).__name__)
def test_tables_hold_every_round(environment: dc.environments.Environment) -> None:
    table = environment.table(1_000)
    assert table.row_at.shape == (1_000,)
    assert table.rows.shape[1] == environment.arms
    assert table.row_at.min() >= 0
    assert table.row_at.max() < len(table.rows)
    assert ((table.rows >= 0) & (table.rows <= 1)).all()


def test_alternating_phases() -> None:
    # Phase n lasts floor(1.6 ** n) rounds: 1, 2, 4, 6, 10, 16, ... and starts low.
    row_at = envs.Alternating(arms=3, gap=0.25).table(2_000).row_at
    expected: list[int] = []
    for n in range(1, 20):  # 1.6 ** 19 > 2,000
        expected += [(n - 1) % 2] * math.floor(1.6**n)
    assert row_at.tolist() == expected[:2_000]
    lengths = np.diff(np.flatnonzero(np.diff(np.append([1 - row_at[0]], row_at))))
    assert lengths[:6].tolist() == [1, 2, 4, 6, 10, 16]


def test_a_catalogue_has_one_best_item_and_the_law_it_says() -> None:
    shop = envs.Catalogue(20_000, gap=0.25, top=0.8, seed=3)
    table = shop.table(3)
    rewards = 1.0 - table.rows[0]
    assert table.row_at.tolist() == [0, 0, 0]
    assert rewards[shop.best] == pytest.approx(0.8)
    others = np.delete(rewards, shop.best)
    assert 0.0 <= others.min() < others.max() <= 0.55 + 1e-12
    # Beta(1, 4), scaled; seeded, and a Kolmogorov-Smirnov test at 1e-4.
    assert scipy.stats.kstest(others / 0.55, "beta", (1.0, 4.0)).pvalue > 1e-4
    assert envs.Catalogue(20_000, gap=0.25, top=0.8, seed=4).best != shop.best
    assert len(envs.Catalogue(10**6).to_json()) < 200


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"arms": 1}, "arms = 1"),
        ({"arms": 9, "top": 1.0}, "top = 1.0"),
        ({"arms": 9, "gap": 0.9}, "gap = 0.9: must be below top = 0.9"),
        ({"arms": 9, "seed": -1}, "seed = -1"),
    ],
)
def test_a_catalogue_refuses(parameters: dict[str, Any], said: str) -> None:
    with pytest.raises(dc.ParameterError, match=said):
        envs.Catalogue(**parameters)


def test_the_best_arm_drifts_on() -> None:
    table = envs.Drifting(arms=3, gap=0.2, period=4, level=0.7).table(30)
    for t in range(30):
        expected = [0.7, 0.7, 0.7]
        expected[t // 4 % 3] -= 0.2
        assert table.rows[table.row_at[t]].tolist() == expected


@pytest.mark.parametrize(
    ("name", "value"),
    [("arms", 1), ("gap", 0.0), ("gap", 0.6), ("gap", "a"), ("period", 0), ("period", 2.0), ("level", 1.0)],
)
def test_drift_outside_its_domain_is_refused(name: str, value: Any) -> None:
    good: dict[str, Any] = {"arms": 3, "gap": 0.2, "period": 4}
    with pytest.raises(dc.ParameterError, match=f"^{name} = "):
        envs.Drifting(**{**good, name: value})


def test_alternating_with_slow_growth_goes_on_alternating() -> None:
    row_at = envs.Alternating(arms=2, gap=0.1, growth=1.001).table(10_000).row_at
    expected: list[int] = []
    for n in range(1, 10_001):
        expected += [(n - 1) % 2] * math.floor(1.001**n)
    assert row_at.tolist() == expected[:10_000]


def test_alternating_with_fast_growth_does_not_overflow() -> None:
    assert envs.Alternating(arms=2, gap=0.5, growth=1e200).table(10).row_at.tolist() == [0] * 10


def test_csv_and_parquet(tmp_path: Path) -> None:
    frame = pd.DataFrame({"left": [0.1, 0.8, 0.3], "right": [0.9, 0.2, 0.4]})
    frame.to_csv(tmp_path / "log.csv", index=False)
    frame.to_parquet(tmp_path / "log.parquet")
    from_csv = envs.LossTable.from_csv(tmp_path / "log.csv", noise="none")
    from_parquet = envs.LossTable.from_parquet(tmp_path / "log.parquet", noise="none")
    assert from_csv == from_parquet
    assert from_csv.rows.tolist() == frame.to_numpy().tolist()
    assert envs.LossTable(tmp_path / "log.csv", noise="none") == from_csv
    (tmp_path / "bare.csv").write_text("0.1,0.9\n0.2,0.8\n")
    with pytest.raises(dc.ParameterError, match="line of names first"):
        envs.LossTable.from_csv(tmp_path / "bare.csv")
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(dc.ParameterError, match=r"empty\.csv"):
        envs.LossTable.from_csv(tmp_path / "empty.csv")
    (tmp_path / "words.csv").write_text("a,b\n0.1,high\n")
    with pytest.raises(dc.ParameterError, match=r"words\.csv"):
        envs.LossTable.from_csv(tmp_path / "words.csv")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: envs.Alternating(arms=1, gap=0.1), "arms = 1"),
        (lambda: envs.Alternating(arms=8, gap=1.5), "gap = 1.5"),
        (lambda: envs.Alternating(arms=8, gap=0.1, growth=1.0), "growth = 1.0"),
        (lambda: envs.Bernoulli([0.5]), "rewards"),
        (lambda: envs.Bernoulli([0.5, 1.2]), "rewards"),
        (lambda: envs.Bernoulli([0.5, math.nan]), "rewards"),
        (lambda: envs.Bernoulli(3), "rewards"),  # type: ignore[arg-type]
        (lambda: envs.LossTable([[0.1, 1.9]]), r"rows\[0\]\[1\] = 1.9"),
        (lambda: envs.LossTable([[0.1, math.nan]]), r"rows\[0\]\[1\] = nan"),
        (lambda: envs.LossTable([0.1, 0.9]), "rows"),
        (lambda: envs.LossTable([["a", "b"]]), "rows"),
        (lambda: envs.LossTable([[0.1, 0.9]], [0, 1]), "index = 1"),
        (lambda: envs.LossTable([[0.1, 0.9]], [0.5]), "index"),
        (lambda: envs.LossTable([[0.1, 0.9]], [[0], [0, 0]]), "index"),
        (lambda: envs.LossTable([[0.1, 0.9]], noise="gauss"), "noise = 'gauss'"),
        (lambda: envs.LossTable([[0.1, 0.9]], concentration=0), "concentration = 0"),
        (lambda: envs.PunishLast(8, window=0), "window = 0"),
        (lambda: envs.PunishLast(8, gap=0.7), "gap = 0.7"),
        (lambda: envs.AdaptiveAlternating(8, gap=0), "gap = 0"),
    ],
)
def test_bad_parameters(make: Any, said: str) -> None:
    with pytest.raises(dc.ParameterError, match=said):
        make()

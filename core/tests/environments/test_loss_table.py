"""Environments as tables, with contexts and without: their contents, their noise and their errors.

Any arm can be the best one of an adversary.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.stats

import decoupled as dc
from decoupled.base.arrays import Floats, Words
from decoupled.kernels.jit import compiled
from decoupled.kernels.random.sampling import BERNOULLI, BETA, NONE, draw_loss
from decoupled.kernels.random.stream import new_stream, next_word

envs = dc.environments
ALL = [
    example
    for name in envs.Environment.homes
    for example in envs.Environment.known()[name].examples()
]
TABLES = [each for each in ALL if not isinstance(each, envs.Adversary)]


@pytest.mark.parametrize("environment", ALL, ids=lambda each: type(each).__name__)
def test_contract(environment: dc.environments.Environment) -> None:
    again = envs.Environment.from_json(environment.to_json())
    assert again == environment
    assert hash(again) == hash(environment)
    with pytest.raises(AttributeError):
        environment.arms = 3
    if not isinstance(environment, envs.LossTable | envs.ContextTable):  # too long to be printed
        assert eval(repr(environment), dict(envs.Environment.known())) == environment


@pytest.mark.parametrize("environment", TABLES, ids=lambda each: type(each).__name__)
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
    expected = [
        (n - 1) % 2 for n in range(1, 20) for _ in range(math.floor(1.6**n))
    ]  # 1.6 ** 19 > 2,000
    assert row_at.tolist() == expected[:2_000]
    lengths = np.diff(np.flatnonzero(np.diff(np.append([1 - row_at[0]], row_at))))
    assert lengths[:6].tolist() == [1, 2, 4, 6, 10, 16]
    slowly = envs.Alternating(arms=2, gap=0.1, growth=1.001).table(10_000).row_at
    expected = [(n - 1) % 2 for n in range(1, 10_001) for _ in range(math.floor(1.001**n))]
    assert slowly.tolist() == expected[:10_000]
    assert envs.Alternating(arms=2, gap=0.5, growth=1e200).table(10).row_at.tolist() == [0] * 10


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


def test_the_best_arm_drifts_on() -> None:
    table = envs.Drifting(arms=3, gap=0.2, period=4, level=0.7).table(30)
    for t in range(30):
        expected = [0.7, 0.7, 0.7]
        expected[t // 4 % 3] -= 0.2
        assert table.rows[table.row_at[t]].tolist() == expected


def test_a_recorded_log_is_its_own_losses_and_rows_are_means(tmp_path: Path) -> None:
    frame = pd.DataFrame({"left": [0.1, 0.8, 0.3], "right": [0.9, 0.2, 0.4]})
    frame.to_csv(tmp_path / "log.csv", index=False)
    frame.to_parquet(tmp_path / "log.parquet")
    recorded = envs.LossTable(tmp_path / "log.csv")
    assert recorded == envs.LossTable(frame.to_numpy(), noise="none")
    assert recorded == envs.LossTable(str(tmp_path / "log.parquet"))
    assert recorded == envs.Environment.from_json(recorded.to_json())
    means = envs.LossTable(frame.to_numpy())
    assert (recorded.noise, means.noise) == ("none", "bernoulli")
    assert envs.LossTable(tmp_path / "log.csv", noise="bernoulli") == means
    path = tmp_path / "log.csv"
    path.write_text("a,b\nTrue,0.5\nFalse,0.25\n")
    assert envs.LossTable(path).rows.tolist() == [[1.0, 0.5], [0.0, 0.25]]
    assert envs.LossTable([[True, 0.5]]).rows.tolist() == [[1.0, 0.5]]
    assert envs.LossTable(np.array([[True, False]])).rows.tolist() == [[1.0, 0.0]]


def test_what_is_simulated_on_a_recorded_log_is_that_log(tmp_path: Path) -> None:
    """Two constant arms 0.01 apart: coin tosses would hide for long which is better; the log shows
    it at once.
    """
    path = tmp_path / "log.csv"
    path.write_text("left,right\n0.50,0.51\n")
    results = dc.simulate(dc.FollowTheLeader(), envs.LossTable(path), horizon=100, runs=20, seed=0)
    # Once both arms are seen, everything is known, so only the few rounds before add regret.
    assert results.final_regret("FollowTheLeader").max() < 0.01 * 20


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty; write a line of arms' names"),
        ("a,b\n", "has names but no losses; add a line"),
        ("0.1,0.9\n0.2,0.8\n", "add a header line of names"),
        ("a,a\n0.1,0.9\n", "has two columns named 'a'; give every column a name of its own"),
        (",a,b\n0,0.1,0.9\n1,0.2,0.8\n", "column 1 has no name; .*index=False"),
        ("a\n0.1\n", "has one column, 'a'; give a column for each of two arms"),
        ("a;b\n0.1;0.9\n", "has one column, 'a;b'; .*separated by commas"),
        ("a,b\n0.1,0.2,0.3\n", "line 2 has 3 values, and the header 2; export it again"),
        ("a,b\n0.1,0.2\n0.1,0.2,0.3\n", "line 3 has 3 values, and the header 2; export it again"),
        ("a,b\n0.1,0.9\n0.1\n", "line 3 has 1 values, and the header 2; export it again"),
        (
            "a,b\n0.1,0.9\n0.1,\n",
            "row 2, column 'b' = nan: is missing, .*; drop the row or fill it in",
        ),
        ("a,b\n0.1,0.9\n0.1,1_0\n", "row 2, column 'b' = '1_0': is not a number; give a number"),
        ("a,b\n0.1,0.9\n0.1,NA\n", "row 2, column 'b' = nan: is missing, .* use Learner.replay()"),
        ("a,b\n0.1,0.9\n0.1,high\n", "row 2, column 'b' = 'high': is not a number; give a number"),
        (
            "a,b\nTrue,0.9\nmaybe,0.1\n",
            "row 2, column 'a' = 'maybe': is not a number; give a number",
        ),
        (
            "a,b\n0.1,inf\n",
            r"row 1, column 'b' = inf: must lie in \[0, 1\]; drop the row or correct it",
        ),
        ("a,b\n0.1,250\n", r"row 1, column 'b' = 250.0: must lie in \[0, 1\]; rescale the losses"),
    ],
    ids=repr,
)
def test_csv_files_that_are_no_log(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "log.csv"
    path.write_text(text)
    with pytest.raises(dc.ParameterError, match=rf"^log\.csv: .*{said}"):
        envs.LossTable(path)


def test_parquet_files_that_are_no_log(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    for column, said in (
        (["x", "y"], "row 1, column 'a' = 'x': is a str; give a number"),
        (pd.array([1, None], dtype="Int64"), "row 2, column 'a' = None: is missing"),
        ([0.5, math.nan], "row 2, column 'a' = nan: is missing"),
    ):
        pd.DataFrame({"a": column, "b": [0.1, 0.2]}).to_parquet(path)
        with pytest.raises(dc.ParameterError, match=rf"^log\.parquet: {said}"):
            envs.LossTable(path)
    indexed = pd.DataFrame({"a": [0.5], "b": [0.1]}, index=["monday"])
    indexed.to_parquet(path)
    assert envs.LossTable(path).rows.tolist() == [[0.5, 0.1]]  # an index is no arm
    path.write_bytes(b"a,b")
    with pytest.raises(dc.ParameterError, match=r"^log\.parquet: is not a whole Parquet file"):
        envs.LossTable(path)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: envs.Alternating(arms=1, gap=0.1), "arms = 1"),
        (lambda: envs.Alternating(arms=8, gap=1.5), "gap = 1.5"),
        (lambda: envs.Alternating(arms=8, gap=0.1, growth=1.0), "growth = 1.0"),
        (lambda: envs.Bernoulli([0.5]), "rewards"),
        (lambda: envs.Bernoulli([0.5, 1.2]), "rewards"),
        (lambda: envs.Bernoulli(3), "rewards"),  # type: ignore[arg-type]
        (lambda: envs.LossTable([[0.1, 1.9]]), r"rows\[0\]\[1\] = 1.9"),
        (
            lambda: envs.LossTable([[0.1, math.nan]]),
            r"rows\[0\]\[1\] = nan: is missing, .*; drop the row",
        ),
        (
            lambda: envs.LossTable([[0.1, None]]),
            r"rows\[0\]\[1\] = None: is missing, .*; drop the row",
        ),
        (
            lambda: envs.LossTable([[0.1, math.inf]]),
            r"rows\[0\]\[1\] = inf: must lie in \[0, 1\]; drop",
        ),
        (lambda: envs.LossTable([[0.1, 10**400]]), r"rows\[0\]\[1\] = 10+: must lie in \[0, 1\]"),
        (
            lambda: envs.LossTable([[0.1, "0.9"]]),
            r"rows\[0\]\[1\] = '0.9': is a str; give a number",
        ),
        (
            lambda: envs.LossTable([[0.1, 0.9], [0.1]]),
            r"rows\[1\]: has length 1, and rows\[0\] has",
        ),
        (lambda: envs.LossTable([0.1, 0.9]), "rows"),
        (lambda: envs.LossTable([[0.1, 0.9]], [0, 1]), "index = 1"),
        (lambda: envs.LossTable([[0.1, 0.9]], [[0], [0, 0]]), "index"),
        (lambda: envs.LossTable([[0.1, 0.9]], noise="gauss"), "noise = 'gauss'"),
        (lambda: envs.LossTable([[0.1, 0.9]], concentration=0), "concentration = 0"),
        (lambda: envs.PunishLast(8, window=0), "window = 0"),
        (lambda: envs.PunishLast(8, gap=0.7), "gap = 0.7"),
        (lambda: envs.AdaptiveAlternating(8, gap=0), "gap = 0"),
        (lambda: envs.Catalogue(1), "arms = 1"),
        (lambda: envs.Catalogue(9, top=1.0), "top = 1.0"),
        (lambda: envs.Catalogue(9, gap=0.9), "gap = 0.9: must be below top = 0.9"),
        (lambda: envs.Catalogue(9, seed=-1), "seed = -1"),
        (lambda: envs.Drifting(1, 0.2, 4), "arms = 1"),
        (lambda: envs.Drifting(3, 0.6, 4), "gap = 0.6"),
        (lambda: envs.Drifting(3, 0.2, 0), "period = 0"),
        (lambda: envs.Drifting(3, 0.2, 4, level=1.0), "level = 1.0"),
    ],
)
def test_bad_parameters(make: Any, said: str) -> None:
    with pytest.raises(dc.ParameterError, match=said):
        make()


WORLDS = (
    dc.environments.PunishLast(4, window=3, gap=0.1),
    dc.environments.AdaptiveAlternating(4, gap=0.25),
)


def losses_of(world: Any, arms: list[int]) -> list[list[float]]:
    """The losses of each round, if these arms are exploited."""
    losses, note = (getattr(each, "py_func", each) for each in world.functions)
    memory, out, seen = world.memory(), np.zeros(world.arms), []
    for t, arm in enumerate(arms):
        losses(world.params(), memory, t, out)
        note(world.params(), memory, t, arm)
        seen.append(out.tolist())
    return seen


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: type(world).__name__)
def test_another_best_arm_is_the_same_world_with_two_arms_exchanged(world: Any) -> None:
    exchanged = [2, 1, 0, 3]
    arms = [0, 0, 2, 0, 1, 0, 0, 2, 2, 3]
    other = type(world)(**{**vars(world), "best": 2})
    found = np.array(losses_of(other, [exchanged[arm] for arm in arms]))
    assert found[:, exchanged].tolist() == losses_of(world, arms)
    assert losses_of(other, arms) != losses_of(world, arms)


@pytest.mark.parametrize("best", [4, -1, 0.5])
@pytest.mark.parametrize("world", WORLDS, ids=lambda world: type(world).__name__)
def test_the_best_arm_is_one_of_them(world: Any, best: float) -> None:
    with pytest.raises(dc.ParameterError, match=rf"best = {best}: must be "):
        type(world)(**{**vars(world), "best": best})


DRAWS = 200_000
# Ten tests in this file, each at 1e-5: a correct program fails one of them once in 10,000 seeds.
FALSE_ALARM = 1e-5


@compiled
def fill_losses(
    kind: int, concentration: float, mean: float, noise: Words, local: Words, out: Floats
) -> None:
    for k in range(len(out)):
        out[k] = draw_loss(kind, concentration, mean, noise, local)


def drawn_losses(kind: int, concentration: float, mean: float, seed: int = 0) -> Floats:
    out = np.empty(DRAWS)
    fill_losses(
        kind,
        concentration,
        mean,
        new_stream(np.random.SeedSequence(seed)),
        np.zeros(2, np.uint64),
        out,
    )
    return out


@pytest.mark.parametrize("mean", [0.0, 0.3, 0.995, 1.0])
def test_bernoulli(mean: float) -> None:
    losses = drawn_losses(BERNOULLI, 1.0, mean)
    assert set(np.unique(losses)) <= {0.0, 1.0}
    assert scipy.stats.binomtest(int(losses.sum()), DRAWS, mean).pvalue > FALSE_ALARM


def test_without_noise_the_mean_is_the_loss_and_the_test_of_beta_has_power() -> None:
    assert (drawn_losses(NONE, 1.0, 0.37) == 0.37).all()
    losses = drawn_losses(BETA, 10.0, 0.3)
    near = scipy.stats.beta(0.31 * 10.0, 0.69 * 10.0)
    assert scipy.stats.kstest(losses, near.cdf).pvalue < FALSE_ALARM


@pytest.mark.parametrize(
    ("mean", "concentration"), [(0.3, 10.0), (0.5, 2.0), (0.1, 0.7), (0.02, 3.0), (0.6, 500.0)]
)
def test_beta(mean: float, concentration: float) -> None:
    losses = drawn_losses(BETA, concentration, mean)
    law = scipy.stats.beta(mean * concentration, (1 - mean) * concentration)
    assert scipy.stats.kstest(losses, law.cdf).pvalue > FALSE_ALARM


@pytest.mark.parametrize(("mean", "concentration"), [(0.0, 5.0), (1.0, 5.0), (0.5, 1e-300)])
def test_beta_at_the_edges_is_finite(mean: float, concentration: float) -> None:
    losses = drawn_losses(BETA, concentration, mean)
    assert np.isfinite(losses).all()
    assert abs(losses.mean() - mean) < 0.01


@pytest.mark.parametrize("kind", [BERNOULLI, BETA])
def test_one_word_a_round(kind: int) -> None:
    one, two = (new_stream(np.random.SeedSequence(1)) for _ in range(2))
    fill_losses(kind, 0.7, 0.3, one, np.zeros(2, np.uint64), np.empty(1_000))
    for _ in range(1_000):
        next_word(two)
    assert one.tolist() == two.tolist()


ContextTable = dc.environments.ContextTable
LOSSES = [[0.1, 0.9], [0.8, 0.2], [0.3, 0.6], [0.5, 0.4]]
CONTEXT: dict[str, Any] = {
    "subject": ["law", None, "law", "art"],
    "grade": [3, 4, None, 3],
    "tokens": [120.5, 80, 300, None],
    "paid": [True, False, True, None],
}


def test_files_and_arrays_make_the_same_table(tmp_path: Path) -> None:
    whole = ContextTable(LOSSES, CONTEXT)
    frame = pd.DataFrame(
        {**CONTEXT, "small": [row[0] for row in LOSSES], "large": [row[1] for row in LOSSES]}
    )
    frame.to_csv(tmp_path / "log.csv", index=False)
    frame.to_parquet(tmp_path / "log.parquet")
    for name in ("log.csv", "log.parquet"):
        assert ContextTable(tmp_path / name, list(CONTEXT)) == whole
    arrays = {name: np.array(column, object) for name, column in CONTEXT.items()}
    assert ContextTable(np.array(LOSSES), arrays) == whole
    assert whole.segments == ("subject", "paid")
    assert ContextTable(LOSSES, CONTEXT, segments=["grade"]) != whole
    assert ContextTable(LOSSES, CONTEXT, order="shuffled") != whole


def test_a_missing_value_is_a_segment_and_a_whole_number_its_digits() -> None:
    table = ContextTable(LOSSES, {**CONTEXT, "text": ["3", 3, "true", True]})
    assert table.segment_at(["subject"]).tolist() == [0, 1, 0, 2]
    assert table.segment_at(["grade"]).tolist() == [0, 1, 2, 0]
    assert table.segment_at(["text"]).tolist() == [0, 0, 1, 1]
    assert table.segment_at(["subject", "grade"]).tolist() == [0, 1, 2, 3]
    assert table.segment_at([]).tolist() == [0, 0, 0, 0]
    np.testing.assert_equal(table.numbers("tokens"), [120.5, 80.0, 300.0, math.nan])
    table = ContextTable(LOSSES, CONTEXT, order="shuffled")
    row_at = table.row_at(10, seed=1, run=2)
    assert (row_at == table.row_at(10, seed=1, run=2)).all()
    assert [sorted(each) for each in (row_at[:4], row_at[4:8])] == [[0, 1, 2, 3]] * 2
    orders = {tuple(table.row_at(4, seed, run).tolist()) for seed in range(5) for run in range(40)}
    assert len(orders) == 24
    assert ContextTable(LOSSES, CONTEXT).row_at(6, seed=1, run=2).tolist() == [0, 1, 2, 3, 0, 1]


def test_what_is_available_is_the_gain_of_the_best_arm_for_each_segment() -> None:
    draw = np.random.default_rng(0)
    losses, segments = draw.random((50, 3)), draw.integers(0, 4, 50)
    table = ContextTable(losses, {"s": [f"{each}" for each in segments]}, order="shuffled")
    row_at = table.row_at(70, seed=0, run=0)
    seen, of = losses[row_at], segments[row_at]
    apart = sum(seen[of == each].sum(axis=0).min() for each in range(4))
    assert table.available(row_at) == pytest.approx(seen.sum(axis=0).min() - apart)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: ContextTable([[0.1, 1.9]], {}), r"losses\[0\]\[1\] = 1.9: must lie in \[0, 1\]"),
        (lambda: ContextTable([[0.1, 0.9], [0.1]], {}), r"losses\[1\]: has length 1"),
        (
            lambda: ContextTable(LOSSES, ["subject"]),
            "context = .*: must be a mapping of names to columns",
        ),
        (
            lambda: ContextTable(LOSSES, {"s": ["a"]}),
            r"context\['s'\]: is 1 values, and there are 4 rounds",
        ),
        (lambda: ContextTable(LOSSES, {"s": "abcd"}), r"context\['s'\]: is a str"),
        (
            lambda: ContextTable(LOSSES, {"s": [1, 2, 3, math.nan]}),
            r"context\['s'\]\[3\] = nan: .*use None",
        ),
        (
            lambda: ContextTable(LOSSES, {"s": [1, 2, 3, [4]]}),
            r"context\['s'\]\[3\] = \[4\]: must be text",
        ),
        (
            lambda: ContextTable(LOSSES, CONTEXT, ["subjct"]),
            "segments = 'subjct': .* did you mean 'subject'",
        ),
        (
            lambda: ContextTable(LOSSES, CONTEXT, "subject"),
            "segments = 'subject': must be a list of names",
        ),
        (
            lambda: ContextTable(LOSSES, CONTEXT, ["tokens"]),
            "segments = 'tokens': has the fraction 120.5 in row 0",
        ),
        (lambda: ContextTable(LOSSES, CONTEXT, order="random"), "order = 'random'"),
        (
            lambda: ContextTable("log.csv", CONTEXT["subject"]),
            "context = 'law': must be a list of names",
        ),
    ],
)
def test_tables_that_cannot_be(make: Any, said: str) -> None:
    with pytest.raises(dc.ParameterError, match=f"^{said}"):
        make()


def test_files_that_are_no_such_table(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("subject,small,large\nlaw,0.1,0.9\nart,high,0.2\n")
    with pytest.raises(dc.ParameterError, match=r"^log\.csv: has no column 'subjct'; did you mean"):
        ContextTable(path, ["subjct"])
    with pytest.raises(
        dc.ParameterError, match=r"^log\.csv: row 2, column 'small' = 'high': is not"
    ):
        ContextTable(path, ["subject"])
    with pytest.raises(dc.ParameterError, match=r"^log\.csv: has one column, 'large'"):
        ContextTable(path, ["subject", "small"])

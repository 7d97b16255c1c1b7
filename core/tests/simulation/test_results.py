"""Labelled results: moments, summaries, saving, and the memory of long runs.

`Results.plot`: bands, axes of the user's own, and names.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib import rc_context
from matplotlib.figure import Figure
from scipy import stats

import decoupled as dc
from decoupled.plots import Panel, Picture, Series, draw
from decoupled.simulation.intervals import paired
from decoupled.simulation.labelled import GROUP, CurveMoments
from decoupled.simulation.plan import checkpoint_rounds

EASY = dc.environments.Bernoulli([0.2, 0.5, 0.7])


@pytest.fixture(scope="module")
def results() -> dc.Results:
    return dc.simulate([dc.FTPL(), dc.Exp3()], EASY, 500, 120, seed=0)


@settings(deadline=None, max_examples=50)
@given(
    st.integers(1, 4 * GROUP),
    st.lists(st.integers(1, 3 * GROUP), min_size=1),
    st.integers(0, 2**32 - 1),
)
def test_moments_do_not_depend_on_how_runs_arrive(runs: int, pieces: list[int], seed: int) -> None:
    curves = np.random.default_rng(seed).normal(100.0, 3.0, (runs, 4))
    whole, parts = CurveMoments(4), CurveMoments(4)
    whole.add(curves)
    start = 0
    while start < runs:
        for size in pieces:
            parts.add(curves[start : start + size])
            start += size
    whole.finish()
    parts.finish()
    assert np.array_equal(whole.mean, parts.mean)
    assert np.array_equal(whole.standard_deviation, parts.standard_deviation, equal_nan=True)
    assert np.allclose(whole.mean, curves.mean(axis=0), rtol=1e-13)
    if runs > 1:
        assert np.allclose(whole.standard_deviation, curves.std(axis=0, ddof=1), rtol=1e-10)


def test_data_is_labelled_and_curves_may_be_left_out(results: dc.Results) -> None:
    data = results.data
    assert data.regret.dims == ("policy", "run", "round")
    assert data.regret.shape == (2, 120, 100)
    assert np.array_equal(data.regret.values[:, :, -1], data.final_regret.values)
    assert np.allclose(data.regret.mean("run"), data.regret_mean)
    assert np.allclose(data.regret.std("run", ddof=1), data.regret_std)
    assert (data.plays.sum("arm") == 500 * 120).all()
    lean = dc.simulate([dc.FTPL(), dc.Exp3()], EASY, 500, 120, seed=0, curves="moments")
    assert "regret" not in lean.data
    assert np.array_equal(lean.data.regret_std, results.data.regret_std)
    with pytest.raises(dc.ParameterError, match="did you mean 'FTPL'"):
        results.final_regret("FTLP")


def test_summary_is_right(results: dc.Results) -> None:
    table = results.summary(against=dc.Exp3(), level=0.9)
    ftpl, exp3 = results.final_regret(dc.FTPL()), results.final_regret("Exp3")
    line = table.loc["FTPL"]
    interval = scipy.stats.t.interval(0.9, 119, ftpl.mean(), scipy.stats.sem(ftpl))
    assert np.allclose([line["low"], line["high"]], interval)
    assert np.isclose(line["median"], np.median(ftpl))
    assert np.isclose(line["p99"], np.quantile(ftpl, 0.99))
    test = scipy.stats.ttest_rel(ftpl, exp3)
    ends = test.confidence_interval(0.9)
    assert np.isclose(line["p_value"], test.pvalue)
    assert np.allclose([line["difference_low"], line["difference_high"]], [ends.low, ends.high])
    assert table.loc["Exp3", "p_value"] == 1.0
    assert "90%" in table.attrs["interval"]
    same = dict.fromkeys(("difference", "difference_low", "difference_high"), 2.0)
    assert paired(np.full(3, 2.0), 0.95) == {**same, "p_value": 0.0}


def test_saving_gives_the_same_bytes_in_an_ordinary_file(
    results: dc.Results, tmp_path: Path
) -> None:
    for name in ("a.nc", "b.nc"):
        results.save(tmp_path / name)
    assert (tmp_path / "a.nc").read_bytes() == (tmp_path / "b.nc").read_bytes()
    again = dc.Results.load(tmp_path / "a.nc")
    assert again.data.identical(results.data)
    assert again.specification == results.specification
    (tmp_path / "plain").write_text("")
    results.save(tmp_path / "results.nc")
    assert (tmp_path / "results.nc").stat().st_mode == (tmp_path / "plain").stat().st_mode
    (tmp_path / "text.nc").write_text("plain text")
    with pytest.raises(dc.StorageError, match="not a results file"):
        dc.Results.load(tmp_path / "text.nc")
    with pytest.raises(FileNotFoundError):
        dc.Results.load(tmp_path / "missing.nc")


def test_changes_of_the_data_set_are_kept(tmp_path: Path) -> None:
    results = dc.simulate(dc.FTPL(), EASY, 50, 2, seed=0)
    results.data.final_regret[0, 1] = 3.5
    results.data.attrs["note"] = "by hand"
    results.save(tmp_path / "results.nc")
    again = dc.Results.load(tmp_path / "results.nc")
    assert again.data.attrs["note"] == "by hand"
    assert results.final_regret("FTPL")[1] == again.final_regret("FTPL")[1] == 3.5


@pytest.mark.parametrize(
    ("wanted", "rounds"),
    [
        (4, (25, 50, 75, 100)),
        (1, (100,)),
        ("all", tuple(range(1, 101))),
        ([10, 5, 10], (5, 10, 100)),
        ({"count": 3, "spacing": "log"}, (1, 10, 100)),
        ({"count": 2}, (50, 100)),
    ],
)
def test_checkpoints(wanted: object, rounds: tuple[int, ...]) -> None:
    assert checkpoint_rounds(wanted, 100) == rounds  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wanted", [0, "lin", [101], {"spacing": "cubic"}, {"number": 3}, [0.5], True]
)
def test_bad_checkpoints(wanted: object) -> None:
    with pytest.raises(dc.ParameterError, match="checkpoints"):
        checkpoint_rounds(wanted, 100)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"policies": []}, "policies"),
        ({"policies": [dc.FTPL(), dc.FTPL()]}, "must appear once"),
        ({"policies": ["FTPL"]}, "is not a policy"),
        ({"environment": "Bernoulli"}, "is not an environment"),
        ({"horizon": 0}, "horizon = 0"),
        ({"runs": 2.5}, "runs = 2.5"),
        ({"seed": -1}, "seed = -1"),
        ({"block": 0}, "block = 0"),
        ({"curves": "all"}, "curves = 'all'"),
        ({"policies": 5}, "policies = 5"),
        ({"policies": None}, "policies = None"),
        ({"checkpoints": 3.5}, "checkpoints = 3.5"),
        ({"checkpoints": None}, "checkpoints = None"),
        ({"checkpoints": np.array([50])}, "checkpoints = 50"),
        ({"workers": 0}, "workers = 0"),
        ({"workers": "2"}, "workers = '2'"),
        ({"executor": 3}, "executor = 3"),
        ({"out": 5}, "out = 5"),
    ],
)
def test_bad_arguments(change: dict[str, object], message: str) -> None:
    arguments: dict[str, object] = {
        "policies": dc.FTPL(),
        "environment": EASY,
        "horizon": 10,
        "runs": 2,
    }
    with pytest.raises(dc.ParameterError, match=message):
        dc.simulate(**(arguments | change))  # type: ignore[arg-type]


def test_negative_regret_is_drawn_one_run_is_enough_and_long_runs_fit(tmp_path: Path) -> None:
    # A policy that follows changing losses can do better than the best fixed arm.
    rows = 0.9 - 0.8 * np.eye(2)
    world = dc.environments.LossTable(rows, [0] * 1_000 + [1] * 1_000)
    results = dc.simulate(dc.FTPL(), world, 2_000, 20, seed=0)
    lowest = float(results.data.regret_mean.min())
    assert lowest < 0
    assert results.plot().axes[0].get_ylim()[0] < lowest
    single = dc.simulate(dc.FTPL(), EASY, 10, 1, seed=0, checkpoints=1)
    assert np.isnan(single.summary()["standard_error"]["FTPL"])
    single.plot(tmp_path / "one.png", log=True)
    # Memory grows with the checkpoints, not with the rounds: T numbers per run would be 40 MB here.
    assert dc.simulate(dc.FollowTheLeader(), EASY, 100_000, 50, seed=0).data.nbytes < 200_000


TWO_ARMS = dc.environments.Bernoulli([0.2, 0.7])
RUNS = 30


@pytest.fixture(scope="module")
def plotted() -> dc.Results:
    return dc.simulate([dc.Ladder(), dc.FTPL()], TWO_ARMS, 200, RUNS, seed=0, checkpoints=5)


def drawn_band(figure: Figure, number: int = 0) -> tuple[float, float]:
    """The lower and the upper end of a band at the horizon."""
    vertices = np.asarray(figure.axes[0].collections[number].get_paths()[0].vertices)
    last = vertices[vertices[:, 0] == vertices[:, 0].max(), 1]
    return float(last.min()), float(last.max())


def test_bands(plotted: dc.Results) -> None:
    final = plotted.final_regret(dc.FTPL())
    mean, deviation = final.mean(), final.std(ddof=1)
    for band, expected, told in (
        (
            "mean",
            stats.t.interval(0.95, RUNS - 1, mean, stats.sem(final)),
            "mean regret, 95 % interval",
        ),
        ("std", (max(0.0, mean - deviation), mean + deviation), "standard deviation"),
    ):
        figure = plotted.plot(band=band)  # type: ignore[arg-type]
        assert drawn_band(figure, 1) == pytest.approx(expected)
        assert told in figure.axes[0].get_ylabel()
    assert len(plotted.plot(band=None).axes[0].collections) == 0
    lean = dc.simulate(dc.FTPL(), TWO_ARMS, 50, 5, seed=0, curves="moments")
    with pytest.raises(dc.UnsupportedError, match=r'simulate with curves="runs"'):
        lean.plot(band=(0.05, 0.95))
    lean.plot(band="mean")


def test_quantiles_on_request_also_after_saving(plotted: dc.Results, tmp_path: Path) -> None:
    plotted.save(tmp_path / "plotted.nc")
    for each in (plotted, dc.Results.load(tmp_path / "plotted.nc")):
        figure = each.plot(band=(0.1, 0.8))
        final = each.final_regret(dc.FTPL())
        assert drawn_band(figure, 1) == pytest.approx(tuple(np.quantile(final, [0.1, 0.8])))
        assert "10 % to 80 % of runs" in figure.axes[0].get_ylabel()


@pytest.mark.parametrize(
    "band", ["median", (0.9, 0.1), (0.5,), (0.1, 1.1), ("a", "b"), 3, (0.1, 0.5, 0.9)]
)
def test_other_bands_are_refused(plotted: dc.Results, band: object) -> None:
    with pytest.raises(dc.ParameterError, match=r'^band = .*give "mean", "std"'):
        plotted.plot(band=band)  # type: ignore[arg-type]


def test_a_figure_of_ones_own_and_names_of_ones_own(plotted: dc.Results, tmp_path: Path) -> None:
    figure = Figure()
    left, right = figure.subplots(1, 2)
    left.set_title("mine")
    assert plotted.plot(tmp_path / "both.png", ax=left) is figure
    plotted.plot(ax=right, log=True)
    assert left.get_title() == "mine"
    assert (left.get_xscale(), right.get_xscale()) == ("linear", "log")
    assert [len(axes.get_lines()) for axes in (left, right)] == [2, 2]
    assert (tmp_path / "both.png").stat().st_size > 1_000
    assert legend(plotted.plot()) == ["Ladder", "FTPL"]
    assert legend(plotted.plot(labels={dc.FTPL(): "theirs"})) == ["Ladder", "theirs"]
    assert legend(plotted.plot(labels={"FTPL": "theirs"})) == ["Ladder", "theirs"]
    assert legend(plotted.plot(labels=["ours", "theirs"])) == ["ours", "theirs"]


def legend(figure: Figure) -> list[str]:
    found = figure.axes[0].get_legend()
    assert found is not None
    return [text.get_text() for text in found.get_texts()]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({"FTLP": "x"}, "is not among these results"),
        (["one"], "list of 2 names"),
        ("ab", "list of 2 names"),
        (["same", "same"], "must name one policy only"),
        ({"FTPL": "Ladder"}, "must name one policy only"),
        ([1, 2], "must be text"),
    ],
)
def test_bad_names(plotted: dc.Results, labels: object, message: str) -> None:
    with pytest.raises(dc.ParameterError, match=message):
        plotted.plot(labels=labels)  # type: ignore[arg-type]


CURVE = Series("a", np.array([1.0, 2.0]), np.array([1.0, 3.0]))


@pytest.mark.parametrize(
    "settings", [{"figure.constrained_layout.use": True}, {"figure.autolayout": True}]
)
def test_a_picture_has_its_own_margins_whatever_the_settings(settings: Any) -> None:
    picture = Picture("one", "title", "", (Panel("", (CURVE,)),))
    expected = draw(picture).axes[0].get_position().bounds
    with rc_context(settings):
        figure = draw(picture)
        # warns, which is an error here, if a layout has nothing to arrange
        figure.draw_without_rendering()
    assert figure.axes[0].get_position().bounds == expected

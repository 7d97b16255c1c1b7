"""`Results.plot`: bands, axes of the user's own, and names."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy import stats

import decoupled as dc

EASY = dc.environments.Bernoulli([0.2, 0.7])
RUNS = 30


@pytest.fixture(scope="module")
def results() -> dc.Results:
    return dc.simulate([dc.Ladder(), dc.FTPL()], EASY, 200, RUNS, seed=0, checkpoints=5)


def drawn_band(figure: Figure, number: int = 0) -> tuple[float, float]:
    """The lower and the upper end of a band at the horizon."""
    vertices = np.asarray(figure.axes[0].collections[number].get_paths()[0].vertices)
    last = vertices[vertices[:, 0] == vertices[:, 0].max(), 1]
    return float(last.min()), float(last.max())


def test_the_default_band_is_the_interval_of_the_mean(results: dc.Results) -> None:
    figure = results.plot()
    final = results.final_regret(dc.Ladder())
    expected = stats.t.interval(0.95, RUNS - 1, final.mean(), stats.sem(final))
    assert drawn_band(figure) == pytest.approx(expected)
    assert figure.axes[0].get_ylabel() == "mean regret, 95 % interval"


def test_a_standard_deviation_on_request(results: dc.Results) -> None:
    figure = results.plot(band="std")
    final = results.final_regret(dc.FTPL())
    expected = max(0.0, final.mean() - final.std(ddof=1)), final.mean() + final.std(ddof=1)
    assert drawn_band(figure, 1) == pytest.approx(expected)
    assert "standard deviation" in figure.axes[0].get_ylabel()


def test_quantiles_on_request_also_after_saving(results: dc.Results, tmp_path: Path) -> None:
    results.save(tmp_path / "results.nc")
    for each in (results, dc.Results.load(tmp_path / "results.nc")):
        figure = each.plot(band=(0.1, 0.8))
        final = each.final_regret(dc.FTPL())
        assert drawn_band(figure, 1) == pytest.approx(tuple(np.quantile(final, [0.1, 0.8])))
        assert "10 % to 80 % of runs" in figure.axes[0].get_ylabel()


def test_without_single_runs_there_are_no_quantiles() -> None:
    lean = dc.simulate(dc.FTPL(), EASY, 50, 5, seed=0, curves="moments")
    with pytest.raises(dc.UnsupportedError, match=r'simulate with curves="runs"'):
        lean.plot(band=(0.05, 0.95))
    lean.plot(band="mean")


def test_no_band(results: dc.Results) -> None:
    figure = results.plot(band=None)
    assert len(figure.axes[0].collections) == 0
    assert figure.axes[0].get_ylabel() == "mean regret"


@pytest.mark.parametrize("band", ["median", (0.9, 0.1), (0.5,), (0.1, 1.1), ("a", "b"), 3, (0.1, 0.5, 0.9)])
def test_other_bands_are_refused(results: dc.Results, band: object) -> None:
    with pytest.raises(dc.ParameterError, match=r'^band = .*give "mean", "std"'):
        results.plot(band=band)  # type: ignore[arg-type]


def test_a_figure_of_ones_own(results: dc.Results, tmp_path: Path) -> None:
    figure = Figure()
    left, right = figure.subplots(1, 2)
    left.set_title("mine")
    assert results.plot(tmp_path / "both.png", ax=left) is figure
    results.plot(ax=right, log=True)
    assert left.get_title() == "mine"
    assert (left.get_xscale(), right.get_xscale()) == ("linear", "log")
    assert [len(axes.get_lines()) for axes in (left, right)] == [2, 2]
    assert (tmp_path / "both.png").stat().st_size > 1_000


def legend(figure: Figure) -> list[str]:
    found = figure.axes[0].get_legend()
    assert found is not None
    return [text.get_text() for text in found.get_texts()]


def test_names_by_policy_by_label_or_in_order(results: dc.Results) -> None:
    assert legend(results.plot()) == ["Ladder", "FTPL"]
    assert legend(results.plot(labels={dc.FTPL(): "theirs"})) == ["Ladder", "theirs"]
    assert legend(results.plot(labels={"FTPL": "theirs"})) == ["Ladder", "theirs"]
    assert legend(results.plot(labels=["ours", "theirs"])) == ["ours", "theirs"]


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
def test_bad_names(results: dc.Results, labels: object, message: str) -> None:
    with pytest.raises(dc.ParameterError, match=message):
        results.plot(labels=labels)  # type: ignore[arg-type]

"""A report on a user's own simulations."""

from pathlib import Path

import pytest

import decoupled as dc


def test_a_comparison_has_its_page_figure_and_data(tmp_path: Path) -> None:
    easy = dc.environments.Bernoulli([0.2, 0.7])
    results = dc.simulate([dc.FTPL(), dc.Exp3()], easy, horizon=200, runs=20, seed=3)
    page = dc.compare({"mine": results, "again": results}, tmp_path, title="My <own> worlds").read_text()
    assert "My &lt;own&gt; worlds" in page
    assert 'id="claims"' not in page
    assert "20 runs of 200 rounds, seed 3" in page
    mean = float(results.final_regret("FTPL").mean())
    assert page.count(f"<td class=number>{mean:.1f}</td>") >= 2
    for kind in ("png", "svg", "pdf", "csv"):
        assert (tmp_path / "comparison" / f"comparison.{kind}").stat().st_size > 100
    lines = (tmp_path / "comparison" / "comparison.csv").read_text().splitlines()
    assert len(lines) == 1 + 2 * 2 * 100


@pytest.mark.parametrize("wrong", [{}, {"mine": 3}])
def test_other_values_than_results_are_refused(wrong: dict[str, dc.Results], tmp_path: Path) -> None:
    with pytest.raises(dc.ParameterError, match="dictionary of one or more Results"):
        dc.compare(wrong, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_worlds_with_other_policies_share_names_by_policy(tmp_path: Path) -> None:
    easy = dc.environments.Bernoulli([0.2, 0.7])
    results = {
        policy.label: dc.simulate(policy, easy, horizon=100, runs=5, seed=3)
        for policy in (dc.FTPL(), dc.Exp3())
    }
    page = dc.compare(results, tmp_path / "out", labels={dc.FTPL(): "ours", "Exp3": "theirs"}).read_text()
    assert "<td>FTPL: ours</td>" in page
    assert "<td>Exp3: theirs</td>" in page
    with pytest.raises(dc.ParameterError, match="not among the results"):
        dc.compare(results, tmp_path / "other", labels={dc.TsallisINF(): "absent"})
    assert not (tmp_path / "other").exists()

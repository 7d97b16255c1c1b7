"""A report on a user's own simulations."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import decoupled as dc
import decoupled_lab as lab
from decoupled.plots import drawable
from decoupled_lab.report.comparison import regret_table


def test_a_comparison_has_its_page_figure_and_data(tmp_path: Path) -> None:
    easy = dc.environments.Bernoulli([0.2, 0.7])
    results = dc.simulate([dc.FTPL(), dc.Exp3()], easy, horizon=200, runs=20, seed=3)
    page = lab.compare(
        {"mine": results, "again": results}, tmp_path, title="My <own> worlds"
    ).read_text()
    assert "My &lt;own&gt; worlds" in page
    assert 'id="claims"' not in page
    assert "20 runs of 200 rounds, seed 3" in page
    mean = float(results.final_regret("FTPL").mean())
    assert page.count(f"<td class=number>{mean:.1f}</td>") >= 2
    for kind in ("png", "svg", "pdf", "csv"):
        assert (tmp_path / "comparison" / f"comparison.{kind}").stat().st_size > 100
    lines = (tmp_path / "comparison" / "comparison.csv").read_text().splitlines()
    assert len(lines) == 1 + 2 * 2 * 100


RESULTS = dc.simulate([dc.FTPL(), dc.Exp3()], dc.environments.Bernoulli([0.2, 0.7]), 20, 3)


@pytest.mark.parametrize("wrong", [{}, {"mine": 3}, RESULTS, [RESULTS], "mine", 3, {1: RESULTS}])
def test_other_values_than_results_are_refused(wrong: Any, tmp_path: Path) -> None:
    with pytest.raises(dc.ParameterError, match="dictionary of one or more Results"):
        lab.compare(wrong, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "name", ["$5 or $6", "$x_", "a$b_1$", "{$}", "100 % $", "a_b^c", r"\alpha"]
)
def test_names_may_have_dollars_and_what_formulas_have(name: str, tmp_path: Path) -> None:
    labels = {dc.FTPL(): name}
    assert lab.compare({name: RESULTS}, tmp_path, title=name, labels=labels, latex=True).exists()


@pytest.mark.parametrize("name", ["$x^$", "$_$", r"$\frac{$", r"$\sqrt$", r"$\aleph$"])
def test_what_is_between_dollars_and_cannot_be_typeset_is_named(name: str, tmp_path: Path) -> None:
    RESULTS.plot(tmp_path / "regret.png", labels={dc.FTPL(): name})
    with pytest.raises(dc.ParameterError, match="formula = "):
        lab.compare({name: RESULTS}, tmp_path)


def test_what_is_no_formula_is_drawn_as_it_is() -> None:
    assert drawable("$x^$") == r"\$x^\$"
    assert drawable(r"$\frac{$") == r"\$\frac{\$"
    for same in (r"$\alpha = 3$", "a_b^c"):
        assert drawable(same) == same


def test_worlds_with_other_policies_share_names_by_policy(tmp_path: Path) -> None:
    easy = dc.environments.Bernoulli([0.2, 0.7])
    policies = dc.FTPL(), dc.Exp3()
    results = {
        policy.label: dc.simulate(policy, easy, horizon=100, runs=5, seed=3) for policy in policies
    }
    page = lab.compare(
        results, tmp_path / "out", labels={dc.FTPL(): "ours", "Exp3": "theirs"}
    ).read_text()
    assert "<td>FTPL: ours</td>" in page
    assert "<td>Exp3: theirs</td>" in page
    with pytest.raises(dc.ParameterError, match="not among the results"):
        lab.compare(results, tmp_path / "other", labels={dc.TsallisINF(): "absent"})
    assert not (tmp_path / "other").exists()


POLICIES = [dc.FTPL(), dc.Exp3(), dc.FollowTheLeader()]
EASY = dc.environments.Bernoulli([0.2, 0.7])
PUNISHER = dc.environments.PunishLast(arms=2)


def cells_of(page: Path, policy: str) -> list[str]:
    """The cells of a policy's row, without its name."""
    row = re.search(rf"<tr><td>{re.escape(policy)}</td>(.*?)</tr>", page.read_text(), re.DOTALL)
    assert row is not None
    return re.findall(r"<td class=number>(.*?)</td>", row[1])


def test_a_report_has_the_paired_differences_of_the_summary(tmp_path: Path) -> None:
    results = dc.simulate(POLICIES, EASY, horizon=200, runs=20, seed=3)
    page = lab.compare({"easy": results}, tmp_path / "first")
    assert "difference from FTPL<" in page.read_text()
    line = results.summary(against=dc.FTPL()).loc["Exp3"]
    ends = f"{line['difference_low']:.1f} to {line['difference_high']:.1f}"
    assert cells_of(page, "easy: EXP3")[-2:] == [f"{line['difference']:+.1f}", ends]
    assert cells_of(page, "easy: FTPL")[-2:] == ["", ""]

    page = lab.compare(
        {"easy": results}, tmp_path / "second", against="Exp3", labels={"Exp3": "theirs"}
    )
    assert "difference from theirs<" in page.read_text()
    assert cells_of(page, "easy: FTPL")[-2] == f"{-line['difference']:+.1f}"
    with pytest.raises(dc.ParameterError, match=r"against = 'TsallisINF': names a policy that is"):
        lab.compare({"easy": results}, tmp_path / "third", against=dc.TsallisINF())
    assert not (tmp_path / "third").exists()


def test_a_report_says_where_policies_met_other_losses(tmp_path: Path) -> None:
    found = {
        name: dc.simulate(POLICIES, world, horizon=100, runs=5, seed=3)
        for name, world in {"easy": EASY, "punished": PUNISHER}.items()
    }
    both = lab.compare(found, tmp_path / "both")
    assert "in the same run, except in punished: there the environment reacts" in both.read_text()
    assert cells_of(both, "punished: EXP3")[-2:] == ["", ""]
    assert "" not in cells_of(both, "easy: EXP3")

    alone = lab.compare({"punished": found["punished"]}, tmp_path / "alone").read_text()
    assert "each policy met losses of its own" in alone
    assert "same losses" not in alone
    assert "paired" not in alone
    easy = lab.compare({"easy": found["easy"]}, tmp_path / "easy").read_text()
    assert "Every policy met the same losses in the same run." in easy


def test_a_single_policy_has_no_differences(tmp_path: Path) -> None:
    results = dc.simulate(dc.FTPL(), EASY, horizon=100, runs=5, seed=3)
    assert "difference from" not in lab.compare({"easy": results}, tmp_path).read_text()


def test_with_contexts_there_are_gain_and_regret_against_segments() -> None:
    draw = np.random.default_rng(0)
    context = {"subject": draw.choice(["a", "b"], 100).tolist()}
    world = dc.environments.ContextTable(draw.random((100, 2)).round(), context, ["subject"])
    results = dc.simulate(dc.FTPL(), world, 50, 2)
    assert regret_table("", {"made up": results}).head[-2:] == ("gain", "regret against segments")

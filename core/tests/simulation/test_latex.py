"""Tables of regret for a paper: what is bold, what the caption says, and that LaTeX reads them."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import decoupled as dc
from decoupled.simulation.tables import lowest
from support.command_line import said
from support.tex import compiled, pdflatex_or_skip

EASY = dc.environments.Bernoulli([0.2, 0.7])
PUNISHER = dc.environments.PunishLast(arms=2)
POLICIES = [dc.Ladder(), dc.FTPL(), dc.Exp3()]


def simulated(world: dc.environments.Environment = EASY, runs: int = 20) -> dc.Results:
    return dc.simulate(POLICIES, world, horizon=400, runs=runs, seed=3)


def bold(table: str) -> list[str]:
    return [
        line.partition(" & ")[0]
        for line in table.splitlines()
        if r"\tablebold " in line and " & " in line
    ]


def slowly(regrets: list[np.ndarray], level: float) -> int | None:
    """The same rule by paired t tests.

    Every p-value times the number of tests is below 1 - level.
    """
    for number, mine in enumerate(regrets):
        others = [each for place, each in enumerate(regrets) if place != number]
        tests = [stats.ttest_rel(mine, each) for each in others]
        if all(test.statistic < 0 and test.pvalue * len(others) < 1.0 - level for test in tests):
            return number
    return None


def test_bold_is_what_paired_tests_find() -> None:
    random = np.random.default_rng(7)
    found = []
    for number in range(60):
        level = (0.8, 0.95, 0.99)[number % 3]
        policies, runs = random.integers(2, 6), random.integers(2, 40)
        common = random.normal(size=runs)  # paired: what runs share must not matter
        means = random.normal(scale=0.7, size=policies)
        regrets = [10.0 * common + mean + random.normal(size=runs) for mean in means]
        found.append(lowest(regrets, level))
        assert found[-1] == slowly(regrets, level)
    assert 5 < sum(each is not None for each in found) < 55  # both answers were seen


def test_a_policy_that_is_no_better_is_bold_as_rarely_as_promised() -> None:
    # Two equal policies: one of them is bold with a chance of 1 - level, here 0.05. Out of 800
    # tables these are 40, give or take four standard deviations: a false alarm in 16,000 (the test
    # is seeded).
    random = np.random.default_rng(1)
    count = sum(lowest(list(random.normal(size=(2, 10)))) is not None for _ in range(800))
    assert 16 <= count <= 64
    # With more policies it is rarer: 2.5 % for the best of the others, and a tie is broken only
    # with all of them.
    assert sum(lowest(list(random.normal(size=(5, 10)))) is not None for _ in range(200)) <= 10


def test_ties_single_runs_and_lone_policies_have_no_bold() -> None:
    same = np.arange(5.0)
    assert lowest([same, same]) is None
    assert lowest([same, same + 1.0]) == 0  # the same difference in every run
    assert lowest([np.zeros(1), np.ones(1)]) is None
    assert lowest([same]) is None
    assert lowest([]) is None
    table = simulated(runs=1).to_latex()
    assert r"\pm" not in table.partition(r"\begin{tabular}")[2]
    assert bold(table) == []
    assert "1 run of 400 rounds, seed 3. Made" in table


@pytest.mark.parametrize("world", [EASY, PUNISHER])
def test_the_table_of_one_environment(world: dc.environments.Environment) -> None:
    results = simulated(world)
    table = results.to_latex()
    expected = slowly([results.final_regret(label) for label in results.labels], 0.95)
    assert bold(table) == ([] if expected is None else [results.names()[expected]])
    for line, name in zip(results.statistics().values(), results.names(), strict=True):
        found = re.search(
            rf"^{name} & (?:\\tablebold )?([\d.]+) \\pm ([\d.]+) & ([\d.]+) & ([\d.]+) \\\\$",
            table,
            re.MULTILINE,
        )
        assert found is not None
        decimals = len(found[2].partition(".")[2])
        shown = [line[key] for key in ("mean", "standard_error", "median", "p99")]
        assert [*found.groups()] == [f"{value:.{decimals}f}" for value in shown]
        assert line["standard_error"] * 10**decimals >= 9.5  # two digits of every error
    assert r"mean \ensuremath{\pm} standard error over 20 runs of 400 rounds, seed 3." in table
    assert f"Made with decoupled {dc.__version__}." in table
    assert r"95\,\% intervals with Bonferroni's correction" in table


def test_intervals_names_and_captions_can_be_chosen() -> None:
    results = simulated()
    line = results.statistics(level=0.9)["FTPL"]
    table = results.to_latex(spread="interval", level=0.9, labels={"FTPL": "Δ_paper"})
    half = line["high"] - line["mean"]
    found = re.search(r"Δ\\_paper & [\d.]+ \\pm ([\d.]+)", table)
    assert found is not None
    assert float(found[1]) == pytest.approx(half, abs=0.051)
    assert r"half-width of its 90\,\% interval" in table
    mine = results.to_latex(caption="Mine.", label="tab:mine")
    assert "\\caption{Mine.}\n\\label{tab:mine}\n" in mine
    with pytest.raises(dc.ParameterError, match="spread"):
        results.to_latex(spread="std")  # type: ignore[arg-type]
    with pytest.raises(dc.ParameterError, match="level"):
        results.to_latex(level=1.0)


def test_simulate_writes_a_table_and_a_figure_with_its_fonts(tmp_path: Path) -> None:
    specification = tmp_path / "my.toml"
    specification.write_text(
        "horizon = 50\nruns = 3\n[[policy]]\nname = 'FTPL'\n"
        "[[environment]]\nname = 'Bernoulli'\nrewards = [0.2, 0.7]\n"
    )
    said("simulate", specification, "--out", tmp_path, "--latex", "--quiet")
    (folder,) = tmp_path.glob("00-*")
    assert "3 runs of 50 rounds, seed 0" in (folder / "table.tex").read_text()
    figure = (folder / "regret.pdf").read_bytes()
    assert b"/Type3" not in figure
    assert b"/FontFile2" in figure  # TrueType, embedded


def test_latex_reads_a_table_with_two_packages(tmp_path: Path) -> None:
    pdflatex_or_skip()
    names = ["my_policy(c='x') & 5 %, [a] *b ^~<>|{}$#", "FTPL", 'the "third" …']
    text = compiled(
        tmp_path,
        simulated().to_latex(labels=names, caption="5 % ± é"),
        "booktabs, siunitx, graphicx",
    )
    assert not text or "99th percentile" in text

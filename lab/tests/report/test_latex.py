"""Tables for LaTeX: escaping, numbers that keep their digits, what is bold, and that a real LaTeX compiles them."""

# ruff: noqa: RUF001 # it is about characters that look like others

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

import decoupled as dc
import decoupled_lab as lab
from decoupled.base import tex_text
from decoupled.base.latex import Cell, Column, Markup, Table, escape
from decoupled.cli.main import app
from decoupled.simulation.latex import lowest
from decoupled_lab.benchmark.table import to_latex
from decoupled_lab.report.claims import Claim, Measure
from decoupled_lab.report.page import claims_table
from support.made_entries import made_up
from support.tex import compiled, pdflatex_or_skip

# ruff: noqa: RUF001 # it is about characters that look like others


COLUMNS = [Column("Policy", "l"), Column("Regret")]


def body(table: Table) -> list[str]:
    """The rows between the rules."""
    return table.to_latex().partition("\\midrule\n")[2].partition("\\bottomrule")[0].splitlines()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("my_policy", r"my\_policy"),
        ("5 % & #1 $x$ {y}", r"5\,\% \& \#1 \$x\$ \{y\}"),
        (r"a\b^c~d", r"a\textbackslash{}b\textasciicircum{}c\textasciitilde{}d"),
        ("α ≤ Ω", r"\ensuremath{\alpha} \ensuremath{\le} \ensuremath{\Omega}"),
        ("λ × Α ± ο", r"\ensuremath{\lambda} \ensuremath{\times} \ensuremath{\mathrm{A}} \ensuremath{\pm} \ensuremath{o}"),
        ("∆ µ ⋅", r"\ensuremath{\Delta} \ensuremath{\mu} \ensuremath{\cdot}"),
        ("K² x₁", r"K\ensuremath{^{2}} x\ensuremath{_{1}}"),
        ("Erdős, naïve", r"Erd\H{o}s, na\"{\i}ve"),
        ("e\u0301", r"\'{e}"),  # two characters for one
        ("a--b", "a-{}-b"),  # not a dash
        ("[x]*", "{[}x{]}{*}"),  # not an argument of the row's end
        ("日", "{[}U+65E5{]}"),
        ("a\nb\tc", "a b c"),
        ("\x00", "{[}U+0000{]}"),
    ],
)  # fmt: skip
def test_texts_are_escaped(text: str, expected: str) -> None:
    assert escape(text) == expected


def test_escaped_text_is_plain_and_nothing_of_it_is_lost() -> None:
    for number in [*range(0x2600), *range(0x1F300, 0x1F320)]:
        if not 0xD800 <= number < 0xE000:
            shown = escape(chr(number))
            assert shown.isascii(), hex(number)
            assert shown.count("{") == shown.count("}") or number in (0x7B, 0x7D)
            assert shown or number in (0x200D,), hex(number)
    assert escape(Markup(r"\LaTeX")) == r"\LaTeX"
    assert len(tex_text.escape("a" * 1000)) == 1000


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        (None, "{--}"),
        (math.nan, "{--}"),
        (Cell(math.nan, 1.0, bold=True), "{--}"),
        (Cell(None, bold=True), "{--}"),
        (math.inf, r"{\ensuremath{\infty}}"),
        (3, "3"),
        (np.int64(2**53 + 1), "9007199254740993"),
        (0.1, "0.1"),
        (np.float64(0.1), "0.1"),
        (-2.5, "-2.5"),
        (1e-9, "0.000000001"),
        (0.1 + 0.2, r"{\num{0.30000000000000004}}"),
        (1e300, r"{\num{1e+300}}"),
        ("not a number", "{not a number}"),
        (Cell("text", bold=True), r"{\tablebold text}"),
        (Cell(12.345, 0.678), r"12.35 \pm 0.68"),
        (Cell(12.345, 0.0996), r"12.35 \pm 0.10"),
        (Cell(12345.6, 432.1), r"12346 \pm 432"),
        (Cell(12.345, 0.0), r"12.345 \pm 0"),
        (Cell(12.345, math.nan), "12.345"),
        (Cell(-0.001, 0.2), r"0.00 \pm 0.20"),
        (Cell(1.5, 0.25, bold=True), r"\tablebold 1.50 \pm 0.25"),
    ],
)
def test_cells_of_a_column_of_numbers(cell: Cell | float | str | None, expected: str) -> None:
    assert body(Table(COLUMNS, [["a", cell]], "", "tab:a")) == [rf"a & {expected} \\"]


EASY = dc.environments.Bernoulli([0.2, 0.7])
PUNISHER = dc.environments.PunishLast(arms=2)
POLICIES = [dc.Ladder(), dc.FTPL(), dc.Exp3()]


def simulated(world: dc.environments.Environment = EASY, runs: int = 20) -> dc.Results:
    return dc.simulate(POLICIES, world, horizon=400, runs=runs, seed=3)


def bold(table: str) -> list[str]:
    return [
        line.partition(" & ")[0] for line in table.splitlines() if r"\tablebold " in line and " & " in line
    ]


def slowly(regrets: list[np.ndarray], level: float) -> int | None:
    """The same rule by paired t tests: every p-value times the number of tests is below 1 - level."""
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
    # Two equal policies: one of them is bold with a chance of 1 - level, here 0.05. Out of 800 tables these are 40,
    # give or take four standard deviations: a false alarm in 16,000 (the test is seeded).
    random = np.random.default_rng(1)
    count = sum(lowest(list(random.normal(size=(2, 10)))) is not None for _ in range(800))
    assert 16 <= count <= 64
    # With more policies it is rarer: 2.5 % for the best of the others, and a tie is broken only with all of them.
    assert sum(lowest(list(random.normal(size=(5, 10)))) is not None for _ in range(200)) <= 10


def test_ties_single_runs_and_lone_policies_have_no_bold() -> None:
    same = np.arange(5.0)
    assert lowest([same, same]) is None
    assert lowest([same, same + 1.0]) == 0  # the same difference in every run
    assert lowest([np.zeros(1), np.ones(1)]) is None
    assert lowest([same]) is None
    assert lowest([]) is None


@pytest.mark.parametrize("world", [EASY, PUNISHER])
def test_the_table_of_one_environment(world: dc.environments.Environment) -> None:
    results = simulated(world)
    table = results.to_latex()
    expected = slowly([results.final_regret(label) for label in results.labels], 0.95)
    assert bold(table) == ([] if expected is None else [results.names()[expected]])
    for line, name in zip(results.statistics().values(), results.names(), strict=True):
        found = re.search(rf"^{name} & (?:\\tablebold )?([\d.]+) \\pm ([\d.]+) & ([\d.]+) & ([\d.]+) \\\\$", table, re.MULTILINE)  # fmt: skip
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
    found = re.search(r"Delta}\\_paper & [\d.]+ \\pm ([\d.]+)", table)
    assert found is not None
    assert float(found[1]) == pytest.approx(half, abs=0.051)
    assert r"half-width of its 90\,\% interval" in table
    mine = results.to_latex(caption="Mine.", label="tab:mine")
    assert r"\caption{Mine.}\label{tab:mine}" in mine
    with pytest.raises(dc.ParameterError, match="spread"):
        results.to_latex(spread="std")  # type: ignore[arg-type]
    with pytest.raises(dc.ParameterError, match="level"):
        results.to_latex(level=1.0)


def test_one_run_has_no_error_and_no_bold() -> None:
    table = simulated(runs=1).to_latex()
    assert r"\pm" not in table.partition(r"\begin{tabular}")[2]
    assert bold(table) == []
    assert "1 run of 400 rounds, seed 3. Made" in table


def test_switches_have_a_column() -> None:
    table = dc.simulate(POLICIES, EASY, 100, 4, traffic=dc.Traffic(keys=5)).to_latex()
    assert "{99th percentile} & {Switches of a key}" in table


@pytest.mark.pages  # drawing the figure takes longest
def test_a_comparison_writes_its_table(tmp_path: Path) -> None:
    lab.compare({"easy_1": simulated()}, tmp_path, latex=True)
    assert (tmp_path / "comparison" / "table.tex").read_text().startswith(r"\begin{table}")
    assert not (tmp_path / "claims.tex").exists()


def test_simulate_writes_a_table_and_a_figure_with_its_fonts(tmp_path: Path) -> None:
    specification = tmp_path / "my.toml"
    specification.write_text(
        "horizon = 50\nruns = 3\n[[policy]]\nname = 'FTPL'\n[[environment]]\nname = 'Bernoulli'\nrewards = [0.2, 0.7]\n"
    )
    done = CliRunner().invoke(
        app, ["simulate", str(specification), "--out", str(tmp_path), "--latex", "--quiet"]
    )
    assert done.exit_code == 0, done.output
    (folder,) = tmp_path.glob("00-*")
    assert "3 runs of 50 rounds, seed 0" in (folder / "table.tex").read_text()
    figure = (folder / "regret.pdf").read_bytes()
    assert b"/Type3" not in figure
    assert b"/FontFile2" in figure  # TrueType, embedded


# ruff: noqa: RUF001 # it is about characters that look like others


@pytest.fixture(scope="module")
def pdflatex() -> str:
    return pdflatex_or_skip()


@pytest.mark.usefixtures("pdflatex")
def test_every_known_character_compiles(tmp_path: Path) -> None:
    known = [*tex_text._SPECIAL, *tex_text._FORMULAS, *tex_text._TEXT, *tex_text._CAPITALS]
    letters = [
        chr(number) for number in [*range(0x20, 0x250), *range(0x370, 0x400), *range(0x2000, 0x2300)]
    ]
    body = "\n".join(f"{escape(each)}\\par" for each in dict.fromkeys([*known, *letters]))
    everything = Table(
        [Column("".join(known), "l")], [["".join(known)]], "".join(known), "tab:a"
    ).to_latex()
    text = compiled(tmp_path, f"{everything}\n{body}")
    assert not text or "α" in text


@pytest.mark.usefixtures("pdflatex")
def test_long_tables_break_over_pages(tmp_path: Path) -> None:
    claim = Claim(
        "a",
        "Section 4",
        r"It is of order $\sqrt{KT}$.",
        "",
        "above 0",
        (Measure("K = 8", 1.0, 0.5, 1.5, 9),),
        "holds",
    )
    text = compiled(tmp_path, claims_table([claim] * 60), "booktabs, longtable")
    if text:
        assert text.count("\f") > 1
        assert text.count("Verdict ") == text.count("\f")  # a head on every page
        assert text.count("claimed: above 0; K = 8") == 60


@pytest.mark.usefixtures("pdflatex")
def test_the_tables_of_a_comparison_compile(tmp_path: Path) -> None:
    worlds: dict[str, Any] = {
        "easy_1, Δ = 0.5": dc.environments.Bernoulli([0.2, 0.7]),
        "punish 100 %": dc.environments.PunishLast(arms=2),
    }
    found = {name: dc.simulate([dc.Ladder(), dc.Exp3()], world, 400, 20) for name, world in worlds.items()}
    lab.compare(found, tmp_path, title="Mine & yours", latex=True)
    tables = (tmp_path / "comparison" / "table.tex").read_text()
    text = compiled(tmp_path, tables, "booktabs, siunitx")
    assert not text or text.count("99th percentile") == 2


@pytest.mark.usefixtures("pdflatex")
def test_the_tables_of_a_benchmark_compile(tmp_path: Path) -> None:
    text = compiled(tmp_path, to_latex(made_up("My_Policy(rate=0.1)")), "booktabs, longtable")
    assert not text or "Drift" in text
    assert "Overfull" not in (tmp_path / "article.log").read_text()  # it fits into the page

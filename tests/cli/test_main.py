"""The command line, as a user would call it, and what it need not load for that."""

import gc
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer

import decoupled as dc
from decoupled.base.arrays import Floats
from decoupled.cli.shared import report_errors
from decoupled.errors import Message
from decoupled.kernels.rounds import Table
from decoupled_lab.bench.steps import TextbookFTPL, TextbookTsallis, lockstep_ftpl, play
from decoupled_lab.bench.timing import Ratio, race
from decoupled_lab.cli.bench import default_folder
from support.command_line import run, said
from support.plain_python import ran

ROUNDS = 400  # of the games of the bench's twins


def test_lists_of_policies_and_environments_and_the_version() -> None:
    calls = [line for line in run("policies").output.splitlines() if not line.startswith(" ")]
    assert {eval(call, dict(dc.Policy.known())) for call in calls} == {
        *(kind() for kind in dc.Policy.known().values()),
        dc.Ladder(),
    }
    output = run("environments").output
    assert all(name in output for name in dc.environments.Environment.known())
    assert run("--version").output.strip() == dc.__version__


def test_bench_writes_ratios(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def hastily(*arguments: Any, **options: Any) -> Ratio:
        return race(*arguments, **{**options, "calls": 20})

    monkeypatch.setattr("decoupled_lab.bench.learner.ARMS", (8,))
    monkeypatch.setattr("decoupled_lab.bench.learner.race", hastily)
    monkeypatch.setattr("decoupled_lab.bench.options.race", hastily)
    monkeypatch.setattr("decoupled_lab.bench.options.ARMS", (8,))
    monkeypatch.setattr("decoupled_lab.bench.options.WARM", 10)
    file = tmp_path / "bench.json"
    gc.freeze()  # every timing collects garbage first, which is slow with the objects of other tests
    said("bench", "learner", "--repetitions", "3", "--out", file)
    lines = json.loads(file.read_text())["lines"]
    assert len(lines) == 11 + 2 * 14 + 1
    assert all(line["lowest"] <= line["ratio"] <= line["highest"] for line in lines)


def test_bench_replaces_only_its_own_file(tmp_path: Path) -> None:
    file = tmp_path / "decisions.db"
    for content in (b"SQLite format 3\0\xff", b"[]"):
        file.write_bytes(content)
        result = run("bench", "learner", "--out", file)
        assert (result.exit_code, "decoupled bench did not write it" in result.output) == (2, True)
        assert file.read_bytes() == content


def test_the_twins_of_the_bench_play_the_same_game() -> None:
    # They are timed against the compiled loop, so they must do the same work: their regret agrees within its error.
    environment = dc.environments.Alternating(arms=8, gap=0.125)
    table = environment.table(ROUNDS)
    best = table.rows[table.row_at, 0].sum()
    results = dc.simulate(
        [dc.FTPL(), dc.TsallisINF()], environment, ROUNDS, 1_000, seed=0
    ).summary()
    twins = {
        "lock step": ("FTPL", lockstep_ftpl(table, ROUNDS, 1_000, seed=1) - best),
        "sorting": ("FTPL", textbook_regret(lambda: TextbookFTPL(8), table, best)),
        "improved": ("FTPL", textbook_regret(lambda: TextbookFTPL(8, improved=True), table, best)),
        "Newton": ("TsallisINF", textbook_regret(lambda: TextbookTsallis(8), table, best)),
    }
    for name, (label, regret) in twins.items():
        ours = results.loc[label]
        error = np.hypot(ours["standard_error"], regret.std(ddof=1) / np.sqrt(len(regret)))
        # Four standard errors each: a false alarm for 1 seed in about 4,000.
        assert abs(regret.mean() - ours["mean"]) < 4 * error, name


def textbook_regret(
    make: Callable[[], TextbookFTPL | TextbookTsallis], table: Table, best: float
) -> Floats:
    return np.array([play(make(), table, ROUNDS, seed) - best for seed in range(24)])


def test_the_improved_textbook_step_keeps_the_ranks_that_sorting_finds() -> None:
    policy, rng = TextbookFTPL(20, improved=True), np.random.default_rng(0)
    for _ in range(2_000):
        _, arm, probability = policy.decide(rng)
        policy.learn(arm, probability, float(rng.random() < 0.2 + 0.03 * arm))
        assert (np.diff(policy.estimates[policy.order]) >= 0.0).all()
        assert sorted(policy.order) == list(range(20))


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["Lader()"], 2, "did you mean 'Ladder'"),
        (["gone.py"], 2, "is no file"),
        (["Ladder()", "--time-limit", "0"], 2, "time_limit = 0.0"),
        (["Ladder()", "--workers", "0"], 2, "--workers"),
    ],
)
def test_exit_statuses(arguments: list[str], status: int, message: str, tmp_path: Path) -> None:
    done = run("benchmark", *arguments, "--quick", "--out", tmp_path)
    assert (done.exit_code, message in done.output) == (status, True), done.output


def test_the_folder_is_named_after_the_policy() -> None:
    assert default_folder("policies/my_policy.py", None) == "my-policy"
    assert default_folder("my_policy.py", "Soft(rate=0.2)") == "my-policy-Soft-rate-0.2"
    assert default_folder("Ladder()", None) == "Ladder"


SPECIFICATION = """
horizon = 100
runs = 3
[[policy]]
name = "FTPL"
[[environment]]
name = "Bernoulli"
rewards = [0.2, 0.7]
"""
# What writing results needs is loaded; what reports, solvers and estimators need is not.
SLOW_TO_LOAD = ("plotly", "scs", "sklearn")
LOADED = """
import sys
from decoupled.cli.main import app
app(sys.argv[1:], standalone_mode=False)
print("loaded:", *(name for name in {modules!r} if name in sys.modules))
"""


@pytest.mark.slow
def test_a_small_simulation_loads_only_what_it_needs(tmp_path: Path) -> None:
    (tmp_path / "spec.toml").write_text(SPECIFICATION)
    script = LOADED.format(modules=SLOW_TO_LOAD)
    told = ran("-c", script, "simulate", tmp_path / "spec.toml", "--out", tmp_path)
    assert told.splitlines()[-1].split()[1:] == []
    written = {path.name for path in next(tmp_path.glob("00-*")).iterdir()}
    assert written >= {"results.nc", "summary.csv", "regret.png"}


def status(*arguments: str | Path) -> int:
    return run(*arguments).exit_code


@pytest.mark.parametrize(
    "arguments",
    [
        ["polices"],
        ["simulate"],
        ["simulate", "some.toml", "--worker", "2"],
        ["simulate", "some.toml", "--workers", "none"],
        ["reproduce", "gird"],
        ["bench", "learnr"],
        ["serve", "--port", "99999999"],
        ["serve", "--log-format", "xml"],
        ["mirror"],
        ["client", "create", "colours", "red", "blue", "--policy", "{"],
    ],
    ids=" ".join,
)
def test_a_wrong_command_line(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DECOUPLED_CONFIG", raising=False)
    assert status(*arguments) == 2


def test_other_errors_and_a_command_that_succeeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = tmp_path / "spec.toml"
    spec.write_text("horizon = -1")
    assert status("simulate", spec) == 1, "what a file says"
    assert status("simulate", tmp_path / "none.toml") == 1, "a file that is not there"
    assert status("report", tmp_path) == 1, "a folder without a run"
    assert status("doctor", "--store", tmp_path / "none.db") == 1, "a store that is not there"
    monkeypatch.setenv("DECOUPLED_PORT", "none")
    assert status("config", "serve") == 1, "a variable is not the command line"
    assert status("policies") == status("--version") == status("simulate", "--help") == 0


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (dc.ParameterError(Message("--risk = 7: must be below 1", "try 0.05", "--risk")), 2),
        (
            dc.ParameterError(
                "--tls-certificate, --tls-key: must be given together; give both, or none"
            ),
            2,
        ),
        (dc.ParameterError(Message("group = 'x': is not known", "see --help", "group")), 2),
        (dc.ParameterError(Message("groups = 'x': is not known", "see --help", "groups")), 1),
        (dc.StateError("state: is damaged; give another"), 1),
        (FileNotFoundError(2, "No such file", "--odd"), 1),
        (ModuleNotFoundError("No module named 'uvicorn'", name="uvicorn"), 1),
        (KeyboardInterrupt(), 130),
    ],
    ids=repr,
)
def test_by_the_error(error: BaseException, expected: int) -> None:
    with pytest.raises(typer.Exit) as end, report_errors(arguments=("group",)):
        raise error
    assert end.value.exit_code == expected

"""SPEC.toml: specifications are run as written, and errors name the line."""

from pathlib import Path
from typing import Any

import pytest

import decoupled as dc
from decoupled.simulation.toml import read_specification
from support.command_line import run

EXAMPLE = Path(__file__).parents[3] / "examples" / "simulation.toml"

GOOD = """horizon = 100
runs = 4

[[policy]]
name = "FTPL"
alpha = [2.0, 3.0]
c = [1.0, 2.0]

[[policy]]
name = "FollowTheLeader"

[[environment]]
name = "Bernoulli"
rewards = [[0.1, 0.9], [0.2, 0.3, 0.4]]

[[environment]]
name = "Alternating"
arms = [4, 8]
gap = 0.125
"""


def plans_of(text: str, folder: Path) -> list[Any]:
    path = folder / "spec.toml"
    path.write_text(text)
    return list(read_specification(path))


def test_lists_sweep(tmp_path: Path) -> None:
    plans = plans_of(GOOD, tmp_path)
    labels = ["FTPL(alpha=2, c=1)", "FTPL(alpha=2)", "FTPL(c=1)", "FTPL", "FollowTheLeader"]
    assert [policy.label for policy in plans[0].policies] == labels
    assert [plan.environment.arms for plan in plans] == [2, 3, 4, 8]
    assert plans[0].seed == 0
    text = GOOD.replace("[[policy]]", "[[policy]]  # a comment").replace(
        "c = [1.0, 2.0]", "c = [1.0, -2.0]"
    )
    with pytest.raises(dc.ParameterError, match=r"line 7: c = -2\.0"):
        plans_of(text, tmp_path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            'name = "Ladder"\nrungs = [[0.5, 8.0], [1.0, 9.0]]\nprior = [1.0, 2.0, 3.0]',
            [dc.Ladder(rungs, prior=(1.0, 2.0, 3.0)) for rungs in ((0.5, 8.0), (1.0, 9.0))],
        ),
        (
            'name = "Forgetting"\nperiod = [10, 20]\n'
            'policy = [{ name = "FTPL", c = [1.0, 2.0] }, { name = "UCB1" }]',
            [
                dc.Forgetting(each, period=n)
                for each in (dc.FTPL(c=1.0), dc.FTPL(), dc.UCB1())
                for n in (10, 20)
            ],
        ),
    ],
    ids=["lists of lists", "nested"],
)
def test_lists_sweep_also_in_what_is_nested(
    tmp_path: Path, text: str, expected: list[dc.Policy]
) -> None:
    world = '[[environment]]\nname = "Bernoulli"\nrewards = [0.5, 0.6]\n'
    [plan] = plans_of(f"horizon = 100\nruns = 2\n[[policy]]\n{text}\n{world}", tmp_path)
    assert sorted(map(repr, plan.policies)) == sorted(map(repr, expected))


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("horizon = 100", "horizn = 100", 1, "did you mean 'horizon'"),
        ("horizon = 100", "horizon = 0.5", 1, "horizon = 0.5: must be a whole number"),
        ("runs = 4", "runs = '4'", 2, "runs = '4'"),
        ('name = "FTPL"', 'name = "FTLP"', 5, "did you mean 'FTPL'"),
        (
            "alpha = [2.0, 3.0]",
            "alpha = [2.0, 1.0]",
            6,
            "alpha = 1.0: must be a finite number above 1",
        ),
        ("alpha = [2.0, 3.0]", "alhpa = 2.0", 6, "did you mean 'alpha'"),
        ("gap = 0.125", "gap = 'wide'", 19, "gap = 'wide'"),
        ("gap = 0.125", "", 17, "gap: is missing; Alternating needs it"),
        ("[[policy]]", "[policy]", None, "."),
        ("runs = 4", "runs = ", None, "is not TOML"),
        ("runs = 4", "", None, "has no runs"),
        ("runs = 4", "runs = 4\ncheckpoints = {spacing = 'cubic'}", 3, "spacing"),
        ("runs = 4", "runs = 4\ncheckpoints = 3.5", 3, "checkpoints = 3.5"),
        ("arms = [4, 8]", "arms = []", 18, "arms is an empty list"),
        ('name = "FollowTheLeader"', "", 9, "this policy has no name"),
        ('name = "FollowTheLeader"', "name = {a = 1}", 10, "is not a known policy"),
        ('name = "FollowTheLeader"', 'name = "FTPL"', 10, "must appear once"),
    ],
)
def test_errors_name_the_line(
    tmp_path: Path, old: str, new: str, line: int | None, message: str
) -> None:
    with pytest.raises(dc.ParameterError) as caught:
        plans_of(GOOD.replace(old, new, 1), tmp_path)
    assert message in str(caught.value)
    if line is not None:
        assert f"spec.toml, line {line}: " in str(caught.value)


def test_a_recorded_log_next_to_the_specification(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("left,right\n0.1,0.9\n0.8,0.2\n")
    path = tmp_path / "spec.toml"
    head, tail = 'horizon = 10\nruns = 2\n[[policy]]\nname = "FTPL"\n', 'name = "LossTable"\n'
    path.write_text(
        f'{head}[[environment]]\n{tail}rows = "log.csv"\n'
        f"[[environment]]\n{tail}rows = [[0.1, 0.9], [0.8, 0.2]]\n"
    )
    recorded, means = (plan.environment for plan in read_specification(path))
    assert isinstance(recorded, dc.environments.LossTable)
    assert isinstance(means, dc.environments.LossTable)
    assert (recorded.noise, means.noise) == ("none", "bernoulli")
    assert recorded.rows.tolist() == means.rows.tolist()
    (tmp_path / "gap.csv").write_text("left,right\n0.1,\n")
    path.write_text(f'{head}[[environment]]\n{tail}rows = "gap.csv"\n')
    with pytest.raises(
        dc.ParameterError, match=r"line 7: gap\.csv: row 1, column 'right' = nan: is"
    ):
        read_specification(path)
    path.write_text(f'{head}[[environment]]\n{tail}rows = "missing.csv"\n')
    with pytest.raises(dc.ParameterError, match=r"line 7: .*missing\.csv"):
        read_specification(path)


OWN = """
from dataclasses import dataclass
import numpy as np
import decoupled as dc

@dataclass(frozen=True)
class FTPL(dc.PythonPolicy):
    share: float = 0.5

    def decide(self, known):
        return np.full(known.arms, 1 / known.arms), np.full(known.arms, 1 / known.arms)

    def update(self, known, arm, weight, loss):
        known.estimates[arm] += weight * loss
"""


@pytest.mark.usefixtures("forget_policies")
def test_your_own_class_is_found_by_its_module(tmp_path: Path) -> None:
    module = f"own_{tmp_path.name.replace('-', '_')}"  # not yet imported
    (tmp_path / f"{module}.py").write_text(OWN)
    text = GOOD.replace('name = "FollowTheLeader"', f'name = "{module}.FTPL"\nshare = 0.3')
    policies = plans_of(text, tmp_path)[0].policies
    assert [type(each).__module__ for each in policies] == ["decoupled.policies.ftpl"] * 4 + [
        module
    ]
    with pytest.raises(
        dc.ParameterError, match=r"line 10.*no module nowhere; put nowhere\.py beside"
    ):
        plans_of(text.replace(f"{module}.", "nowhere."), tmp_path)


def test_the_example_runs_and_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    done = run("simulate", EXAMPLE, "--out", tmp_path)
    assert done.exit_code == 0, done.output
    assert len(list(tmp_path.glob("*/results.nc"))) == 3
    assert len(list(tmp_path.glob("*/regret.png"))) == 3
    assert "PunishLast(arms=8)" in done.output
    path = tmp_path / "spec.toml"
    path.write_text(GOOD)
    done = run("simulate", path, "--dry-run", "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert "Alternating(arms=8, gap=0.125, growth=1.6)" in done.output
    assert "In total about" in done.output
    assert not (tmp_path / "out").exists()
    (tmp_path / "latin.toml").write_bytes("runs = '\xe9'".encode("latin-1"))
    with pytest.raises(dc.ParameterError, match="is not TOML"):
        read_specification(tmp_path / "latin.toml")
    done = run("simulate", tmp_path)
    assert done.exit_code == 1
    assert "Traceback" not in done.output

"""The instances drawn at random: verdicts on made-up regrets, and the scores of a small run."""

from pathlib import Path

import numpy as np
import pytest

from decoupled import FTPL, Ladder
from decoupled.environments import Adversary
from decoupled_lab.paper import held_out
from decoupled_lab.paper.base import Scale
from decoupled_lab.paper.held_out import family, score

QUICK = Scale(runs=60, quick=True)  # four runs of each of twelve instances, more where they are short


def made_up(ours: float, punished: float, others: float = 1.0) -> held_out.Cells:
    """Regrets for the paper's policy, large beside what is added to all, and multiples of them for the others."""
    draw = np.random.default_rng(0)
    cells = []
    for instance in family(96, seed=3):
        paper = 1e6 * (1.0 + 0.1 * draw.normal(size=32))
        kept = {policy.label: others * paper for policy in held_out.POLICIES}
        mine = (punished if instance.kind == "punish" else ours) * paper
        cells.append((instance, {**kept, FTPL().label: paper, Ladder().label: mine}))
    return cells


@pytest.mark.parametrize(
    ("factors", "failing"),
    [
        ((0.3, 0.6, 1.0), set()),
        ((0.45, 0.6, 1.0), {"mean"}),
        ((0.3, 0.9, 1.0), {"punished", "centred"}),
        ((0.3, 0.6, 0.2), {"rivals", "centred"}),
        ((0.2, 1.3, 2.0), {"punished", "worst"}),
    ],
)
def test_ratios_are_judged(factors: tuple[float, float, float], failing: set[str]) -> None:
    verdicts = {
        claim.id.removeprefix("held-out-"): claim.verdict for claim in held_out.claims(made_up(*factors))
    }
    assert verdicts.keys() == {"mean", "tail", "punished", "worst", "rivals", "centred"}
    assert {name for name, verdict in verdicts.items() if verdict != "holds"} == failing


def test_a_small_run_is_recorded_once_and_scored_as_the_family_is(tmp_path: Path) -> None:
    experiment = held_out.HeldOut()
    done: list[int] = []
    experiment.measure(QUICK, tmp_path, done.append)
    assert sum(done) == experiment.units(QUICK)
    before = (tmp_path / experiment.file).read_bytes()
    experiment.measure(QUICK, tmp_path, done.append)
    assert (tmp_path / experiment.file).read_bytes() == before
    assert sum(done) == 2 * experiment.units(QUICK)
    cells = experiment.regrets(tmp_path)
    logs = held_out.log_ratios(cells, Ladder())
    for place, instance in enumerate(family(3, held_out.SEED)):
        runs = 4 * max(1, 10_000 // instance.horizon)
        scored = score(Ladder(), [instance], runs, seed=place)
        assert scored.mean == pytest.approx(np.exp(logs[place]), rel=1e-12)
    section = experiment.section(tmp_path)
    assert [row[0] for row in section.tables[0].rows] == list(held_out.POLICIES.values())
    assert section.tables[0].rows[0][1].startswith("1.000 (1.00 to 1.00)")
    assert "4 runs of 30,000 rounds" in experiment.extent(tmp_path)


def test_the_family_is_broad_and_none_of_the_papers_instances() -> None:
    drawn = family(36, seed=2)
    assert {each.kind for each in drawn} == set(held_out.KINDS)
    assert {each.environment.arms for each in drawn} <= set(held_out.ARMS)
    assert len({each.environment.arms for each in drawn}) > 5
    assert not {4, 8, 16, 32, 64, 128, 256} & set(held_out.ARMS)
    again = family(36, seed=2)
    assert [each.environment.to_json() for each in drawn] == [each.environment.to_json() for each in again]
    for each in drawn:
        if not isinstance(each.environment, Adversary):
            rows = each.environment.table(100).rows
            assert ((rows >= 0) & (rows <= 1)).all()

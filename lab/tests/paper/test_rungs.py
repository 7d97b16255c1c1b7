"""The weights of the ladder's rungs: the worlds are those they say, and verdicts follow the slow rung."""

from pathlib import Path

import numpy as np
import pytest

from decoupled.environments import Alternating
from decoupled_lab.paper import ladder
from decoupled_lab.paper.base import Scale


def test_alternating_losses_have_the_means_of_the_environment() -> None:
    table, draw = Alternating(8, gap=0.125).table(ladder.ROUNDS), np.random.default_rng(0)
    # Round 2,000 lies in a phase with means (0, gap) or (1 - gap, 1). The mean of 4,000 draws is off by 4.5
    # standard errors once in 1e5 seeds for eight arms, and this seed is fixed.
    drawn = np.mean([ladder.alternating_losses(2_000, -1, draw) for _ in range(4_000)], axis=0)
    mean = table.rows[table.row_at[2_000]]
    assert np.abs(drawn - mean).max() <= 4.5 * np.sqrt(0.125 * 0.875 / 4_000)


def test_the_arm_exploited_last_is_punished() -> None:
    draw = np.random.default_rng(0)
    assert ladder.punishing_losses(0, -1, draw).tolist() == [0.45, *[0.5] * 7]
    assert ladder.punishing_losses(5, 3, draw)[3] == 1.0
    assert ladder.punishing_losses(5, 0, draw)[0] == 1.0


@pytest.mark.parametrize(
    ("benign", "punished", "verdicts"),
    [(0.0, 0.99, ["holds", "holds"]), (0.2, 0.5, ["fails", "fails"]), (0.99, 0.0, ["fails", "fails"])],
)
def test_the_slow_rung_is_judged(benign: float, punished: float, verdicts: list[str]) -> None:
    marks = len(ladder.marks())
    made_up = {ladder.BENIGN: benign, ladder.PUNISHING: punished}
    weights = {
        world: np.stack(
            [np.full((4, marks), slow), np.full((4, marks), 1.0 - slow), np.zeros((4, marks))], -1
        )
        for world, slow in made_up.items()
    }
    assert [claim.verdict for claim in ladder.claims(weights)] == verdicts


def test_a_small_run_shows_both_worlds(tmp_path: Path) -> None:
    experiment = ladder.Rungs()
    done: list[int] = []
    scale = Scale(runs=20, quick=True)
    experiment.measure(scale, tmp_path, done.append)
    assert sum(done) == experiment.units(scale) == 8
    section = experiment.section(tmp_path)
    assert [claim.verdict for claim in section.claims] == ["holds", "holds"]
    for panel in section.pictures[0].panels:
        assert np.sum([series.y for series in panel.series], axis=0) == pytest.approx(1.0)
    assert experiment.extent(tmp_path) == "4 runs of 3,000 rounds in each world."

"""Promises of a device besides its statistics: grouping, resuming, refusals, parallel plans (make
test-gpu).
"""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import decoupled as dc
from decoupled.errors import UnsupportedError

worlds = dc.environments
PAIR = (dc.FTPL(), dc.Exp3())
WORLD = worlds.Alternating(arms=8, gap=0.125)


def bits(**how: object) -> tuple[bytes, bytes]:
    data = dc.simulate(PAIR, WORLD, 500, 3_000, seed=5, checkpoints=7, device="cuda", **how).data  # type: ignore[arg-type]
    return data.regret.values.tobytes(), data.plays.values.tobytes()


@pytest.mark.parametrize("block", [1_000, 777, 33])
def test_grouping_changes_nothing(block: int) -> None:
    assert bits(block=block) == bits()


def test_grouping_changes_nothing_if_feedback_is_late() -> None:
    traffic = dc.Traffic(delay=("geometric", 30.0), missing=0.2, explore_share=0.7)
    how = {"traffic": traffic}
    assert bits(block=777, **how) == bits(**how) != bits()


def test_a_rerun_on_a_device_resumes(tmp_path: Path) -> None:
    bits(block=500, out=tmp_path)
    for path in sorted((tmp_path / "blocks").iterdir())[::3]:
        path.unlink()
    assert bits(block=500, out=tmp_path) == bits()


def test_many_checkpoints_and_runs_go_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = bits()
    monkeypatch.setattr(
        "decoupled.simulation.gpu.launch.most_runs", lambda requirements, device: 640
    )
    assert bits() == whole


def test_plans_at_once_do_not_disturb_each_other() -> None:
    seeds = range(12)

    def final(seed: int) -> bytes:
        data = dc.simulate(PAIR, WORLD, 300, 400, seed=seed, device="cuda").data
        return bytes(data.regret.values.tobytes())

    alone = [final(seed) for seed in seeds]
    with ThreadPoolExecutor(6) as threads:
        assert list(threads.map(final, seeds)) == alone


def test_policies_meet_the_same_losses() -> None:
    # Two forms of one policy: they differ only if their losses or their draws differ.
    forms = dc.FTPL(), dc.FTPL(ranking="sorting")
    regret = dc.simulate(forms, WORLD, 300, 500, device="cuda").data.regret.values
    assert (regret[0] == regret[1]).all(axis=1).mean() > 0.95


def test_an_adversary_that_leaves_the_unit_interval_is_named() -> None:
    from decoupled.errors import ParameterError
    from support.custom_game import ScriptedGrudge

    with pytest.raises(ParameterError, match=r"ScriptedGrudge\.losses: went outside"):
        dc.simulate(dc.Exp3(), ScriptedGrudge(arms=8, price=-1.0), 100, 64, device="cuda")


def test_too_many_arms_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="use device='cpu'"):
        dc.simulate(dc.FTPL(), worlds.Catalogue(arms=10_000), 10, 2, device="cuda")

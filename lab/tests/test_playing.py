"""Keys that come back: fresh draws give the regret of a simulation, and a key's own draws cost none and move it less often."""

import numpy as np
import pytest

import decoupled as dc
from decoupled_lab.playing import KeyedRun, play_keys

WORLD = dc.environments.Bernoulli(rewards=[0.7, 0.6, 0.55, 0.5, 0.45])


@pytest.mark.parametrize(
    "policy", [dc.FTPL(), dc.Ladder(), dc.CoupledTsallisINF()], ids=lambda policy: policy.label
)
@pytest.mark.parametrize("keys", [1, 7])
def test_fresh_draws_give_the_regret_of_a_simulation(policy: dc.Policy, keys: int) -> None:
    checkpoints = np.array([10, 150, 300])
    results = dc.simulate(policy, WORLD, 300, 3, seed=1, checkpoints=checkpoints.tolist())
    plays = np.zeros((2, 5), np.int64)
    for number in range(3):
        run = play_keys(policy, WORLD, checkpoints, 1, number, keys=keys, is_sticky=False)
        assert run.regret.tolist() == results.data["regret"].values[0, number].tolist()
        plays += run.plays
    assert plays.tolist() == results.data["plays"].values[0].tolist()


def test_a_policy_of_the_standard_game_draws_afresh_for_every_key() -> None:
    runs = [
        play_keys(dc.UCB1(), WORLD, np.array([300]), 1, 0, keys=3, is_sticky=is_sticky)
        for is_sticky in (True, False)
    ]
    assert runs[0].plays.tolist() == runs[1].plays.tolist()


@pytest.mark.parametrize(
    ("policy", "keys", "most"),
    [
        (dc.FTPL(), 40, 0.5),
        (dc.TsallisINF(), 40, 0.5),
        (dc.Ladder(), 1, 0.5),
        (dc.Ladder(), 40, 1.0),
    ],
    ids=["FTPL", "TsallisINF", "Ladder, in every round", "Ladder"],
)
def test_keys_cost_no_regret_and_are_moved_less_often(
    policy: dc.Policy, keys: int, most: float
) -> None:
    """2,000 rounds, 5 arms. A false alarm once in 10,000 cases.

    The fresh draws of the ladder seldom differ from its leader, and a change of the leader moves a key as well. So a key
    that comes once in 40 rounds is moved nearly as often as with fresh draws: 1.4 and 1.9 times.
    """

    def played(*, is_sticky: bool) -> list[KeyedRun]:
        checkpoints = np.array([500, 1_000, 2_000])
        return [
            play_keys(policy, WORLD, checkpoints, 4, number, keys=keys, is_sticky=is_sticky)
            for number in range(12)
        ]

    keyed, fresh = played(is_sticky=True), played(is_sticky=False)
    pairs = zip(keyed, fresh, strict=True)
    difference = np.array([one.regret[-1] - other.regret[-1] for one, other in pairs])
    # 11 degrees of freedom.
    assert abs(difference.mean()) < 5.5 * difference.std(ddof=1) / np.sqrt(len(difference))
    own, new = (np.array([run.switches for run in runs]) for runs in (keyed, fresh))
    assert 0.0 < own[:, -1].mean() <= most * new[:, -1].mean()
    assert (np.diff(own, axis=1) >= 0.0).all()

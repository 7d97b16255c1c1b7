"""Regret compared with an independent, slow implementation: nine cells, c = 2, T = 10,000."""

import math

import pytest

import decoupled as dc

RUNS = 350
EASY = dc.environments.Bernoulli([0.55, 0.6, 0.45, 0.3, 0.2])
HARD = dc.environments.Bernoulli([0.905, 0.91, 0.89, 0.908, 0.88])
ALTERNATING = dc.environments.Alternating(arms=8, gap=0.125)
POLICIES = (dc.FTPL(), dc.TsallisINF(), dc.Exp3())

# (mean, standard error) in the order of POLICIES.
TABLE = [
    (ALTERNATING, [(140.3, 2.0), (226.8, 1.6), (207.8, 1.7)]),
    (EASY, [(68.0, 1.0), (108.5, 0.8), (92.1, 0.9)]),
    (HARD, [(39.2, 0.3), (63.8, 0.3), (60.6, 0.3)]),
]


@pytest.mark.parametrize(
    ("environment", "cells"), TABLE, ids=lambda each: getattr(each, "label", "")
)
def test_regret_matches_the_independent_table(
    environment: dc.environments.Environment, cells: list[tuple[float, float]]
) -> None:
    # Four joint standard errors: a correct program fails in one of the nine cells for 1 seed in
    # about 1,700. Regret that is off by 23 % with FTPL is found nine times in ten; the laws have
    # exact tests elsewhere.
    summary = dc.simulate(POLICIES, environment, 10_000, RUNS, seed=2_026, checkpoints=1).summary()
    for policy, (mean, error) in zip(POLICIES, cells, strict=True):
        ours, spread = summary["mean"][policy.label], summary["standard_error"][policy.label]
        joint = math.hypot(error, spread)
        assert abs(ours - mean) < 4 * joint, (policy.label, ours, mean, joint)


def test_follow_the_leader_collapses_only_against_an_adversary() -> None:
    policies = (dc.FTPL(), dc.FollowTheLeader())
    benign = dc.simulate(policies, ALTERNATING, 10_000, 200, seed=1).summary()["mean"]
    hostile = dc.simulate(policies, dc.environments.PunishLast(8), 10_000, 50, seed=1).summary()[
        "mean"
    ]
    assert benign["FollowTheLeader"] < 0.6 * benign["FTPL"]
    assert hostile["FollowTheLeader"] > 3 * hostile["FTPL"]
    # Linear: almost half a unit per round, because the leader costs 1 and arm 0 costs about 0.55 on
    # average.
    assert hostile["FollowTheLeader"] > 0.3 * 10_000


def test_the_standard_game_costs_more_and_every_policy_learns_it() -> None:
    # Runs are paired. The closest comparison, Tsallis-INF with FTPL, is ten standard errors apart.
    ftpl = [dc.CoupledFTPL(resampling="conditional"), dc.CoupledFTPL("pareto", "conditional")]
    tsallis = [dc.CoupledTsallisINF(), dc.CoupledTsallisINF(estimator="reduced-variance")]
    rest = [dc.CoupledExp3(), dc.UCB1(), dc.ThompsonSampling()]
    results = dc.simulate([dc.FTPL(), *ftpl, *tsallis, *rest], EASY, 10_000, 100, seed=5)
    mean = results.summary()["mean"]
    # Playing uniformly costs 0.18 per round.
    assert (mean < 0.18 * 10_000 / 5).all()
    assert (mean[[policy.label for policy in [*ftpl, *tsallis]]] > mean["FTPL"]).all()
    # As in Zimmert and Seldin (2021): reduced variance saves about a third of the regret.
    assert mean[tsallis[1].label] < 0.8 * mean[tsallis[0].label]

"""Forgetting: restarts are new learners, discounts are weighted sums, and everything else is the
policy's.
"""

import math
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta

import decoupled as dc
from decoupled.base.arrays import Floats
from decoupled.extend import diagnostics
from decoupled.simulation.plan import make_plan
from decoupled.testing import state_of
from support.centred_ftpl import CENTRED_FTPL
from support.plain_python import ran
from support.twins import Twin, twin_of
from support.twins.avner import AvnerTwin
from support.twins.coupled import CoupledExp3Twin
from support.twins.exp3 import Exp3Twin
from support.twins.forgetting import ForgettingTwin
from support.twins.ftpl import FTPLTwin
from support.twins.tsallis import TsallisTwin

ARMS = 4
# Their machine code is cached on disk, so this is slow only once.
RESTARTING = [
    kind()
    for name, kind in dc.Policy.known().items()
    if name not in ("Forgetting", "ContextualLadder") and kind.__module__[:9] == "decoupled"
]
LOSSES = np.random.default_rng(5).random((400, ARMS)) * np.linspace(0.3, 1.0, ARMS)


def drawn(learner: dc.Learner) -> list[tuple[Any, ...]]:
    """Twenty decisions; ids and rounds belong to the learner."""
    return [
        (each.exploit, each.explore, each.weight, each.propensity)
        for each in learner.decide(count=20)
    ]


@pytest.mark.parametrize("policy", RESTARTING, ids=lambda each: type(each).__name__)
def test_after_a_restart_all_is_as_with_a_new_learner(policy: dc.Policy) -> None:
    # The same observations and the same random stream: bit for bit the same decisions.
    records = [(t % ARMS, 0.25, float(LOSSES[t, t % ARMS])) for t in range(23)]
    learner = dc.Forgetting(policy, period=16).start(ARMS, seed=3)
    new = policy.start(ARMS, seed=3)
    assert drawn(learner) == drawn(new)
    learner.replay(records[:15])
    before = policy.start(ARMS, seed=3)
    before.replay(records[:15])
    assert learner.estimates().tolist() == before.estimates().tolist() != new.estimates().tolist()
    learner.replay([(0, 0.25, 1.0)])  # the sixteenth observation, and everything is forgotten
    learner.replay(records[16:])
    new.replay(records[16:])
    assert drawn(learner) == drawn(new)
    assert learner.estimates().tolist() == new.estimates().tolist()
    if not isinstance(policy, dc.Ladder):  # whose judge draws anew: see test_ladder_learner
        assert (
            learner.exploitation_probabilities().tolist()
            == new.exploitation_probabilities().tolist()
        )
    assert (learner.round, new.round) == (24, 8)
    assert diagnostics(learner)["round"] == 8


def test_late_feedback_is_learned_by_what_is_there() -> None:
    learner = dc.Forgetting(dc.FTPL(), period=10).start(ARMS, seed=3)
    late = learner.decide()
    learner.replay([(arm % ARMS, 0.25, 0.5) for arm in range(10)])
    assert learner.estimates().tolist() == [0.0] * ARMS
    learner.observe(late, loss=0.5)
    expected = np.zeros(ARMS)
    expected[int(late.explore)] = late.weight * 0.5
    assert learner.estimates().tolist() == expected.tolist()
    # An absent arm's charge fades exactly as the estimates of the others do.
    learner = dc.Forgetting(dc.FTPL(), discount=DISCOUNT).start(ARMS, seed=3)
    decision = learner.decide(available=[0, 2])
    learner.observe(decision, loss=0.5)
    expected = np.array([0.0, 0.5, 0.0, 0.5])
    expected[int(decision.explore)] += decision.weight * 0.5
    assert learner.estimates().tolist() == (DISCOUNT * expected).tolist()


def test_the_ladder_forgets_by_a_discount() -> None:
    """Sums and counts fade; means and the smallest loss do not."""
    learner = dc.Forgetting(dc.Ladder(), discount=0.5).start(ARMS, seed=3)
    for t in range(12):
        learner.replay([(t % 2, 0.5, 0.25 + 0.5 * (t % 2))])
    counts, means = (state_of(learner)[name] for name in ("counts", "means"))
    fading = 0.5 ** np.arange(1, 13)
    np.testing.assert_allclose(counts[:3], [fading[1::2].sum(), fading[::2].sum(), 0.0], rtol=1e-12)
    np.testing.assert_allclose(means[:2], [0.25, 0.75], rtol=1e-12)
    found = diagnostics(learner)
    assert found["seen"] == pytest.approx(fading.sum(), rel=1e-12)
    assert found["least"] == 0.25
    assert found["round"] == pytest.approx(1.0 + fading.sum(), rel=1e-12)


DISCOUNT = 0.9
FADING: list[tuple[dc.Policy, Twin]] = [
    (dc.FTPL(), FTPLTwin(ARMS)),
    (dc.FTPL(ranking="sorting"), FTPLTwin(ARMS)),
    (dc.TsallisINF(), TsallisTwin(ARMS)),
    (dc.Exp3(), Exp3Twin(ARMS)),
    (dc.AvnerExp3(), AvnerTwin(ARMS, None, 0.0)),
    (dc.AvnerExp3(horizon=10, mixing=0.1), AvnerTwin(ARMS, 10, 0.1)),
    (dc.CoupledExp3(), CoupledExp3Twin(ARMS, 1.0)),
    *(
        (policy, twin_of(policy, ARMS))
        for policy in (
            CENTRED_FTPL,
            dc.CentredFTPL(gate=0.4, mean_rate=0.2),
            CENTRED_FTPL.at(10_000),  # in strata
            dc.CentredFTPL(exploit_c=3.0, ranking="sorting"),
            dc.TsallisINF(c=3.0),
        )
    ),
]


@pytest.mark.parametrize(("policy", "twin"), FADING, ids=lambda each: getattr(each, "label", ""))
def test_a_discount_shrinks_sums_and_the_round(policy: dc.Policy, twin: Twin) -> None:
    forgetting = ForgettingTwin(lambda: twin, None, DISCOUNT)
    learner = dc.Forgetting(policy, discount=DISCOUNT).start(ARMS, seed=3)
    for t in range(100):
        decision = learner.decide()
        arm = int(decision.explore)
        learner.observe(decision, loss=float(LOSSES[t, arm]))
        forgetting.update(arm, decision.weight, float(LOSSES[t, arm]))
        np.testing.assert_allclose(
            learner.exploration_probabilities(), forgetting.exploration_law(), rtol=1e-11
        )
        np.testing.assert_allclose(
            learner.exploitation_probabilities(), forgetting.exploitation_law(), atol=1e-9
        )
    assert diagnostics(learner)["round"] == pytest.approx(1 / (1 - DISCOUNT), rel=1e-4)


def weighted(records: list[tuple[int, float]]) -> tuple[Floats, Floats]:
    """Discounted sums of losses and counts, each observation with its own power of the discount."""
    sums, counts = np.zeros(ARMS), np.zeros(ARMS)
    for age, (arm, loss) in enumerate(reversed(records)):
        sums[arm] += DISCOUNT ** (age + 1) * loss
        counts[arm] += DISCOUNT ** (age + 1)
    return sums, counts


@pytest.mark.filterwarnings("ignore::decoupled.UnseenArmWarning")
def test_a_discount_makes_means_of_the_recent_past() -> None:
    records = [(int(t * 7 % 11 % ARMS), float(LOSSES[t, 0])) for t in range(60)]
    learners = [
        dc.Forgetting(policy, discount=DISCOUNT).start(ARMS, seed=1)
        for policy in (dc.FollowTheLeader(), dc.UCB1(c=0.5), dc.ThompsonSampling())
    ]
    for n in range(ARMS, len(records)):
        for learner in learners:
            learner.replay([(arm, 1.0, loss) for arm, loss in records[learner.round - 1 : n]])
        sums, counts = weighted(records[:n])
        leader, optimist, sampler = learners
        np.testing.assert_allclose(
            leader.estimates(), np.where(counts > 0, sums / np.maximum(counts, 1e-9), -1)
        )
        if (counts > 0).all():
            assert leader.exploit().exploit == (sums / counts).argmin()
            index = sums / counts - np.sqrt(0.5 * np.log(max(counts.sum(), 1.0)) / counts)
            assert optimist.decide().explore == index.argmin()
    posteriors = [beta(1 + s, 1 + c - s) for s, c in zip(sums, counts, strict=True)]
    for i, own in enumerate(posteriors):
        rivals = posteriors[:i] + posteriors[i + 1 :]
        chance = quad(
            lambda x, f, r: f.pdf(x) * np.prod([g.sf(x) for g in r]), 0, 1, args=(own, rivals)
        )[0]
        assert sampler.exploitation_probabilities()[i] == pytest.approx(chance, abs=1e-7)


def test_jins_rates_fade_with_its_estimates() -> None:
    learner, g = dc.Forgetting(dc.JinHybrid(), discount=DISCOUNT).start(ARMS, seed=3), DISCOUNT
    plain, spread = dc.JinHybrid().start(ARMS, seed=3), np.zeros(ARMS)
    for t in range(30):
        # max(w, 1/t) ** (2/3) / p, by the laws before the observation and the discounted round.
        w, p = learner.exploitation_probabilities(), learner.exploration_probabilities()
        floor = 1 / diagnostics(learner)["round"]
        spread = g * (spread + np.maximum(w, floor) ** (2 / 3) / p)
        learner.replay([(t % ARMS, 0.25, float(LOSSES[t, 0]))])
        plain.replay([(t % ARMS, 0.25, float(LOSSES[t, 0]))])
    faded = state_of(learner)["spread"]
    np.testing.assert_allclose(faded, spread, rtol=1e-10)
    assert (faded < state_of(plain)["spread"] / 2).all()


@pytest.mark.filterwarnings("ignore::decoupled.UnseenArmWarning")
@pytest.mark.parametrize("discount", [1e-3, 0.9])
def test_what_fades_away_is_gone(discount: float) -> None:
    # Numbers that keep shrinking would lose their digits and then their ratio.
    for policy in (
        dc.FTPL(),
        dc.FollowTheLeader(),
        dc.UCB1(),
        dc.ThompsonSampling(),
        dc.JinHybrid(),
    ):
        learner = dc.Forgetting(policy, discount=discount).start(ARMS, seed=3)
        learner.replay([(arm, 0.25, 0.7) for arm in range(ARMS)])
        rounds = 1_000 + int(800 / -math.log(discount))  # exp(-800) is less than any number
        learner.replay([(0, 1.0, 0.0)] * rounds, unrandomised=True)
        floats = state_of(learner).to_state().floats
        assert np.isfinite(floats[np.abs(floats) < 1e300]).all()
        assert not ((np.abs(floats) > 0) & (np.abs(floats) < 1e-305)).any()
        assert learner.exploitation_probabilities().sum() == pytest.approx(1.0)


def test_what_cannot_be_had_is_refused_with_the_remedy() -> None:
    with pytest.raises(
        dc.ParameterError, match=r"^discount = 0\.9: does not suit TopTwo, .*give a period"
    ):
        dc.Forgetting(dc.TopTwo(), discount=0.9)
    with pytest.raises(
        dc.ParameterError, match=r"^discount = 0\.9: cannot be combined with period = 5"
    ):
        dc.Forgetting(period=5, discount=0.9)
    with pytest.raises(dc.ParameterError, match=r"^policy = Forgetting.*does not forget already"):
        dc.Forgetting(dc.Forgetting())
    with pytest.raises(dc.UnsupportedError, match="compiled form"):
        dc.Forgetting(dc.TsallisINF(solver="scs"))
    with pytest.raises(dc.UnsupportedError, match="keeps what it knows of segments apart"):
        dc.Forgetting(dc.ContextualLadder())


def test_a_policy_that_first_runs_inside_has_a_name_of_its_own() -> None:
    # Otherwise its functions would be cached on disk under a name that other policies share.
    code = """
import numba, decoupled as dc
dc.Forgetting(dc.UCB1(), period=9).start(arms=2, seed=0)
print(numba.typeof(dc.UCB1().params()).name)
"""
    assert ran("-c", code).startswith("decoupled_policies_means_UCBParams(")


def test_a_policy_that_forgets_runs_the_code_of_the_policy() -> None:
    for policy in RESTARTING:
        for form in type(policy).forms():
            forgetting = [dc.Forgetting(form, period=9)]
            if not isinstance(form, dc.TopTwo):  # it takes no discount
                forgetting.append(dc.Forgetting(form, discount=0.9))
            for each in forgetting:
                assert each.params_type is form.params_type
                assert each.functions == form.functions
                assert each.entries() is form.entries()


def test_what_fades_belongs_to_the_policy_and_not_to_its_code() -> None:
    class Elsewhere(dc.CentredFTPL):
        """A policy whose spread does not fade, with the code of the one whose does."""

        fading = ("estimates",)

    own = dc.Forgetting(dc.CentredFTPL(schedule="losses"), discount=0.5).start(arms=2, seed=1)
    other = dc.Forgetting(Elsewhere(schedule="losses"), discount=0.5).start(arms=2, seed=1)
    for learner in (own, other):
        learner.replay([(0, 0.5, 1.0)])
    assert own.estimates().tolist() == other.estimates().tolist()
    assert diagnostics(own)["spread"] == 0.5 * diagnostics(other)["spread"] == 0.5


def test_a_plan_of_a_policy_from_elsewhere_depends_on_its_source(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Own(dc.Exp3):
        """A policy from another package."""

    plan = make_plan(dc.Forgetting(Own()), dc.environments.Drifting(3, 0.2, 10), 100, 2, 0)
    before = plan.digest()
    monkeypatch.setattr("decoupled.simulation.plan.inspect.getsource", lambda each: "edited")
    assert plan.digest() != before


def test_forgetting_pays_where_the_world_drifts_and_costs_where_it_does_not() -> None:
    # Differences of ten standard errors and more at 20 runs.
    policies = [
        dc.FTPL(),
        dc.Forgetting(dc.FTPL(), period=1_000),
        dc.Forgetting(dc.FTPL(), discount=0.998),
    ]
    drifts = dc.simulate(policies, dc.environments.Drifting(4, 0.3, 1_000), 8_000, 20, seed=0)
    stays = dc.simulate(policies, dc.environments.Alternating(4, 0.3), 8_000, 20, seed=0)
    for policy in policies[1:]:
        assert drifts.final_regret(policy).mean() < drifts.final_regret("FTPL").mean() - 300
        assert drifts.final_regret(policy).max() < 0  # better than any fixed arm
        assert stays.final_regret(policy).mean() > 2 * stays.final_regret("FTPL").mean()

"""FTPL in strata: the regret of the dense round, and learners of very many arms.

Centred losses and two rates in strata: exact laws, unbiased estimates, and a gate independent of
the draw.
"""

import dataclasses
import json
import math
import zlib

import numpy as np
import pytest

import decoupled as dc
from decoupled.base.arrays import Floats
from decoupled.extend import diagnostics
from decoupled.kernels.random.stream import new_stream
from decoupled.kernels.state import State
from decoupled.kernels.winner_law import pareto_winner_law
from decoupled.policies.centred.policy import MANY_ARMS as MANY_CENTRED
from decoupled.policies.ftpl import MANY_ARMS
from decoupled.policies.strata.leader import MOST_COVERED
from support.centred_ftpl import CENTRED_FTPL
from support.memory import bytes_kept
from support.playing import play
from support.saved import with_learned
from support.statistics import chi_square_p, means_agree
from support.tiered import SHAPES, gaps_of
from support.twins.centred import CentredStrataTwin
from support.twins.ftpl import StrataTwin, cut_into_strata

STRATA = dc.FTPL(ranking="strata")


def learned(policy: dc.Policy, arms: int, rounds: int) -> dc.Learner:
    """A learner with a history in which arms with small numbers do better."""
    learner = policy.start(arms=arms, seed=5)
    for luck in np.random.default_rng(3).random(rounds):
        decision = learner.decide()
        assert isinstance(decision.explore, int)
        learner.observe(decision, loss=float(luck < 0.2 + 0.7 * decision.explore / arms))
    return learner


def test_weights_are_unbiased_and_independent_of_the_arm() -> None:
    arms, draws = 64, 100_000
    learner = learned(STRATA, arms, 400)
    twin = StrataTwin(arms)
    twin.estimates, twin.observations = learner.estimates(), 400
    strata, ranks, q = twin.strata(), twin.ranks(), twin.surrogates()
    cut = np.repeat(np.arange(len(strata)), [len(each) for each in strata])
    decisions = [d for _ in range(draws // 50_000) for d in learner.decide(count=50_000)]
    explored = np.array([d.explore for d in decisions])
    weights = np.array([d.weight for d in decisions])
    # Each arm's indicator times weight has mean 1; by stratum, the number of its arms. And sum q as
    # a decision sees it has one mean, whichever stratum the arm came from. 2 x 12 comparisons at
    # 1e-5 each.
    stratum = cut[ranks[explored] - 1]
    whole = sum(each.sum() for each in strata)
    sums = weights * q[explored]
    for k, each in enumerate(strata):
        inside = np.where(stratum == k, weights, 0.0)
        error = inside.std() / math.sqrt(draws)
        assert means_agree(
            np.array([inside.mean()]), np.array([len(each)]), np.array([error]), 1e-5
        )
        own = sums[stratum == k]
        error = own.std() / math.sqrt(len(own))
        assert means_agree(np.array([own.mean()]), np.array([whole]), np.array([error]), 1e-5)


@pytest.mark.parametrize("auto", [dc.FTPL(), CENTRED_FTPL], ids=str)
def test_auto_is_the_faster_of_the_two(auto: dc.FTPL | dc.CentredFTPL) -> None:
    many = MANY_ARMS if isinstance(auto, dc.FTPL) else MANY_CENTRED
    few = many - 1
    for arms, ranking in ((few, "improved"), (many, "strata")):
        other = dataclasses.replace(auto, ranking=ranking)
        assert auto.at(arms) == other
        left, right = learned(auto, arms, 300), learned(other, arms, 300)
        assert left.decide() == right.decide()
        assert left.estimates().tolist() == right.estimates().tolist()
        assert (
            left.exploration_probabilities().tolist() == right.exploration_probabilities().tolist()
        )
    part = range(0, many, 9)
    assert (
        learned(auto, many, 3).decide(available=part).propensity is not None
    )  # a part of many arms


@pytest.mark.parametrize(
    "policy", [STRATA, dataclasses.replace(CENTRED_FTPL, ranking="strata")], ids=str
)
def test_it_continues_bit_for_bit_after_its_blocks_have_changed(policy: dc.FTPL) -> None:
    learner = learned(policy, 3000, 3000)
    learner.decide(count=3)  # pending, with everything their feedback will need
    again = dc.Learner.from_json(learner.to_json())
    for _ in range(300):
        ours, theirs = learner.decide(), again.decide()
        assert ours == theirs
        learner.observe(ours, loss=0.5)
        again.observe(theirs, loss=0.5)
    assert learner.estimates().tolist() == again.estimates().tolist()


def test_a_hundred_thousand_named_arms() -> None:
    names = [f"item {number}" for number in range(100_000)]
    learner = STRATA.start(arms=names, seed=2)
    for _ in range(2000):
        decision = learner.decide()
        learner.observe(decision, loss=float(str(decision.explore).endswith("7")))
    learner.replay([(names[-1], 0.5, 1.0)])
    assert learner.estimates()[-1] >= 2.0
    assert dc.Learner.from_json(learner.to_json()).decide() == learner.decide()
    twin = StrataTwin(len(names))
    twin.estimates, twin.observations = learner.estimates(), 2001
    np.testing.assert_allclose(
        learner.exploration_probabilities(), twin.exploration_law(), rtol=1e-11
    )
    with pytest.raises(dc.ArmError, match="did you mean 'item 7'"):
        learner.replay([("item_7", 0.5, 1.0)])


@pytest.mark.parametrize(("arms", "most"), [(64, 14), (200_000, 32), (1_000_000, 36)])
def test_the_strata_grow_in_number_with_the_logarithm(arms: int, most: int) -> None:
    strata = diagnostics(STRATA.start(arms=arms, seed=4))["strata"]
    assert strata == len(cut_into_strata(np.arange(arms, dtype=np.float64))) <= most


POLICY = dc.CentredFTPL(c=0.5, exploit_c=3.0, gate=0.05, mean_rate=0.1, ranking="strata")
CASES = [(arms, shape) for arms in (64, 1000, 5_000) for shape in SHAPES]
DRAWS = 300_000

# The chance that some test of draws below fails on a sound kernel, over random seeds.
FALSE_ALARM = 1e-3
LEVEL = FALSE_ALARM / (3 * len(CASES))

every_case = pytest.mark.parametrize(("arms", "shape"), CASES)


class Situation:
    """A state with estimates of some shape, in random order of arms, and its known properties."""

    def __init__(
        self, arms: int, shape: str, policy: dc.CentredFTPL = POLICY, observations: int = 49
    ) -> None:
        self.policy, self.values = policy, policy.param_values()
        self.state = policy.layout.new_state(arms)
        self.twin = CentredStrataTwin(arms, policy)
        self.twin.observations = observations
        by_rank = np.random.default_rng(zlib.crc32(repr((arms, shape)).encode())).permutation(arms)
        self.twin.estimates[by_rank] = 5.0 + 0.25 * gaps_of(shape, arms) / self.twin.eta
        self.twin.mean = 0.3
        policy.layout.row(self.state, "estimates")[:] = self.twin.estimates
        policy.layout.row(self.state, "round")[0] = 1 + observations
        policy.layout.row(self.state, "rise")[0] = -0.2
        policy.entries().init(self.values, *self.state)

    def change_by(self, arm: int, weight: float, loss: float) -> Floats:
        scalars, floats, ints = self.state
        state = State(scalars.copy(), floats.copy(), ints.copy())
        state.scalars[0] += 1.0
        self.policy.entries().update(self.values, *state, arm, weight, loss)
        change: Floats = self.policy.layout.row(state, "estimates") - self.twin.estimates
        return change


@every_case
def test_both_draws_have_their_exact_laws_and_the_arms_covered_are_the_twins(
    arms: int, shape: str
) -> None:
    situation = Situation(arms, shape)
    twin = situation.twin
    stream = new_stream(np.random.SeedSequence(zlib.crc32(repr((arms, shape)).encode())))
    played = play(POLICY, situation.state, stream, DRAWS)
    counts = [np.bincount(each, minlength=arms) for each in (played.exploits, played.explores)]
    heaviest = max(played.weights[twin.baseline()[played.explores] > 0.0], default=0.0)
    law, rate = twin.exploration_law(), POLICY.params().exploit_ratio * twin.eta
    assert chi_square_p(counts[0], pareto_winner_law(rate * twin.gaps(), POLICY.alpha)) > LEVEL
    assert chi_square_p(counts[1], law) > LEVEL
    # By stratum, since single ranks at the far end are too rare.
    by_rank = np.argsort(twin.ranks())
    seen = [each.sum() for each in cut_into_strata(counts[1][by_rank].astype(np.float64))]
    assert chi_square_p(seen, [each.sum() for each in cut_into_strata(law[by_rank])]) > LEVEL
    # No observation lowers an estimate by more than B / (gate * eta), for any drawn sum.
    assert heaviest <= 1.0 / (POLICY.gate * twin.eta)
    assert POLICY.baselines is not None
    places, values = POLICY.baselines.read(situation.state)
    expected = situation.twin.baseline()
    assert sorted(places) == np.flatnonzero(expected).tolist()
    assert values == pytest.approx(expected[places], rel=1e-15)
    assert len(places) <= MOST_COVERED
    # True probabilities are no smaller than the envelope's share: a covered arm passes the paper's
    # own gate.
    assert (situation.twin.exploration_law()[places] >= POLICY.gate * situation.twin.eta).all()


def test_cases_have_arms_on_either_side_of_the_gate() -> None:
    # Otherwise these tests would prove nothing.
    covered = [np.count_nonzero(Situation(*case).twin.baseline()) for case in CASES]
    assert 0 in covered or 1 in covered
    assert MOST_COVERED in covered
    assert len(set(covered)) > 5


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("arms", [64, 600])
def test_estimates_are_unbiased_whatever_sum_is_drawn(arms: int, shape: str) -> None:
    """Every arm, weighted by its probability, with drawn sums of q that are too low and too high.

    The border of the gate lies right at an arm: one more or one less is covered than by the sum
    drawn.
    """
    q = np.sort(Situation(arms, shape).twin.surrogates())[::-1]
    envelope = sum(len(each) * each[0] for each in cut_into_strata(q))
    kappa = q[min(7, arms // 8)] / (envelope * Situation(arms, shape).twin.eta)
    border = dc.CentredFTPL(c=0.5, exploit_c=3.0, gate=kappa, mean_rate=0.1, ranking="strata")
    situation = Situation(arms, shape, border)
    losses = np.random.default_rng(arms).random(arms)
    law = situation.twin.exploration_law()
    mean = np.zeros(arms)
    for arm in range(arms):
        for share in (0.8, 1.2):  # possible draws of the sum, right on average
            mean += 0.5 * law[arm] * situation.change_by(arm, share / law[arm], losses[arm])
    np.testing.assert_allclose(mean, losses, rtol=1e-9, atol=1e-9)


def test_what_is_pending_is_small_with_very_many_arms() -> None:
    policy = dc.CentredFTPL(c=0.5, exploit_c=3.0)
    estimates = np.linspace(0.0, 1e-6, 100_000)  # no two tie
    learner = with_learned(policy.start(arms=100_000, seed=4), {"estimates": estimates})
    for _ in range(3_000):
        learner.observe(learner.decide(), loss=1.0)
    own = (
        2 * 8 * MOST_COVERED
    )  # bytes, of the arms and their baselines; a decision itself has less than half of that
    assert bytes_kept(lambda: learner.decide(count=50)) < 40 * own
    content = json.loads(learner.to_json())["content"]
    assert len(content["baselines"]) == 1
    arms, values, *_ = content["baselines"][0]
    assert len(arms) == len(values) == MOST_COVERED
    assert len(json.dumps(content["pending"])) < 50 * 200
    again = dc.Learner.from_json(learner.to_json())
    for decision in learner.pending[::-1]:
        learner.observe(decision, loss=0.25)
        again.observe(decision.id, loss=0.25)
    assert again.estimates().tolist() == learner.estimates().tolist()
    assert again.decide() == learner.decide()
    # Few enough arms for the dense round, whose baselines the strata then use.
    part = list(range(0, 100_000, 500))
    before = learner.estimates()
    decision = learner.decide(available=part)
    learner.observe(decision, loss=1.0)
    change = learner.estimates() - before
    assert decision.propensity is not None
    np.testing.assert_allclose(np.delete(change, part), 1.0)
    assert learner.exploration_probabilities().sum() == pytest.approx(1.0)

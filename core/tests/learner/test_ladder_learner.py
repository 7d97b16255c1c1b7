"""Learners that run the ladder: late feedback, absent arms, predictions, saving, and the draws by
which its rungs are judged.
"""

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import stats

import decoupled as dc
from decoupled.base.arrays import Floats
from decoupled.errors import ParameterError
from decoupled.extend import diagnostics
from decoupled.learner import policy_state
from decoupled.policies.ladder import state as ladder_state
from decoupled.testing import state_of
from support.exactly import added, explored
from support.plain_python import ran
from support.saved import content_of, from_content, kept_by, with_learned
from support.seeds import seeded
from support.twins.ladder import LadderTwin

ARMS = 5
LOSSES = np.array([0.2, 0.9, 0.35, 0.6, 0.5])
LADDER = dc.Ladder()
FORGETTING = [dc.Forgetting(LADDER, period=1_000), dc.Forgetting(LADDER, discount=0.9)]
LADDERS = [LADDER, dc.Ladder(rungs=(0.25,), prior=(), top_two_share=0.0), *FORGETTING]
LOG = [(arm, 0.2 + 0.1 * arm, float(LOSSES[arm])) for arm in (0, 1, 2, 3, 4, 1, 0)]


def baselines_of(learner: dc.Learner) -> Floats:
    row = np.zeros(len(learner.arms))
    baselines = learner.policy.baselines
    assert baselines is not None
    places, values = baselines.read(state_of(learner).to_state())
    row[places] = values
    return row


@pytest.mark.parametrize("policy", [LADDER, LADDERS[2]], ids=lambda policy: policy.label)
def test_a_baseline_counts_up_to_the_bound_of_the_gate(policy: dc.Policy) -> None:
    """Otherwise one loss of a seldom explored arm would make it the leader for ever."""
    learner = policy.start(30, seed=5)
    learner.replay([(arm, 0.1, float(arm % 2)) for arm in range(30)])
    own, estimates, law = (
        baselines_of(learner),
        learner.estimates(),
        learner.exploration_probabilities(),
    )
    found = diagnostics(learner)
    gaps = estimates - estimates.min()
    bound = (
        law * (1.0 / (found["eta"] * found["rung_rate_0"]) + gaps) / 2.0
    )  # the smallest loss is 0
    np.testing.assert_allclose(own, np.minimum(0.5 + found["rise"], bound), rtol=1e-9)
    assert bound.min() < 0.5 < 1.0 < bound.max()
    decision = learner.decide()
    learner.decide()
    arm = explored(decision)
    b = own
    expected = b.copy()
    expected[arm] += decision.weight * (0.25 - b[arm])
    np.testing.assert_allclose(added(learner.to_json(), decision, loss=0.25), expected, rtol=1e-9)


def test_every_log_without_an_arm_is_warned_of() -> None:
    learner = LADDER.start(["a", "b", "c"], seed=1)
    log = [("a", 0.5, 0.3), ("b", 0.5, 0.8)] * 3
    for _ in range(2):
        with pytest.warns(dc.UnseenArmWarning, match=r"^records: arm 'c' never occurs"):
            learner.replay(log)
    assert learner.estimates()[2] != 0.0


@pytest.mark.parametrize(("memory", "rounds"), [(None, 220), (2.0, 360), (100.0, 220)])
def test_feedback_in_any_order_teaches_what_the_twin_learns(
    memory: float | None, rounds: int
) -> None:
    """A memory of two losses fades so fast that the common factor is renewed within the test."""
    policy = dc.Ladder(memory=memory)
    learner, twin = policy.start(ARMS, seed=seeded(1)), LadderTwin(ARMS, policy)
    generator = np.random.default_rng(seeded(0))
    waiting: list[tuple[dc.Decision, int, Floats]] = []
    apart, renewed = 0, 1.0
    for _ in range(rounds):
        twin.follow(learner)
        waiting.append((learner.decide(), learner.round, twin.exploration_law()))
        if len(waiting) > 8 or generator.random() < 0.3:
            decision, made, law = waiting.pop(int(generator.integers(len(waiting))))
            loss = float(generator.random() < LOSSES[explored(decision)])
            late = made < learner.round
            learner.observe(decision, loss=loss)
            apart += late
            if late:
                is_judged = made > 1  # what was decided before the first loss is not
                twin.learn_late(explored(decision), decision.weight, loss, law, is_judged=is_judged)
            else:
                twin.update(explored(decision), decision.weight, loss)
            np.testing.assert_allclose(learner.estimates(), twin.estimates, rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(
                learner.exploration_probabilities(), twin.exploration_law(), rtol=1e-8
            )
            renewed = min(renewed, diagnostics(learner)["recent_fade"])
    assert apart > 100
    assert memory != 2.0 or (renewed < 1e-80 < diagnostics(learner)["recent_fade"])


def test_what_pending_decisions_keep_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy_state, "MOST_KEPT", 7 * ARMS)
    learner = LADDER.start(ARMS, seed=1)
    learner.replay(LOG)
    for _ in range(10):
        learner.decide()
    assert (len(learner.pending), learner.pending.forgotten) == (7, 3)
    again = dc.Learner.from_json(learner.to_json())
    again.add_arms(["new", "newer"])
    again.decide()
    assert (len(again.pending), again.pending.forgotten) == (5, 6)


def test_one_call_makes_no_more_decisions_than_may_await_feedback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(policy_state, "MOST_KEPT", 10)
    learner = dc.Ladder().start(2, seed=1)
    assert learner.max_pending == 5
    with pytest.raises(ParameterError, match="count = 6: must not exceed max_pending = 5"):
        learner.decide(count=6)
    assert len(learner.decide(count=5)) == len(learner.pending) == 5


def test_thousands_of_arms_are_the_same_policy() -> None:
    learner = LADDER.start(5_000, seed=seeded(0))
    for _ in range(400):
        decision = learner.decide(available=range(20))
        learner.observe(decision, loss=0.1 if decision.explore == 7 else 0.9)
    assert learner.exploitation_probabilities(available=range(20))[7] > 0.9
    decision = learner.decide(available=range(20))
    assert (
        decision.propensity
        == learner.exploration_probabilities(available=range(20))[explored(decision)]
    )
    before = learner.estimates()[:20]
    learner.retire_arms(range(20, 5_000))
    assert learner.estimates().tolist() == before.tolist()
    assert learner.exploitation_probabilities()[7] > 0.9


JUDGED_ARMS = 8
KEPT = ladder_state.KEPT
JUDGED_LADDERS = [LADDER, dc.Forgetting(LADDER, period=29), FORGETTING[1]]
by_ladder = pytest.mark.parametrize("policy", JUDGED_LADDERS, ids=lambda policy: policy.label)

# The chance that a statistical test below fails on a sound program, over random seeds.
FALSE_ALARM = 1e-4


def taught(
    policy: dc.Policy, rounds: int = 20, secret: int | None = None, seed: int = 11
) -> dc.Learner:
    learner = policy.start(arms=JUDGED_ARMS, seed=seeded(seed))
    for _ in range(rounds):
        decision = learner.decide()
        learner.observe(decision, 0.3 + 0.05 * int(decision.explore))
    return learner if secret is None else with_learned(learner, {}, secret=float(secret))


def numbers_of(learner: dc.Learner, decisions: list[dc.Decision]) -> list[list[float]]:
    """What pending decisions are judged with: the explored arm, the chances of the rungs, and their
    offsets.
    """
    kept = kept_by(learner)
    found = [kept[decision.id].numbers for decision in decisions]
    assert all(numbers is not None for numbers in found)
    return [numbers for numbers in found if numbers is not None]


def judged(learner: dc.Learner) -> list[float]:
    """What the state of a learner has of the last decision."""
    state = state_of(learner)
    return [state[name] for name in KEPT]


def one_by_one(learner: dc.Learner, count: int) -> list[dc.Decision]:
    return [learner.decide() for _ in range(count)]


def at_once(learner: dc.Learner, count: int) -> list[dc.Decision]:
    return learner.decide(count=count)


@pytest.mark.parametrize("decide", [one_by_one, at_once])
@by_ladder
def test_decisions_in_one_state_share_no_draws(
    policy: dc.Policy, decide: Callable[[dc.Learner, int], list[dc.Decision]]
) -> None:
    learner = taught(policy)
    chances = [numbers[1] for numbers in numbers_of(learner, decide(learner, 60))]
    drawn = [
        each for each in chances if each < 1.0
    ]  # 1: whatever its rivals draw, the leader leads
    assert len(set(drawn)) == len(drawn) > 40  # there were at most as many as arms


@by_ladder
def test_what_is_kept_of_a_decision_is_what_it_was_drawn_with(policy: dc.Policy) -> None:
    learner, drawn = taught(policy), {}
    for number in range(12):
        decision = learner.decide()
        drawn[decision] = judged(learner)
        if number % 3 == 0:
            learner.exploit()  # draws, and is no decision
            learner.exploit(available=[0, 2])
        if number % 4 == 0:
            learner.exploitation_probabilities(available=[1, 2])
    assert numbers_of(learner, [*drawn]) == [*drawn.values()]
    again = dc.Learner.from_json(learner.to_json())
    assert numbers_of(again, [*drawn]) == [*drawn.values()]


@by_ladder
def test_however_decisions_overlap_saving_in_between_changes_nothing(policy: dc.Policy) -> None:
    """Feedback in the same round, after others, or after a restart finds the same draws."""
    plain, saved = taught(policy), taught(policy)
    chance = np.random.default_rng(seeded(4))
    for _ in range(60):
        saved = dc.Learner.from_json(saved.to_json())
        if chance.random() < 0.5 or not plain.pending:
            arms = [None, [1, 4, 5]][int(chance.random() < 0.2)]
            drawn, twin = plain.decide(available=arms), saved.decide(available=arms)
            assert drawn[1:] == twin[1:]
        else:
            at = int(chance.integers(len(plain.pending)))
            loss = float(chance.random())
            plain.observe(plain.pending[at], loss)
            saved.observe(saved.pending[at], loss)
        if chance.random() < 0.3:
            assert plain.exploit() == saved.exploit()
    assert plain.estimates().tolist() == saved.estimates().tolist()
    assert (
        plain.exploitation_probabilities().tolist() == saved.exploitation_probabilities().tolist()
    )


def batch(decide: Callable[[dc.Learner, int], list[dc.Decision]], secret: int, size: int) -> Floats:
    """The estimated losses of the rungs for each decision of a batch.

    All losses are 0.5.
    """
    learner = taught(dc.Ladder(), secret=secret).fork(seeded(secret))
    decisions = decide(learner, size)
    kept, found = kept_by(learner), []
    for decision, numbers in zip(decisions, numbers_of(learner, decisions), strict=True):
        weighted = (0.5 - kept[decision.id].by_arm[int(decision.explore)]) * decision.weight
        found.append([numbers[1 + rung] * weighted + numbers[6 + rung] for rung in range(2)])
    return np.array(found)


@pytest.mark.parametrize("decide", [one_by_one, at_once])
def test_a_batch_is_as_precise_as_decisions(
    decide: Callable[[dc.Learner, int], list[dc.Decision]],
) -> None:
    # Decisions that explored the same arm shared their draws: the first ratio was 28, and 115 with
    # 400 in a batch.
    batches, size = 60, 100
    found = np.array([batch(decide, 1_000_003 * number + 17, size) for number in range(batches)])
    ratios = found.mean(axis=1).var(axis=0, ddof=1) / (
        found.var(axis=1, ddof=1).mean(axis=0) / size
    )
    most = stats.chi2.ppf(1.0 - FALSE_ALARM / 4, batches - 1) / (batches - 1)
    assert ratios.max() < most < 2.0


@by_ladder
def test_a_fork_goes_on_with_draws_of_its_own(policy: dc.Policy) -> None:
    """It has the pending decisions of its parent, so its own must not have their numbers."""
    learner = taught(policy)
    before = learner.decide(count=20)
    copy = learner.fork(seed=seeded(5))
    copies = [*copy.pending, *copy.decide(count=20)]
    assert {each.id for each in before} < {each.id for each in copies}
    chances = [tuple(numbers[1:3]) for numbers in numbers_of(copy, copies)]
    # 1: whatever its rivals draw, the leader leads.
    drawn = [each for each in chances if each != (1.0, 1.0)]
    assert len(set(drawn)) == len(drawn) > 20


@pytest.mark.parametrize("period", [5, 29])
def test_a_restart_brings_no_draws_back(period: int) -> None:
    learner, chances = dc.Forgetting(dc.Ladder(), period=period).start(arms=2, seed=seeded(1)), []
    for _ in range(40 * period):
        decision = learner.decide()
        chances.append(judged(learner)[1] if judged(learner)[0] == decision.explore else -1.0)
        learner.observe(decision, 0.5)  # every restart leads to the same states
    seen = [each for each in chances if each >= 0.0]
    assert len(seen) > 20 * period
    assert len(set(seen)) == len(seen)


# Contexts: a segment that was never seen has the state of every other


SEGMENTED = dc.ContextualLadder(segments=("s",))


def chance_of_segments(learner: dc.Learner) -> float:
    chance: float = state_of(learner)["outer_chance_1"]
    return chance


@pytest.mark.parametrize("observing", [True, False])
@pytest.mark.parametrize("visits", [1, 2])
def test_new_segments_are_judged_by_draws_of_their_own(observing: bool, visits: int) -> None:
    # All had the same chance for an arm, because the ladder of a segment knew its own rounds only.
    learner, chances = SEGMENTED.start(arms=2, seed=seeded(3)), ([], [])  # type: tuple[dc.Learner, tuple[list[float], ...]]
    for visit in range(300 * visits):
        decision = learner.decide(context={"s": visit // visits})
        chances[int(decision.explore)].append(chance_of_segments(learner))
        if observing:
            learner.observe(decision, 0.5)
    assert all(len(set(each)) == len(each) > 100 * visits for each in chances)
    if visits == 1:  # nobody leads there, so both arms have one half
        for each in chances:
            error = np.std(each) / len(each) ** 0.5
            assert abs(np.mean(each) - 0.5) < stats.norm.isf(FALSE_ALARM / 8) * error


def test_records_of_a_log_are_judged_by_draws_of_their_own() -> None:
    learner, chances = SEGMENTED.start(arms=2, seed=seeded(3)), []
    learner.decide(context={"s": "first"})
    chances.append(chance_of_segments(learner))
    for number in range(100):
        record = {"explore": 0, "propensity": 0.5, "loss": 0.5, "context": {"s": number}}
        learner.replay([record], unrandomised=True)
        chances.append(chance_of_segments(learner))
    assert len(set(chances)) == 101


def test_ids_tell_nothing_of_the_seed_and_draws_are_those_of_the_seed() -> None:
    """A tag that the seed gives would give the seed away: somebody tries all that a person may
    choose.
    """
    program = (
        "import decoupled as dc;print(*dc.FTPL().start(arms=8, seed=7).decide(count=20), sep='\\n')"
    )
    processes = [ran("-c", program) for _ in range(2)]
    here = "".join(f"{each}\n" for each in dc.FTPL().start(arms=8, seed=7).decide(count=20))
    texts = [here, *processes]
    assert len({re.search(r"id='(\w+)-1'", text)[1] for text in texts}) == 3  # type: ignore[index]
    assert len({re.sub(r"id='\w+-", "", text) for text in texts}) == 1
    learner = dc.FTPL().start(arms=8, seed=7)
    learner.decide()
    assert not {learner.fork(seed=7).decide().id, learner.decide().id} & {learner.pending[0].id}
    assert learner.fork(seed=7).decide().id != learner.decide().id


def test_guardrails_draw_from_the_seed_and_not_from_what_ids_show() -> None:
    rules = dc.Guardrails(holdout=0.5)
    served: list[list[Any]] = []
    for tag in ("one", "two"):
        learner = dc.FTPL().start(arms=2, seed=seeded(7))
        learner.tag = tag
        learner.guardrails = rules
        served.append(
            [learner.decide()[1:] for _ in range(50)] + [learner.exploit() for _ in range(50)]
        )
    assert served[0] == served[1]
    counts = np.bincount([each.guard == "holdout" for each in served[0][50:]], minlength=2)
    assert counts.min() > 5  # of 50: fewer in one of 1e8 seeds


def tied(
    policy: dc.Policy, rounds: int, seed: int = 3, arms: int = 4
) -> tuple[dc.Learner, dict[str, Any], list[Floats]]:
    """A learner after so many equal losses, and its laws since all arms were seen."""
    learner, laws = policy.start(arms=arms, seed=seeded(seed)), []
    told: dict[str, Any] = {"context": {"s": "a", "x": 1.0}} if policy.contextual else {}
    seen = set()
    for _ in range(rounds):
        decision = learner.decide(**told)
        learner.observe(decision, 0.5)
        seen.add(decision.explore)
        if len(seen) == arms:
            laws.append(learner.exploitation_probabilities(**told))
    return learner, told, laws


TIES = [
    dc.Ladder(),
    dc.Ladder(rungs=(1.0,), prior=()),
    dc.Forgetting(dc.Ladder(), discount=0.99),
    dc.ContextualLadder(segments=("s",), numbers=("x",)),
    dc.ContextualLadder(numbers=("x",)),
    dc.FollowTheLeader(),
    dc.TopTwo(),
]


@pytest.mark.parametrize("policy", TIES, ids=lambda policy: policy.label)
def test_keyed_fresh_and_reported_laws_agree_where_means_tie(policy: dc.Policy) -> None:
    learner, told, laws = tied(policy, 40)
    law, size = laws[-1], 4_000
    keyed = [learner.exploit(key=f"key-{number}", **told).exploit for number in range(size)]
    for served in (keyed, [learner.exploit(**told).exploit for _ in range(size)]):
        counts = np.bincount(np.array(served, int), minlength=len(law))
        assert (counts[law == 0.0] == 0).all()
        expected = size * law[law > 0.0]
        distance = ((counts[law > 0.0] - expected) ** 2 / expected).sum()
        assert (
            distance == 0.0
            or stats.chi2.sf(distance, len(expected) - 1) > FALSE_ALARM / len(TIES) / 2
        )
    leaders = [int(each.argmax()) for each in laws if each.max() > 0.3]
    assert all(one == two for one, two in pairwise(leaders))  # it changed in half of all rounds


def test_the_order_of_ties_is_drawn_by_the_seed_once_and_new_arms_have_a_place_in_it() -> None:
    firsts, news = [], 0
    for seed in range(120):
        learner, _, laws = tied(dc.Ladder(), 30, seed, arms=3)
        first = int(laws[-1].argmax())
        firsts.append(first)
        learner.add_arms(["new"])
        while "new" not in [each.explore for each in learner.decide(count=20)]:
            pass
        while state_of(learner)["counts"][3] == 0.0:
            learner.observe(learner.pending[-1], 0.5)
        leader = learner.exploitation_probabilities().argmax()
        assert leader in (first, 3)  # the others keep their order
        news += leader == 3
        learner.retire_arms([learner.arms[leader]])
        assert np.diff(np.sort(learner.exploitation_probabilities()))[-1] > 0.3  # somebody leads
    assert stats.chisquare(np.bincount(firsts, minlength=3)).pvalue > FALSE_ALARM
    assert stats.binomtest(news, 120, 0.25).pvalue > FALSE_ALARM


def test_a_state_of_another_version_is_refused_with_a_remedy() -> None:
    content = content_of(dc.Ladder().start(ARMS, seed=1))
    del content["learned"]["precedence"]
    with pytest.raises(dc.StateError, match="start anew and replay the log"):
        from_content(content)

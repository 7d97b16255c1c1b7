"""The contextual ladder: its laws, what it keeps of segments, and what it refuses."""

import enum
import json
import math
import tracemalloc
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import decoupled as dc
from decoupled.extend import diagnostics
from decoupled.learner.portable import as_text, from_columns, to_columns
from decoupled.testing import state_of
from support.saved import kept_by
from support.statistics import chi_square_p
from support.twins.contextual import ContextualTwin, moments

POLICY = dc.ContextualLadder(
    segments=("subject",), numbers=("x", "y"), advisers=("router", "rules")
)
VECTORS = dc.ContextualLadder(
    ("subject",), vectors=("z",), vector_numbers=2, advisers=POLICY.advisers
)
ARMS = ("a", "b", "c")


def requests(seed: int, count: int) -> Iterator[tuple[dict[str, Any], dict[str, Any], list[float]]]:
    """Contexts, advice and losses: the best arm depends on the segment and on a number."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        subject, x = str(rng.choice(["law", "art", "chess"])), float(rng.normal())
        context: dict[str, Any] = {
            "subject": subject,
            "x": x,
            "y": float(rng.random()),
            "ignored": [1],
        }
        if rng.random() < 0.2:
            del context["y"]
        advice: dict[str, Any] = {"router": str(rng.choice(ARMS))} if rng.random() < 0.7 else {}
        if rng.random() < 0.5:
            advice["rules"] = {"a": 0.25, "c": 0.75}
        level = {"law": 0.1, "art": 0.3, "chess": 0.5}[subject]
        losses = [level + 0.3 * (x > 0), level + 0.3 * (x <= 0), level + 0.1 * (subject == "law")]
        yield context, advice, [float(rng.random() < each) for each in losses]


def laws_of(advice: dict[str, Any]) -> dict[str, Any]:
    found = {}
    for name, said in advice.items():
        law = said if isinstance(said, dict) else {said: 1.0}
        found[name] = np.array([law.get(arm, 0.0) for arm in ARMS])
    return found


def played(learner: dc.Learner, seed: int, count: int) -> dc.Learner:
    for context, advice, losses in requests(seed, count):
        decision = learner.decide(context=context, advice=advice)
        learner.observe(decision, loss=losses[ARMS.index(str(decision.explore))])
    return learner


@pytest.mark.parametrize("policy", [POLICY, VECTORS])
def test_laws_are_the_twins_in_every_context(policy: dc.ContextualLadder) -> None:
    learner, twin = policy.start(arms=ARMS, seed=3), ContextualTwin(policy, len(ARMS))
    for context, advice, losses in requests(1, 70):
        context |= {"z.0": context["x"], "z.1": float(context["x"] > 0.0)}
        decision = learner.decide(context=context, advice=advice)
        twin.enter(context, laws_of(advice))
        twin.follow(learner)
        exploration = learner.exploration_probabilities(context=context)
        np.testing.assert_allclose(exploration, twin.exploration_law(), rtol=1e-10)
        exploitation = learner.exploitation_probabilities(context=context, advice=advice)
        np.testing.assert_allclose(exploitation, twin.exploitation_law(), atol=1e-9)
        arm = ARMS.index(str(decision.explore))
        assert decision.propensity == pytest.approx(exploration[arm], rel=1e-10)
        assert decision.why is not None
        np.testing.assert_allclose([*decision.why.weights.values()], twin.weights(), atol=1e-10)
        learner.observe(decision, loss=losses[arm])
        twin.update(arm, decision.weight, losses[arm])
    np.testing.assert_allclose(learner.estimates(), twin.estimates, rtol=1e-9, atol=1e-9)
    # A regression that counts a little more or less than it should prefers another arm for some of
    # these.
    for x in np.linspace(-5.0, 5.0, 201).tolist():
        context = {"subject": "law", "x": x, "y": -x, "z.0": x, "z.1": x / 10.0 + 0.5}
        twin.enter(context, {})
        law = learner.exploitation_probabilities(context=context)
        np.testing.assert_allclose(law, twin.exploitation_law(), atol=1e-9)
    context = {"subject": "art", "x": 1.0, "z.0": 1.0}
    some = learner.exploitation_probabilities(context=context, available=["a", "c"])
    twin.enter(context, {})
    np.testing.assert_allclose(some[[0, 2]], twin.restricted([0, 2]).exploitation_law(), atol=1e-9)


def test_draws_of_keys_have_the_law_of_the_context() -> None:
    learner = played(POLICY.start(arms=ARMS, seed=5), 2, 60)
    context: dict[str, Any] = {"subject": "law", "x": 0.3, "y": 0.1}
    advice = {"rules": {"a": 0.5, "b": 0.5}}
    law = learner.exploitation_probabilities(context=context, advice=advice)
    served = [
        learner.exploit(context=context, advice=advice, key=key).exploit for key in range(4_000)
    ]
    assert chi_square_p(np.array([served.count(arm) for arm in ARMS]), law) > 1e-4
    drawn = [learner.exploit(context=context, advice=advice).exploit for _ in range(4_000)]
    assert chi_square_p(np.array([drawn.count(arm) for arm in ARMS]), law) > 1e-4
    assert learner.decide(context=context, advice=advice, key=7).exploit == served[7]


def test_a_saved_learner_goes_on_bit_for_bit_also_with_late_feedback() -> None:
    learner = played(POLICY.start(arms=ARMS, seed=5), 2, 40)
    late = [learner.decide(context=context, advice=advice) for context, advice, _ in requests(7, 6)]
    played(learner, 3, 10)
    twin = dc.Learner.from_json(learner.to_json())
    content, columns = to_columns(learner)
    third = from_columns(as_text(content), columns(), [each[1:] for each in learner.pending])
    for each in (learner, twin, third):
        for decision in reversed(late):
            each.observe(decision.id, loss=0.5)
        played(each, 4, 10)
    assert learner.to_json() == twin.to_json() == third.to_json()


def test_feedback_that_comes_late_is_learned_in_its_own_segment_and_without_bias() -> None:
    learner = played(POLICY.start(arms=ARMS, seed=5), 2, 30)
    law = learner.exploration_probabilities(context={"subject": "law"})
    found: dict[str, dc.Decision] = {}
    while len(found) < len(ARMS):
        decision = learner.decide(context={"subject": "law"})
        found[str(decision.explore)] = decision
    played(learner, 3, 5)
    saved, losses = learner.to_json(), {"a": 0.0, "b": 1.0, "c": 0.3}
    mean = np.zeros(len(ARMS))
    for arm, decision in found.items():
        again = dc.Learner.from_json(saved)
        before = _segment_sums(again, "law")
        again.observe(decision.id, loss=losses[arm])
        mean += law[ARMS.index(arm)] * (_segment_sums(again, "law") - before)
        assert (
            _segment_sums(again, "art") == _segment_sums(dc.Learner.from_json(saved), "art")
        ).all()
    np.testing.assert_allclose(mean, [0.0, 1.0, 0.3], atol=1e-9)


def _segment_sums(learner: dc.Learner, subject: str) -> Any:
    learner.exploit(context={"subject": subject})  # the state then has this segment
    return state_of(learner)["segment_estimates"]


def test_arms_that_are_away_are_charged_in_both_ladders_and_arms_come_and_go_in_every_segment() -> (
    None
):
    learner = played(POLICY.start(arms=ARMS, seed=5), 2, 40)
    pooled, segment = learner.estimates(), _segment_sums(learner, "law")
    decision = learner.decide(context={"subject": "law"}, available=["a", "b"])
    assert decision.explore in ("a", "b")
    learner.observe(decision, loss=0.75)
    assert learner.estimates()[2] == pytest.approx(pooled[2] + 0.75)
    assert _segment_sums(learner, "law")[2] == pytest.approx(segment[2] + 0.75)
    late = learner.decide(context={"subject": "art"})
    sums = _segment_sums(learner, "law")
    learner.add_arms(["d"])
    assert _segment_sums(learner, "law").tolist() == [*sums, sums.min()]
    assert learner.exploration_probabilities(context={"subject": "law"})[3] > 0.5 / 4
    learner.retire_arms(["b"])
    assert _segment_sums(learner, "law").tolist() == [sums[0], sums[2], sums.min()]
    learner.observe(late, loss=1.0)
    for _ in range(5):
        decision = learner.decide(context={"subject": "new"}, advice={"router": "d"})
        learner.observe(decision, loss=0.5)
    assert dc.Learner.from_json(learner.to_json()).to_json() == learner.to_json()


def test_a_log_teaches_what_its_decisions_taught() -> None:
    one, two = (POLICY.start(arms=ARMS, seed=1) for _ in range(2))
    log = []
    for context, _, losses in requests(9, 40):
        decision = one.decide(context=context)
        loss = losses[ARMS.index(str(decision.explore))]
        one.observe(decision, loss=loss)
        log.append({**decision._asdict(), "loss": loss, "context": context})
    two.replay(log)
    learned = [json.loads(each.to_json())["content"]["learned"] for each in (one, two)]
    assert sum(learned[1]["counts"]) == 40
    # All but what the rungs were judged by, which has draws of its own, and what depends on that.
    for name in (
        "counts",
        "means",
        "precedence",
        "within",
        "between",
        *filter(_of_numbers, learned[0]),
    ):
        np.testing.assert_allclose(learned[0][name], learned[1][name], rtol=1e-9, err_msg=name)


def _of_numbers(name: str) -> bool:
    return name.startswith(("linear_", "known_", "number_"))


def test_segments_beyond_the_most_share_one_and_missing_values_are_segments() -> None:
    learner = dc.ContextualLadder(segments=("user", "new"), max_segments=3).start(arms=2, seed=1)
    told: list[dict[str, Any]] = [{"user": "u", "new": True}, {"user": 7, "new": False}, {}]
    names = [
        learner.decide(context=each).why for each in [*told, {"user": "x"}, {"user": "y"}, told[0]]
    ]
    segments = [each.segment for each in names if each is not None]
    others = ("(other segments)",)
    assert segments == [("u", "true"), ("7", "false"), (None, None), others, others, ("u", "true")]
    again = dc.Learner.from_json(learner.to_json()).decide(context={"user": "z"}).why
    assert again is not None
    assert again.segment == others


def test_a_watched_learner_knows_the_law_of_each_decision() -> None:
    learner = POLICY.start(arms=ARMS, seed=5)
    learner.watch()
    played(learner, 2, 30)
    learner.inference.take_released()
    first, second = (learner.decide(context={"subject": each}) for each in ("law", "art"))
    laws = [learner.exploration_probabilities(context={"subject": each}) for each in ("law", "art")]
    learner.observe(second, loss=0.5)
    learner.observe(first, loss=0.5)
    released = learner.inference.take_released()
    assert [*released] == [first.id, second.id]
    for seen, law in zip(released.values(), laws, strict=True):
        assert seen is not None
        assert seen.law is not None
        np.testing.assert_allclose(seen.law, law)


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"context": {"x": math.nan}}, "context['x'] = nan: must be a number"),
        ({"context": {"x": "3"}}, "context['x'] = '3': must be a number"),
        ({"context": {"x": 1e101}}, "context['x'] = 1e+101"),
        ({"context": {"subject": 1.5}}, "context['subject'] = 1.5: must be a string"),
        ({"context": {"subject": "x" * 1001}}, "context['subject'] = "),
        ({"context": [("subject", "law")]}, "must be a mapping from the names of fields"),
        ({"advice": {"oracle": "a"}}, "advice = 'oracle': is not an adviser of this policy"),
        ({"advice": {"rules": "z"}}, "arm = 'z': is not an arm"),
        ({"advice": {"rules": {"a": 0.7, "b": 0.7}}}, "must be probabilities that sum to 1"),
        ({"advice": {"rules": {"a": math.nan}}}, "must have a probability from 0 to 1"),
        ({"advice": "router"}, "advice = 'router': must be a mapping from advisers to an arm"),
        ({"advice": ["router"]}, "advice = ['router']: must be a mapping from advisers to an arm"),
        ({"context": {"x": np.longdouble("1e101")}}, "context['x'] = "),
        ({"context": {"x": 10**400}}, "context['x'] = "),
        ({"available": ["z"]}, "'z': is not an arm"),
        ({"available": []}, "available = []: names no arm"),
        ({"available": ["z"], "count": 3}, "'z': is not an arm"),
        ({"count": 0}, "count = 0: must be a whole number"),
        ({"key": ""}, "key: has 0 bytes"),
    ],
)
def test_what_is_no_context_is_refused_by_name_and_changes_nothing(
    told: dict[str, Any], said: str
) -> None:
    learner = played(POLICY.start(arms=ARMS, seed=5), 2, 5)
    before = learner.to_json()
    if not isinstance(told.get("context"), list):
        told = told | {
            "context": {"subject": "of a segment not seen yet", **told.get("context", {})}
        }
    with pytest.raises(dc.DecoupledError) as refusal:
        learner.decide(**told)
    assert said in str(refusal.value)
    assert learner.to_json() == before


def test_a_decision_that_is_refused_uses_up_no_segment() -> None:
    learner = played(POLICY.start(arms=ARMS, seed=5), 2, 5)
    learner.guardrails = dc.Guardrails(down=("a",))
    before = learner.to_json()
    for call in (learner.decide, partial(learner.decide, 3), learner.explore, learner.exploit):
        with pytest.raises(dc.ArmError, match="every arm of this decision is down"):
            call(context={"subject": "new"}, available=["a"])
        assert learner.to_json() == before


def test_feedback_copies_no_room_for_segments() -> None:
    # Room for 100,000 segments is 35 MB here.
    policy = dc.ContextualLadder(segments=("subject",), max_segments=100_000)
    learner = policy.start(arms=ARMS, seed=5)
    for subject in range(50):
        learner.observe(learner.decide(context={"subject": subject}), loss=0.5)
    made = [learner.decide(context={"subject": each}, available=["a", "b"]) for each in (3, 4)]
    learner.observe(made[0], loss=0.5)
    tracemalloc.start()
    learner.observe(made[1], loss=0.5)
    learner.replay(
        [{"explore": "a", "propensity": 0.5, "loss": 0.5, "context": {"subject": "new"}}]
    )
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 1_000_000


def test_numbers_and_values_may_be_of_any_type_that_is_one() -> None:
    class Kind(enum.IntEnum):
        A = 1

    class Name(str, enum.Enum):  # noqa: UP042
        B = "b"

    learner = POLICY.start(arms=ARMS, seed=5)
    same: list[tuple[Any, Any]] = [
        ({"x": np.longdouble("1.5"), "subject": np.int64(1)}, {"x": 1.5, "subject": "1"}),
        ({"x": Kind.A, "subject": Kind.A}, {"x": 1.0, "subject": "1"}),
        ({"x": np.bool_(True), "subject": Name.B}, {"x": 1, "subject": "b"}),
        ({"x": np.float16(0.5), "subject": np.str_("b")}, {"x": 0.5, "subject": "b"}),
    ]
    for one, two in same:
        decisions = [learner.decide(context=context) for context in (one, two)]
        kept = kept_by(learner)
        numbers = [kept[decision.id].numbers for decision in decisions]
        assert numbers[0] is not None
        assert numbers[1] is not None
        assert numbers[0][:3] == numbers[1][:3]  # the segment, x and y
    law: dict[str, Any] = {"a": np.float64(0.25), "b": np.float32(0.75)}
    told = learner.exploitation_probabilities(advice={"rules": law, "router": Name.B})
    plain = learner.exploitation_probabilities(
        advice={"rules": {"a": 0.25, "b": 0.75}, "router": "b"}
    )
    assert told.tolist() == plain.tolist()


def test_a_policy_without_segments_names_none_and_one_without_contexts_refuses_them() -> None:
    why = dc.ContextualLadder(numbers=("x",)).start(arms=2, seed=1).decide(context={"x": 1.0}).why
    assert why is not None
    assert why.segment == ()
    with pytest.raises(dc.UnsupportedError, match="Ladder does not use one"):
        dc.Ladder().start(arms=2, seed=1).decide(context={"subject": "law"})
    with pytest.raises(dc.ParameterError, match="must be below 4096 for a contextual policy"):
        POLICY.start(arms=5000, seed=1)
    learner = dc.ContextualLadder(segments=("s",)).start(arms=2, seed=1)
    for t in range(50):
        learner.observe(learner.decide(context={"s": t % 2}), loss=float(t % 3 == 0))
        assert _shares(learner) == [0.5, 0.25, 0.25]


def test_a_log_that_is_refused_leaves_no_segment_behind() -> None:
    learner = played(POLICY.start(arms=ARMS, seed=5), 2, 5)
    before = learner.to_json()
    row = {"explore": "a", "propensity": 0.5, "loss": 0.5}
    rows = [{**row, "context": {"subject": each}} for each in ("new", 1.5)]
    with pytest.raises(
        dc.ParameterError, match=r"records\[1\]: context\['subject'\] = 1.5: must be"
    ):
        learner.replay(rows)
    assert learner.to_json() == before


def test_the_arm_that_is_best_for_a_segment_is_served_there() -> None:
    # Ten segments, in half of which another arm is best, by 0.4; false alarm below 1e-6.
    learner = dc.ContextualLadder(segments=("s",)).start(arms=2, seed=1)
    rng, wrong = np.random.default_rng(1), 0
    for t in range(3_000):
        segment = int(rng.integers(10))
        decision = learner.decide(context={"s": segment})
        means = (0.3, 0.7) if segment % 2 else (0.7, 0.3)
        wrong += t >= 1_500 and means[decision.exploit] > 0.5  # type: ignore[index]
        learner.observe(decision, loss=float(rng.random() < means[decision.explore]))  # type: ignore[index]
    assert wrong < 30


ODD = [1e3, -999_999.0, 3e8, -1e30, 1e100]


@pytest.mark.parametrize(
    "odd",
    [
        {},
        *({at: ODD[(at + k) % 5]} for k in range(5) for at in (0, 1, 7, 50, 1_400)),
        dict(zip(range(2, 7), ODD, strict=True)),
    ],
    ids=str,
)
def test_a_regression_serves_the_best_arm_whatever_single_values_say(odd: dict[int, float]) -> None:
    learner = dc.ContextualLadder(numbers=("x",)).start(arms=2, seed=1)
    rng, wrong = np.random.default_rng(1), 0
    for t in range(3_000):
        x = float(rng.normal(50.0, 10.0))
        decision = learner.decide(context={"x": odd.get(t, x)})
        means = np.clip([0.5 + (x - 50.0) / 40.0, 0.5], 0.0, 1.0)
        wrong += t >= 1_500 and means[decision.exploit] > means.min() + 0.1
        learner.observe(decision, loss=float(rng.random() < means[decision.explore]))
    assert wrong < 30


def test_numbers_are_scaled_as_the_twin_says() -> None:
    rng = np.random.default_rng(3)
    values = [
        *rng.normal(5.0, 2.0, 1_200).tolist(),
        *[0.0] * 40,
        *rng.normal(-50.0, 1.0, 60).tolist(),
    ]
    for at, odd in {0: 1e30, 9: -1e9, 16: 1e12, 400: -1e100, 1_250: 7.0}.items():
        values[at] = odd
    learner = dc.ContextualLadder(numbers=("x",)).start(arms=2, seed=1)
    for count, x in enumerate(values, 1):
        learner.observe(learner.decide(context={"x": x}), loss=0.5)
        if count < 40 or count % 97 == 0:
            state = state_of(learner)
            found = [state["number_mean_0"], state["number_deviation_0"]]
            np.testing.assert_allclose(found, moments(values[:count]), rtol=1e-9, atol=1e-9)


def _shares(learner: dc.Learner) -> list[float]:
    told = diagnostics(learner)
    return [told[name] for name in ("outer_even", "pooled_share", "segment_share")]


@pytest.mark.parametrize("telling", [True, False])
def test_with_many_arms_the_even_share_grows_as_contextual_rungs_earn_weight(telling: bool) -> None:
    # Of ten arms another is best, by 0.6, for each of five segments, or one for all. False alarm
    # below 1e-3.
    policy = dc.ContextualLadder(segments=("s",))
    learner, rng = policy.start(arms=10, seed=1), np.random.default_rng(1)
    learner.exploit(context={"s": 0})
    assert _shares(learner) == pytest.approx([0.1, 0.9 * 0.9, 0.9 * 0.1])
    for _ in range(1_500):
        segment = int(rng.integers(5))
        decision = learner.decide(context={"s": segment})
        assert decision.propensity is not None
        assert decision.propensity >= policy.least_propensity(10)
        best = 2 * segment if telling else 3
        learner.observe(
            decision, loss=float(rng.random() < (0.2 if decision.explore == best else 0.8))
        )
    even, pooled, segment_share = _shares(learner)
    assert (even > 0.45) == telling
    assert (even < 0.2) == (not telling)
    assert even + pooled + segment_share == pytest.approx(1.0)
    assert segment_share == pytest.approx((1.0 - even) * even)  # half of 2 * even


def test_late_feedback_is_gated_by_the_law_of_its_decision() -> None:
    # Arm 7 is bad when decisions are made and good when their feedback comes: it is explored far
    # more often by then.
    learner = dc.ContextualLadder(segments=("s",)).start(arms=8, seed=2)

    def play(rounds: int, best: int) -> None:
        for t in range(rounds):
            decision = learner.decide(context={"s": t % 2})
            learner.observe(decision, loss=float(decision.explore != best))

    play(30, 0)
    late = [learner.decide(context={"s": t % 2}) for t in range(40)]
    play(30, 7)
    saved, falls = learner.to_json(), []
    for t, decision in enumerate(late):
        if decision.explore == 7:
            learner.exploit(context={"s": t % 2})
            again = dc.Learner.from_json(saved)
            again.observe(decision.id, loss=0.0)
            again.exploit(context={"s": t % 2})
            for ladder in ("", "segment_"):
                before, after = (state_of(each)[f"{ladder}estimates"] for each in (learner, again))
                most = 0.5 / state_of(learner)[f"{ladder}eta"] + 0.5 * (before[7] - before.min())
                falls.append((before[7] - after[7]) / most)
    assert 0.9 < max(falls) <= 1.0  # 1.69 by the law of the arrival

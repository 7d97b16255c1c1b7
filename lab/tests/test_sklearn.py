"""The adapter for the habits of scikit-learn: what the learner replays, and scikit-learn's own checks."""

import copy
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest

import decoupled as dc

pytest.importorskip("sklearn")  # the environment of LiteLLM has none

from sklearn.base import clone

from decoupled_lab.sklearn import DecoupledBandit

ROWS = 60
ARMS = [["a", "b", "c"][i * i % 7 % 3] for i in range(ROWS)]
LOSSES = [i * 37 % 11 / 10 for i in range(ROWS)]
CHANCES = [{"a": 0.5, "b": 0.3, "c": 0.2}[arm] for arm in ARMS]
CONTEXTS = [{"subject": ["law", "art"][i % 2], "length": i % 5} for i in range(ROWS)]
BY_REQUEST = dc.ContextualLadder(segments=("subject",), numbers=("length",))
POLICIES = [None, dc.FTPL(), dc.TopTwo(), dc.UCB1(), dc.ThompsonSampling(), BY_REQUEST]


def columns(policy: dc.Policy | None, rows: slice = slice(None)) -> tuple[Any, ...]:
    log = ARMS[rows], LOSSES[rows], CHANCES[rows]
    return (*log, CONTEXTS[rows]) if policy == BY_REQUEST else log


def fitted() -> DecoupledBandit:
    return DecoupledBandit().fit(ARMS, LOSSES, CHANCES)


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_a_fit_is_the_replay_of_a_learner_to_the_bit(policy: dc.Policy | None) -> None:
    bandit = DecoupledBandit(policy, seed=3).fit(*columns(policy))
    learner = (policy or dc.Ladder()).start(["a", "b", "c"], seed=3)
    log = zip(ARMS, CHANCES, LOSSES, CONTEXTS, strict=True)
    names = ("explore", "propensity", "loss", "context")
    learner.replay([dict(zip(names, row, strict=True)) for row in log])
    assert bandit.learner_.to_json() == learner.to_json()
    assert (bandit.predict_proba() == learner.exploitation_probabilities()).all()
    assert (bandit.explore_proba() == learner.exploration_probabilities()).all()
    draw = learner.decide if learner.policy.coupled else learner.exploit
    assert bandit.predict(count=20) == [draw().exploit for _ in range(20)]
    assert bandit.learner_.round == ROWS + 1
    assert len(bandit.learner_.pending) == 0


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_parts_of_a_log_teach_what_the_whole_does_to_the_bit(policy: dc.Policy | None) -> None:
    whole = DecoupledBandit(policy).fit(*columns(policy)).learner_.to_json()
    assert DecoupledBandit(policy).fit(*columns(policy)).learner_.to_json() == whole
    parts = DecoupledBandit(policy).fit(*columns(policy, slice(20)))
    parts.partial_fit(*columns(policy, slice(20, 21))).partial_fit(
        *columns(policy, slice(21, None))
    )
    assert parts.learner_.to_json() == whole
    rows = DecoupledBandit(policy, arms=["a", "b", "c"])
    for row in range(ROWS):
        rows.partial_fit(*columns(policy, slice(row, row + 1)))
    assert rows.learner_.to_json() == whole


def test_a_fit_forgets_and_takes_new_parameters_and_a_partial_fit_does_not() -> None:
    bandit = fitted().set_params(policy=dc.FTPL(), seed=5)
    bandit.partial_fit(ARMS, LOSSES, CHANCES)
    assert (bandit.learner_.policy, bandit.learner_.round) == (dc.Ladder(), 2 * ROWS + 1)
    bandit.fit(ARMS, LOSSES, CHANCES)
    fresh = DecoupledBandit(dc.FTPL(), seed=5).fit(ARMS, LOSSES, CHANCES)
    assert bandit.learner_.to_json() == fresh.learner_.to_json()


def test_clones_copies_and_pickles() -> None:
    bandit = DecoupledBandit(dc.FTPL(alpha=2.0), ["a", "b", "c"], seed=4).fit(ARMS, LOSSES, CHANCES)
    written = f"DecoupledBandit(arms=['a', 'b', 'c'], policy={dc.FTPL(alpha=2.0)!r}, seed=4)"
    assert " ".join(repr(bandit).split()) == written
    given = {
        "policy": dc.FTPL(alpha=2.0),
        "arms": ["a", "b", "c"],
        "seed": 4,
        "loss_range": (0.0, 1.0),
    }
    assert bandit.get_params() == given
    assert not hasattr(clone(bandit), "learner_")
    assert clone(bandit).get_params() == bandit.get_params()
    twins = [pickle.loads(pickle.dumps(bandit)), copy.deepcopy(bandit)]
    drawn = bandit.predict(count=50)
    assert len(set(drawn)) > 1
    for twin in twins:
        assert twin.predict(count=50) == drawn
        twin.partial_fit(["a"], [0.5], 0.5)  # a copy of its own
    assert bandit.learner_.round == ROWS + 1


@pytest.mark.parametrize(
    ("change", "kind", "said"),
    [
        (
            {"losses": [0.5, 1.5]},
            dc.LossError,
            r"records\[1\]: loss = 1.5: must lie in \[0.0, 1.0\]",
        ),
        ({"losses": [0.5, np.nan]}, dc.LossError, r"records\[1\]: loss = nan: is not a number"),
        ({"losses": [0.5]}, dc.ParameterError, "losses: has 1 values for 2 arms"),
        ({"losses": 0.5}, dc.ParameterError, "losses = 0.5: must be a list or an array"),
        (
            {"propensities": [0.5, 0.0]},
            dc.ParameterError,
            r"records\[1\].propensity = 0.0: must be a prob",
        ),
        (
            {"propensities": [0.5, None]},
            dc.ParameterError,
            r"records\[1\].propensity = None: is missing",
        ),
        ({"propensities": np.full((2, 1), 0.5)}, dc.ParameterError, "a list or an array with one"),
        ({"arms": ["a", 1.5]}, dc.ArmError, "1.5"),
        ({"arms": "ab"}, dc.ParameterError, "arms = 'ab': must be a list"),
        ({"contexts": [{}, {}]}, dc.UnsupportedError, "context: Ladder does not use one"),
    ],
)
def test_what_is_refused_changes_nothing(
    change: dict[str, Any], kind: type[Exception], said: str
) -> None:
    bandit = fitted()
    before = bandit.learner_.to_json()
    log: dict[str, Any] = {"arms": ["a", "b"], "losses": [0.5, 0.25], "propensities": 0.5} | change
    for learn in (bandit.partial_fit, bandit.fit):
        with pytest.raises(kind, match=said):
            learn(**log)
    assert bandit.learner_.to_json() == before


def test_what_else_is_refused() -> None:
    with pytest.raises(dc.ArmError, match="'d': is not an arm of this learner"):
        fitted().partial_fit(["d"], [0.5], 0.5)
    with pytest.raises(dc.ArmError, match="must be at least two"):
        DecoupledBandit().fit(["a"], [0.5], 0.5)
    with pytest.raises(dc.ParameterError, match="policy = 'Ladder': must be a policy"):
        DecoupledBandit("Ladder").fit(["a", "b"], [0.5, 0.5], 0.5)  # type: ignore[arg-type]
    with pytest.raises(dc.ParameterError, match="count = 0: must be a whole number from 1"):
        fitted().predict(count=0)
    bandit = DecoupledBandit(BY_REQUEST).fit(*columns(BY_REQUEST))
    with pytest.raises(dc.ParameterError, match="count = 2: was given with a list of contexts"):
        bandit.predict(CONTEXTS[:3], count=2)  # type: ignore[call-overload]
    with pytest.raises(dc.ParameterError, match="contexts: has 1 values for 2 arms"):
        bandit.partial_fit(["a", "b"], [0.5, 0.5], 0.5, CONTEXTS[:1])


@pytest.mark.parametrize("policy", [None, dc.UCB1()], ids=repr)
@pytest.mark.parametrize("name", ["predict", "predict_proba", "explore_proba"])
def test_a_policy_without_contexts_refuses_one(name: str, policy: dc.Policy | None) -> None:
    bandit = DecoupledBandit(policy).fit(ARMS, LOSSES, CHANCES)
    before = bandit.learner_.to_json()
    with pytest.raises(dc.UnsupportedError, match=r"context: .* does not use one"):
        getattr(bandit, name)(CONTEXTS[0])
    assert bandit.learner_.to_json() == before


def test_arms_keep_their_labels() -> None:
    for labels in (np.array(ARMS), pd.Series(ARMS), tuple(ARMS)):
        bandit = DecoupledBandit().fit(labels, np.array(LOSSES), pd.Series(CHANCES))
        assert bandit.learner_.to_json() == fitted().learner_.to_json()
        assert {type(arm) for arm in (*bandit.arms_, bandit.predict())} == {str}
    assert DecoupledBandit().fit(["b", 2, "a", 10], [0.5] * 4, 0.25).arms_ == (2, 10, "a", "b")
    assert DecoupledBandit().fit(np.arange(3), [0.5] * 3, 0.25).arms_ == (0, 1, 2)


def test_contexts_give_an_arm_and_a_law_for_each_request() -> None:
    arms, losses, chances, contexts = columns(BY_REQUEST)
    bandit = DecoupledBandit(BY_REQUEST).fit(arms, losses, chances, contexts)
    framed = DecoupledBandit(BY_REQUEST).fit(arms, losses, chances, pd.DataFrame(contexts))
    assert framed.learner_.to_json() == bandit.learner_.to_json()
    laws = [bandit.learner_.exploitation_probabilities(context=each) for each in contexts[:4]]
    assert (bandit.predict_proba(contexts[:4]) == np.array(laws)).all()
    assert (bandit.predict_proba(contexts[1]) == laws[1]).all()
    assert bandit.explore_proba(pd.DataFrame(contexts)).shape == (ROWS, 3)
    assert bandit.predict(contexts) == framed.predict(pd.DataFrame(contexts))
    assert bandit.predict(contexts[0]) == framed.predict(contexts[0])
    assert bandit.predict(contexts[0], count=3) == framed.predict(contexts[:1] * 3)


def test_means_are_those_of_mabwiser() -> None:
    """What version 2.7.4 has for MAB(["a", "b", "c"], LearningPolicy.EpsilonGreedy(epsilon=0)), and rewards of 1 - loss."""
    bandit = DecoupledBandit(dc.FollowTheLeader()).fit(ARMS[:40], LOSSES[:40], 1.0)
    np.testing.assert_allclose(1.0 - bandit.learner_.estimates(), [0.6, 0.45909090909090905, 0.575])
    bandit.partial_fit(ARMS[40:], LOSSES[40:], 1.0)
    means = [0.5555555555555556, 0.49411764705882355, 0.5235294117647058]
    np.testing.assert_allclose(1.0 - bandit.learner_.estimates(), means)
    assert bandit.predict() == "a"
    bandit.add_arm("d")
    assert bandit.arms_ == ("a", "b", "c", "d")
    bandit.remove_arm("d")
    bandit.remove_arm("a")
    assert [bandit.predict(), *bandit.arms_] == ["c", "b", "c"]
    assert bandit.fit(ARMS, LOSSES, 1.0).arms_ == ("a", "b", "c")


def test_a_data_frame_may_have_missing_values_and_its_rows_are_contexts() -> None:
    frame = pd.DataFrame(
        {
            "lang": ["de", None, "en", "de"],
            "kind": [1, 2, np.nan, 1],  # pandas makes floats of these
            "words": [1.0, np.nan, 3.0, 4.0],
            "stars": pd.array([1, None, 2, 3], dtype="Int64"),
        }
    )
    plain: list[dict[str, Any]] = [
        {"lang": "de", "kind": 1, "words": 1.0, "stars": 1},
        {"kind": 2},
        {"lang": "en", "words": 3.0, "stars": 2},
        {"lang": "de", "kind": 1, "words": 4.0, "stars": 3},
    ]
    policy = dc.ContextualLadder(segments=("lang", "kind"), numbers=("words", "stars"))
    log = (["a", "b", "a", "b"], [0.1, 0.2, 0.3, 0.4], 0.5)
    one, two = (DecoupledBandit(policy).fit(*log, contexts) for contexts in (frame, plain))
    assert one.learner_.to_json() == two.learner_.to_json()
    assert (one.predict_proba(frame) == two.predict_proba(plain)).all()
    for place, context in enumerate(plain):
        assert one.predict_proba(frame.iloc[place]).tolist() == two.predict_proba(context).tolist()
        served: Any = one.predict(frame.iloc[place])
        assert served in ("a", "b")
    assert (one.predict_proba(pd.Series(plain)) == two.predict_proba(plain)).all()


def test_no_requests_have_no_arms_and_no_laws() -> None:
    bandit = DecoupledBandit(dc.ContextualLadder(numbers=("x",))).fit(["a", "b"], [0.1, 0.2], 0.5)
    assert bandit.predict([]) == []
    nothing: list[Any] = [[], pd.DataFrame({"x": []})]
    for empty in nothing:
        assert bandit.predict_proba(empty).shape == bandit.explore_proba(empty).shape == (0, 2)


def test_a_part_of_a_log_may_have_rows_that_left_nothing_to_chance() -> None:
    arms, losses, chances = ["a", "b", "a"], [0.1, 0.2, 0.3], [0.5, 0.5, 1.0]
    whole = DecoupledBandit(seed=1).fit(arms, losses, chances)
    parts = DecoupledBandit(seed=1).fit(arms[:2], losses[:2], 0.5).partial_fit(["a"], [0.3], 1)
    assert parts.learner_.to_json() == whole.learner_.to_json()
    before = parts.learner_.to_json()
    with pytest.raises(dc.ParameterError, match="all 2 propensities are 1"):
        parts.fit(["a", "b"], [0.1, 0.2], 1)
    assert parts.learner_.to_json() == before
    with pytest.raises(dc.ParameterError, match="the only propensity is 1"):
        DecoupledBandit(arms=["a", "b"]).fit([], [], []).partial_fit(["a"], [0.3], 1)

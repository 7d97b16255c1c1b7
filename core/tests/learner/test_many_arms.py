"""With very many arms a call is quick, or it says at once that it is not offered."""

import pytest

import decoupled as dc
from decoupled.kernels.laws.winner_law import MOST_ARMS
from decoupled.learner.inferring import MOST_WATCHED


@pytest.mark.parametrize("policy", [dc.FTPL(), dc.Ladder()], ids=repr)
def test_exact_probabilities_of_too_many_arms_are_refused(policy: dc.Policy) -> None:
    learner = policy.start(MOST_ARMS + 1, seed=7)
    with pytest.raises(
        dc.UnsupportedError, match=r"at most 100,000.*name the arms you ask about with available="
    ):
        learner.exploitation_probabilities()
    assert learner.exploitation_probabilities(available=range(10)).sum() == pytest.approx(1.0)
    assert learner.exploration_probabilities().sum() == pytest.approx(1.0)
    learner.observe(learner.decide(), 0.5)


def test_too_many_arms_are_not_watched() -> None:
    refused = "this learner has 10,001 arms, and confidence sequences are kept of at most 10,000"
    learner = dc.Ladder().start(MOST_WATCHED + 1, seed=7)
    with pytest.raises(dc.UnsupportedError, match=refused):
        learner.watch()
    with pytest.raises(dc.UnsupportedError, match=refused):
        learner.guardrails = dc.Guardrails(incumbent=3)
    with pytest.raises(dc.UnsupportedError, match="not watched"):
        learner.inference  # noqa: B018
    assert not learner.guardrails


def test_arms_are_not_added_to_a_watched_learner_beyond_what_can_be_watched() -> None:
    learner = dc.Ladder().start(MOST_WATCHED, seed=7)
    learner.watch()
    before = learner.inference.sequences.count
    with pytest.raises(dc.UnsupportedError, match="10,001 arms"):
        learner.add_arms([MOST_WATCHED])
    assert (len(learner.arms), learner.inference.sequences.count) == (MOST_WATCHED, before)
    learner.inference.stop()
    learner.add_arms([MOST_WATCHED])
    assert len(learner.arms) == MOST_WATCHED + 1

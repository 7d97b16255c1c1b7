"""A decision: the arm to exploit, the arm to explore, and what learning from the latter needs."""

from typing import NamedTuple, TypeAlias

Arm: TypeAlias = str | int


class Decision(NamedTuple):
    """A learner's decision. Pass it to `observe` with the loss of `explore`.

    The loss of `exploit` is suffered and never seen; the loss of `explore` is seen and never suffered. A policy of the
    standard game gives the same arm for both, and its loss is suffered and seen.

    Attributes:
        id: identifies the decision within its learner; `observe` also takes the id.
        round: 1 + the number of observations applied when the decision was made.
        exploit: the arm to use, or None for a decision that only explores.
        explore: the arm to try; *its* loss is the feedback.
        propensity: the probability with which `explore` was drawn, or None if the policy can only estimate its inverse.
        weight: the factor by which learning multiplies the loss, an unbiased 1 / propensity; 1 if the policy takes the
            loss as it is and does not know the propensity.

    >>> import decoupled as dc
    >>> learner = dc.FTPL().start(arms=["red", "green", "blue"], seed=7)
    >>> decision = learner.decide()
    >>> decision.exploit, decision.explore, round(decision.propensity, 3)
    ('green', 'green', 0.333)
    """

    id: str
    round: int
    exploit: Arm | None
    explore: Arm
    propensity: float | None
    weight: float

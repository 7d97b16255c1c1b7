"""A decision: which arm to exploit, which to explore, and what is needed to learn from the latter."""

from typing import NamedTuple, TypeAlias

Arm: TypeAlias = str | int


class Decision(NamedTuple):
    """What a learner decided, to be given back with the loss of `explore`.

    The loss of `exploit` is suffered and never seen; the loss of `explore` is seen and never suffered.
    A policy of the standard game names one arm twice, whose loss is both.

    Attributes:
        id: names the decision within its learner; `observe` takes it in place of the decision.
        round: 1 + the number of observations applied when it was made.
        exploit: the arm to use, or None for a decision that only explores.
        explore: the arm to try; *its* loss is the feedback.
        propensity: the probability with which `explore` was drawn, or None where the policy knows only
            an unbiased estimate of its inverse.
        weight: what learning multiplies the loss by, an unbiased 1 / propensity; 1 where the policy
            takes the loss as it is and does not know the propensity.

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

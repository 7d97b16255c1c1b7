"""The plainest bodies of feedback, read without their models, which take longer than a decision.

Whatever else a body has is left to its model, which reads or refuses it.
"""

import re
from typing import Any

from ..experiment.records import Feedback
from .limits import MOST_FEEDBACK

# {"loss": 0.25}, with so few digits that it is always finite.
_PLAIN_LOSS = re.compile(
    rb'[ \t\r\n]*{ *"loss" *: *((?:0|[1-9][0-9]{0,15})(?:\.[0-9]{1,30})?) *}[ \t\r\n]*'
)
_LONGEST_PLAIN = 100  # bytes
_EXACT = 2**53  # whole numbers up to this are floats, too


def plain_feedback(id: str, body: bytes) -> Feedback | None:  # noqa: A002
    """A body with a loss and nothing else; None for any other, which the model reads or refuses."""
    found = _PLAIN_LOSS.fullmatch(body) if len(body) <= _LONGEST_PLAIN else None
    return None if found is None else Feedback(id, float(found[1]))


def plain_batch(content: Any) -> list[Feedback] | None:
    """A batch of losses and nothing else; None for any other."""
    items = content.get("items") if type(content) is dict and len(content) == 1 else None
    if type(items) is not list or not 1 <= len(items) <= MOST_FEEDBACK:
        return None
    given: list[Feedback] = []
    for each in items:
        if type(each) is not dict or len(each) != 2:
            return None
        id, loss = each.get("decision"), each.get("loss")  # noqa: A001
        if type(id) is not str or not 1 <= len(id) <= 200:
            return None
        if (type(loss) is not float and type(loss) is not int) or not -_EXACT <= loss <= _EXACT:
            return None
        given.append(Feedback(id, float(loss)))
    return given

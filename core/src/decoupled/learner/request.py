"""What a decision is asked for."""

from dataclasses import dataclass
from typing import TypeAlias

from ..decision import Served
from .context import Advice, Context

AvailableArms: TypeAlias = list[object] | None
"""The names of the arms to choose from, as a user gave them; None for all."""


@dataclass(slots=True)
class Request:
    """What decisions are asked for.

    The arguments were checked, except the context, the advice and the names of arms.

    Attributes:
        context: what is known of the request.
        advice: what each adviser would exploit.
        available: the names of the arms to choose from; None for all.
        key: the text of a key, which draws the arm to exploit.
        served: the arm that a key was served, in place of the key.
        is_exploiting: whether decisions name an arm to exploit too.
    """

    context: Context | None = None
    advice: Advice | None = None
    available: AvailableArms = None
    key: str | None = None
    served: Served | None = None
    is_exploiting: bool = True


ANYTHING = Request()
"""A request of which nothing is known, for any arm. It never changes."""

"""The policies that a learner runs, for type checkers. At run time it needs no class of theirs, only what they do."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..policies.base import Policy as Policy
    from ..policies.contextual import ContextualLadder as ContextualLadder
else:
    Policy = ContextualLadder = object

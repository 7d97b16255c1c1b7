"""Learners: a policy running, its pending decisions, and how it is saved."""

from ..base.lazy import attach
from .learner import DEFAULT_PENDING as DEFAULT_PENDING
from .learner import Learner as Learner
from .learner import _unpickled as _unpickled  # pickles of learners name it here

__getattr__, __dir__, __all__ = attach(__name__)

"""Policies: one file each."""

from ..learner import Learner
from .base import Policy
from .exp3 import Exp3
from .follow_the_leader import FollowTheLeader
from .ftpl import FTPL
from .tsallis import TsallisINF

__all__ = ["FTPL", "Exp3", "FollowTheLeader", "Learner", "Policy", "TsallisINF"]

"""Policies: one file each."""

from ..learner import Learner
from .base import Policy
from .coupled_exp3 import CoupledExp3
from .coupled_ftpl import CoupledFTPL
from .coupled_tsallis import CoupledTsallisINF
from .exp3 import Exp3
from .follow_the_leader import FollowTheLeader
from .ftpl import FTPL
from .thompson import ThompsonSampling
from .tsallis import TsallisINF
from .ucb1 import UCB1

__all__ = [
    "FTPL",
    "UCB1",
    "CoupledExp3",
    "CoupledFTPL",
    "CoupledTsallisINF",
    "Exp3",
    "FollowTheLeader",
    "Learner",
    "Policy",
    "ThompsonSampling",
    "TsallisINF",
]

"""Policies: one file each, read when its policy is first asked for."""

from typing import TYPE_CHECKING

from ..learner.learner import Learner as Learner
from .base import Policy as Policy
from .registry import HOMES, load

if TYPE_CHECKING:
    from .avner import AvnerExp3 as AvnerExp3
    from .coupled.exp3 import CoupledExp3 as CoupledExp3
    from .coupled.ftpl import CoupledFTPL as CoupledFTPL
    from .coupled.thompson import ThompsonSampling as ThompsonSampling
    from .coupled.tsallis import CoupledTsallisINF as CoupledTsallisINF
    from .coupled.ucb1 import UCB1 as UCB1
    from .exp3 import Exp3 as Exp3
    from .follow_the_leader import FollowTheLeader as FollowTheLeader
    from .forgetting import Forgetting as Forgetting
    from .ftpl import FTPL as FTPL
    from .jin import JinHybrid as JinHybrid
    from .top_two import TopTwo as TopTwo
    from .tsallis import TsallisINF as TsallisINF

__all__ = sorted([*HOMES, "Learner", "Policy"])


def __getattr__(name: str) -> object:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(load(name), name)
    globals()[name] = value
    return value

"""Decoupled bandits: exploit one arm, explore another.

>>> import decoupled as dc
>>> learner = dc.FTPL().start(arms=["a", "b", "c"], seed=7)
>>> decision = learner.decide()              # decision.exploit is used, decision.explore is tried
>>> learner.observe(decision, loss=0.3)      # the loss of decision.explore
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import environments as environments
    from . import testing as testing
    from . import theory as theory
    from .decision import Decision as Decision
    from .errors import ArmError as ArmError
    from .errors import ContractError as ContractError
    from .errors import DecoupledError as DecoupledError
    from .errors import FeedbackError as FeedbackError
    from .errors import LossError as LossError
    from .errors import ParameterError as ParameterError
    from .errors import StateError as StateError
    from .errors import StorageError as StorageError
    from .errors import UnseenArmWarning as UnseenArmWarning
    from .errors import UnsupportedError as UnsupportedError
    from .learner.learner import Learner as Learner
    from .policies import FTPL as FTPL
    from .policies import UCB1 as UCB1
    from .policies import AvnerExp3 as AvnerExp3
    from .policies import CoupledExp3 as CoupledExp3
    from .policies import CoupledFTPL as CoupledFTPL
    from .policies import CoupledTsallisINF as CoupledTsallisINF
    from .policies import Exp3 as Exp3
    from .policies import FollowTheLeader as FollowTheLeader
    from .policies import Forgetting as Forgetting
    from .policies import JinHybrid as JinHybrid
    from .policies import Policy as Policy
    from .policies import ThompsonSampling as ThompsonSampling
    from .policies import TopTwo as TopTwo
    from .policies import TsallisINF as TsallisINF
    from .report.comparison import compare as compare
    from .simulation import Results as Results
    from .simulation import simulate as simulate

__version__ = "0.2.0.dev0"

# Names are looked up when first used: the command line's help need not wait for a compiler to load.
_HOMES = {
    "ArmError": "errors",
    "AvnerExp3": "policies",
    "ContractError": "errors",
    "CoupledExp3": "policies",
    "CoupledFTPL": "policies",
    "CoupledTsallisINF": "policies",
    "Decision": "decision",
    "DecoupledError": "errors",
    "Exp3": "policies",
    "FTPL": "policies",
    "FeedbackError": "errors",
    "FollowTheLeader": "policies",
    "Forgetting": "policies",
    "JinHybrid": "policies",
    "Learner": "policies",  # not "learner": loading a saved one needs the policies known by name
    "LossError": "errors",
    "ParameterError": "errors",
    "Policy": "policies",
    "Results": "simulation",
    "StateError": "errors",
    "StorageError": "errors",
    "TopTwo": "policies",
    "ThompsonSampling": "policies",
    "TsallisINF": "policies",
    "UCB1": "policies",
    "UnseenArmWarning": "errors",
    "UnsupportedError": "errors",
    "compare": "report.comparison",
    "simulate": "simulation",
}

_SUBMODULES = ("environments", "testing", "theory")

__all__ = sorted([*_HOMES, *_SUBMODULES])


def __getattr__(name: str) -> object:
    if name in _SUBMODULES:
        return import_module(f".{name}", __name__)
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])

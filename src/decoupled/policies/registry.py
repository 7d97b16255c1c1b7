"""Where each policy of the package is defined: a program that runs one policy reads no other's file."""

from importlib import import_module
from types import ModuleType

HOMES = {
    "AvnerExp3": "avner",
    "CoupledExp3": "coupled.exp3",
    "CoupledFTPL": "coupled.ftpl",
    "CoupledTsallisINF": "coupled.tsallis",
    "Exp3": "exp3",
    "FTPL": "ftpl",
    "FollowTheLeader": "follow_the_leader",
    "Forgetting": "forgetting",
    "JinHybrid": "jin",
    "ThompsonSampling": "coupled.thompson",
    "TopTwo": "top_two",
    "TsallisINF": "tsallis",
    "UCB1": "coupled.ucb1",
}


def load(name: str) -> ModuleType:
    """The file of a policy of this package."""
    return import_module(f".{HOMES[name]}", __package__)

"""Environments: one file each."""

from .adaptive_alternating import AdaptiveAlternating
from .alternating import Alternating
from .base import Adversary, Environment
from .bernoulli import Bernoulli
from .catalogue import Catalogue
from .drifting import Drifting
from .loss_table import LossTable
from .movielens.environment import MovieLens
from .punish_last import PunishLast

__all__ = [
    "AdaptiveAlternating",
    "Adversary",
    "Alternating",
    "Bernoulli",
    "Catalogue",
    "Drifting",
    "Environment",
    "LossTable",
    "MovieLens",
    "PunishLast",
]

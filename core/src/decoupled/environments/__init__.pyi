# Every environment of the package, one line each. Its export, its page of the documentation and its
# tests follow. Type checkers read this file, and so does the package at run time: see base/lazy.py.
from .adaptive import AdaptiveAlternating as AdaptiveAlternating
from .adaptive import PunishLast as PunishLast
from .base import Adversary as Adversary
from .base import Environment as Environment
from .context_table import ContextTable as ContextTable
from .loss_table import LossTable as LossTable
from .stochastic import Alternating as Alternating
from .stochastic import Bernoulli as Bernoulli
from .stochastic import Catalogue as Catalogue
from .stochastic import Drifting as Drifting

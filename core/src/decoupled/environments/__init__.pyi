# Every environment of the package, one line each: its export, its page of the documentation and its tests follow.
# Type checkers read this file, and so does the package at run time: see base/lazy.py.
from .adaptive_alternating import AdaptiveAlternating as AdaptiveAlternating
from .alternating import Alternating as Alternating
from .base import Adversary as Adversary
from .base import Environment as Environment
from .bernoulli import Bernoulli as Bernoulli
from .catalogue import Catalogue as Catalogue
from .context_table import ContextTable as ContextTable
from .drifting import Drifting as Drifting
from .loss_table import LossTable as LossTable
from .punish_last import PunishLast as PunishLast

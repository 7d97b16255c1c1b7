"""Arms in strata of ranks: how FTPL plays thousands of arms or more.

Nobody else needs to read this folder.
"""

from .leader import FUNCTIONS as FUNCTIONS
from .leader import LAYOUT as LAYOUT
from .leader import N as N
from .leader import Params as Params
from .leader import R as R
from .leader import S as S
from .leader import exploration_law as exploration_law

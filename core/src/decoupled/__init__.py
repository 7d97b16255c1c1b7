"""Decoupled bandits: exploit one arm, explore another.

>>> import decoupled as dc
>>> learner = dc.FTPL().start(arms=["a", "b", "c"], seed=7)
>>> decision = learner.decide()              # decision.exploit is used, decision.explore is tried
>>> learner.observe(decision, loss=0.3)      # the loss of decision.explore
"""

from .base.lazy import attach

__version__ = "0.2.0"

# __init__.pyi names what is exported. It is imported when first used: the command line's help need
# not wait for a compiler to load.
__getattr__, __dir__, __all__ = attach(__name__)

"""The paper's argument in numbers: exact probabilities, bounds with their constants, and a check of every step.

>>> from decoupled_lab import theory
>>> theory.weights([0.0, 1.0, 5.0], eta=0.5).round(2).tolist()
[0.81, 0.17, 0.02]
>>> round(theory.bounds.theorem1(horizon=10_000, arms=8))
111572
"""

from . import bounds, figures
from .checking import Report, check, combine, inspect, inspect_round
from .probabilities import jacobian, slopes, weights
from .steps import Step, steps
from .survey import survey

__all__ = [
    "Report", "Step", "bounds", "check", "combine", "figures", "inspect", "inspect_round", "jacobian",
    "slopes", "steps", "survey", "weights",
]  # fmt: skip

"""Regret bounds with their constants, each with the equation it comes from.

`theorem1`, `theorem2` and `corollary` come from the paper. `rouyer_seldin`, `zimmert_seldin` and
`lower_bound_order` come from the work it is compared with. Where a source hides a constant in an O, or was
not available, the docstring says so and explains what is used instead.
"""

from .adversarial import first_round_constant, penalty_constant, stability_constant, theorem1
from .others import (
    lower_bound_order,
    rouyer_seldin,
    rouyer_seldin_order,
    zimmert_seldin,
    zimmert_seldin_stochastic,
)
from .stochastic import early_rounds, gap_constant, self_bounding_constant, surrogate_sum_bound, theorem2
from .tuning import Tuned, corollary, leading_constant, optimal_c

__all__ = [
    "Tuned",
    "corollary",
    "early_rounds",
    "first_round_constant",
    "gap_constant",
    "leading_constant",
    "lower_bound_order",
    "optimal_c",
    "penalty_constant",
    "rouyer_seldin",
    "rouyer_seldin_order",
    "self_bounding_constant",
    "stability_constant",
    "surrogate_sum_bound",
    "theorem1",
    "theorem2",
    "zimmert_seldin",
    "zimmert_seldin_stochastic",
]

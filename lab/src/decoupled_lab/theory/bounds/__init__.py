"""Regret bounds with their constants, each with the equation it comes from.

Regret is the expected regret against each fixed arm. Only `theorem_t2(..., in_hindsight=True)` is about the arm that
turns out best.

`theorem1`, `theorem2` and `corollary` come from the paper. `rouyer_seldin`, `zimmert_seldin` and
`lower_bound_order` come from the work it is compared with. Where a source hides a constant in an O, or was
not available, the docstring says so and explains what is used instead.

`theorem_a` to `theorem_c`, `theorem_e1` to `theorem_e3`, `theorem_t2` and `theorem_t2b` are this project's own. The
page "The ladder: theorems and proofs" of the documentation proves them, and `compare` shows them next to the paper's. `switches` is about sticky
serving, `theorem_f1` to `theorem_f3` are about contexts; both have pages of their own. `theorem_g1` to `theorem_g4` are
about late and lost feedback, `theorem_h` and `looks_lower_bound` about a share of the decisions that explores; the page
"The proof of theorem T2" has them.
"""

from .centred import (
    Constrained,
    centred_constant,
    constrained_bracket,
    constrained_constants,
    low_order_term,
    optimal_c_exploit,
    papers_bracket,
    self_bounding_factor,
    theorem_a,
    theorem_b,
    theorem_c,
)
from .constants import (
    Gate,
    curvature_constant,
    rank_share,
    rank_sum,
    ratio_sum,
    square_sum,
    winner_constant,
)
from .contexts import (
    forecaster_regret,
    shared_terms,
    theorem_f1,
    theorem_f2,
    theorem_f2b,
    theorem_f3,
)
from .ladder import LadderTerms, compare, ladder_terms, theorem_t2, theorem_t2b, useful_from
from .late import looks_lower_bound, theorem_g1, theorem_g2, theorem_g3, theorem_g4, theorem_h
from .paper import (
    Tuned,
    corollary,
    early_rounds,
    first_round_constant,
    gap_constant,
    leading_constant,
    lower_bound_order,
    optimal_c,
    penalty_constant,
    rouyer_seldin,
    rouyer_seldin_order,
    self_bounding_constant,
    stability_constant,
    surrogate_sum_bound,
    theorem1,
    theorem2,
    zimmert_seldin,
)
from .rungs import mixing_overhead, prior_factor, theorem_e1, theorem_e2, theorem_e3
from .switching import late_switch_constant, rate_fall_constant, switch_constant, switches

__all__ = [
    "Constrained", "Gate", "LadderTerms", "Tuned", "centred_constant", "compare", "constrained_bracket",
    "constrained_constants", "corollary", "curvature_constant", "early_rounds", "first_round_constant",
    "forecaster_regret", "gap_constant", "ladder_terms", "late_switch_constant", "leading_constant",
    "looks_lower_bound", "low_order_term", "lower_bound_order", "mixing_overhead", "optimal_c", "optimal_c_exploit",
    "papers_bracket", "penalty_constant", "prior_factor", "rank_share", "rank_sum",
    "rate_fall_constant", "ratio_sum", "rouyer_seldin", "rouyer_seldin_order", "self_bounding_constant",
    "self_bounding_factor", "shared_terms", "square_sum", "stability_constant", "surrogate_sum_bound",
    "switch_constant", "switches", "theorem1", "theorem2", "theorem_a", "theorem_b", "theorem_c",
    "theorem_e1", "theorem_e2", "theorem_e3", "theorem_f1", "theorem_f2", "theorem_f2b", "theorem_f3",
    "theorem_g1", "theorem_g2", "theorem_g3", "theorem_g4", "theorem_h", "theorem_t2", "theorem_t2b", "useful_from",
    "winner_constant", "zimmert_seldin",
]  # fmt: skip

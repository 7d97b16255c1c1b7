"""Decoupled Tsallis-INF: the policy that the paper calls FTRL.

SCS, a general conic solver, is there for comparison with Newton's method. With beta in (0, 1) and scaled gaps g = eta *
u, the weights minimise

    <w, g> - sum_i t_i / (beta * (1 - beta))   subject to   sum_i w_i = 1,   t_i <= w_i ** beta,

and (w_i, 1, t_i) lies in a power cone. O'Donoghue, B., Chu, E., Parikh, N. and Boyd, S. (2016). Conic
optimization via operator splitting and homogeneous self-dual embedding. JOTA 169.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

import numpy as np

from ..base.arrays import Floats, Ints
from ..base.extras import needed_for
from ..base.validation import one_of, set_number
from ..errors import ParameterError, StateError
from ..kernels.compose import SCALE, Composed
from ..kernels.dispatch import Entries
from ..kernels.laws import tsallis
from ..kernels.laws.explicit import ESTIMATES, EXPLOIT, EXPLOIT_SUM, EXPLORE, EXPLORE_SUM
from ..kernels.laws.tsallis import Params
from ..kernels.powers import tidy_exponent
from ..kernels.state import ARMS, ROUND, State
from .composed import ExplicitPolicy

TOLERANCE = 1e-6  # SCS's absolute and relative accuracy
SMALLEST = TOLERANCE**2  # the smallest weight, so that every arm can still be explored


def conic_solver() -> Any:
    """Import the package scs, or raise an error that says how to install it."""
    with needed_for("solver = 'scs'", otherwise="use solver='newton'"):
        import scs
    return scs


@lru_cache(maxsize=8)
def _constraints(arms: int) -> tuple[Any, Floats]:
    """The matrix A and the vector b of A x + s = b, x = (w, t), which depend on the number of arms only."""
    from scipy.sparse import csc_matrix

    each = np.arange(arms)
    values = np.concatenate([np.ones(arms), -np.ones(arms), -np.ones(arms)])
    rows = np.concatenate([np.zeros(arms, int), 1 + 3 * each, 3 + 3 * each])
    columns = np.concatenate([each, each, arms + each])
    limits = np.zeros(1 + 3 * arms)
    limits[0] = 1.0
    limits[2 + 3 * each] = 1.0
    return csc_matrix((values, (rows, columns)), shape=(1 + 3 * arms, 2 * arms)), limits


def conic_weights(gaps: Floats, beta: float) -> Floats:
    """The weights for scaled gaps, to SCS's accuracy. Each call starts afresh, so equal gaps give equal bits.

    >>> import numpy as np
    >>> from decoupled.policies.tsallis import conic_weights
    >>> conic_weights(np.zeros(4), beta=2/3).round(4).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    scs = conic_solver()
    arms = len(gaps)
    matrix, limits = _constraints(arms)
    costs = np.concatenate([gaps, np.full(arms, -1.0 / (beta * (1.0 - beta)))])
    data = {"A": matrix, "b": limits, "c": costs}
    problem = scs.SCS(
        data, {"z": 1, "p": [beta] * arms}, verbose=False, eps_abs=TOLERANCE, eps_rel=TOLERANCE
    )
    solution = problem.solve()
    if solution["info"]["status"] != "solved":
        raise StateError(
            f"solver = 'scs': ended with {solution['info']['status']!r} on {arms} arms; use solver='newton'"
        )
    weights = np.maximum(solution["x"][:arms], SMALLEST)
    law: Floats = weights / weights.sum()
    return law


def solve_by_scs(params: Any, state: State, t: float, estimates: Floats) -> None:
    """Solve by SCS for round t and the given estimates, then change the state."""
    floats, scalars = state.floats, state.scalars
    scale = params.c * scalars[ARMS] ** params.scale_power
    gaps = scale / math.sqrt(t) * (estimates - estimates.min())
    weights = conic_weights(gaps, 1.0 - params.rate)
    scalars[ROUND], scalars[SCALE] = t, scale
    floats[ESTIMATES], floats[EXPLOIT] = estimates, weights
    floats[EXPLORE] = weights ** (params.explore_power / params.exploit_power)
    scalars[EXPLOIT_SUM], scalars[EXPLORE_SUM] = floats[EXPLOIT].sum(), floats[EXPLORE].sum()


def conic_entries(newton: Entries) -> Entries:
    """The calls of a learner whose weights come from SCS; it draws from them as from Newton's."""

    def init(values: Floats, scalars: Floats, floats: Floats, ints: Ints) -> None:
        state = State(scalars, floats, ints)
        solve_by_scs(Params(*values), state, scalars[ROUND], floats[ESTIMATES].copy())

    def update(
        values: Floats,
        scalars: Floats,
        floats: Floats,
        ints: Ints,
        arm: int,
        weight: float,
        loss: float,
    ) -> None:
        estimates = floats[ESTIMATES].copy()
        estimates[arm] += weight * loss
        solve_by_scs(Params(*values), State(scalars, floats, ints), scalars[ROUND] + 1.0, estimates)

    return Entries(init, newton.decide, update)


@dataclass(frozen=True, repr=False)
class TsallisINF(ExplicitPolicy):
    r"""Decoupled Tsallis-INF: follow the regularised leader with Tsallis entropy (FTRL in the paper's figures).

    With $\hat L$ the summed loss estimates and $\eta_t = c K^{1/2 - \beta} / \sqrt{t}$, each round

    - exploits $i_t \sim w$, which minimises
      $\langle w, \hat L \rangle - \sum_i (w_i^\beta - \beta w_i) / (\beta (1 - \beta) \eta_t)$ over the simplex, that is
      $w_i = ((1 - \beta) \eta_t (\hat L_i - x))^{-1 / (1 - \beta)}$ with $x$ such that $\sum_i w_i = 1$;
    - explores $j_t \sim p$, with $p_i \propto w_i^{1 - \beta/2}$;
    - learns $\hat L_{j_t} \leftarrow \hat L_{j_t} + \ell / p_{j_t}$, where $\ell$ is the loss seen.

    Safeguarded Newton steps from the last round's solution find the weights, 2 or 3 a round;
    `extend.diagnostics(learner)["steps"]` is their number.

    Rouyer, C. and Seldin, Y. (2020). Tsallis-INF for decoupled exploration and exploitation in multi-armed bandits.
    COLT. Equation (4) of Kim, Lee and Oh (2026).

    Three options are ours: `estimator` "centred", `c_exploit` and `schedule` "losses". They work as in `FTPL`. With
    two rates, each takes its own Newton steps.

    Args:
        beta: the entropy's order, in (0, 1). The paper has 2/3, which corresponds to $\alpha = 3$.
        c: scale of the learning rate, above 0.
        solver: "newton", or "scs" for a general conic solver (extra `conic`), which is there for comparison. It gives
            the same weights to six digits, is thousands of times slower, and takes only published options, in a learner.
        estimator: "importance" or "centred".
        c_exploit: scale of the rate of exploitation, above 0; None for c.
        kappa: the gate of the "centred" estimator, above 0.
        lam: how fast the "centred" estimator's running mean of the losses moves, from 0 to below 1.
        schedule: "rounds" or "losses".

    >>> import decoupled as dc
    >>> learner = dc.TsallisINF(beta=0.5).start(arms=["a", "b", "c"], seed=1)
    >>> learner.exploration_probabilities().round(3).tolist()
    [0.333, 0.333, 0.333]
    """

    beta: float = 2.0 / 3.0
    c: float = 2.0
    solver: str = "newton"
    estimator: str = "importance"
    c_exploit: float | None = None
    kappa: float = 0.1
    lam: float = 0.05
    schedule: str = "rounds"

    published_fields = ("beta", "c", "solver")

    def __post_init__(self) -> None:
        set_number(self, "beta", 0.0, 1.0, "the default is 2/3; for beta = 1 use Exp3")
        self._check_options()
        if one_of("solver", self.solver, ("newton", "scs")) == "scs":
            if not self.published:
                rule = "takes only the published options: estimator='importance', one rate, schedule='rounds'"
                raise ParameterError.of("solver", self.solver, rule, "use 'newton'")
            conic_solver()

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (
            cls(),
            cls(beta=0.5, c=4.0),
            cls(beta=0.1),
            cls(beta=0.95),
            cls(c=1.5, c_exploit=6.0, estimator="centred", kappa=0.4),
            cls(beta=0.4, c_exploit=1.0),
        )

    @property
    def interpreted(self) -> bool:
        return self.solver == "scs"

    def entries(self) -> Entries:
        compiled_calls = super().entries()
        return conic_entries(compiled_calls) if self.solver == "scs" else compiled_calls

    @property
    def composed(self) -> Composed:
        return tsallis.COMPOSED

    def law_params(self) -> dict[str, float]:
        rest = 1.0 - self.beta
        return {
            "scale_power": 0.5 - self.beta,
            "rate": rest,
            "exploit_power": tidy_exponent(1.0 / rest),
            "explore_power": tidy_exponent((1.0 - 0.5 * self.beta) / rest),
        }

"""Decoupled Tsallis-INF: the policy that the paper calls FTRL.

With a = 1 / (1 - beta), gaps u and rate = (1 - beta) * eta, the weights are w_i = (1 + rate * u_i +
excess) ** -a, where the excess solves S(excess) = sum_i w_i = 1. It lies in [0, K ** (1/a) - 1] for
any estimates and is small if a is large, so no digits are lost to rounding. The Lagrange multiplier
lambda itself would be min(L) - (1 + excess) / rate.

SCS, a general conic solver, is there for comparison with Newton's method. With beta in (0, 1) and
scaled gaps g = eta * u, the weights minimise

    <w, g> - sum_i t_i / (beta * (1 - beta))   subject to   sum_i w_i = 1,   t_i <= w_i ** beta,

and (w_i, 1, t_i) lies in a power cone. O'Donoghue, B., Chu, E., Parikh, N. and Boyd, S. (2016).
Conic optimization via operator splitting and homogeneous self-dual embedding. JOTA 169.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Self

import numpy as np

from ..base.arrays import Floats, Ints, Words
from ..base.extras import needed_for
from ..base.validation import one_of, set_number
from ..errors import StateError
from ..kernels.argmin import fill_gaps
from ..kernels.dispatch import Entries, Functions
from ..kernels.jit import compiled
from ..kernels.powers import inverse_power, tidy_exponent
from ..kernels.random.sampling import draw_both, total
from ..kernels.state import ARMS, ROUND, Layout, State
from .explicit import EXPLICIT_SUMS, ExplicitLaws

SOLVED = 1e-12  # weights whose sum is this close to 1 are a solution
_LAST_STEP = 1e-8
_MOST_STEPS = 200


@compiled
def two_powers(
    gaps: Floats, excess: float, a: float, b: float, powers_a: Floats, powers_b: Floats
) -> None:
    """Fill (1 + gap + excess) ** -a and (1 + gap + excess) ** -b."""
    done = 0
    if a == 3.0 and (b == 4.0 or b == 2.0):
        # One division serves two arms, 1/u = v * (1 / (u * v)), and the loop handles four at a
        # time: twice as fast.
        half = len(gaps) // 2
        for i in range(half):
            j = i + half
            first_base = 1.0 + (gaps[i] + excess)
            second_base = 1.0 + (gaps[j] + excess)
            both = 1.0 / (first_base * second_base)
            first_inverse = second_base * both
            second_inverse = first_base * both
            powers_a[i] = first_inverse * first_inverse * first_inverse
            powers_a[j] = second_inverse * second_inverse * second_inverse
            if b == 4.0:
                powers_b[i] = powers_a[i] * first_inverse
                powers_b[j] = powers_a[j] * second_inverse
            else:
                powers_b[i] = first_inverse * first_inverse
                powers_b[j] = second_inverse * second_inverse
        done = 2 * half
    for i in range(done, len(gaps)):
        powers_a[i] = inverse_power(gaps[i] + excess, a)
        powers_b[i] = inverse_power(gaps[i] + excess, b)


@compiled
def tsallis_excess(
    gaps: Floats, start: float, a: float, weights: Floats, slopes: Floats
) -> tuple[float, int]:
    """Solve S(excess) = 1 by safeguarded Newton. Return the excess and the number of steps.

    Newton works on S ** (-1/a), which is increasing, concave and nearly straight (exactly straight
    if all gaps are equal or one arm has all the weight). From the left of the root it climbs
    without overshooting; a step from the right lands on the left, and the bracket catches it. So
    any start will do. The rows are work space; S has slope -a * sum(slopes).
    """
    highest = math.expm1(math.log(float(len(gaps))) / a)
    excess = min(max(start, 0.0), highest)
    for step in range(1, _MOST_STEPS + 1):
        two_powers(gaps, excess, a, a + 1.0, weights, slopes)
        mass = total(weights)
        move = mass * math.expm1(math.log(mass) / a) / total(slopes)
        excess = min(max(excess + move, 0.0), highest)
        # The error after a step is of the order of the step squared, so this step was the last one
        # needed.
        if a * abs(move) <= _LAST_STEP * (1.0 + excess):
            return excess, step
    return excess, _MOST_STEPS


LAYOUT = Layout(
    scalars=("scale", *EXPLICIT_SUMS, "excess", "steps"),
    floats=("estimates", "exploit", "explore", "gaps"),
    learned=("estimates", "excess"),
)
S, R, _ = LAYOUT.places()


class Params(NamedTuple):
    """The parameters of the compiled code, for a = 1 / (1 - beta)."""

    c: float
    scale_power: float  # 1/2 - beta
    one_minus_beta: float
    a: float  # the power of the law of exploitation
    b: float  # that of the law of exploration, a * (1 - beta/2)


@compiled
def scale_gaps(params: Params, state: State) -> None:
    """Compute eta_t = c K^(1/2 - beta) / sqrt(t), and fill the gaps times (1 - beta) * eta_t."""
    floats = state.floats
    scalars = state.scalars
    gap_rate = params.one_minus_beta * scalars[S.scale] / math.sqrt(scalars[ROUND])
    fill_gaps(floats[R.estimates], gap_rate, floats[R.gaps])


@compiled
def fill_laws(params: Params, state: State) -> None:
    """Fill w_t and p_t of equation (4) from the excess; p_t is w_t^(1 - beta/2) up to its sum."""
    floats = state.floats
    scalars = state.scalars
    weights = floats[R.exploit]
    powers = floats[R.explore]
    two_powers(floats[R.gaps], scalars[S.excess], params.a, params.b, weights, powers)
    scalars[S.exploit_sum] = total(weights)
    scalars[S.explore_sum] = total(powers)


@compiled
def solve(params: Params, state: State) -> None:
    """Solve for the laws by Newton's method from the last excess."""
    floats = state.floats
    scalars = state.scalars
    scalars[S.excess], scalars[S.steps] = tsallis_excess(
        floats[R.gaps], scalars[S.excess], params.a, floats[R.exploit], floats[R.explore]
    )
    fill_laws(params, state)


@compiled
def init(params: Params, state: State) -> None:
    """Compute eta_t * sqrt(t), then the laws.

    An excess that already solves the equation is kept, so that loading a state changes no bit of
    the weights.
    """
    scalars = state.scalars
    scalars[S.scale] = params.c * scalars[ARMS] ** params.scale_power
    scalars[S.steps] = 0.0
    scale_gaps(params, state)
    fill_laws(params, state)
    is_solved = abs(scalars[S.exploit_sum] - 1.0) <= SOLVED
    if not is_solved:
        solve(params, state)


@compiled
def decide(params: Params, state: State, stream: Words) -> tuple[int, int, float, float]:
    """Draw i_t ~ w_t and j_t ~ p_t of equation (4), independently of each other."""
    floats = state.floats
    scalars = state.scalars
    return draw_both(
        floats[R.exploit],
        scalars[S.exploit_sum],
        floats[R.explore],
        scalars[S.explore_sum],
        stream,
    )


@compiled
def update(params: Params, state: State, arm: int, weight: float, loss: float) -> None:
    """Add loss / p_t to the estimate of the explored arm j_t."""
    state.floats[R.estimates, arm] += weight * loss
    scale_gaps(params, state)
    solve(params, state)


TOLERANCE = 1e-6  # SCS's absolute and relative accuracy
SMALLEST = TOLERANCE**2  # the smallest weight, so that every arm can still be explored


def conic_solver() -> Any:
    """Import the package scs, or raise an error that says how to install it."""
    with needed_for("solver = 'scs'", otherwise="use solver='newton'"):
        import scs
    return scs


@lru_cache(maxsize=8)
def _constraints(arms: int) -> tuple[Any, Floats]:
    """The matrix A and the vector b of A x + s = b, x = (w, t), for a number of arms."""
    from scipy.sparse import csc_matrix

    numbers = np.arange(arms)
    values = np.concatenate([np.ones(arms), -np.ones(arms), -np.ones(arms)])
    rows = np.concatenate([np.zeros(arms, int), 1 + 3 * numbers, 3 + 3 * numbers])
    columns = np.concatenate([numbers, numbers, arms + numbers])
    limits = np.zeros(1 + 3 * arms)
    limits[0] = 1.0
    limits[2 + 3 * numbers] = 1.0
    return csc_matrix((values, (rows, columns)), shape=(1 + 3 * arms, 2 * arms)), limits


def conic_weights(gaps: Floats, beta: float) -> Floats:
    """The weights for scaled gaps, to SCS's accuracy; equal gaps give equal bits.

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
        status = solution["info"]["status"]
        raise StateError(
            f"solver = 'scs': ended with {status!r} on {arms} arms; use solver='newton'"
        )
    weights = np.maximum(solution["x"][:arms], SMALLEST)
    law: Floats = weights / weights.sum()
    return law


def solve_by_scs(params: Any, state: State, t: float, estimates: Floats) -> None:
    """Solve by SCS for round t and the given estimates, then change the state."""
    floats = state.floats
    scalars = state.scalars
    scale = params.c * scalars[ARMS] ** params.scale_power
    gaps = scale / math.sqrt(t) * (estimates - estimates.min())
    weights = conic_weights(gaps, 1.0 - params.one_minus_beta)
    scalars[ROUND] = t
    scalars[S.scale] = scale
    floats[R.estimates] = estimates
    floats[R.exploit] = weights
    floats[R.explore] = weights ** (params.b / params.a)
    scalars[S.exploit_sum] = floats[R.exploit].sum()
    scalars[S.explore_sum] = floats[R.explore].sum()


def conic_entries(newton: Entries) -> Entries:
    """The calls of a learner whose weights come from SCS; it draws from them as from Newton's."""

    def init(values: Floats, scalars: Floats, floats: Floats, ints: Ints) -> None:
        state = State(scalars, floats, ints)
        solve_by_scs(Params(*values), state, scalars[ROUND], floats[R.estimates].copy())

    def update(
        values: Floats,
        scalars: Floats,
        floats: Floats,
        ints: Ints,
        arm: int,
        weight: float,
        loss: float,
    ) -> None:
        estimates = floats[R.estimates].copy()
        estimates[arm] += weight * loss
        solve_by_scs(Params(*values), State(scalars, floats, ints), scalars[ROUND] + 1.0, estimates)

    return Entries(init, newton.decide, update)


@dataclass(frozen=True)
class TsallisINF(ExplicitLaws):
    r"""Decoupled Tsallis-INF: follow the regularised leader with Tsallis entropy.

    The paper's figures call it FTRL.

    With $\hat L$ the summed loss estimates and $\eta_t = c K^{1/2 - \beta} / \sqrt{t}$, each round

    - exploits $i_t \sim w$, which minimises
      $\langle w, \hat L \rangle - \sum_i (w_i^\beta - \beta w_i) / (\beta (1 - \beta) \eta_t)$ over
      the simplex, that is $w_i = ((1 - \beta) \eta_t (\hat L_i - \lambda))^{-1 / (1 - \beta)}$
      with $\lambda$ such that $\sum_i w_i = 1$;
    - explores $j_t \sim p$, with $p_i \propto w_i^{1 - \beta/2}$;
    - learns $\hat L_{j_t} \leftarrow \hat L_{j_t} + \ell / p_{j_t}$, where $\ell$ is the loss seen.

    Safeguarded Newton steps from the last round's solution find the weights, 2 or 3 a round;
    `extend.diagnostics(learner)["steps"]` is their number.

    Rouyer, C. and Seldin, Y. (2020). Tsallis-INF for decoupled exploration and exploitation in
    multi-armed bandits. COLT. Equation (4) of Kim, Lee and Oh (2026).

    Args:
        beta: the entropy's order, in (0, 1). The paper has 2/3, which corresponds to $\alpha = 3$.
        c: scale of the learning rate, above 0.
        solver: "newton", or "scs" for a general conic solver (extra `conic`), which is there for
            comparison. It gives the same weights to six digits, is thousands of times slower, and
            only a learner can run it.

    >>> import decoupled as dc
    >>> learner = dc.TsallisINF(beta=0.5).start(arms=["a", "b", "c"], seed=1)
    >>> learner.exploration_probabilities().round(3).tolist()
    [0.333, 0.333, 0.333]
    """

    beta: float = 2.0 / 3.0
    c: float = 2.0
    solver: str = "newton"

    layout = LAYOUT
    params_type = Params
    functions = Functions(init, decide, update)
    fading = ("estimates",)

    def __post_init__(self) -> None:
        set_number(self, "beta", 0.0, 1.0, "the default is 2/3; for beta = 1 use Exp3")
        set_number(self, "c", 0.0, 1e100, "the default is 2")
        if one_of("solver", self.solver, ("newton", "scs")) == "scs":
            conic_solver()

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(), cls(beta=0.5, c=4.0), cls(beta=0.1), cls(beta=0.95)

    @property
    def interpreted(self) -> bool:
        return self.solver == "scs"

    def entries(self) -> Entries:
        compiled_calls = super().entries()
        return conic_entries(compiled_calls) if self.solver == "scs" else compiled_calls

    def params(self) -> Params:
        one_minus_beta = 1.0 - self.beta
        return Params(
            c=self.c,
            scale_power=0.5 - self.beta,
            one_minus_beta=one_minus_beta,
            a=tidy_exponent(1.0 / one_minus_beta),
            b=tidy_exponent((1.0 - 0.5 * self.beta) / one_minus_beta),
        )

"""Jin-style hybrid: log-barrier and Tsallis entropy, with a rate for every arm.

The weights minimise <w, L> - C * sum log w_i - sum gamma_i * w_i ** (2/3) over the simplex. Write
y_i = w_i ** (-1/3) for the roots, u = L - min(L) for the gaps, g_i = 2/3 * gamma_i for the rates,
and s for the level (the multiplier relative to min(L)). The conditions for a minimum are
polynomials:

    C * y_i ** 3 + g_i * y_i = u_i + s   for every arm,   and   sum_i y_i ** -3 = 1.

The left side is convex in y_i, so the solution y_i(s) is increasing and concave. So is the power
mean M(y) = (sum y_i ** -3) ** (-1/3), and therefore M(y(s)). Newton's method climbs to M = 1 from
the left without overshooting, and a step from the right lands on the left. That is the cold start.
Within a run, roots and level take their Newton steps together from the last round's solution, with
one division per arm and step and no power or root.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple, Self

from ..base.arrays import Floats, Words
from ..base.validation import known_horizon, set_number
from ..kernels.argmin import fill_gaps
from ..kernels.dispatch import Functions
from ..kernels.jit import compiled
from ..kernels.random.sampling import draw_both, total
from ..kernels.state import ROUND, Layout, State
from .explicit import EXPLICIT_SUMS, ExplicitLaws

_LAST_STEP = 1e-7  # relative; the error after a step is of the order of the step squared
_SOLVED = 1e-12
_NEAR = 1e-4
_MOST_STEPS = 12
_MOST_COLD_STEPS = 200


class Hybrid(NamedTuple):
    """One problem, its solution y and work space; each row has one entry per arm.

    Attributes:
        gaps: the gaps u.
        rates: the rates g.
        roots: the roots y.
        weights: y ** -3.
        squares: y ** -2; 1 / y during the Newton steps.
        slopes: work space, as all below.
        moves: work space.
        pulls: work space.
        pulled: work space.
    """

    gaps: Floats
    rates: Floats
    roots: Floats
    weights: Floats
    squares: Floats
    slopes: Floats
    moves: Floats
    pulls: Floats
    pulled: Floats


@compiled
def cube_root_less_one(mass: float) -> float:
    """The cube root of the mass, less 1.

    Near a mass of 1 a parabola suffices, since the next step corrects it.
    """
    excess = mass - 1.0
    if abs(excess) < 0.01:
        return excess * (1.0 / 3.0 - excess / 9.0)
    return math.expm1(math.log(mass) / 3.0)


@compiled
def settle_root(barrier: float, level: float, problem: Hybrid, arm: int) -> None:
    """Solve one arm's cubic in closed form.

    In z = y * sqrt(3 C / g) / 2 it reads 4 z ** 3 + 3 z = k, and z = sinh(asinh(k) / 3).
    """
    rate = problem.rates[arm]
    scale = math.sqrt(rate / (3.0 * barrier))
    target = 1.5 * (problem.gaps[arm] + level) / (rate * scale)
    problem.roots[arm] = 2.0 * scale * math.sinh(math.asinh(target) / 3.0)


@compiled
def cold_level(barrier: float, problem: Hybrid) -> float:
    """Find the level to a few digits by Newton on M(y(s)) from below, and fill its roots."""
    level = barrier  # w <= 1 means C + g_i <= u_i + s for every arm, and u_i = 0 for the leader
    for _ in range(_MOST_COLD_STEPS):
        for i in range(len(problem.gaps)):
            settle_root(barrier, level, problem, i)
            y = problem.roots[i]
            problem.weights[i] = 1.0 / (y * y * y)
            problem.pulls[i] = problem.weights[i] / (y * (3.0 * barrier * y * y + problem.rates[i]))
        mass = total(problem.weights)
        move = mass * cube_root_less_one(mass) / total(problem.pulls)
        if abs(move) <= _NEAR * level:
            break
        level = max(level + move, barrier)
    return level


@compiled
def linearise(barrier: float, level: float, problem: Hybrid) -> None:
    """Compute the Newton move of each root at this level, and its slope in the level."""
    for i in range(len(problem.gaps)):
        y = problem.roots[i]
        square = y * y
        steep = 3.0 * barrier * square + problem.rates[i]
        both = 1.0 / (y * steep)  # one division serves 1 / y and 1 / steep
        inverse = both * steep
        slope = both * y
        weight = inverse * inverse * inverse
        pull = weight * inverse
        move = slope * (problem.gaps[i] + level - y * (barrier * square + problem.rates[i]))
        problem.weights[i] = weight
        problem.squares[i] = inverse
        problem.slopes[i] = slope
        problem.moves[i] = move
        problem.pulls[i] = pull * slope
        problem.pulled[i] = pull * move


@compiled
def newton_steps(barrier: float, level: float, problem: Hybrid) -> tuple[float, int]:
    """Take steps on roots and level together.

    Return the level and the number of steps, 0 if they did not converge.

    Every root stays positive: the cubic is convex, so after a step a root is at least the solution
    for the new level, and the level is kept above its bound.
    """
    for step in range(1, _MOST_STEPS + 1):
        linearise(barrier, level, problem)
        mass = total(problem.weights)
        goal = level + (mass * cube_root_less_one(mass) - total(problem.pulled)) / total(
            problem.pulls
        )
        goal = max(goal, barrier)
        rise = goal - level
        level = goal
        for i in range(len(problem.gaps)):
            move = problem.moves[i] + rise * problem.slopes[i]
            problem.roots[i] += move
            change = move * problem.squares[i]
            problem.pulled[i] = change * change
        if total(problem.pulled) <= _LAST_STEP * _LAST_STEP and abs(rise) <= _LAST_STEP * level:
            return level, step
    return level, 0


@compiled
def fill_powers(problem: Hybrid) -> None:
    """Fill the weights and their powers 2/3 from the roots."""
    for i in range(len(problem.roots)):
        inverse = 1.0 / problem.roots[i]
        problem.squares[i] = inverse * inverse
        problem.weights[i] = inverse * inverse * inverse


@compiled
def is_solved(barrier: float, level: float, problem: Hybrid) -> bool:
    """Whether roots and level already satisfy the conditions, as those of a saved state do."""
    if not problem.roots[0] > 0.0:
        return False
    linearise(barrier, level, problem)
    off = 0.0
    for i in range(len(problem.roots)):
        off = max(off, abs(problem.moves[i] * problem.squares[i]))
    return off <= _SOLVED and abs(total(problem.weights) - 1.0) <= _SOLVED


@compiled
def hybrid_weights(barrier: float, level: float, problem: Hybrid) -> tuple[float, int]:
    """Solve from the current roots and level.

    Start from zero knowledge if the roots are 0 or do not converge.

    Fills roots, weights and squares; returns the level and the number of steps since the last
    start.
    """
    steps = 0
    for start in range(2):
        if start > 0 or not problem.roots[0] > 0.0:
            level = cold_level(barrier, problem)
        level, steps = newton_steps(barrier, level, problem)
        if steps > 0:
            break
    fill_powers(problem)
    return level, steps


LAYOUT = Layout(
    scalars=("level", *EXPLICIT_SUMS, "steps"),
    floats=(
        "estimates",
        "exploit",
        "explore",
        "spread",
        "roots",
        "gaps",
        "rates",
        "slopes",
        "moves",
        "pulls",
        "pulled",
    ),
    learned=("estimates", "spread", "roots", "level"),
)
S, R, _ = LAYOUT.places()


class Params(NamedTuple):
    """The parameters of the compiled code."""

    barrier: float
    theta: float
    floor: float  # T ** (-2/3), or 0 if the horizon is unknown


@compiled
def problem_in(state: State) -> Hybrid:
    """The rows of the state that the solver works on."""
    rows = state.floats
    return Hybrid(
        gaps=rows[R.gaps],
        rates=rows[R.rates],
        roots=rows[R.roots],
        weights=rows[R.exploit],
        squares=rows[R.explore],
        slopes=rows[R.slopes],
        moves=rows[R.moves],
        pulls=rows[R.pulls],
        pulled=rows[R.pulled],
    )


@compiled
def add_up(state: State) -> None:
    """Store the sums of both laws' weights."""
    state.scalars[S.exploit_sum] = total(state.floats[R.exploit])
    state.scalars[S.explore_sum] = total(state.floats[R.explore])


@compiled
def pose(params: Params, state: State) -> None:
    """Fill the problem: gaps = hat_L - min hat_L, rates = 2/3 * gamma."""
    floats = state.floats
    fill_gaps(floats[R.estimates], 1.0, floats[R.gaps])
    for i in range(floats.shape[1]):
        floats[R.rates, i] = 2.0 / 3.0 * params.theta * math.sqrt(1.0 + floats[R.spread, i])


@compiled
def solve(params: Params, state: State) -> None:
    """Find the weights by Newton from the last solution, and their sums."""
    scalars = state.scalars
    scalars[S.level], scalars[S.steps] = hybrid_weights(
        params.barrier, scalars[S.level], problem_in(state)
    )
    add_up(state)


@compiled
def init(params: Params, state: State) -> None:
    """Solve for the weights, unless the state already has a solution."""
    pose(params, state)
    # A saved state has its own solution, and loading it must change no bit of the weights.
    if is_solved(params.barrier, state.scalars[S.level], problem_in(state)):
        fill_powers(problem_in(state))
        add_up(state)
    else:
        solve(params, state)


@compiled
def decide(params: Params, state: State, stream: Words) -> tuple[int, int, float, float]:
    """Draw from w and from p, independently."""
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
def widen(params: Params, state: State) -> None:
    """Add max(w, 1/T) ** (2/3) / p to every arm's spread.

    Here w ** (2/3) is y ** -2, and p its share.
    """
    floats = state.floats
    mass = state.scalars[S.explore_sum]
    floor = params.floor if params.floor > 0.0 else (state.scalars[ROUND] - 1.0) ** (-2.0 / 3.0)
    for i in range(floats.shape[1]):
        floats[R.spread, i] += mass * max(1.0, floor * floats[R.roots, i] * floats[R.roots, i])


@compiled
def update(params: Params, state: State, arm: int, weight: float, loss: float) -> None:
    """Widen the spreads by the current laws, add the importance-weighted loss, and solve again."""
    widen(params, state)
    state.floats[R.estimates, arm] += weight * loss
    pose(params, state)
    if loss > 0.0:  # only this arm has moved far: solving its cubic first saves a step or two
        settle_root(params.barrier, state.scalars[S.level], problem_in(state), arm)
    solve(params, state)


@dataclass(frozen=True)
class JinHybrid(ExplicitLaws):
    r"""Follow the regularised leader with log-barrier and 2/3-Tsallis entropy ("Jin-style").

    With $\hat L$ the summed loss estimates, $C$ = `barrier`, $\theta$ = `theta` and $T$ the
    horizon, each round

    - exploits $i_t \sim w_t$, which minimises
      $\langle w, \hat L \rangle - C \sum_i \log w_i - \sum_i \gamma_{t,i} w_i^{2/3}$ over the
      simplex;
    - explores $j_t \sim p_t$, with $p_{t,i} \propto w_{t,i}^{2/3}$;
    - learns $\hat L_{j_t} \leftarrow \hat L_{j_t} + \ell / p_{t,j_t}$, where $\ell$ is the loss
      seen, with $\gamma_{t,i} = \theta \sqrt{1 + \sum_{s < t} \max(w_{s,i}, 1/T)^{2/3} / p_{s,i}}$.

    Jin, T., Liu, J. and Luo, H. (2023). Improved best-of-both-worlds guarantees for multi-armed
    bandits: FTRL with general regularizers and multiple optimal arms. NeurIPS. They publish the
    hybrid regulariser, rates that depend on the arm, $p \propto w^{2/3}$, and regret
    $O(\sqrt{\sum_i K / \Delta_i^2})$ in the stochastically constrained regime. The form of $\gamma$
    above is our reading, without the published constants. We chose $C$ and $\theta$ among 0.1 to 10
    and 0.1 to 4 at $T = 10{,}000$: the defaults are within about a tenth of the best on the
    alternating instance with $K = 8$ and gap 0.125 and on the paper's $\mu_1$ and $\mu_2$, and
    smaller values are worse against `PunishLast`. We claim no guarantee for them. Without a horizon
    we use $1/t$ instead of $1/T$.

    The sum in $\gamma$ grows when an observation arrives, by the laws of that moment. With prompt
    feedback these are the laws of the decision. Newton steps from the last round's solution find
    the weights to machine precision, 2 or 3 a round; `extend.diagnostics(learner)["steps"]` is
    their number.

    Args:
        barrier: $C$, the weight of the log-barrier, above 0.
        theta: scale of the arms' rates, above 0. The larger it is, the slower weights move.
        horizon: the number of rounds $T$, or None if unknown. You may play any number of rounds.

    >>> import decoupled as dc
    >>> learner = dc.JinHybrid(horizon=1000).start(arms=3, seed=1)
    >>> learner.replay([(0, 0.5, 1.0), (1, 0.5, 0.0), (2, 0.25, 1.0)])
    3
    >>> learner.exploitation_probabilities().round(3).tolist()
    [0.276, 0.54, 0.184]
    """

    barrier: float = 1.0
    theta: float = 0.5
    horizon: int | None = None

    layout = LAYOUT
    params_type = Params
    functions = Functions(init, decide, update)
    fading = ("estimates", "spread")

    def __post_init__(self) -> None:
        set_number(self, "barrier", 1e-6, 1e6, "the default is 1")
        set_number(self, "theta", 1e-6, 1e6, "the default is 1/2")
        object.__setattr__(self, "horizon", known_horizon(self.horizon))

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(), cls(barrier=0.1, theta=2.0, horizon=200)

    def params(self) -> Params:
        floor = 0.0 if self.horizon is None else float(self.horizon) ** (-2.0 / 3.0)
        return Params(self.barrier, self.theta, floor)

"""Tsallis-INF for the standard game, with either of its two estimators."""

import math
from dataclasses import dataclass
from typing import NamedTuple, Self

from ..base.arrays import Floats, Words
from ..base.validation import one_of, set_number
from ..kernels.argmin import fill_gaps
from ..kernels.dispatch import Functions
from ..kernels.jit import compiled
from ..kernels.random.sampling import draw_one, total
from ..kernels.state import ROUND, Layout, State
from ..policy import Baselines
from .base import Policy
from .tsallis import SOLVED, tsallis_excess, two_powers

LAYOUT = Layout(
    scalars=("excess", "eta", "weight_sum", "steps"),
    floats=("estimates", "gaps", "weights", "slopes", "baseline"),
    learned=("estimates", "excess"),
)
S, R, _ = LAYOUT.places()

MIDDLE = 0.5  # of the range of losses


class Params(NamedTuple):
    """The parameters of the compiled code."""

    c: float
    baseline: float


@compiled
def scale_gaps(params: Params, state: State) -> None:
    """Compute eta_t, and fill the gaps times eta_t / 2."""
    scalars = state.scalars
    eta = params.c / math.sqrt(scalars[ROUND])
    scalars[S.eta] = eta
    fill_gaps(state.floats[R.estimates], 0.5 * eta, state.floats[R.gaps])


@compiled
def fill_law(state: State) -> None:
    """Fill the law from the excess, w = (1 + gap + excess) ** -2, up to its sum."""
    floats = state.floats
    scalars = state.scalars
    two_powers(floats[R.gaps], scalars[S.excess], 2.0, 3.0, floats[R.weights], floats[R.slopes])
    scalars[S.weight_sum] = total(floats[R.weights])


@compiled
def solve(state: State) -> None:
    """Solve for the weights by Newton's method from the last excess."""
    floats = state.floats
    scalars = state.scalars
    scalars[S.excess], scalars[S.steps] = tsallis_excess(
        floats[R.gaps], scalars[S.excess], 2.0, floats[R.weights], floats[R.slopes]
    )
    fill_law(state)


@compiled
def fill_baselines(params: Params, state: State) -> None:
    """Fill the baselines of decisions in this state."""
    floats = state.floats
    scalars = state.scalars
    least = scalars[S.eta] * scalars[S.eta] * scalars[S.weight_sum]
    for i in range(floats.shape[1]):
        floats[R.baseline, i] = params.baseline if floats[R.weights, i] >= least else 0.0


@compiled
def init(params: Params, state: State) -> None:
    """Compute the law and the baselines.

    An excess that already solves the equation is kept, so that loading a state changes no bit of
    the weights.
    """
    scale_gaps(params, state)
    fill_law(state)
    is_solved = abs(state.scalars[S.weight_sum] - 1.0) <= SOLVED
    if not is_solved:
        solve(state)
    fill_baselines(params, state)


@compiled
def decide(params: Params, state: State, stream: Words) -> tuple[int, int, float, float]:
    """Draw from w."""
    return draw_one(state.floats[R.weights], state.scalars[S.weight_sum], stream)


@compiled
def update(params: Params, state: State, arm: int, weight: float, loss: float) -> None:
    """Add (loss - b) / w to the arm and b to all, with the b of the decision, and solve again."""
    floats = state.floats
    floats[R.estimates, arm] += weight * (loss - floats[R.baseline, arm])
    if params.baseline > 0.0:
        for i in range(floats.shape[1]):
            floats[R.estimates, i] += floats[R.baseline, i]
    scale_gaps(params, state)
    solve(state)
    fill_baselines(params, state)


@dataclass(frozen=True)
class CoupledTsallisINF(Policy):
    r"""Tsallis-INF in the standard game, where the arm played is the arm seen.

    With $\hat L$ the summed loss estimates and $\eta_t = c / \sqrt{t}$, each round

    - plays $I_t \sim w$, with $w_i = 4 (\eta_t (\hat L_i - \lambda))^{-2}$ and $\lambda$ such that
      $\sum_i w_i = 1$;
    - learns $\hat L_i \leftarrow \hat L_i + 1[I_t = i] (\ell - b_i) / w_i + b_i$ for every arm $i$,
      where $\ell$ is the loss seen.

    The estimator "importance" has $b = 0$ and $c = 2$. "reduced-variance" has $c = 4$ and $b_i =
    1/2$ for arms with $w_i \ge \eta_t^2$, 0 for the others. Both are unbiased, because $b$ is fixed
    before the draw. A pending decision keeps the $b$ of its own round for all arms, so late
    feedback is unbiased too. `replay` uses $b = 0$.

    Zimmert, J. and Seldin, Y. (2021). Tsallis-INF: an optimal algorithm for stochastic and
    adversarial bandits. JMLR 22(28). Algorithm 1 with $\alpha = 1/2$, both estimators with their
    published rates. Two things are ours: any $c$ may be set, and late feedback counts with the
    baseline of its decision (the paper has no late feedback).

    Args:
        estimator: "importance" or "reduced-variance".
        c: scale of the learning rate, above 0; None for the published value.

    >>> import decoupled as dc
    >>> learner = dc.CoupledTsallisINF().start(arms=2, seed=1)
    >>> learner.replay([(0, 0.5, 1.0), (1, 0.5, 0.0)])
    2
    >>> learner.exploitation_probabilities().round(3).tolist()
    [0.194, 0.806]
    """

    estimator: str = "importance"
    c: float | None = None

    layout = LAYOUT
    params_type = Params
    functions = Functions(init, decide, update)
    fading = ("estimates",)
    coupled = True

    def __post_init__(self) -> None:
        one_of("estimator", self.estimator, ("importance", "reduced-variance"))
        if self.c is not None:
            set_number(self, "c", 0.0, 1e100, "the default, None, is the published value")

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        # The last rate is small, so that baselines begin early.
        return cls(), cls(estimator="reduced-variance"), cls(estimator="reduced-variance", c=0.9)

    @property
    def baselines(self) -> Baselines | None:
        return Baselines(self.layout, "baseline") if self.estimator == "reduced-variance" else None

    def params(self) -> Params:
        reduced = self.estimator == "reduced-variance"
        published = 4.0 if reduced else 2.0
        return Params(published if self.c is None else self.c, MIDDLE if reduced else 0.0)

    def exploitation_law(self, state: State) -> Floats:
        law: Floats = state.floats[R.weights] / state.scalars[S.weight_sum]
        return law

"""Thompson sampling: play an arm as often as it may be the best."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...base.arrays import Floats, Words
from ...kernels.dispatch import Functions
from ...kernels.jit import compiled
from ...kernels.laws.beta_minimum import smallest_beta_law
from ...kernels.random.noise import beta
from ...kernels.state import Layout, State
from ..base import Policy

SUMS, COUNTS = range(2)


class Params(NamedTuple):
    """There are no parameters, but the tuple needs a field to be a type of its own."""

    unused: float


@compiled
def init(params: Params, state: State) -> None:
    """Derive nothing: decisions need only the sums and counts."""


@compiled
def decide(params: Params, state: State, stream: Words) -> tuple[int, int, float, float]:
    """Draw a mean loss for each arm from its posterior, and play the smallest."""
    smallest, arm = 2.0, 0
    for i in range(state.floats.shape[1]):
        weight = 2.0 + state.floats[COUNTS, i]
        mean = beta((1.0 + state.floats[SUMS, i]) / weight, weight, stream)
        if mean < smallest:
            smallest, arm = mean, i
    return arm, arm, 1.0, np.nan


@compiled
def update(params: Params, state: State, arm: int, weight: float, loss: float) -> None:
    """Add the loss to the arm's posterior, which does not depend on the probability of the draw."""
    state.floats[SUMS, arm] += loss
    state.floats[COUNTS, arm] += 1.0


@dataclass(frozen=True)
class ThompsonSampling(Policy):
    r"""Thompson sampling with Beta posteriors, in the standard game.

    Each round draws a mean loss for every arm from $\mathrm{Beta}(1 + S_i, 1 + n_i - S_i)$, where $n_i$ is the number of
    losses seen and $S_i$ their sum, and plays the arm with the smallest draw.

    Thompson, W. R. (1933). On the likelihood that one unknown probability exceeds another in view of the evidence of
    two samples. Biometrika 25. Agrawal, S. and Goyal, N. (2012). Analysis of Thompson sampling for the multi-armed
    bandit problem. COLT. For losses of 0 and 1 this is their algorithm 1. For losses in between, their algorithm 2
    tosses a coin with the loss as its bias and learns the toss. We add the loss itself, as a fraction of a success and
    of a failure: learning then needs no randomness, and the order of feedback does not matter. The posterior mean is
    the same on average and varies less; the published guarantee is for the coin.

    The weight of a decision is 1, because learning takes the loss as it is. Its propensity is not computed;
    `exploitation_probabilities()` finds all probabilities by quadrature. `estimates` are the posterior means.

    >>> import decoupled as dc
    >>> learner = dc.ThompsonSampling().start(arms=["a", "b"], seed=0)
    >>> learner.replay([("a", 1.0, 1.0), ("b", 1.0, 0.0)])
    2
    >>> learner.exploitation_probabilities().round(4).tolist()
    [0.1667, 0.8333]
    """

    layout = Layout(floats=("sums", "counts"), learned=("sums", "counts"))
    params_type = Params
    functions = Functions(init, decide, update)
    cumulative = None
    fading = ("sums", "counts")
    coupled = True

    def params(self) -> Params:
        return Params(0.0)

    def exploitation_law(self, state: State) -> Floats:
        sums, counts = state.floats[SUMS], state.floats[COUNTS]
        return smallest_beta_law(1.0 + sums, 1.0 + np.maximum(counts - sums, 0.0))

    def estimates(self, state: State) -> Floats:
        means: Floats = (1.0 + state.floats[SUMS]) / (2.0 + state.floats[COUNTS])
        return means

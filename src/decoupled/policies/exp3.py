"""EXP3, decoupled: the limit beta = 1 of Tsallis-INF."""

from dataclasses import dataclass
from typing import Self

from ..kernels.compose import Composed
from ..kernels.laws import softmax
from .composed import ExplicitPolicy


@dataclass(frozen=True, repr=False)
class Exp3(ExplicitPolicy):
    """Exponential weights, decoupled (EXP3 in the paper's figures).

    With hat_L the summed loss estimates and eta_t = c / sqrt(K * t), each round

    - exploits  i_t ~ w_i proportional to exp(-eta_t * hat_L_i);
    - explores  j_t ~ p_i proportional to sqrt(w_i);
    - learns    hat_L[j_t] += loss / p_{j_t}.

    It is the case beta = 1 of decoupled Tsallis-INF (section 2.2 of Kim, Lee and Oh, 2026), close to
    the policy of Avner, O., Mannor, S. and Shamir, O. (2012). Decoupling exploration and exploitation
    in multi-armed bandits. ICML (equation (3) of the former, with gamma = 0), which is `AvnerExp3`.

    Three options go beyond the published policy, and are ours; they are those of `FTPL`. With `c_exploit` the
    exploited arm's law has a rate of its own, c_exploit in place of c. With estimator "centred" every arm
    has a baseline,

    - learns    hat_L_i += b_i + 1[j_t = i] * (loss - b_i) / p_i for every arm i,

    where b_i = B_t for arms with p_i >= kappa * eta_t and 0 for the others, and B_t is a running mean of
    the losses seen: B += lam * (loss - B), from 1/2. The estimate is unbiased, because b is fixed before
    the draw. A pending decision keeps the b of its own round; `replay` takes b = 0. With schedule "losses"
    both rates fall with the spread of the losses seen, and not with the rounds.

    Args:
        c: scale of the learning rate, above 0.
        estimator: "importance", the published one, or "centred".
        c_exploit: scale of the rate of the exploited arm's law, above 0; None for c.
        kappa: for "centred": the gate, above 0. No observation takes more than B_t / (kappa * eta_t) off an
            estimate.
        lam: for "centred": how fast the running mean of the losses moves, from 0 on and below 1.
        schedule: what the rates fall with: "rounds", as published, or "losses", as in `FTPL`.

    >>> import decoupled as dc
    >>> learner = dc.Exp3(c=4.0).start(arms=2, seed=1)
    >>> learner.replay([(0, 0.5, 1.0), (1, 0.5, 0.0)])
    2
    >>> learner.exploitation_probabilities().round(3).tolist()
    [0.037, 0.963]
    """

    c: float = 2.0
    estimator: str = "importance"
    c_exploit: float | None = None
    kappa: float = 0.1
    lam: float = 0.05
    schedule: str = "rounds"

    published_fields = ("c",)

    def __post_init__(self) -> None:
        self._check_options()

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (
            cls(),
            cls(c=0.5),
            cls(c=1.0, c_exploit=4.0, estimator="centred", kappa=0.4, lam=0.3),
        )

    @property
    def composed(self) -> Composed:
        return softmax.COMPOSED

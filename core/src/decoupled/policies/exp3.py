"""Decoupled Exp3: the limit beta = 1 of Tsallis-INF."""

from dataclasses import dataclass
from typing import Self

from ..kernels.compose import Composed
from ..kernels.laws import softmax
from .composed import ExplicitPolicy


@dataclass(frozen=True, repr=False)
class Exp3(ExplicitPolicy):
    r"""Decoupled exponential weights (EXP3 in the paper's figures).

    With $\hat L$ the summed loss estimates and $\eta_t = c / \sqrt{K t}$, each round

    - exploits $i_t \sim w$, with $w_i \propto \exp(-\eta_t \hat L_i)$;
    - explores $j_t \sim p$, with $p_i \propto \sqrt{w_i}$;
    - learns $\hat L_{j_t} \leftarrow \hat L_{j_t} + \ell / p_{j_t}$, where $\ell$ is the loss seen.

    This is decoupled Tsallis-INF with $\beta = 1$ (section 2.2 of Kim, Lee and Oh, 2026). It is close to `AvnerExp3`, the
    policy of Avner, Mannor and Shamir (2012) (equation (3) of Kim, Lee and Oh, with $\gamma = 0$).

    Three options are ours and work as in `FTPL`: `estimator` "centred", with its parameters `kappa` and `lam`, a rate
    for exploitation with `c_exploit`, and `schedule` "losses".

    Args:
        c: scale of the learning rate, above 0.
        estimator: "importance", as published, or "centred".
        c_exploit: scale of the exploitation rate, above 0; None for c.
        kappa: for "centred": the gate, above 0.
        lam: for "centred": how fast the running mean of the losses moves, from 0 to below 1.
        schedule: "rounds" (the rates fall with the number of rounds, as published) or "losses".

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

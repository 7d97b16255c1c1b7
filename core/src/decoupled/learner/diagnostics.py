"""A look inside a running policy, for whoever writes one."""

from ..base.turns import in_turn
from ..kernels.state import SHARED_SCALARS
from .learner import Learner


@in_turn
def diagnostics(learner: Learner) -> dict[str, float]:
    """The scalars of a policy's state, by name.

    Args:
        learner: the running policy.

    >>> import decoupled as dc
    >>> from decoupled.extend import diagnostics
    >>> diagnostics(dc.TsallisINF().start(arms=8, seed=7))["steps"]
    2.0
    """
    running = learner._running
    names = SHARED_SCALARS + running.layout.scalars
    return dict(zip(names, running.state.scalars[: len(names)].tolist(), strict=True))

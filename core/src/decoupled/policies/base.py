"""The base class of all policies: a definition that can be started."""

from ..learner.arms import Arms
from ..learner.labels import Labels
from ..learner.learner import DEFAULT_PENDING, Learner
from ..learner.seeds import Seed
from ..policy import Definition


class Policy(Definition, abstract=True):
    """A frozen description of how to decide and learn; `start` creates a learner that runs it.

    A policy is one file: a frozen dataclass of parameters, a tuple of numbers for compiled code,
    and three compiled functions over a `State` whose rows the `layout` names.

    >>> import decoupled as dc
    >>> policy = dc.FTPL(alpha=2.5)
    >>> policy
    FTPL(alpha=2.5, c=2.0, ranking='auto')
    >>> dc.Policy.from_json(policy.to_json()) == policy
    True
    >>> dc.Policy.known()["Exp3"]()
    Exp3(c=2.0)
    """

    def start(
        self,
        arms: Arms,
        seed: Seed = None,
        *,
        loss_range: tuple[float, float] = (0.0, 1.0),
        max_pending: int = DEFAULT_PENDING,
        labels: Labels | None = None,
    ) -> Learner:
        """Create a learner that runs this policy.

        Args:
            arms: the number of arms, then called 0, 1, 2 and so on, or a list of names: strings or
                whole numbers.
            seed: a whole number for reproducible draws, or a `numpy.random.SeedSequence`; None for
                fresh randomness.
            loss_range: the lowest and the highest possible loss; rewards use the same range.
            max_pending: how many decisions may await feedback. Beyond that, the oldest is
                forgotten.
            labels: how many decisions ask for a label, if losses come from a judge; None if losses
                are true.

        >>> import decoupled as dc
        >>> dc.FTPL().start(arms=["a", "b"], seed=7).decide().exploit
        'b'
        """
        return Learner(
            self, arms, seed, loss_range=loss_range, max_pending=max_pending, labels=labels
        )

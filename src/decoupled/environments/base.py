"""What every environment shares."""

from ..description import Description
from ..kernels.drive import Table


class Environment(Description, kind="environment"):
    """A frozen description of where losses come from. The horizon is not part of it.

    >>> import decoupled as dc
    >>> environment = dc.environments.Alternating(arms=8, gap=0.125)
    >>> dc.environments.Environment.from_json(environment.to_json()) == environment
    True
    """

    def table(self, horizon: int) -> Table:
        """The mean losses of every round."""
        raise NotImplementedError

"""What a GPU does otherwise for a policy.

Parameters become constants, and the threads of a block share rows.
"""

from typing import Any, NamedTuple

from ...policies import ftpl, strata, tsallis
from ...policies.centred import kernels as centred
from ...policies.ladder import state as ladder


class Switches(NamedTuple):
    """The switches of one type of parameters.

    Attributes:
        constants: the names of the parameters that select a branch: see
            `kernels.lazy_numba.pinned`.
        shared_rows: the number of float rows that all runs share, of which the threads keep one
            copy.
    """

    constants: tuple[str, ...] = ()
    shared_rows: int = 0


_SWITCHES: dict[Any, Switches] = {
    ftpl.Params: Switches(("alpha", "is_sorting", "is_sharing"), shared_rows=1),  # rank limits
    centred.Params: Switches(
        ("alpha", "is_sorting", "is_sharing", "has_schedule", "exploit_ratio"), shared_rows=1
    ),
    strata.Params: Switches(("alpha", "is_sharing", "is_centred", "has_schedule", "exploit_ratio")),
    tsallis.Params: Switches(("a", "b")),
    ladder.Params: Switches(("rungs", "top_two_share", "recency"), shared_rows=1),
}


def switches_of(params_type: Any) -> Switches:
    """The switches of a policy with this type of parameters; a policy of your own has none.

    >>> import decoupled as dc
    >>> switches_of(dc.Ladder().params_type).shared_rows
    1
    """
    return _SWITCHES.get(params_type, Switches())

"""What a GPU does otherwise for a policy: parameters that become constants, and rows that the threads of a block share."""

from typing import Any, NamedTuple

from ...kernels.laws import explicit, ladder_state, leader, leader_tiered, tsallis


class Switches(NamedTuple):
    """The switches of one type of parameters.

    Attributes:
        constants: the names of the parameters that select a branch: see `kernels.lazy_numba.pinned`.
        shared_rows: the number of float rows that all runs share, of which the threads keep one copy.
    """

    constants: tuple[str, ...] = ()
    shared_rows: int = 0


_OF_EVERY_LAW = ("centred", "by_losses", "exploit_ratio")
_SWITCHES: dict[Any, Switches] = {
    leader.Params: Switches(
        ("alpha", "sorting", "sharing", *_OF_EVERY_LAW), shared_rows=1
    ),  # rank limits
    leader_tiered.Params: Switches(("alpha", "sharing", *_OF_EVERY_LAW)),
    tsallis.Params: Switches(("exploit_power", "explore_power", *_OF_EVERY_LAW)),
    explicit.Params: Switches(_OF_EVERY_LAW),
    ladder_state.Params: Switches(
        ("rungs", "top_two_share", "recency"), shared_rows=1
    ),  # rank limits
}


def switches_of(params_type: Any) -> Switches:
    """The switches of a policy with this type of parameters; a policy of your own has none.

    >>> import decoupled as dc
    >>> switches_of(dc.Ladder().params_type).shared_rows
    1
    """
    return _SWITCHES.get(params_type, Switches())

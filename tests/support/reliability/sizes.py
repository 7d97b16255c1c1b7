"""The size of the tests: small in `make test`, full in `make reliability`."""

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """The numbers that differ between the short and the long form."""

    long: bool
    stores: (
        int  # stores whose service is killed, each in a test of its own, so that two run at once
    )
    kills: int  # of each store's service
    acknowledged: int  # decisions and feedback of each store, at least
    remembered: int  # decisions in the store that is restarted
    traced: int  # requests whose system calls are checked
    replica_decisions: int
    replica_rounds: int  # kills and pauses of replicas, in turn
    held_up: float  # seconds that the disk stays full
    mirrored: int  # requests through a mirror whose memory is watched


SHORT = Sizes(False, 1, 2, 200, 5_000, 60, 100, 2, 0.3, 1_200)
LONG = Sizes(True, 2, 250, 50_000, 1_000_000, 600, 50_000, 60, 5.0, 100_000)

SIZES = LONG if os.environ.get("DECOUPLED_RELIABILITY") == "long" else SHORT

"""A short trial of a policy, which tells most mistakes within seconds."""

import numpy as np

from decoupled.environments import LossTable, PunishLast
from decoupled.errors import ContractError
from decoupled.kernels.jit import is_ours
from decoupled.policies import Policy
from decoupled.simulation import DIRECT, Traffic, run_block

ROUNDS, ARMS, RUNS = 100, 5, 2
WORLDS = (
    (LossTable(np.linspace(0.1, 0.9, ARMS)[None, :], [0]), DIRECT),
    (PunishLast(ARMS), DIRECT),
    (LossTable(np.linspace(0.9, 0.1, 2)[None, :], [0]), Traffic(delay=3)),
)


def check_entry(policy: Policy) -> None:
    """Raise an error if a policy cannot enter: it breaks its contract, or plays another game when it plays again."""
    if not policy.in_python and not is_ours(policy.params_type, *policy.functions):
        from decoupled.testing import (  # a second to load, and most entries do not need it
            Case,
            check_defined,
        )

        check_defined(Case(policy, ARMS, ROUNDS, 0))  # compiled code notices no index out of range
    for world, traffic in WORLDS:
        ends = np.array([ROUNDS], np.int64)
        once, again = (run_block(policy, world, ROUNDS, ends, 0, 0, RUNS, traffic) for _ in range(2))
        if once.regret.tolist() != again.regret.tolist() or once.plays.tolist() != again.plays.tolist():
            raise ContractError(
                f"{policy.label}: plays another game when it plays the same one again; draw from known.random() alone, "
                "and keep nothing but the learned arrays"
            )

"""How many draws resampling makes, counted over the same runs that `simulate` plays."""

import numpy as np

from ..base.arrays import Floats, Words
from ..environments import Environment
from ..environments.base import Adversary
from ..errors import UnsupportedError
from ..kernels.dispatch import decide, init, update
from ..kernels.jit import compiled
from ..kernels.random.sampling import draw_loss
from ..kernels.random.stream import secret_of
from ..kernels.rounds import Table
from ..kernels.state import State
from ..policies.coupled_ftpl import CoupledFTPL, Params, draws_made
from .cpu import checked_table, run_streams


@compiled
def _count(
    params: Params, state: State, stream: Words, noise: Words, local: Words, table: Table
) -> float:
    """Play one run in rounds of a table, and count the draws that the updates make."""
    init(params, state)
    draws = 0.0
    for t in range(len(table.row_at)):
        _, arm, weight, _ = decide(params, state, stream)
        draws += draws_made(params, state, arm, weight)
        mean = table.rows[table.row_at[t], arm]
        update(
            params,
            state,
            arm,
            weight,
            draw_loss(table.noise, table.concentration, mean, noise, local),
        )
    return draws


def draws_per_round(
    policy: CoupledFTPL, environment: Environment, horizon: int, runs: int, seed: int
) -> Floats:
    """The mean number of resampling draws per round, for the runs 0 to `runs - 1`.

    A policy does not count its draws while it runs. The weight of a decision gives the count: it is
    the number of draws, times the arm's rank at that moment if the resampling is conditional.
    Without a cap the expected number is K in any state, with a heavy tail. For conditional
    resampling it is 1 + 1/2 + ... + 1/K.

    >>> import decoupled as dc
    >>> from decoupled.simulation.draws import draws_per_round
    >>> easy = dc.environments.Bernoulli([0.5] * 8)
    >>> policy = dc.CoupledFTPL(resampling="conditional")
    >>> draws_per_round(policy, easy, 1_000, 2, seed=0).round(1).tolist()
    [3.0, 2.8]
    """
    if isinstance(environment, Adversary):
        rule = "draws are counted on tables of losses only; choose an oblivious environment"
        raise UnsupportedError(f"{type(environment).__name__}: {rule}")
    policy.register()
    table = checked_table(environment, horizon)
    counts = np.empty(runs)
    for run in range(runs):
        noise, draws = run_streams(seed, run)
        state = policy.layout.new_state(environment.arms, secret_of(draws))
        counts[run] = _count(policy.params(), state, draws, noise, np.zeros(2, np.uint64), table)
    return counts / horizon

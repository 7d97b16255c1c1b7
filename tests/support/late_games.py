"""Games with late, lost and rare feedback, one run of each.

Where the round loops for them do not ship, they take 10 to 40 s to compile for each policy. Run as a script, with
NUMBA_DISABLE_JIT=1, this prints what plain Python makes of every game. Nothing is compiled then.
"""

import json
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

import decoupled as dc
from decoupled.simulation.cpu import BlockResult, run_block
from decoupled.simulation.traffic import Traffic
from support.centred_ftpl import CENTRED_FTPL

ROUNDS, SEED, RUN = 300, 11, 5
RNG = np.random.default_rng(0)
WORLD = dc.environments.LossTable(RNG.random((7, 6)), RNG.integers(0, 7, ROUNDS), noise="bernoulli")
CROWD = dc.environments.LossTable(
    RNG.random((7, 600)), RNG.integers(0, 7, ROUNDS), noise="bernoulli"
)
ADVERSARY = dc.environments.AdaptiveAlternating(6, gap=0.25)
STRATA = dc.CentredFTPL(c=0.5, exploit_c=3.0, ranking="strata", schedule="losses")
POLICIES = [
    dc.FTPL(),
    CENTRED_FTPL,
    dc.Ladder(),
    STRATA,
    dc.Exp3(),
    dc.TsallisINF(c=1.5),
    dc.CoupledTsallisINF(estimator="reduced-variance"),
    dc.Forgetting(CENTRED_FTPL, period=150),
    dc.Forgetting(dc.Ladder(), period=150),
    dc.TopTwo(),
]
EVERYWHERE = [POLICIES[2], dc.Exp3()]
TRAFFIC = [
    Traffic(delay=7),
    Traffic(delay=("geometric", 20.0)),
    Traffic(delay=("uniform", 3, 40), missing=0.3, explore_share=0.6),
    Traffic(explore_share=0.3),
    Traffic(delay=ROUNDS - 1),
    Traffic(delay=10**15),
    Traffic(delay=("uniform", 0, 9), missing=0.1, explore_share=0.8),
]


class Game(NamedTuple):
    """A policy in a world, and how its feedback comes back."""

    policy: dc.Policy
    world: dc.environments.Environment
    traffic: Traffic

    @property
    def name(self) -> str:
        return f"{self.policy!r} in {type(self.world).__name__} with {self.traffic.label}"

    def played(self) -> BlockResult:
        every_round = np.arange(1, ROUNDS + 1)
        return run_block(
            self.policy,
            self.world,
            ROUNDS,
            every_round,
            SEED,
            range(RUN, RUN + 1),
            traffic=self.traffic,
        )


def on_table(policy: dc.Policy, traffic: Traffic) -> Game:
    if policy.coupled:  # it cannot only exploit
        traffic = Traffic(traffic.delay, traffic.missing)
    return Game(policy, CROWD if policy is STRATA else WORLD, traffic)


def against_adversary(traffic: Traffic) -> Game:
    return Game(dc.Ladder(), ADVERSARY, traffic)


def on_tables() -> list[Game]:
    """Every policy where all of it happens at once, and every traffic with the policies of `EVERYWHERE`."""
    return [
        on_table(policy, traffic)
        for policy in POLICIES
        for traffic in TRAFFIC
        if policy in EVERYWHERE or traffic is TRAFFIC[2]
    ]


def games() -> Iterator[Game]:
    yield from map(against_adversary, TRAFFIC)
    yield from on_tables()


def outcome(found: BlockResult) -> list[list[float]]:
    """Regret and plays, as they survive JSON."""
    return [found.regret[0].tolist(), *found.plays.tolist()]


if __name__ == "__main__":
    with np.errstate(all="ignore"):  # words of streams overflow, as they should
        print(json.dumps({game.name: outcome(game.played()) for game in games()}))

"""The state and the parameters of the ladder, and its hashed draws: the keys of the judge, and the order of arms that tie."""

from collections import namedtuple
from typing import Any

import numpy as np

from ..compose import START
from ..jit import compiled
from ..random.hashed import hashed_unit, key_with, scrambled
from ..state import EVENTS, ROUND, SECRET, SHARED_SCALARS, Layout, State

ALPHA = 3.0  # of the Pareto perturbations
MOST_RATES = 4
MOST_RUNGS = MOST_RATES + 1  # the last one plays the leader by mean
LEADERS_SHARE = 0.5  # of what the leader by mean and its challenger are explored together
SLACK = 0.1  # in standard deviations of a loss: how much worse than the leader is as good
ALL_ARMS, SOME_ARMS, NO_ARMS = 1.0, 0.0, -1.0  # which arms have a baseline of the decision's own
NOBODY = -1.0  # no arm is prepared for judging
_PURPOSE_OF_ORDER = np.uint64(0x7072656365646573)  # apart from the secret's other uses
TINY = 1e-24  # in place of a largest surprise of 0, so that rates are finite

ESTIMATES, RANKED, RANK_LIMIT, SURROGATE, BASELINE, COUNTS, MEANS, CENTRED, INVERSES, BOUND = range(10)
PRECEDENCE = 10  # of arms with equal means the one with the least comes first
FLOATS = (
    *("estimates", "ranked", "rank_limit", "surrogate", "baseline"),
    *("counts", "means", "centred_means", "inverse_counts", "bound", "precedence"),
)
ORDER = 0


def _numbered(name: str) -> tuple[str, ...]:
    return tuple(f"{name}_{number}" for number in range(MOST_RUNGS))


LEARNED_SCALARS = (
    *("rise", "seen", "least", "largest", "spread", "spread_floor", "raw_error", "centred_error"),
    "hedge_regret",
    *_numbered("rung_loss"),
)
DERIVED_SCALARS = (
    *("scale", "drift_scale", "eta", "surrogate_sum", "mixed", "leader", "challenger", "unseen"),
    *(
        "even_share",
        "highest",
        "drift",
        "covered",
        "hedge_sum",
        "judged",
        *_numbered("rung_weight"),
        *_numbered("rung_prior"),
        *_numbered("rung_rate"),
    ),
    *_numbered("rung_step"),
    *_numbered("rung_chance"),
    *_numbered("rung_offset"),
)
SCALARS = (*LEARNED_SCALARS, *DERIVED_SCALARS)
(RISE, SEEN, LEAST, LARGEST, SPREAD, SPREAD_FLOOR, RAW_ERROR, CENTRED_ERROR, REGRET) = range(
    len(SHARED_SCALARS), len(SHARED_SCALARS) + 9
)
LOSS = REGRET + 1
(SCALE, DRIFT_SCALE, ETA, SURROGATE_SUM, MIXED, LEADER, CHALLENGER, UNSEEN, EVEN_SHARE, HIGHEST) = range(
    LOSS + MOST_RUNGS, LOSS + MOST_RUNGS + 10
)
DRIFT, COVERED, HEDGE_SUM, JUDGED = range(HIGHEST + 1, HIGHEST + 5)
WEIGHT = JUDGED + 1
PRIOR = WEIGHT + MOST_RUNGS
RATE = PRIOR + MOST_RUNGS  # as multiples of the rate of exploration; negative for the leader by mean
STEP = RATE + MOST_RUNGS
CHANCE = STEP + MOST_RUNGS  # of the explored arm under a rung, given the draws of its rivals
OFFSET = CHANCE + MOST_RUNGS  # of a rung's loss, whatever the loss of the explored arm

# What a pending decision keeps beside its baselines: the explored arm and what its rungs are judged with.
KEPT = ("judged", *_numbered("rung_chance"), *_numbered("rung_offset"))

LAYOUT = Layout(
    scalars=SCALARS,
    floats=FLOATS,
    ints=("order",),
    learned=("estimates", "counts", "means", "centred_means", "precedence", *LEARNED_SCALARS),
)

# Rates are multiples of c, and -1 stands for the leader by mean.
PARAMS = (
    *("c", "mean_rate", "least_spread", "hedge_rate", "top_two_share", "top_two_floor"),
    "uniform_share",
    *("rungs", "rate_0", "rate_1", "rate_2", "rate_3", "rate_4"),
    *("prior_0", "prior_1", "prior_2", "prior_3", "prior_4"),
)
Params: Any = namedtuple("Params", PARAMS)  # type: ignore[misc]


@compiled
def event_key(state: State) -> np.uint64:
    """A key for the judge's draws, from the seed's secret, the event and what was learned.

    No two events have one: the draws of a decision must be news to the weights that learn from it, also if the state is
    that of another decision, of another segment, or of before a restart. (A record of a log has half an event.)
    """
    scalars = state.scalars
    key = scrambled(scrambled(np.uint64(int(scalars[SECRET]))) ^ np.uint64(int(2.0 * scalars[EVENTS])))
    return key_with(key_with(key, START + scalars[RISE]), scalars[SPREAD])


@compiled
def draw_precedence(state: State) -> None:
    """Give every arm that has none a place in the order in which arms tie. The secret draws it, once."""
    scalars, precedence = state.scalars, state.floats[PRECEDENCE]
    key = key_with(scrambled(np.uint64(int(scalars[SECRET])) ^ _PURPOSE_OF_ORDER), scalars[ROUND])
    for arm in range(len(precedence)):
        if precedence[arm] == 0.0:
            precedence[arm] = hashed_unit(key, arm)

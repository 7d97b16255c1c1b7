"""The state and the parameters of the ladder, and the key of its hashed draws."""

from collections import namedtuple
from typing import Any

import numpy as np

from ..compose import START
from ..jit import compiled
from ..random.hashed import key_with, scrambled
from ..state import ROUND, SHARED_SCALARS, Layout, State

MOST_RATES = 4
MOST_RUNGS = MOST_RATES + 1  # the last one plays the leader by mean
LEADERS_SHARE = 0.5  # of what the leader by mean and its challenger are explored together
SLACK = 0.1  # in standard deviations of a loss: how much worse than the leader is as good
FOLLOW = 1e300  # the rate of a rung that follows the leader by estimate
ALL_ARMS, SOME_ARMS, NO_ARMS = 1.0, 0.0, -1.0  # which arms have a baseline of the decision's own
TINY = 1e-24  # in place of a largest surprise of 0, so that rates are finite

ESTIMATES, RANKED, RANK_LIMIT, SURROGATE, BASELINE, COUNTS, MEANS, CENTRED, INVERSES, BOUND = range(10)
FLOATS = (
    *("estimates", "ranked", "rank_limit", "surrogate", "baseline"),
    *("counts", "means", "centred_means", "inverse_counts", "bound"),
)
ORDER = 0


def _numbered(name: str) -> tuple[str, ...]:
    return tuple(f"{name}_{number}" for number in range(MOST_RUNGS))


LEARNED_SCALARS = (
    *("rise", "seen", "least", "largest", "spread", "raw_error", "centred_error", "hedge_regret"),
    *_numbered("rung_loss"),
)
DERIVED_SCALARS = (
    *("scale", "drift_scale", "eta", "surrogate_sum", "mixed", "leader", "challenger", "unseen"),
    *(
        "highest",
        "drift",
        "covered",
        *_numbered("rung_weight"),
        *_numbered("rung_prior"),
        *_numbered("rung_rate"),
    ),
    *_numbered("rung_step"),
)
SCALARS = (*LEARNED_SCALARS, *DERIVED_SCALARS)
(RISE, SEEN, LEAST, LARGEST, SPREAD, RAW_ERROR, CENTRED_ERROR, REGRET) = range(
    len(SHARED_SCALARS), len(SHARED_SCALARS) + 8
)
LOSS = REGRET + 1
(SCALE, DRIFT_SCALE, ETA, SURROGATE_SUM, MIXED, LEADER, CHALLENGER, UNSEEN, HIGHEST, DRIFT, COVERED) = (
    range(LOSS + MOST_RUNGS, LOSS + MOST_RUNGS + 11)
)
WEIGHT = COVERED + 1
PRIOR = WEIGHT + MOST_RUNGS
RATE = PRIOR + MOST_RUNGS  # as multiples of the rate of exploration; negative for the leader by mean
STEP = RATE + MOST_RUNGS

LAYOUT = Layout(
    scalars=SCALARS,
    floats=FLOATS,
    ints=("order",),
    learned=("estimates", "counts", "means", "centred_means", *LEARNED_SCALARS),
)

# `from_first` above 0: the running mean and the unit of the losses come from the losses themselves. Rates are multiples
# of c, and -1 stands for the leader by mean.
PARAMS = (
    *("alpha", "sharing", "c", "lam", "by_losses", "theta", "from_first", "boldness", "mix", "floor"),
    *("rungs", "rate_0", "rate_1", "rate_2", "rate_3", "rate_4"),
    *("prior_0", "prior_1", "prior_2", "prior_3", "prior_4"),
)
Params: Any = namedtuple("Params", PARAMS)  # type: ignore[misc]


@compiled
def state_key(state: State) -> np.uint64:
    """A key for draws, from the round and what was learned."""
    scalars = state.scalars
    key = key_with(scrambled(np.uint64(int(scalars[ROUND]))), START + scalars[RISE])
    return key_with(key, scalars[SPREAD])

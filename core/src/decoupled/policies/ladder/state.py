"""The state and the parameters of the ladder.

Two means of each arm are kept: of its losses, and of its losses less the running mean of all losses
at the time. If the level of all losses moves, arms seen at different times compare only by the
second; if not, the first has less noise. Whichever has predicted losses better so far is used.

With a *memory* there is a second leader, by the means of the last losses (some 100 of them), if
these have predicted better of late; and a recent challenger, which discounted counts bring back to
every arm that was not seen for long. The discount is one factor for all arms, so that a loss
changes one arm only.
"""

from typing import Annotated, NamedTuple

from ...kernels.state import Layout, vector

START = 0.5  # initial value of the running mean of the losses: the middle of their range
INVERSE_VARIANCE = 4.0  # one over the largest variance of a loss, so a fair coin counts as a round
ALPHA = 3.0  # of the Pareto perturbations
MOST_RATES = 4
MOST_RUNGS = MOST_RATES + 2  # the last ones play the leader by mean and the recent leader
BY_MEAN, BY_RECENT_MEAN = -1.0, -2.0  # in place of the rates of these rungs
ALL_ARMS, SOME_ARMS, NO_ARMS = 1.0, 0.0, -1.0  # which arms have a baseline of the decision's own
NOBODY = -1.0  # no arm is prepared for judging
# The origin of a decision is the version of the state in which it was made. Baselines may come from
# elsewhere, as from a user; and no state has the arms of a decision any more once some were added
# or retired.
GIVEN, NO_STATE = -1.0, -2.0
TINY = 1e-24  # in place of a largest surprise of 0, so that rates are finite

BEST = 4  # the arms that are explored because of their means

LEARNED_SCALARS = (
    "rise",  # of the running mean of all losses, above START
    "seen",
    "least",
    "largest",
    "spread",
    "spread_floor",
    # The errors of all means and of recent ones, each of losses and of centred losses, and the
    # number of losses they count.
    "raw_error",
    "centred_error",
    "recent_fade",
    "past_raw_error",
    "past_centred_error",
    "recent_raw_error",
    "recent_centred_error",
    "error_count",
    "version",  # the number of events up to the last update
    "hedge_regret",
    *vector("rung_loss", MOST_RUNGS),
)
DERIVED_SCALARS = (
    "scale",
    "drift_scale",
    "eta",
    "surrogate_sum",
    "mixed",
    "unseen",
    "even_share",
    "highest",
    "drift",
    "covered",
    "hedge_sum",
    "judged",
    "origin",
    "own_baseline",
    # The BEST arms, and of what they are explored together the share of each.
    "leader",
    "challenger",
    "recent_leader",
    "recent_challenger",
    "leader_share",
    "challenger_share",
    "recent_leader_share",
    "recent_challenger_share",
    *vector("rung_weight", MOST_RUNGS),
    *vector("rung_prior", MOST_RUNGS),
    # As multiples of the rate of exploration; negative for the leaders by mean.
    *vector("rung_rate", MOST_RUNGS),
    *vector("rung_step", MOST_RUNGS),
    # Of the explored arm under a rung, given the draws of its rivals.
    *vector("rung_chance", MOST_RUNGS),
    *vector("rung_offset", MOST_RUNGS),  # of a rung's loss, whatever the loss of the explored arm
)
SCALARS = (*LEARNED_SCALARS, *DERIVED_SCALARS)
FLOATS = (
    "estimates",
    "ranked",
    "rank_limit",
    "surrogate",
    "baseline",
    "counts",
    "means",
    "centred_means",
    "inverse_counts",
    "bound",
    "precedence",  # of arms with equal means the one with the least comes first
    "law",  # of exploration, in the state of the decision
    # Of the last losses, before the common discount.
    "recent_weight",
    "recent_sums",
    "recent_centred_sums",
)

# What a pending decision keeps beside its law of exploration: the explored arm, its origin, and
# what its rungs are judged with.
KEPT = (
    "judged",
    *vector("rung_chance", MOST_RUNGS),
    *vector("rung_offset", MOST_RUNGS),
    "origin",
    "own_baseline",
)

LAYOUT = Layout(
    scalars=SCALARS,
    floats=FLOATS,
    ints=("order",),
    learned=(
        "estimates",
        "counts",
        "means",
        "centred_means",
        "precedence",
        "recent_weight",
        "recent_sums",
        "recent_centred_sums",
        *LEARNED_SCALARS,
    ),
)

S, R, N = LAYOUT.places()

# Rows that serve as work space until `fill_baselines` fills them.
SCRATCH_COSTS = R.baseline
SCRATCH_RECENT_MEANS = R.bound
SCRATCH_RECENT_INVERSES = R.law


class Params(NamedTuple):
    """The parameters of the compiled code; vectors have room for the most rungs."""

    c: float
    mean_rate: float
    least_spread: float
    hedge_rate: float
    top_two_share: float
    top_two_floor: float
    uniform_share: float
    recency: float  # 1 / memory, or 0 without one
    rungs: int
    # Multiples of c; BY_MEAN and BY_RECENT_MEAN stand for the leaders by mean.
    rates: Annotated[tuple[float, ...], MOST_RUNGS]
    priors: Annotated[tuple[float, ...], MOST_RUNGS]

"""Lemmas D.2 and D.3: bounds on w, on the event D_t and off it."""

import math
from collections.abc import Iterator

import numpy as np

from ..inequality import AS_PRINTED, CORRECTED, Inequality, Sides
from ..moment import Moment

UPPER = Inequality("w <= (1 + eta u)^-alpha", "lemma D.2")
LOWER = Inequality("on D_t: w >= (1 + eta u)^-alpha / (2 e^2)", "lemma D.2", CORRECTED)
LOWER_PRINTED = Inequality("on D_t with <=: w >= (1 + eta u)^-alpha / (2 e^2)", "lemma D.2")
BEST = Inequality("on D_t: w_best >= 1 / (2 e)", "lemma D.2", CORRECTED)
BEST_PRINTED = Inequality("on D_t with <=: w_best >= 1 / (2 e)", "lemma D.2", AS_PRINTED)
OFF = Inequality("off D_t: 1 - w_best >= (1 - e^-0.5) / 2", "lemma D.3", CORRECTED)
OFF_PRINTED = Inequality("off D_t with <=: 1 - w_best >= (1 - e^-0.5) / 2", "lemma D.3")

LEAST_OFF = 0.5 * (1.0 - math.exp(-0.5))
LEAST_BEST = 0.5 / math.e


def sides(moment: Moment) -> Iterator[Sides]:
    """All steps of lemmas D.2 and D.3.

    The paper prints D_t with <= 1/2. With two arms and the rival ahead, the sum is exactly 1/2, so the event
    holds and the bound on the best arm fails. With < 1/2 the best arm must lead. The rest holds either way.
    """
    law, arms = moment.moments.law, np.arange(moment.arms)
    bound = (1.0 + moment.shifts) ** -moment.alpha
    yield Sides(UPPER, law, bound, arms)
    others = moment.others
    lost = float(law[others].sum())  # 1 - w_best, without cancellation
    for on_event, lower, best, off in (
        (moment.on_event, LOWER, BEST, OFF),
        (moment.on_event_as_printed, LOWER_PRINTED, BEST_PRINTED, OFF_PRINTED),
    ):
        if on_event:
            yield Sides(lower, bound[others] / (2.0 * math.e**2), law[others], arms[others])
            yield Sides(best, LEAST_BEST, law[moment.best], moment.best)
        else:
            yield Sides(off, LEAST_OFF, lost)

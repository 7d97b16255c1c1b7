"""How arms are compared for a verdict: p-values, who leads, and a look ahead.

`paired` and `running` are one comparison, with the law of exploration known or not: bets against
the leader show which arms are out, and bets on pairs who is better than whom; see `outs` and
`pairs`. Arms beyond the most that are followed as pairs are compared by running means. `stationary`
relies on constant means: it tests the bets against the leader together, or compares the losses seen
if the law is not known.
"""

from collections.abc import Callable
from typing import Literal, TypeAlias

import numpy as np

from ..base.arrays import Floats, Ints
from ..kernels.betting import (
    COMPARABLE,
    LAW_ROUNDS,
    MOMENTS,
    OPPOSITE,
    OPPOSITE_SQUARES,
    OTHER,
    PLAIN,
    ROUNDS,
    SEEN,
    SQUARES,
    TOTAL,
)
from .boundary import Interval, log_wealth, log_wealth_of_difference, lower_difference, lower_mean
from .outs import closed_evidence
from .sums import Best, Shown, Sums, share_of_batch

Basis: TypeAlias = Literal["running", "paired", "stationary"]
"""What a verdict compares arms by; see `Verdict`."""

# What was won is compared as a product there, and as a sum of logarithms here.
_ROUNDING = 1.0 + 1e-9
_RISK_OF_UPPER_END = 0.05  # of the end that chooses a rival; no risk of what is said
_FARTHEST = 1e6  # times the observations so far that a look ahead reaches


def basis_of(sums: Sums, *, drift: bool) -> Basis:
    """How arms are compared: `stationary` without drift; else `paired` once a law of exploration
    was known, and `running` before.
    """
    if not drift:
        return "stationary"
    return "paired" if sums.rounds[LAW_ROUNDS] > 0 else "running"


def risks_now(sums: Sums, live: Ints, basis: Basis) -> Floats:
    """For each of the arms, the smallest risk at which another one is shown now to be better."""
    epoch_share = share_of_batch(sums.outs.epoch)
    if basis == "stationary":
        if sums.by_law:
            return _p_values(closed_evidence(sums.outs.evidence()[live])) / epoch_share
        rival, evidence = _against_lowest(sums, live)
        return _p_values(evidence) / sums.share_of_pairs(live, rival)
    smallest = _risks_of_outs(sums, live)
    slots = sums.pairs.slots(live.tolist())
    has_slot = slots >= 0
    followed = live[has_slot]
    if len(followed) > 1:
        shares = _parts_of_pairs(sums, followed[:, None], followed)
        risks = _p_values(sums.pairs.evidence(slots[has_slot], slots[has_slot])) / shares
        np.fill_diagonal(risks, np.inf)
        smallest[has_slot] = np.minimum(smallest[has_slot], risks.min(axis=1))
    if not has_slot.all():
        evidence, _ = _evidence_apart(sums, live)
        apart = _p_values(evidence.max(axis=1)) / _part_of_new_pairs(sums)
        smallest = np.minimum(smallest, apart)
    return smallest


def _risks_of_outs(sums: Sums, live: Ints) -> Floats:
    """For each of the arms, the smallest risk at which its own bet shows it now to be out."""
    if sums.part_of_outs == 0.0:
        return np.ones(len(live))
    share = share_of_batch(sums.outs.epoch) * sums.part_of_outs / sums.outs.contenders
    return _p_values(sums.outs.evidence()[live]) / share


def risks_as_settled(sums: Sums, live: Ints) -> Floats:
    """For each of the arms, the smallest risk at which it is shown now to be worse by what showed
    it before: its own bet, or a pair that is settled.
    """
    smallest = _risks_of_outs(sums, live)
    pairs = np.array(list(sums.settled), np.int64).reshape(-1, 2)
    slots = sums.pairs.slots(pairs.ravel().tolist()).reshape(-1, 2)
    has_slots = (slots >= 0).all(axis=1)
    if not has_slots.all():
        smallest = np.minimum(smallest, risks_now(sums, live, "running"))
    worse, better = pairs[has_slots].T
    worse_slots, better_slots = slots[has_slots].T
    evidence = sums.pairs.evidence_of(worse_slots, better_slots)
    risks = _p_values(evidence) / _parts_of_pairs(sums, worse, better)
    places = np.searchsorted(live, worse)
    np.minimum.at(smallest, places, risks)
    return smallest


def _parts_of_pairs(sums: Sums, firsts: Ints, seconds: Ints | int) -> Floats:
    """The part of the risk of a verdict for "the first arm is worse than the second"."""
    parts = sums.part_of_pairs(sums.later_batches(firsts, seconds))
    return np.asarray(parts * sums.share_of_pairs(firsts, seconds))


def _part_of_new_pairs(sums: Sums) -> float:
    """The part of the risk of a verdict for one pair, in a comparison that started again when arms
    were last added.
    """
    return float(sums.part_of_pairs(sums.batches)) * sums.share_of_new_pairs()


def risk_of_arm(sums: Sums, arm: int, basis: Basis) -> float:
    """The smallest risk at which one arm is shown now to be worse than another, if nothing is to be
    said about any other arm: its own bet then needs no share of the risk for others.
    """
    if basis == "stationary" and not sums.by_law:
        live = np.array(sums.live, np.int64)
        rival, evidence = _against_lowest(sums, live)
        if rival == arm:
            return 1.0
        p_value = float(_p_values(evidence[live == arm])[0])
        return p_value / float(sums.share_of_rivals(arm, np.array([rival]))[0])
    p_value = float(_p_values(sums.outs.evidence_of(arm)))
    return p_value / share_of_batch(sums.outs.epoch)


def within(sums: Sums, margin: float, risk: float, *, drift: bool) -> Ints:
    """The arms that are shown now not to be worse than any other by more than a margin; none if
    there are more arms than `pairs` follows, unless losses seen are compared.

    All that is ever shown so holds together, for every margin, with probability 1 - risk.
    """
    live = np.array(sums.live, np.int64)
    if not drift and not sums.by_law:
        negative_margin = -margin / sums.width
        evidence = np.stack(
            [plain_evidence(sums, live, arm, margin=negative_margin) for arm in live.tolist()],
            axis=1,
        )
    else:
        slots = sums.pairs.slots(live.tolist())
        if slots.min() < 0:  # pairs of arms are not followed
            return live[:0]
        evidence = sums.pairs.evidence(slots, slots, -margin)
    shares = sums.share_of_pairs(live[:, None], live)
    is_shown = evidence >= -np.log(risk * shares)
    np.fill_diagonal(is_shown, True)
    return live[is_shown.all(axis=0)]


def own_risks(sums: Sums, arms: Ints, first: int, basis: Basis) -> Floats:
    """For each of the arms, the smallest risk at which it is shown now to be worse than the first,
    by these two alone; by closed testing of all if no mean changes and laws are known.

    If losses may drift, all of them by the same rounds: those since arms were last added.
    """
    if basis == "stationary":
        if sums.by_law:
            live = np.array(sums.live, np.int64)
            return risks_now(sums, live, basis)[np.isin(live, arms)]
        return _p_values(plain_evidence(sums, arms, first)) / sums.share_of_pairs(arms, first)
    slots = sums.pairs.slots(arms.tolist())
    slot = int(sums.pairs.slots([first])[0])
    followed = (slots >= 0) & (slot >= 0)
    evidence = np.zeros(len(arms))
    evidence[followed] = sums.pairs.evidence_since(slots[followed], slot)
    total, squares = weighted_difference(sums, arms[~followed], np.array([first]))
    evidence[~followed] = log_wealth_of_difference(total, squares)
    return _p_values(evidence) / _part_of_new_pairs(sums)


def note_best(sums: Sums, arm: int) -> None:
    """Note that an arm is better than every other one, once each of its own pairs shows that now,
    by the same rounds.

    Each was shown before, but maybe at a time of its own. Until all say so at once, wait for those
    that do not.
    """
    if not sums.drift or sums.decided is not None:
        return
    live = np.array(sums.live, np.int64)
    others = live[live != arm]
    if any((other, arm) not in sums.settled for other in others.tolist()):
        return
    is_lacking = own_risks(sums, others, arm, "paired") > sums.risk * _ROUNDING
    if not is_lacking.any():
        sums.best = Best(arm, sums.observed, sums.batches)
    elif sums.batches == 0:
        # Otherwise what the bets have won by now is not of the same rounds, so `look` asks.
        slots = sums.pairs.slots([arm, *others[is_lacking].tolist()])
        if slots.min() >= 0:
            goal = 1.0 / (sums.risk * _part_of_new_pairs(sums))
            sums.pairs.want(slots[1:], int(slots[0]), goal)


def leader(sums: Sums, arms: Ints, basis: Basis) -> int:
    """The place, among these arms, of the one that looks best by what compares them."""
    means = comparable_means(sums, drift=basis != "stationary")[arms]
    slots = sums.pairs.slots(arms.tolist())
    followed = np.flatnonzero(slots >= 0)
    if basis == "stationary" or len(followed) == 0:
        return int(np.argmin(means))
    rows = slots[followed][:, None]
    columns = slots[followed][None, :]
    weights = sums.pairs.weight(rows, columns) + sums.pairs.weight(columns, rows)
    is_compared = (weights > 0.0) & (rows != columns)
    # How much an arm loses by against the one that does best against it; 0 if it was compared with
    # none.
    gains = sums.pairs.gains[rows, columns] - sums.pairs.gains[columns, rows]
    excess = gains / np.where(is_compared, weights, 1.0)
    behind = np.where(is_compared, excess, -np.inf).max(axis=1)
    first = followed[int(np.argmin(np.where(is_compared.any(axis=1), behind, 0.0)))]
    candidates = np.append(first, np.flatnonzero(slots < 0))
    return int(candidates[int(np.argmin(means[candidates]))])


def looks_apart(sums: Sums) -> bool:
    """Whether there is something to settle that bets on pairs do not say by themselves, so that
    `look` has to.
    """
    if not sums.drift:
        return not sums.by_law
    return sums.batches > 0 or sums.has_arms_apart


def look(sums: Sums) -> None:
    """Settle what is not followed observation by observation, by the evidence of now."""
    live = np.array(sums.live, np.int64)
    pairs: list[tuple[int, int]] = []
    if not sums.drift:
        rival, evidence = _against_lowest(sums, live)
        risks = _p_values(evidence) / sums.share_of_pairs(live, rival)
        pairs = [(arm, rival) for arm in live[risks <= sums.risk].tolist()]
    elif sums.has_arms_apart:
        goal = -np.log(sums.risk * _part_of_new_pairs(sums))
        evidence, rivals = _evidence_apart(sums, live, goal)
        is_enough = evidence >= goal
        for row, column in np.argwhere(is_enough).tolist():
            pairs.append((int(live[row]), int(rivals[column])))
    for worse, better in pairs:
        if (worse, better) not in sums.settled:
            sums.settle(worse, better, difference_now(sums, worse, better, drift=sums.drift))
    for arm in sorted({better for _, better in sums.settled}):
        note_best(sums, arm)


def _p_values(evidence: Floats) -> Floats:
    """The p-values of evidence, which is a logarithm; 1 where it speaks for the opposite."""
    return np.asarray(np.exp(-np.maximum(evidence, 0.0)))


def _against_lowest(sums: Sums, live: Ints) -> tuple[int, Floats]:
    """The arm whose upper end is the lowest, and the evidence of unweighted losses that each arm is
    worse than it.
    """
    gain, gains = sums.moments[live, PLAIN + OPPOSITE : PLAIN + MOMENTS].T
    rival = int(
        live[np.argmax(lower_mean(sums.counts[live, SEEN], gain, gains, _RISK_OF_UPPER_END))]
    )
    return rival, np.where(live == rival, 0.0, plain_evidence(sums, live, rival))


def _evidence_apart(sums: Sums, live: Ints, least: float = 0.0) -> tuple[Floats, Ints]:
    """The evidence of weighted losses about the pairs that are not followed; and the rivals. Where
    it is below `least` it may be given as 0.
    """
    evidence, rivals = weighted_evidence(sums, live, least)
    is_followed = np.isin(live, sums.pairs.owners)[:, None] & np.isin(rivals, sums.pairs.owners)
    return np.where(is_followed, 0.0, evidence), rivals


def growth_until_shown(sums: Sums, arms: Ints, first: int, risk: float, basis: Basis) -> float:
    """By what factor all sums have to grow until the first arm is shown to be better than these."""
    if basis == "stationary":
        return _stationary_growth(sums, arms, first, risk)
    slots = sums.pairs.slots(arms.tolist())
    first_slot = int(sums.pairs.slots([first])[0])
    is_followed = (slots >= 0) & (first_slot >= 0)
    factors = [1.0]
    if is_followed.any():
        factors.append(_paired_growth(sums, slots[is_followed], first_slot, risk))
    if not is_followed.all():
        factors.append(_running_growth(sums, arms[~is_followed], first, risk))
    return max(factors)


def _paired_growth(sums: Sums, slots: Ints, slot: int, risk: float) -> float:
    """`growth_until_shown` for arms that are followed as pairs, by their slots."""
    if np.any(sums.pairs.gains[slots, slot] <= 0.0):
        return np.inf
    goal = -np.log(risk * _part_of_new_pairs(sums))

    def surplus(factor: float) -> float:
        return float(np.min(sums.pairs.evidence_since(slots, slot, factor)) - goal)

    return _first_positive(surplus)


def _running_growth(sums: Sums, arms: Ints, first: int, risk: float) -> float:
    """`growth_until_shown` for arms that are compared by running means."""
    total, squares = weighted_difference(sums, arms, np.array([first]))
    if np.any(total <= 0.0):
        return np.inf
    goal = -np.log(risk * _part_of_new_pairs(sums))

    def surplus(factor: float) -> float:
        return float(np.min(log_wealth_of_difference(factor * total, factor * squares)) - goal)

    return _first_positive(surplus)


def _stationary_growth(sums: Sums, arms: Ints, first: int, risk: float) -> float:
    """`growth_until_shown` if no mean changes."""
    if sums.by_law:
        live = np.array(sums.live, np.int64)
        is_rival = np.isin(live, arms)
        least = -np.log(risk * share_of_batch(sums.outs.epoch))

        def closed_surplus(factor: float) -> float:
            evidence = closed_evidence(sums.outs.evidence(factor)[live])
            return float(np.min(evidence[is_rival]) - least)

        return _first_positive(closed_surplus)
    if np.any(sums.counts[np.append(arms, first), SEEN] == 0):
        return np.inf
    goals = -np.log(risk * sums.share_of_pairs(arms, first))
    last = np.argmin(plain_evidence(sums, arms, first) - goals)
    slowest = arms[last : last + 1]
    goal = float(goals[last])

    def surplus(factor: float) -> float:
        return float(plain_evidence(sums, slowest, first, times=factor)[0]) - goal

    return _first_positive(surplus)


def _first_positive(surplus: Callable[[float], float]) -> float:
    """The factor from 1 on at which a surplus of evidence becomes positive, to a few percent."""
    high = 1.0
    while surplus(high) < 0.0:
        high *= 4.0
        if high > _FARTHEST:
            return np.inf
    low = max(high / 4.0, 1.0)
    while high > 1.02 * low:
        middle = np.sqrt(low * high)
        if surplus(middle) >= 0.0:
            high = middle
        else:
            low = middle
    return high


# Evidence that one arm is worse than another, of arms that are not followed as `pairs`, and of
# losses seen unweighted
#
# It is the logarithm of a supermartingale that starts at 1 unless the arm is worse, so
# exp(-evidence) is a p-value that may be watched, and a difference of arms is bounded below by the
# smallest one without enough evidence against it. Without weights, it is the minimum over m of the
# evidence of one arm against "my mean is at most m" and of the other against "mine is at least m",
# which come from different rounds: see docs/inference.md.


_RIVALS = 1
_STEPS = 30  # halvings of an interval of means


def weighted_evidence(sums: Sums, arms: Ints, least: float = 0.0) -> tuple[Floats, Ints]:
    """The evidence that each of these arms (rows) is worse than a rival (columns), from weighted
    losses; and the rivals.

    The rival is the arm with the most gains: bets against the leader show which arms are out, and
    this is for the one that may be better than every other arm.

    Where the evidence is below `least` it may be given as 0, which takes less time: it is at most
    total^2 / (2 squares), and at most 0 if the total is negative, because each of its bets b pays
    b^2 / 2 of the squares at least.
    """
    moments = sums.moments[arms, COMPARABLE:OTHER]
    rivals = np.argsort(-moments[:, OPPOSITE], kind="stable")[:_RIVALS]
    total, squares = weighted_difference(sums, arms[:, None], arms[rivals])
    evidence = np.zeros(total.shape)
    may_reach = np.ones(total.shape, np.bool_)
    if least > 0.0:
        may_reach = (total > 0.0) & (total * total * _ROUNDING >= 2.0 * least * squares)
    evidence[may_reach] = log_wealth_of_difference(total[may_reach], squares[may_reach])
    evidence[rivals, np.arange(len(rivals))] = 0.0  # an arm is not its own rival
    return evidence, arms[rivals]


def weighted_difference(sums: Sums, arms: Ints, rivals: Ints) -> tuple[Floats, Floats]:
    """The sum and the sum of squares, over comparable rounds, of "loss of an arm + gain of a rival
    - 1".
    """
    rounds = sums.rounds[ROUNDS]
    loss = sums.moments[arms, COMPARABLE + TOTAL]
    losses = sums.moments[arms, COMPARABLE + SQUARES]
    gain = sums.moments[rivals, COMPARABLE + OPPOSITE]
    gains = sums.moments[rivals, COMPARABLE + OPPOSITE_SQUARES]
    total = loss + gain
    return total - rounds, losses + gains + rounds - 2.0 * total


def plain_evidence(
    sums: Sums, arms: Ints, rival: int, margin: float = 0.0, times: float = 1.0
) -> Floats:
    """The evidence of losses seen, `times` as many, that each of these arms is worse than one rival
    by more than a margin.
    """
    moments = times * sums.moments[arms, PLAIN:COMPARABLE]
    seen = times * sums.counts[arms, SEEN]
    rival_moments = times * sums.moments[rival, PLAIN:COMPARABLE]
    rival_seen = np.full(len(seen), times * sums.counts[rival, SEEN])
    rival_gain = np.full(len(seen), rival_moments[OPPOSITE])
    rival_gains = np.full(len(seen), rival_moments[OPPOSITE_SQUARES])

    def evidence_at(mean: Floats) -> tuple[Floats, Floats]:
        """The evidence if the rival's mean is this one, and its slope."""
        own, own_slope = log_wealth(seen, moments[:, TOTAL], moments[:, SQUARES], mean + margin)
        other, other_slope = log_wealth(rival_seen, rival_gain, rival_gains, 1.0 - mean)
        return own + other, own_slope - other_slope

    # Convex in the mean, so its slope tells on which side the minimum lies.
    low = np.full(len(seen), max(0.0, -margin))
    high = np.full(len(seen), min(1.0, 1.0 - margin))
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        _, slope = evidence_at(middle)
        is_falling = slope < 0.0
        low = np.where(is_falling, middle, low)
        high = np.where(is_falling, high, middle)
    return evidence_at(0.5 * (low + high))[0]


def lower_plain_difference(sums: Sums, arm: int, rival: int) -> float:
    """A lower bound of an arm's mean loss minus a rival's, if neither changes."""
    arms = np.array([arm])
    enough = -np.log(sums.risk * sums.share_of_pairs(arms, rival)[0])
    low = -1.0
    high = 1.0
    while high - low > 1e-6:
        middle = 0.5 * (low + high)
        if plain_evidence(sums, arms, rival, margin=middle)[0] >= enough:
            low = middle
        else:
            high = middle
    return low


def difference(sums: Sums, arm: int, other: int, *, drift: bool) -> Interval:
    """One arm's mean loss minus another's. If losses may drift, it excludes 0 if, and only if, the
    sums have settled the two.

    Once they are settled it stays so. If the evidence has become less since, this is the interval
    that showed it.
    """
    if arm == other:
        return Interval(0.0, 0.0, 0.0)
    now = difference_now(sums, arm, other, drift=drift)
    if drift != sums.drift or (not drift and sums.by_law):
        return now
    if (arm, other) in sums.settled:
        return now if now.low > 0.0 else _interval_of(sums.settled[arm, other])
    if (other, arm) in sums.settled:
        return now if now.high < 0.0 else _negated(_interval_of(sums.settled[other, arm]))
    return Interval.around(now.estimate, min(now.low, 0.0), max(now.high, 0.0))


def difference_now(sums: Sums, arm: int, other: int, *, drift: bool) -> Interval:
    """The difference by the evidence of now alone.

    >>> from decoupled.inference import Sequences
    >>> sequences = Sequences(arms=2)
    >>> for n in range(500):
    ...     sequences.update(explore=n % 2, weight=2.0, loss=0.25 if n % 2 else 0.75, exploit=0)
    >>> round(difference_now(sequences.sums, 0, 1, drift=True).estimate, 1)
    0.5
    """
    # Weights that cannot be right may show more than any two losses differ.
    low = min(_lower(sums, arm, other, drift=drift), 1.0)
    high = -min(_lower(sums, other, arm, drift=drift), 1.0)
    estimate = estimated_difference(sums, arm, other, drift=drift)
    if low > high:
        # The two ends weigh rounds differently, and the arms took turns: there is no interval.
        return Interval.around(estimate, -1.0, 1.0)
    return Interval.around(estimate, low, high)


def estimated_difference(sums: Sums, arm: int, other: int, *, drift: bool) -> float:
    """The estimate alone."""
    slot, other_slot = sums.pairs.slots((arm, other)).tolist()
    if (drift or sums.by_law) and min(slot, other_slot) >= 0:
        return sums.pairs.difference(slot, other_slot)
    mean, other_mean = comparable_means(sums, drift=drift)[[arm, other]]
    return float(sums.unmapped_difference(mean - other_mean))


def comparable_means(sums: Sums, *, drift: bool) -> Floats:
    """The estimated mean loss of every arm, over rounds that compare all of them."""
    moments = sums.moments[:, COMPARABLE:OTHER] if drift else sums.moments[:, PLAIN:COMPARABLE]
    return ratio(moments[:, TOTAL], moments[:, OPPOSITE])


def ratio(loss: Floats, gain: Floats) -> Floats:
    """The self-normalised estimate: weighted losses over weights; 1/2 where nothing was seen."""
    weights = loss + gain
    with np.errstate(invalid="ignore"):
        return np.where(weights > 0.0, loss / np.where(weights > 0.0, weights, 1.0), 0.5)


def _lower(sums: Sums, arm: int, other: int, *, drift: bool) -> float:
    """A lower bound of one arm's mean loss minus another's, by the evidence of now."""
    slot, other_slot = sums.pairs.slots((arm, other)).tolist()
    if not drift and not (sums.by_law and min(slot, other_slot) >= 0):
        return float(sums.unmapped_difference(lower_plain_difference(sums, arm, other)))
    if min(slot, other_slot) >= 0:
        share_of = _parts_of_pairs if drift else Sums.share_of_pairs
        share = float(share_of(sums, np.array([arm]), other)[0])
        return sums.pairs.lower(slot, other_slot, sums.risk * share)
    total, squares = weighted_difference(sums, np.array([arm]), np.array([other]))
    risk = sums.risk * _part_of_new_pairs(sums)
    bound = lower_difference(sums.rounds[ROUNDS], total, squares, risk)
    return float(sums.unmapped_difference(bound[0]))


def _interval_of(shown: Shown) -> Interval:
    return Interval(shown.estimate, shown.low, shown.high)


def _negated(interval: Interval) -> Interval:
    """The interval of the opposite difference."""
    return Interval(-interval.estimate, -interval.high, -interval.low)

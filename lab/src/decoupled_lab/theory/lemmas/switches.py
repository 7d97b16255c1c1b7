"""Lemmas S1 to S3 of sticky serving: how often a key whose perturbations stay changes its arm, or its rung."""

import math
from collections.abc import Iterator

import numpy as np

from decoupled.base import Floats
from decoupled.extend import winner_law

from ..bounds.constants import HALF, Gate, curvature_constant, rank_sum
from ..bounds.switching import (
    late_rate_constant,
    late_switch_constant,
    rate_fall_cost,
    switch_constant,
)
from ..inequality import Sides, ours
from ..moment import Moment
from ..rounds import CentredRound
from ..trajectory import Trajectory
from .centred import Hedge, prior_cost

LAW = ours("|served keys / keys - w| <= deviation of probability 1e-9", "sticky, S1")
RISE = ours("switches if an arm rises by x <= x C1 q^2", "sticky, S2")
ESTIMATES = ours("switches by the estimates <= eta C1 Z", "sticky, S2")
GAIN = ours(
    "keys that an arm gains if it alone falls by e eta u <= e (1 - e)^-(alpha + 1) C1 eta u q^2",
    "sticky, S2",
)
EVENT = ours("switches by a fall of the rate <= sum of these gains", "sticky, S2")
RATE = ours("switches by a fall of the rate <= e (1 - e)^-(alpha + 1) C1 ln K", "sticky, S2")
LEADING = ours(
    "on D_t, late: switches by the estimates <= eta C1 (1 + (1 + zeta)^(alpha + 1)) sum q^2 without the best",
    "sticky, S3",
)
LATE = ours("late: switches by the estimates <= C2 eta (1 - w_best)", "sticky, S3")
LATE_RATE = ours(
    "switches by a fall of the rate <= e (1 - e)^-(alpha + 1) C1 max(8, ln K / 0.197) (1 - w_best)",
    "sticky, S3",
)
MOVES = ours(
    "soft gate: switches by the estimates <= eta C1 sum (1 + eta d)^(alpha + 1) q^2 (d + rise + R1 fall)",
    "sticky, S2",
)
GATED = ours(
    "soft gate: switches by the estimates <= eta (1 + eta)^(alpha + 1) C1 max(2, R1) Z",
    "sticky, S2",
)
HIGHER = ours(
    "higher rung: switches by the estimates <= eta (1 + eta)^(alpha + 1) min(C1 max(2, R1) Z, 2 K + C1 R1 Z)",
    "sticky, S2",
)
STEP = ours("TV of a step of AdaHedge at one rate <= sqrt(L0 gap / (2 Delta))", "sticky, weights")
WEIGHTS = ours(
    "sum of TV of AdaHedge <= M + sqrt(max(1, L0 / 2) T log2(Delta_T / Delta_1)) + l0 ln(Delta_T / Delta_1)",
    "sticky, weights",
)
RACE = ours("rungs changed by an exponential race <= 2 TV / (1 + TV)", "sticky, weights")
CUMULATED = ours("rungs changed by cumulated weights <= (M - 1) TV", "sticky, weights")

MOST_ARMS = 16  # the exact probability of a switch takes an integral for each arm
# The exact probability is a difference of numbers around 1, so smaller ones have too few digits.
_LEAST = 1e-7
_FALLS = (0.02, 1.0 - math.sqrt(0.5))  # the second is that after round 1; no later one is larger
_KEYS = 200
FALSE_ALARM = 1e-9


def new_wins(before: Floats, after: Floats, alpha: float) -> Floats:
    """The probability of each arm to lose in argmax(r - before) and win in argmax(r - after), for the same draws r.

    An arm wins both if every other draw is below its own plus the smaller of its two distances, so this is the law of a
    winner again, with other distances for each arm.

    >>> import numpy as np
    >>> from decoupled_lab.theory.lemmas.switches import new_wins
    >>> new_wins(np.array([0.0, 1.0, 2.0]), np.array([0.5, 1.0, 2.0]), 3.0).round(6).tolist()  # one arm rose
    [0.0, 0.089153, 0.014777]
    """
    law = winner_law(after - after.min(), alpha, False)
    for arm in range(len(before)):
        nearer = np.minimum(before - before[arm], after - after[arm])
        law[arm] -= winner_law(nearer - nearer.min(), alpha, False)[arm]
    return np.maximum(law, 0.0)


def switch_probability(before: Floats, after: Floats, alpha: float) -> float:
    """The probability that argmax(r - before) is not argmax(r - after), for the same Pareto(alpha) draws r."""
    return float(new_wins(before, after, alpha).sum())


def sides(moment: Moment) -> Iterator[Sides]:
    """S2 and S3 in one state, at a loss of 1 of the explored arm, where most keys switch."""
    alpha, eta, arms = moment.alpha, moment.eta, np.arange(moment.arms)
    squares = moment.levels ** -(alpha + 1.0)
    bound = eta / moment.exploration * curvature_constant(alpha) * squares
    yield Sides(RISE, moment.stability, bound, arms)
    mean = float(moment.exploration @ moment.stability)
    yield Sides(ESTIMATES, mean, eta * switch_constant(alpha))
    if eta * rank_sum(moment.arms, alpha) <= moment.zeta:
        lost = float(moment.moments.law[moment.others].sum())
        yield Sides(LATE, mean, late_switch_constant(alpha, moment.zeta) * eta * lost)
        if moment.on_event:
            rises = 1.0 + (1.0 + moment.zeta) ** (alpha + 1.0)
            others = float(squares[moment.others].sum())
            yield Sides(LEADING, mean, eta * curvature_constant(alpha) * rises * others)
    if moment.arms <= MOST_ARMS:
        for fall in _FALLS:
            yield from _slowed(moment, fall, squares)


def _slowed(moment: Moment, fall: float, squares: Floats) -> Iterator[Sides]:
    """A rate that falls by this share, to the state for S3 and from the state for S2."""
    alpha, shifts, arms = moment.alpha, moment.shifts, np.arange(moment.arms)
    cost = curvature_constant(alpha) * float(rate_fall_cost(fall, alpha))
    law = moment.moments.law
    fallen = [
        _after_fall(shifts, arm, fall * float(shift), alpha) for arm, shift in enumerate(shifts)
    ]
    gains, bound = np.array(fallen) - law, cost * shifts * squares
    known = bound > _LEAST
    yield Sides(GAIN, gains[known], bound[known], arms[known])
    left = switch_probability(shifts, (1.0 - fall) * shifts, alpha)
    yield Sides(EVENT, left, float(gains.sum()) + _LEAST)
    yield Sides(RATE, left, cost * math.log(moment.arms))
    lost = float(law[moment.others].sum())
    late = late_rate_constant(moment.arms, alpha) * float(rate_fall_cost(fall, alpha)) * lost
    if late > _LEAST:
        yield Sides(LATE_RATE, switch_probability(shifts / (1.0 - fall), shifts, alpha), late)


def _after_fall(shifts: Floats, arm: int, x: float, alpha: float) -> float:
    """The probability of an arm after it alone has fallen by x."""
    moved = shifts.copy()
    moved[arm] -= x
    return float(winner_law(moved - moved.min(), alpha, False)[arm])


def round_sides(played: CentredRound) -> Iterator[Sides]:
    """S2 for one round of the centred estimator, at the rate of its gate and at those of its rungs."""
    if played.moment.arms > MOST_ARMS:
        return
    alpha, gate, eta = played.moment.alpha, played.gate, played.moment.eta
    for rate in (eta, *(rung for rung in played.rungs if rung > eta)):
        here = (
            gate if rate == eta else Gate(gate.a * rate / eta, gate.delta)
        )  # in units of this rate
        growth, right = rate * (1.0 + rate) ** (alpha + 1.0), switch_constant(alpha, here)
        if rate > eta:
            # A fall by more than 1/2 needs p < 2 rate, and so has a probability below 2 K rate.
            right = min(right, 2.0 * played.moment.arms + switch_constant(alpha, HALF))
        if growth * right > _LEAST:
            left, moves = _mean_switches(played, rate), _moves(played, rate, here)
            yield Sides(MOVES, left, moves + _LEAST)
            yield Sides(GATED if rate == eta else HIGHER, left, growth * right)


def _moves(played: CentredRound, rate: float, gate: Gate) -> float:
    """What the drift and the jumps of all arms cost, at this rate."""
    alpha, excess = played.moment.alpha, played.losses - played.b
    levels = np.maximum(1.0 + rate * played.moment.gaps, played.ranks ** (1.0 / alpha))
    falls = np.maximum(-excess, 0.0) * gate.switch_factor(alpha)
    moves = (1.0 + rate * played.d) ** (alpha + 1.0) * (played.d + np.maximum(excess, 0.0) + falls)
    return rate * curvature_constant(alpha) * float(moves @ levels ** -(alpha + 1.0))


def _mean_switches(played: CentredRound, rate: float) -> float:
    """The probability of a switch after this round, in expectation over the explored arm."""
    before = rate * played.moment.gaps
    found = 0.0
    for arm, p in enumerate(played.p):
        after = before + rate * (played.b - played.mean)  # all arms less the common mean
        after[arm] += rate * (played.losses[arm] - played.b[arm]) / p
        found += float(p) * switch_probability(before, after, played.moment.alpha)
    return found


def race_change(before: Floats, after: Floats) -> float:
    """The probability that argmin(E / before) is not argmin(E / after), for the same exponential draws E.

    >>> import numpy as np
    >>> from decoupled_lab.theory.lemmas.switches import cumulated_change, race_change
    >>> before, after = np.array([0.5, 0.5, 0.0]), np.array([0.0, 0.5, 0.5])
    >>> round(race_change(before, after), 3), cumulated_change(before, after)  # the total variation is 1/2
    (0.667, 1.0)
    """
    stays = 0.0
    with np.errstate(over="ignore"):  # a weight near 0 wins no key
        for mine in np.flatnonzero((before > 0.0) & (after > 0.0)):
            stays += 1.0 / float(np.maximum(before / before[mine], after / after[mine]).sum())
    return max(0.0, 1.0 - stays)


def cumulated_change(before: Floats, after: Floats) -> float:
    """The probability that a uniform variable falls between other cumulated weights than before."""
    ends = [np.concatenate(([0.0], np.cumsum(w)[:-1], [1.0])) for w in (before, after)]
    low, high = np.maximum(ends[0][:-1], ends[1][:-1]), np.minimum(ends[0][1:], ends[1][1:])
    return max(0.0, 1.0 - float(np.maximum(high - low, 0.0).sum()))


def weight_sides(run: Hedge) -> Iterator[Sides]:
    """How much the weights of AdaHedge move in all, and how many keys change their rung with them."""
    before, after, rungs = run.weights[:-1], run.weights[1:], run.weights.shape[1]
    moved = total_variation(before, after)
    yield Sides(RACE, list(map(race_change, before, after)), 2.0 * moved / (1.0 + moved) + 1e-12)
    yield Sides(
        CUMULATED, list(map(cumulated_change, before, after)), (rungs - 1.0) * moved + 1e-12
    )
    deltas = np.cumsum(np.maximum(run.gaps, 0.0))[:-1]  # which the weights of rounds 2, 3, ... know
    if not deltas[-1] > 0.0:
        return
    late = np.flatnonzero(deltas > 0.0)
    rates, losses = (
        run.l0 / deltas[late, None],
        np.where(after[late] > 0.0, run.losses[1:][late], np.inf),
    )
    stepped = after[late] * np.exp(-rates * (losses - losses.min(axis=1, keepdims=True)))
    stepped /= stepped.sum(axis=1, keepdims=True)
    gaps = np.maximum(run.gaps[1:][late], 0.0)
    # A gap is a difference of losses, and the root of its last digit counts.
    yield Sides(
        STEP, total_variation(after[late], stepped), np.sqrt(0.5 * rates[:, 0] * gaps) + 1e-6
    )
    grown = math.log(float(deltas[-1]) / float(deltas[late[0]]))
    root = math.sqrt(max(1.0, 0.5 * run.l0) * len(moved) * grown / math.log(2.0))
    rest = float(prior_cost(run.prior).max()) * grown
    yield Sides(WEIGHTS, float(moved.sum()), rungs + root + rest)


def total_variation(before: Floats, after: Floats) -> Floats:
    """The total variation distance of two laws, row by row."""
    return np.asarray(0.5 * np.abs(after - before).sum(axis=-1))


def keyed(trajectory: Trajectory) -> Iterator[tuple[int, Sides]]:
    """S1: keys whose draws stay for the whole trajectory are served by the law of every single round."""
    alpha, arms = trajectory.alpha, np.arange(trajectory.estimates.shape[1])
    draws = _draws(len(arms), alpha)
    chosen = np.unique(np.geomspace(1.0, trajectory.horizon, 12).round().astype(np.int64))
    log = math.log(2.0 * len(arms) * len(chosen) / FALSE_ALARM)
    for round_ in chosen:
        moment = trajectory.moment(int(round_), 0.1)
        served = np.bincount(np.argmax(draws - moment.shifts, axis=1), minlength=len(arms))
        law = moment.moments.law
        # Bernstein: exceeding x has probability at most exp(-x^2 / (2 (variance + x / 3))).
        limit = log / 3.0 + np.sqrt((log / 3.0) ** 2 + 2.0 * _KEYS * law * (1.0 - law) * log)
        yield int(round_), Sides(LAW, np.abs(served / _KEYS - law), limit / _KEYS, arms)


def _draws(arms: int, alpha: float) -> Floats:
    """The perturbations of all keys, one row each."""
    return (1.0 - np.random.default_rng(0).random((_KEYS, arms))) ** (-1.0 / alpha)

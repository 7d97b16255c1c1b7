"""Draws: the perturbed leader, an index with given weights, and a loss with a given mean.

A loss uses one number of the noise stream per round, whatever is played.
"""

import math
from typing import Any

import numpy as np

from ...base.arrays import Floats, Words
from ..jit import compiled
from ..lazy_numba import on_cpu, overload
from ..order.tiers import Tiers, count_of, value_at
from ..powers import inverse_power, power
from .stream import next_word, uniform, unit

# For events rarer than one in this many, a distance is drawn: that is cheaper than looking at the
# next arms.
RARE = 5.0


@compiled
def pareto_leader(ranked: Floats | Tiers, eta: float, alpha: float, stream: Words) -> int:
    """The rank of the arm that wins if each score is a Pareto(alpha) draw less eta times the gap.

    `ranked` holds the estimates in increasing order: an array or a tiered vector. The winner has
    exactly the law of drawing every arm, but only about log K arms are looked at. An arm beats the
    best score so far once in (best + eta * gap) ** alpha draws, and in rank order that only gets
    rarer. So the distance to the next *candidate* is geometric under the current chance, and the
    candidate is accepted with the ratio of its own chance to that bound. The first arm's draw is at
    least 1, and its value is not needed until another arm has beaten 1.

    Scores are stored less 1, because with a large alpha they are close to 1.

    Args:
        ranked: the estimates in increasing order: an array or a tiered vector.
        eta: the learning rate.
        alpha: the shape of the perturbations.
        stream: the random stream.

    Returns:
        The rank of the winner, from 0.

    >>> import numpy as np
    >>> stream = np.array([11**18, 13**17], np.uint64)  # a policy gets one from the package
    >>> wins = [pareto_leader(np.array([0.0, 1.0, 2.0]), 1.0, 3.0, stream) for _ in range(1_000)]
    >>> np.bincount(wins).tolist()
    [895, 79, 26]
    """
    arms = count_of(ranked)
    lowest = value_at(ranked, 0)
    best = 0.0
    leader = -1
    place = 1
    while place < arms:
        shift = eta * (value_at(ranked, place) - lowest)
        rarity = power(best + shift, alpha)  # one over the chance
        mark = uniform(stream)
        bound = 1.0
        if rarity > RARE:
            # (1 - chance) ** m >= 1 - m * chance: most often this shows at once that no arm is
            # left. Written so that an infinite rarity ends the search as well.
            if not (1.0 - mark) * rarity < arms - place:
                break
            place += failures_before(mark, rarity, arms)
            if place >= arms:
                break
            bound = rarity
            shift = eta * (value_at(ranked, place) - lowest)
            rarity = power(best + shift, alpha)
            mark = uniform(stream)
        # At most twice. A single place for both draws keeps the threads of a GPU together.
        while leader < place and mark * rarity <= bound:
            excess = pareto_excess(alpha, stream)
            if leader < 0:
                leader = 0
                best = excess
                rarity = power(best + shift, alpha)
            else:
                leader = place
                # A Pareto draw that exceeds some level is that level times another such draw.
                best += (1.0 + (best + shift)) * excess
        place += 1
    return max(leader, 0)


@compiled
def pareto_excess(alpha: float, stream: Words) -> float:
    """A Pareto(alpha) draw less 1, accurate even if a large alpha makes it close to 0."""
    if alpha == 3.0 or alpha == 2.0:
        # One over the largest of three uniforms, or of two: a quarter of the cost of U ** (-1 /
        # alpha).
        word = max(next_word(stream), next_word(stream))
        if alpha == 3.0:
            word = max(word, next_word(stream))
        largest = unit(word)
        return (1.0 - largest) / largest
    return math.expm1(-math.log(uniform(stream)) / alpha)


@compiled
def frechet_leader(ranked: Floats, eta: float, alpha: float, stream: Words) -> int:
    """The rank of the arm that wins if each score is a Frechet(alpha) draw less eta times the gap.

    A Frechet draw is t ** (-1/alpha) with t exponential. An arm beats the best score so far if its
    t is below level = (best + eta * gap) ** -alpha, and in rank order the level only falls. So one
    exponential number serves many arms: each arm passed over uses up one level of it, and the
    remainder, once smaller than a level, is the t of the next *candidate*, already drawn below the
    current level. The candidate leads if that t is below its own level too. Only about log K arms
    are looked at, and the winner has exactly the law of drawing every arm.

    Scores are stored less 1, because with a large alpha they are close to 1.
    """
    arms = len(ranked)
    lowest = ranked[0]
    best = inverse_root_excess(-math.log(uniform(stream)), alpha)
    leader = 0
    place = 1
    while place < arms:
        level = inverse_power(best + eta * (ranked[place] - lowest), alpha)
        life = -math.log(uniform(stream))
        # Written so that a level of zero ends the search as well.
        if not life < level * (arms - place):
            break
        passed = int(life / level)
        place += passed
        if place >= arms:
            break
        remaining = max(life - passed * level, 0.0)
        score = inverse_root_excess(remaining, alpha) - eta * (ranked[place] - lowest)
        if score > best:
            leader = place
            best = score
        place += 1
    return leader


@compiled
def inverse_root_excess(tail: float, alpha: float) -> float:
    """The perturbation with a given tail probability, less 1: tail ** (-1/alpha) - 1, infinite for
    a tail of 0.
    """
    if alpha == 2.0:
        return 1.0 / math.sqrt(tail) - 1.0
    return math.expm1(-math.log(tail) / alpha)


@on_cpu
def failures_before(mark: float, rarity: float, most: int) -> int:
    """The number of failures before an event of chance 1 / rarity, by inversion of `mark`.

    The rarity is above `RARE`, and any result of at least `most` will do.
    """
    return bounded_failures(mark, rarity, most)


@compiled
def bounded_failures(mark: float, rarity: float, most: int) -> int:
    """The number of failures, from a lower and an upper bound where both have the same whole part.

    The number is the whole part of log(mark) / log(1 - 1 / rarity). With r for the rarity,
    -1 / log(1 - 1 / r) is below r - 1/2, by at most `_SECOND_ORDER`. So the logarithm of the mark
    to a few digits is enough in 49 of 50 draws, and it is ready before the rarity is known. The
    policy waits for the result, but no longer for a division and a chain of powers: a round of 64
    arms takes an eighth less time.
    """
    life = -rough_log(mark)
    high = (life + _ROUGH) * (rarity - 0.5)
    low = (life - _ROUGH) * (rarity - (0.5 + _SECOND_ORDER))
    if low >= most:
        return most
    if high < most + 1 and int(high) == int(low):
        return int(high)
    return failures(mark, 1.0 / rarity, most)


# -1 / log(1 - c) = 1 / c - 1/2 - c / 12 - c^2 / 24 - ..., where c < 1 / RARE.
_SECOND_ORDER = 0.0186
_ROUGH = 5e-7  # more than the error of `rough_log`
_LOG_OF_2 = math.log(2.0)
_FRACTION = (1 << 52) - 1
_EXPONENT_OF_ONE = 1023
_LOG = (  # coefficients of increasing powers
    -2.242923708,
    4.91173517,
    -5.125049796,
    3.927299329,
    -2.014221196,
    0.655653732,
    -0.122502564,
    0.01000929,
)


@compiled
def rough_log(number: float) -> float:
    """The logarithm of a positive number to six digits after the point.

    A polynomial of the number scaled to [1, 2), by Chebyshev interpolation, has the same bits on
    any processor.
    """
    bits = np.float64(number).view(np.int64)
    scaled = np.int64((bits & _FRACTION) | (_EXPONENT_OF_ONE << 52)).view(np.float64)
    exponent = float((bits >> 52) - _EXPONENT_OF_ONE)
    square = scaled * scaled
    low = (_LOG[0] + _LOG[1] * scaled) + (_LOG[2] + _LOG[3] * scaled) * square
    high = (_LOG[4] + _LOG[5] * scaled) + (_LOG[6] + _LOG[7] * scaled) * square
    return exponent * _LOG_OF_2 + (low + high * (square * square))


# Not `strict`, because a lambda cannot have the annotations of its overload.
@overload(failures_before, target="cuda", strict=False)
def _failures_on_gpu(mark: Any, rarity: Any, most: Any) -> Any:
    return lambda mark, rarity, most: failures(mark, 1.0 / rarity, most)


@compiled
def failures(mark: float, chance: float, most: int) -> int:
    """The number of failures before the first success, by inversion of a uniform `mark`.

    Any result >= `most` will do.

    It is the largest m with (1 - chance) ** m >= mark. Up to 64, m is assembled from powers of two:
    two logarithms were a quarter of a GPU's instructions in a round of eight arms.
    """
    if most > 64:
        return int(math.log(mark) / log_complement(chance))
    # The powers of 1 - chance are the chances of so many failures; `tail` is that of `count`.
    power_1 = 1.0 - chance
    power_2 = power_1 * power_1
    power_4 = power_2 * power_2
    count = 0
    tail = 1.0
    if most > 8:
        power_8 = power_4 * power_4
        if most > 16:
            power_16 = power_8 * power_8
            if most > 32:
                power_32 = power_16 * power_16
                if power_32 >= mark:
                    count = 32
                    tail = power_32
            if tail * power_16 >= mark:
                count += 16
                tail *= power_16
        if tail * power_8 >= mark:
            count += 8
            tail *= power_8
    if tail * power_4 >= mark:
        count += 4
        tail *= power_4
    if tail * power_2 >= mark:
        count += 2
        tail *= power_2
    if tail * power_1 >= mark:
        count += 1
    return count


@compiled
def log_complement(chance: float) -> float:
    """log(1 - chance) to ten digits, at a third of the cost of log1p."""
    return math.log(1.0 - chance) if chance > 1e-6 else -chance * (1.0 + 0.5 * chance)


@compiled
def total(weights: Floats) -> float:
    """The sum in eight lanes, so that additions need not wait for each other.

    The order is the same on any processor.

    Args:
        weights: the numbers to sum.

    >>> import numpy as np
    >>> total(np.array([0.5, 1.0, 0.25]))
    1.75
    """
    count = len(weights)
    a = b = c = d = e = f = g = h = 0.0
    in_lanes = count - count % 8
    for k in range(0, in_lanes, 8):
        a += weights[k]
        b += weights[k + 1]
        c += weights[k + 2]
        d += weights[k + 3]
        e += weights[k + 4]
        f += weights[k + 5]
        g += weights[k + 6]
        h += weights[k + 7]
    for k in range(in_lanes, count):
        a += weights[k]
    return ((a + b) + (c + d)) + ((e + f) + (g + h))


@compiled
def categorical(weights: Floats, weight_sum: float, stream: Words) -> int:
    """Draw an index with probability weights[k] / weight_sum; an index of weight 0 is never drawn.

    Args:
        weights: the weight of each index, 0 or more.
        weight_sum: their sum, such as `total` gives.
        stream: the random stream.

    >>> import numpy as np
    >>> stream = np.array([11**18, 13**17], np.uint64)  # a policy gets one from the package
    >>> drawn = [categorical(np.array([0.0, 1.0, 3.0]), 4.0, stream) for _ in range(1_000)]
    >>> np.bincount(drawn).tolist()
    [0, 253, 747]
    """
    target = uniform(stream) * weight_sum
    for k in range(len(weights)):
        target -= weights[k]
        if target <= 0.0 and weights[k] > 0.0:
            return k
    # Rounding left a remainder. It goes to the heaviest index, whose probability it changes least.
    heaviest = 0
    for k in range(len(weights)):
        if weights[k] > weights[heaviest]:
            heaviest = k
    return heaviest


@compiled
def draw_both(
    exploit_weights: Floats,
    exploit_sum: float,
    explore_weights: Floats,
    explore_sum: float,
    stream: Words,
) -> tuple[int, int, float, float]:
    """Draw from two explicit laws; return a decision (exploit, explore, weight, propensity).

    Args:
        exploit_weights: the weight of exploiting each arm, 0 or more.
        exploit_sum: their sum, such as `total` gives.
        explore_weights: the weight of exploring each arm, 0 or more.
        explore_sum: their sum.
        stream: the random stream.

    Returns:
        The arm to exploit, the arm to explore, 1 / the probability of exploring it, and that
            probability.

    >>> import numpy as np
    >>> stream = np.array([11**18, 13**17], np.uint64)  # a policy gets one from the package
    >>> exploit, explore = np.array([0.0, 1.0]), np.array([1.0, 3.0])
    >>> draw_both(exploit, total(exploit), explore, total(explore), stream)
    (1, 0, 4.0, 0.25)
    """
    exploit = categorical(exploit_weights, exploit_sum, stream)
    explore = categorical(explore_weights, explore_sum, stream)
    drawn_weight = explore_weights[explore]
    return exploit, explore, explore_sum / drawn_weight, drawn_weight / explore_sum


@compiled
def draw_one(weights: Floats, weight_sum: float, stream: Words) -> tuple[int, int, float, float]:
    """Draw from one explicit law, for the standard game; return a decision with the same arm twice.

    Args:
        weights: the weight of each arm, 0 or more.
        weight_sum: their sum, such as `total` gives.
        stream: the random stream.

    Returns:
        The arm, the same arm, 1 / its probability, and that probability.

    >>> import numpy as np
    >>> stream = np.array([11**18, 13**17], np.uint64)  # a policy gets one from the package
    >>> draw_one(np.array([1.0, 3.0]), 4.0, stream)
    (1, 1, 1.3333333333333333, 0.75)
    """
    arm = categorical(weights, weight_sum, stream)
    drawn_weight = weights[arm]
    return arm, arm, weight_sum / drawn_weight, drawn_weight / weight_sum


BERNOULLI, NONE, BETA = range(3)
KINDS = ("bernoulli", "none", "beta")  # in the order of the numbers above


@compiled
def draw_loss(kind: int, concentration: float, mean: float, noise: Words, local: Words) -> float:
    """A loss in [0, 1] with the given mean; `local` is work space for two words."""
    if kind == BERNOULLI:
        return 1.0 if uniform(noise) <= mean else 0.0
    if kind == NONE:
        return mean
    # The number of uniforms that a Beta draw needs varies, so each round has a stream of its own.
    word = next_word(noise)
    local[0] = word
    local[1] = ~word * np.uint64(0x9E3779B97F4A7C15) | np.uint64(1)
    return beta(mean, concentration, local)


@compiled
def beta(mean: float, concentration: float, stream: Words) -> float:
    """A draw from Beta(mean * concentration, (1 - mean) * concentration)."""
    if mean <= 0.0 or mean >= 1.0:
        return mean
    first = gamma(mean * concentration, stream)
    second = gamma((1.0 - mean) * concentration, stream)
    if first + second == 0.0:
        # Both underflowed. With such a small concentration the draw is a coin toss to within
        # 1e-300.
        return 1.0 if uniform(stream) <= mean else 0.0
    return first / (first + second)


@compiled
def gamma(shape: float, stream: Words) -> float:
    """A draw from Gamma(shape, 1).

    Marsaglia, G. and Tsang, W. W. (2000). A simple method for generating gamma variables. ACM
    Transactions on Mathematical Software 26(3).
    """
    boost = 1.0
    if shape < 1.0:
        boost = uniform(stream) ** (1.0 / shape)
        shape += 1.0
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = normal(stream)
        v = 1.0 + c * x
        if v <= 0.0:
            continue
        v = v * v * v
        if math.log(uniform(stream)) < 0.5 * x * x + d - d * v + d * math.log(v):
            return boost * d * v


@compiled
def normal(stream: Words) -> float:
    """A standard normal draw (Box and Muller)."""
    radius = math.sqrt(-2.0 * math.log(uniform(stream)))
    return radius * math.cos(2.0 * math.pi * uniform(stream))

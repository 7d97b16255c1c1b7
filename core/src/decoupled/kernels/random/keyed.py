"""Draws that belong to a key, such as a session or a user, and not to a round.

A key has one draw for each arm, a hash of the seed's secret, the key and the arm's serial number,
and they take the place of fresh draws. So for a key drawn at random the arm has the policy's law,
exactly; the same key has the same arm until what is learned moves it; and nothing has to be stored.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from ...base.arrays import Floats, Ints, Words
from ..jit import compiled
from ..powers import power
from .stream import hashed_unit, scrambled

MOST_BYTES = 1024  # of a key's text, in UTF-8
PERTURBATION, RACE, ANY, RUNG = range(4)  # what a draw is for
_PURPOSES = 4
ROUNDING = 1.0 - 1e-9  # of what is compared before its logarithm is known
_POSITIVE = np.uint64(2**63 - 1)
_PURPOSE_OF_SECRET = np.uint64(0x6B65797365727665)  # apart from the secret's other uses
_ONE = np.uint64(1)
_WORD = np.uint64(64)


class Keyed(NamedTuple):
    """How a policy draws the arm of a key.

    Attributes:
        function: a compiled function of these arguments, the arms' serial numbers, and the hash of
            the key.
        arguments: numbers and arrays.
    """

    function: Any
    arguments: tuple[Any, ...]


@compiled
def _turned(word: np.uint64, bits: np.uint64) -> np.uint64:
    """A word with its bits turned to the left by so many places."""
    return (word << bits) | (word >> (_WORD - bits))


@compiled
def _sip_round(
    a: np.uint64, b: np.uint64, c: np.uint64, d: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    """One round of SipHash: two halves at a time, of four words."""
    a = a + b
    c = c + d
    b = _turned(b, np.uint64(13)) ^ a
    d = _turned(d, np.uint64(16)) ^ c
    a = _turned(a, np.uint64(32)) + d
    c = c + b
    b = _turned(b, np.uint64(17)) ^ c
    d = _turned(d, np.uint64(21)) ^ a
    return a, b, _turned(c, np.uint64(32)), d


@compiled
def sip_hash(first: np.uint64, second: np.uint64, text: Words, length: int) -> np.uint64:
    """SipHash-2-4 of the first `length` bytes of a text, under a secret of two words.

    Zeros must follow the text.

    Aumasson, J.-P. and Bernstein, D. J. (2012). SipHash: a fast short-input PRF. INDOCRYPT.
    """
    a = first ^ np.uint64(0x736F6D6570736575)
    b = second ^ np.uint64(0x646F72616E646F6D)
    c = first ^ np.uint64(0x6C7967656E657261)
    d = second ^ np.uint64(0x7465646279746573)
    whole_words = length // 8
    for k in range(whole_words + 1):
        word = text[k]
        if k == whole_words:
            word |= np.uint64(length % 256) << np.uint64(56)
        d ^= word
        a, b, c, d = _sip_round(a, b, c, d)
        a, b, c, d = _sip_round(a, b, c, d)
        a ^= word
    c ^= np.uint64(255)
    for _ in range(4):
        a, b, c, d = _sip_round(a, b, c, d)
    return a ^ b ^ c ^ d


@compiled
def hash_key(text: Words, secret: float, length: int) -> int:
    """Hash a key: its text and the secret of the seed, to a number from 0 to 2^63 - 1."""
    first = scrambled(np.uint64(int(secret)) ^ _PURPOSE_OF_SECRET)
    return int(sip_hash(first, scrambled(first + _ONE), text, length) & _POSITIVE)


@compiled
def key_unit(key_hash: int, purpose: int, serial: int) -> float:
    """The draw of the key with this hash for an arm or a rung: uniform on {1, ..., 2^53} / 2^53."""
    return hashed_unit(np.uint64(key_hash), serial * _PURPOSES + purpose)


@compiled
def leader_at(estimates: Floats, rate: float, alpha: float, serials: Ints, key_hash: int) -> int:
    """The perturbed leader at one rate, with the key's Pareto(alpha) draws.

    Few arms take the lead, so most draws are compared as probabilities, without a root.
    """
    lowest = math.inf
    for arm in range(len(estimates)):
        lowest = min(estimates[arm], lowest)
    best = -math.inf
    leader = 0
    for arm in range(len(estimates)):
        tail = key_unit(key_hash, PERTURBATION, serials[arm])
        shift = rate * (estimates[arm] - lowest)
        if best + shift <= 0.0 or tail * power(best + shift, alpha) < 1.0:
            score = math.expm1(-math.log(tail) / alpha) - shift
            if score > best:
                leader = arm
                best = score
    return leader


@compiled
def keyed_leader(
    estimates: Floats, rate: Floats, alpha: float, serials: Ints, key_hash: int
) -> int:
    """`leader_at`, with the rate where the state has it."""
    return leader_at(estimates, rate[0], alpha, serials, key_hash)


@compiled
def draw_winner(weights: Floats, purpose: int, serials: Ints, key_hash: int) -> int:
    """Draw the index that wins an exponential race: each with a probability in proportion to its
    weight.

    If the weights move by a total variation of v, a key moves with a probability of at most 2 v /
    (1 + v).
    """
    soonest = math.inf
    winner = 0
    for index in range(len(weights)):
        if weights[index] > 0.0:
            unit = key_unit(key_hash, purpose, serials[index])
            # -log(u) is 1 - u at least, so most draws need no logarithm.
            if (1.0 - unit) * ROUNDING < soonest * weights[index]:
                time = -math.log(unit) / weights[index]
                if time < soonest:
                    winner = index
                    soonest = time
    return winner


@compiled
def any_arm(serials: Ints, key_hash: int) -> int:
    """An arm, drawn uniformly by the key with this hash."""
    winner = 0
    least = math.inf
    for arm in range(len(serials)):
        unit = key_unit(key_hash, ANY, serials[arm])
        if unit < least:
            winner = arm
            least = unit
    return winner


@compiled
def keyed_race(weights: Floats, serials: Ints, key_hash: int) -> int:
    """An arm with a probability proportional to its weight."""
    return draw_winner(weights, RACE, serials, key_hash)

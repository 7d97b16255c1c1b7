"""Arms compared two by two: what bets on "this arm is worse than that one" have won.

Let p_n be the law of exploration of round n, l_n the loss seen, and m_n a level in (0, 1) known
before: the running mean of whichever of the two arms was seen more often. For arms i and j take

    v_n = min(p_n(i) / m_n, p_n(j) / (1 - m_n))
    z_n = v_n (1{explored i} (l_n - m_n) / p_n(i) - 1{explored j} (l_n - m_n) / p_n(j)).

`v_n` is the largest weight at which z_n >= -1 for every loss in [0, 1]: a round can lose no more
than everything. Given the past, the mean of z_n is v_n times the difference of the two mean losses.
Whoever starts with 1 and bets the share f of it on z_n, in each round, has money that is evidence
that arm i is worse; docs/inference.md shows why, and how it bounds the weighted mean difference.

In a round whose law is not known, but the weight W_n = 1 / p_n(explored arm) is, or estimated
without bias, c (1{explored i} W_n l_n + 1{explored j} W_n (1 - l_n) - 1) takes the place of z_n,
with the weight c, 1 over the number of arms. So one evidence has both kinds of rounds, and no risk
is spent twice.

With labels, the weight has another factor: rho, the probability with which the round asked for a
label, and v_n is smaller: see `decoupled.kernels.observed`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ..base.arrays import Floats, Ints
from ..base.packed import pack_floats, pack_ints, unpack_floats, unpack_ints
from ..kernels.pair_bets import REACHED, PairTotals
from ..kernels.stakes import LARGE, LESS, PRIOR, STAKES
from .stakes import LOG_PRIOR, evidence, fresh_money, least_sum, log_money

MOST_ARMS = 100  # the sums grow with the square of their number


@dataclass(slots=True)
class Pairs:
    """The sums for pairs of arms; see `decoupled.kernels.pair_bets.PairTotals`.

    An arm keeps its slot until it is retired.

    Attributes:
        owners: the arm of each slot, -1 if it is free.
        won: for each two slots, row by row, what each stake has won, apart from `common`.
        powers: of 2^1000, that go with it.
        weights: for each two slots, the sum of the weights of rounds, apart from `common`.
        gains: for each two slots, the sum of what was bet on.
        goals: what the bets on each two slots must win together; infinite if no more is wanted.
        common: a factor of `won` for each stake that all pairs share; and, last, a part of the
            weights that they share.
        began: the logarithms of `won` when arms were last added, for what was won since then; no
            rows if none were ever added.
    """

    owners: Ints
    won: Floats
    powers: Ints
    weights: Floats
    gains: Floats
    goals: Floats
    common: Floats
    began: Floats

    @classmethod
    def start(cls, arms: int) -> "Pairs":
        """Nothing is known yet. With too many arms no pair is followed."""
        slots = arms if arms <= MOST_ARMS else 0
        square = (slots, slots)
        won, powers = fresh_money(slots * slots)
        return cls(
            owners=np.arange(slots),
            won=won,
            powers=powers,
            weights=np.zeros(square),
            gains=np.zeros(square),
            goals=np.full(square, np.inf),
            common=_nothing_common(),
            began=np.empty((0, len(STAKES))),
        )

    def copy(self) -> "Pairs":
        """A copy that shares nothing with this one."""
        return Pairs(**{field.name: getattr(self, field.name).copy() for field in fields(self)})

    def totals(self) -> PairTotals:
        """The arrays as compiled code takes them."""
        slots = len(self.owners)
        return PairTotals(
            owners=self.owners,
            stakes=STAKES,
            won=self.won,
            powers=self.powers,
            weights=self.weights,
            gains=self.gains,
            goals=self.goals,
            common=self.common,
            chances=np.zeros(slots),
            counts=np.zeros(slots),
            as_worse=np.zeros(slots),
            as_better=np.zeros(slots),
            factors=np.empty(len(STAKES)),
        )

    def slots(self, arms: Iterable[int]) -> Ints:
        """The slot of each of these arms, -1 if it has none."""
        places = {arm: slot for slot, arm in enumerate(self.owners.tolist())}
        return np.array([places.get(arm, -1) for arm in arms], np.int64)

    def admit(self, arms: Iterable[int]) -> list[int]:
        """Give new arms a slot, as long as there are any; return the slots."""
        arms = list(arms)
        free = np.flatnonzero(self.owners < 0).tolist()
        old_count = len(self.owners)
        more = min(max(len(arms) - len(free), 0), MOST_ARMS - old_count)
        self._share_common()
        if more > 0:
            self._widen(more)
            free += range(old_count, old_count + more)
        slots = free[: len(arms)]
        for slot in slots:
            self._clear(slot)
        self.owners[slots] = arms[: len(slots)]
        self.begin_stretch()
        return slots

    def begin_stretch(self) -> None:
        """Begin to count what is won from now on, for all pairs alike."""
        self.began = self._logs_of(slice(None))

    def _share_common(self) -> None:
        """Give every pair its own part of what they have in common: new arms have none."""
        self.won *= self.common[:-1]
        is_small = self.won < LESS
        self.won[is_small] *= LARGE
        self.powers[is_small] -= 1
        self.weights += (1.0 - np.eye(len(self.owners))) * self.common[-1]
        self.common = _nothing_common()

    def _widen(self, more: int) -> None:
        """Make room for more slots."""
        old = len(self.owners)
        wide = old + more
        self.owners = np.concatenate([self.owners, np.full(more, -1)])
        won = np.zeros((wide, wide, len(STAKES)))
        won[:old, :old] = self.won.reshape(old, old, -1)
        self.won = won.reshape(wide * wide, -1)
        powers = np.zeros((wide, wide, len(STAKES)), np.int64)
        powers[:old, :old] = self.powers.reshape(old, old, -1)
        self.powers = powers.reshape(wide * wide, -1)
        self.weights = np.pad(self.weights, (0, more))
        self.gains = np.pad(self.gains, (0, more))
        self.goals = np.pad(self.goals, (0, more), constant_values=np.inf)

    def _clear(self, slot: int) -> None:
        """Forget what is known of the arm in this slot."""
        square = (len(self.owners), len(self.owners), -1)
        _fill_cross(self.won.reshape(square), slot, PRIOR)
        _fill_cross(self.powers.reshape(square), slot, 0)
        _fill_cross(self.weights, slot, 0.0)
        _fill_cross(self.gains, slot, 0.0)
        _fill_cross(self.goals, slot, np.inf)

    def dismiss(self, arm: int) -> None:
        """Free the slot of a retired arm."""
        for slot in np.flatnonzero(self.owners == arm).tolist():
            self.owners[slot] = -1
            _fill_cross(self.goals, slot, np.inf)

    # What they say

    def evidence(self, worse: Ints, better: Ints, margin: float = 0.0) -> Floats:
        """The logarithms of what was won by betting that the arms in the slots `worse` (rows) are
        worse than those in `better` (columns), by more than a margin.

        A margin below 0 says by how much they may be better.
        """
        rows = worse[:, None]
        columns = better[None, :]
        return evidence(self.log_won(rows, columns), margin * self.weight(rows, columns))

    def evidence_of(self, worse: Ints, better: Ints) -> Floats:
        """The logarithm of what was won on each pair of slots, `worse` and `better` one by one."""
        return evidence(self.log_won(worse, better))

    def evidence_since(self, worse: Ints, better: int, times: float = 1.0) -> Floats:
        """The logarithms of what was won since arms were last added by betting that the arms in
        these slots are worse than the one in the slot `better`.

        With `times`, if everything won in these rounds is multiplied in proportion.
        """
        before = LOG_PRIOR
        if len(self.began) > 0:
            before = self.began[worse * len(self.owners) + better]
        return evidence(LOG_PRIOR + times * (self.log_won(worse, better) - before))

    def want(self, worse: Ints, better: int, goal: float) -> None:
        """Say when the bets on these pairs have won this much again."""
        self.goals[worse, better] = goal

    def difference(self, slot: int, other: int) -> float:
        """The estimated loss of the arm in a slot minus that of another; 0 if nothing is known.

        Rounds are weighted by the sum of the weights of both bets, so that the opposite difference
        is the opposite.
        """
        weight = float(self.weight(slot, other) + self.weight(other, slot))
        gain = float(self.gains[slot, other] - self.gains[other, slot])
        return gain / weight if weight > 0.0 else 0.0

    def weight(self, worse: Any, better: Any) -> Floats:
        """The sum of the weights of the rounds in which the bet that the arm in the slot `worse` is
        worse could win, for slots or arrays of them.
        """
        weight: Floats = self.weights[worse, better] + self.common[-1]
        return weight

    def lower(self, worse: int, better: int, risk: float) -> float:
        """A lower bound of the loss of the arm in the slot `worse` minus that of the other one.

        Rounds are weighted as in `weight`.
        """
        weight = float(self.weight(worse, better))
        if weight == 0.0:
            return -1.0
        return max(float(least_sum(self.log_won(worse, better), risk)[0]) / weight, -1.0)

    def reached(self) -> Iterator[tuple[int, int]]:
        """The pairs about which there is enough evidence now for the first time, as arms; no more
        is wanted of them.
        """
        for worse, better in np.argwhere(self.goals == REACHED).tolist():
            self.goals[worse, better] = np.inf
            yield int(self.owners[worse]), int(self.owners[better])

    def log_won(self, worse: Any, better: Any) -> Floats:
        """The logarithm of what each stake has won on these slots, or arrays of them, its share
        of the money included.
        """
        return self._logs_of(worse * len(self.owners) + better)

    def _logs_of(self, row: Any) -> Floats:
        """The logarithm of what each stake has won, by the row of `won`, or an array or a slice of
        rows.
        """
        return log_money(self.won[row] * self.common[:-1], self.powers[row])

    def to_dict(self) -> dict[str, Any]:
        """The sums as plain values."""
        content = {name: pack_ints(getattr(self, name).ravel()) for name in _INTS}
        for name in _FLOATS:
            content[name] = pack_floats(getattr(self, name).ravel())
        return content

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "Pairs":
        """Restore the result of `to_dict`."""
        flat: dict[str, Any] = {name: unpack_ints(content[name]) for name in _INTS}
        for name in _FLOATS:
            flat[name] = unpack_floats(content[name])
        slots = len(flat["owners"])
        square = (slots, slots)
        rows = (slots * slots, len(STAKES))
        pairs = cls(
            owners=flat["owners"],
            won=flat["won"].reshape(rows),
            powers=flat["powers"].reshape(rows),
            weights=flat["weights"].reshape(square),
            gains=flat["gains"].reshape(square),
            goals=flat["goals"].reshape(square),
            common=flat["common"],
            began=flat["began"].reshape(len(flat["began"]) // len(STAKES), len(STAKES)),
        )
        pairs._check()
        return pairs

    def _check(self) -> None:
        """Raise an error if no bets could have led to these sums, as far as each number shows by
        itself.
        """
        owners = self.owners[self.owners >= 0].tolist()
        is_possible = {
            "owners": len(self.owners) <= MOST_ARMS and len(set(owners)) == len(owners),
            "won": ((self.won > 0.0) & (self.won < np.inf)).all(),
            "powers": (np.abs(self.powers) < 2**31).all(),
            "weights": ((self.weights >= 0.0) & (self.weights < np.inf)).all(),
            "gains": (np.abs(self.gains) < np.inf).all(),
            "goals": (self.goals > 0.0).all(),
            "common": (
                self.common.shape == (len(STAKES) + 1,)
                and ((self.common >= 0.0) & (self.common < np.inf)).all()
                and (self.common[:-1] > 0.0).all()
            ),
            "began": len(self.began) in (0, len(self.won)) and np.isfinite(self.began).all(),
        }
        for name, is_right in is_possible.items():
            if not is_right:
                raise ValueError(f"{name} of pairs cannot be")


def _fill_cross(square: Any, slot: int, value: Any) -> None:
    """Set the row and the column of a slot."""
    square[slot] = value
    square[:, slot] = value


def _nothing_common() -> Floats:
    """The factors that no pair has to be multiplied by, and no weight to add."""
    return np.append(np.ones(len(STAKES)), 0.0)


_INTS = ("owners", "powers")
_FLOATS = ("won", "weights", "gains", "goals", "common", "began")

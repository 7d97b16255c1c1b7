"""Single means: of each arm, of what was exploited, and of the difference of both.

Two kinds of bets bound them; each has one for the lower end and one for the upper end, which is the
same bet on 1 - loss.

**By looks.** A look at an arm with the level m, known before, is worth z = (x - m) / m. The weight
1 / m is the largest with z >= -1 for every loss x in [0, 1], and the mean of z is (mu - m) / m. So
the bet bounds the mean over the rounds that looked at the arm, weighted by 1 / m (by 1 / (1 - m)
above). It needs no law and no propensity. With labels, the expected loss is clipped to a band
[a, b] round m (`decoupled.kernels.observed.BAND`), and the weight is rho / (rho m + (1 - rho) b);
above, it is rho / (1 - rho m - (1 - rho) a).

**Centred.** What was exploited, or an arm compared with it, is asked about all rounds alike, so the
weights are fixed and the estimates are centred: of an arm e that was explored with the chance p,

    X = c + 1{explored e} (x - c) / p

has the mean of e for every c. With c = m little is left of the spread; but X then may fall by m / p
below m. So for each rate of a fixed list, c is the largest share of m at which a round loses no
more than `MOST_LOST` of the money. Without the law nobody knows p, and c is 0.

docs/theory.md has the proofs.
"""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ..base.arrays import Floats, Ints
from ..base.packed import pack_floats, pack_ints, unpack_floats, unpack_ints
from ..kernels.single_bets import (
    FIRST_ARM_ROW,
    FIRST_RATE_OF_ARMS,
    LOOK_STAKES,
    RATES,
    SERVED_ROWS,
    CentredBets,
    LookBets,
    SingleTotals,
    add_looks,
)
from ..kernels.single_bets import LOOK_PRIOR as LOOK_PRIOR
from ..kernels.single_bets import RATE_PRIOR as RATE_PRIOR
from ..kernels.stakes import LESS, MOST
from .boundary import root
from .pairs import MOST_ARMS
from .stakes import log_money


@dataclass(slots=True)
class Singles:
    """The sums of the bets on single means; `decoupled.kernels.single_bets` says what each is.

    Attributes:
        look_won: `LookBets.won`.
        look_powers: `LookBets.powers`.
        look_weights: `LookBets.weights`.
        look_centres: `LookBets.centres`.
        centred_won: `CentredBets.won`.
        centred_powers: `CentredBets.powers`.
        levels: `CentredBets.levels`.
        excesses: `CentredBets.excesses`.
        rounds: `CentredBets.rounds`.
    """

    look_won: Floats
    look_powers: Ints
    look_weights: Floats
    look_centres: Floats
    centred_won: Floats
    centred_powers: Ints
    levels: Floats
    excesses: Floats
    rounds: Ints

    @classmethod
    def start(cls, arms: int) -> "Singles":
        """Nothing is known yet. With too many arms none is compared with what was exploited."""
        centred = new_centred_bets(FIRST_ARM_ROW + 2 * (arms if arms <= MOST_ARMS else 0))
        return cls(
            look_won=np.tile(LOOK_PRIOR, (2 * arms, 1)),
            look_powers=np.zeros((2 * arms, len(LOOK_STAKES)), np.int64),
            look_weights=np.zeros(2 * arms),
            look_centres=np.zeros(2 * arms),
            centred_won=centred.won,
            centred_powers=centred.powers,
            levels=centred.levels,
            excesses=centred.excesses,
            rounds=centred.rounds,
        )

    def copy(self) -> "Singles":
        """A copy that shares nothing with this one."""
        return Singles(**{field.name: getattr(self, field.name).copy() for field in fields(self)})

    def totals(self, live: Ints) -> SingleTotals:
        """The arrays as compiled code takes them.

        Args:
            live: 1 for each arm that is not retired, else 0.
        """
        return SingleTotals(looks=self._look_bets(), centred=self._centred_bets(), live=live)

    def _centred_bets(self) -> CentredBets:
        """The bets on what was exploited, and on each arm compared with it."""
        return CentredBets(
            won=self.centred_won,
            powers=self.centred_powers,
            levels=self.levels,
            excesses=self.excesses,
            rounds=self.rounds,
        )

    def _look_bets(self) -> LookBets:
        """The bets on each arm over the rounds that looked at it."""
        return LookBets(
            won=self.look_won,
            powers=self.look_powers,
            weights=self.look_weights,
            centres=self.look_centres,
        )

    def add_looks(self, arms: Ints, losses: Floats) -> None:
        """Add losses in [0, 1] to the bets by looks alone, in their order; these are the first.

        Args:
            arms: the arm that each loss is of.
            losses: the losses.
        """
        count = len(self.look_weights) // 2
        add_looks(self._look_bets(), np.zeros(count), np.zeros(count), arms, losses)

    def add_arms(self, count: int) -> None:
        """Add arms. What is compared with the exploited arms starts again, for all of them."""
        look_rows = len(self.look_weights)
        fresh = Singles.start(look_rows // 2 + count)
        fresh.look_won[:look_rows] = self.look_won
        fresh.look_powers[:look_rows] = self.look_powers
        fresh.look_weights[:look_rows] = self.look_weights
        fresh.look_centres[:look_rows] = self.look_centres
        served = slice(SERVED_ROWS, FIRST_ARM_ROW)
        fresh.centred_won[served] = self.centred_won[served]
        fresh.centred_powers[served] = self.centred_powers[served]
        fresh.levels[served] = self.levels[served]
        fresh.excesses[served] = self.excesses[served]
        fresh.rounds[0] = self.rounds[0]
        for field in fields(self):
            setattr(self, field.name, getattr(fresh, field.name))

    # What they say

    def compares(self, arm: int) -> bool:
        """Whether this arm is compared with what was exploited."""
        return arm + 1 < len(self.rounds)

    def look_ends(self, risks: Floats) -> tuple[Floats, Floats]:
        """The ends of each arm's mean over the rounds that looked at it, in the order of arms, each
        at its risk; infinite where nothing was seen.
        """
        logs = log_money(self.look_won, self.look_powers)
        goals = np.repeat(-np.log(risks), 2)
        sums = root(LOOK_STAKES, logs, np.ones(len(logs)), goals)
        is_seen = self.look_weights[0::2] > 0.0
        weights = np.where(self.look_weights > 0.0, self.look_weights, 1.0)
        lows = ((self.look_centres + sums) / weights)[0::2]
        highs = ((self.look_centres - sums) / weights)[1::2]
        return np.where(is_seen, lows, -np.inf), np.where(is_seen, highs, np.inf)

    def served_ends(self, risk: float) -> tuple[float, float]:
        """The ends of the mean of what was exploited, on the map of losses to [0, 1]."""
        if self.rounds[0] == 0:
            return 0.0, 1.0
        rows = slice(SERVED_ROWS, FIRST_ARM_ROW)
        low, low_of_gain = centred_sums(self._centred_bets(), rows, risk) / self.rounds[0]
        return float(low), 1.0 - float(low_of_gain)

    def against_served_ends(self, arm: int, risk: float) -> tuple[float, float]:
        """The ends of an arm's mean minus that of what was exploited, on the same map."""
        rounds = self.rounds[1 + arm]
        if rounds == 0:
            return -1.0, 1.0
        row = FIRST_ARM_ROW + 2 * arm
        rows = slice(row, row + 2)
        sums = centred_sums(self._centred_bets(), rows, risk, FIRST_RATE_OF_ARMS)
        low, low_of_opposite = sums / rounds
        return float(low), -float(low_of_opposite)

    def to_dict(self) -> dict[str, Any]:
        """The sums as plain values."""
        content = {name: pack_ints(getattr(self, name).ravel()) for name in _INTS}
        for name in _FLOATS:
            content[name] = pack_floats(getattr(self, name).ravel())
        return content

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "Singles":
        """Restore the result of `to_dict`."""
        look_weights = unpack_floats(content["look_weights"])
        rounds = unpack_ints(content["rounds"])
        look_rows = len(look_weights)
        rows = 2 * len(rounds)
        singles = cls(
            look_won=unpack_floats(content["look_won"]).reshape(look_rows, -1),
            look_powers=unpack_ints(content["look_powers"]).reshape(look_rows, -1),
            look_weights=look_weights,
            look_centres=unpack_floats(content["look_centres"]),
            centred_won=unpack_floats(content["centred_won"]).reshape(rows, -1),
            centred_powers=unpack_ints(content["centred_powers"]).reshape(rows, -1),
            levels=unpack_floats(content["levels"]),
            excesses=unpack_floats(content["excesses"]).reshape(rows, -1),
            rounds=rounds,
        )
        singles._check()
        return singles

    def _check(self) -> None:
        """Raise an error if no bets could have led to these sums, as far as each number shows by
        itself.
        """
        look_rows = len(self.look_weights)
        rows = 2 * len(self.rounds)
        is_possible = {
            "look_won": _is_money(self.look_won, (look_rows, len(LOOK_STAKES))),
            "look_powers": _are_powers(self.look_powers, self.look_won),
            "look_weights": (
                look_rows % 2 == 0
                and _are_small(self.look_weights)
                and (self.look_weights >= 0.0).all()
            ),
            "look_centres": self.look_centres.shape == (look_rows,)
            and _are_small(self.look_centres),
            "centred_won": _is_money(self.centred_won, (rows, len(RATES))),
            "centred_powers": _are_powers(self.centred_powers, self.centred_won),
            "levels": self.levels.shape == (rows,) and _are_small(self.levels),
            "excesses": (
                self.excesses.shape == self.centred_won.shape
                and _are_small(self.excesses)
                and (self.excesses >= 0.0).all()
            ),
            "rounds": rows >= FIRST_ARM_ROW and (self.rounds >= 0).all(),
        }
        for name, is_right in is_possible.items():
            if not is_right:
                raise ValueError(f"{name} of singles cannot be")


def centred_sums(bets: CentredBets, rows: slice, risk: float, first_rate: int = 0) -> Floats:
    """The lower bounds of the sums of the means that centred bets are about, each at this risk.

    Args:
        bets: the bets.
        rows: which of them.
        risk: the risk of each bound.
        first_rate: the first rate that they bet with. The others' money is left out.

    >>> from decoupled.kernels.single_bets import bet_on_rounds
    >>> rounds = np.full((6, 1_000), 0.5)     # levels, and losses that were seen with certainty
    >>> rounds[3], rounds[4] = 1.0, 0.6
    >>> bets = new_centred_bets(1)
    >>> bet_on_rounds(bets, 0, *rounds)
    >>> bool(500.0 < centred_sums(bets, slice(0, 1), 0.05)[0] < 600.0)
    True
    """
    logs = log_money(bets.won[rows, first_rate:], bets.powers[rows, first_rate:])
    rates = RATES[first_rate:]
    logs -= np.log(len(rates) / len(RATES))  # all began with the same
    centres = bets.levels[rows, None] - bets.excesses[rows, first_rate:]
    goals = np.full(len(logs), -np.log(risk))
    return root(rates, logs + rates * centres, np.ones(len(logs)), goals)


def new_centred_bets(rows: int) -> CentredBets:
    """So many bets before their first round.

    >>> new_centred_bets(2).won.sum(axis=1).round(9).tolist()
    [1.0, 1.0]
    """
    return CentredBets(
        won=np.tile(RATE_PRIOR, (rows, 1)),
        powers=np.zeros((rows, len(RATES)), np.int64),
        levels=np.zeros(rows),
        excesses=np.zeros((rows, len(RATES))),
        rounds=np.zeros(rows // 2, np.int64),
    )


def _are_small(values: Floats) -> bool:
    """Whether all are numbers that sums of any log could be."""
    return bool((np.abs(values) < _LARGEST).all())


def _is_money(won: Floats, shape: tuple[int, int]) -> bool:
    """Whether bets could have won this."""
    return won.shape == shape and bool(((won >= LESS) & (won <= MOST)).all())


def _are_powers(powers: Ints, won: Floats) -> bool:
    """Whether these powers can go with what was won."""
    return powers.shape == won.shape and bool((np.abs(powers) < 2**31).all())


_LARGEST = 1e15
_INTS = ("look_powers", "centred_powers", "rounds")
_FLOATS = (
    "look_won",
    "look_weights",
    "look_centres",
    "centred_won",
    "levels",
    "excesses",
)

"""Arms that are out: one bet for each arm, that it is worse than the arm that leads.

In each round the rival of arm i is the other arm with the least running mean so far, among those
that the round could explore. While i leads itself, it does not bet. Its money is evidence that for
some arm i was worse over the rounds in which that arm led, weighted as in `pairs`, however losses
drift. K bets serve K arms, where pairs take K (K - 1).

If losses may drift, an arm is out once its money reaches K / risk. If no mean ever changes, closed
testing does with less: an arm is out once the mean money of it and of all arms that are not out
and have less than 1 / risk reaches 1 / risk. docs/inference.md has both proofs.

Arms that come begin a new epoch, with fresh bets and a share of the risk of its own. So does the
retirement of an arm that has led: the others' money was won against it.
"""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ..base.arrays import Floats, Ints
from ..base.packed import pack_floats, pack_ints, unpack_floats, unpack_ints
from ..kernels.out_bets import CONTENDS, OUT, REACHED_OUT, OutTotals
from ..kernels.stakes import STAKES
from .stakes import evidence, fresh_money, log_money


@dataclass(slots=True)
class Outs:
    """The bets of all arms; see `decoupled.kernels.out_bets.OutTotals`.

    Attributes:
        won: what each stake of each arm has won, see `decoupled.kernels.stakes`.
        powers: of 2^1000, that go with it.
        money: what all stakes of each arm have together.
        marks: whether each arm contends or is out.
        led: whether each arm ever led, so that others bet against it.
        epoch: the number of the epoch.
        contenders: how many arms the epoch began with.

    >>> outs = Outs.start(3)
    >>> outs.evidence().round(9).tolist()
    [0.0, 0.0, 0.0]
    """

    won: Floats
    powers: Ints
    money: Floats
    marks: Ints
    led: Ints
    epoch: int
    contenders: int

    @classmethod
    def start(cls, arms: int) -> "Outs":
        """Nothing is known yet."""
        won, powers = fresh_money(arms)
        return cls(
            won=won,
            powers=powers,
            money=np.ones(arms),
            marks=np.zeros(arms, np.int64),
            led=np.zeros(arms, np.int64),
            epoch=0,
            contenders=arms,
        )

    def copy(self) -> "Outs":
        """A copy that shares nothing with this one that changes."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        for name in _ARRAYS:
            values[name] = values[name].copy()
        return Outs(**values)

    def totals(self, live: Ints, goal: float, *, closed: bool) -> OutTotals:
        """The arrays as compiled code takes them."""
        return OutTotals(
            stakes=STAKES,
            won=self.won,
            powers=self.powers,
            money=self.money,
            marks=self.marks,
            led=self.led,
            live=live,
            goal=np.array([goal]),
            closed=np.array([int(closed)]),
        )

    def begin_epoch(self, arms: int, contenders: int) -> None:
        """Begin fresh bets, for so many arms ever and so many that are not retired. Arms that are
        out stay out.
        """
        marks = np.pad(self.marks, (0, arms - len(self.marks)))
        self.won, self.powers = fresh_money(arms)
        self.money = np.ones(arms)
        self.marks = marks
        self.led = np.zeros(arms, np.int64)
        self.epoch += 1
        self.contenders = contenders

    def evidence(self, times: float = 1.0) -> Floats:
        """The logarithm of each arm's money; with `times`, if all its gains grow so."""
        logs = log_money(self.won, self.powers)
        if times != 1.0:
            logs = LOG_START + times * (logs - LOG_START)
        return evidence(logs)

    def is_out(self) -> Any:
        """Whether each arm was shown to be out by its own bet."""
        return self.marks == OUT

    def reached(self) -> list[int]:
        """The arms whose bet has won enough now for the first time."""
        arms: list[int] = np.flatnonzero(self.marks == REACHED_OUT).tolist()
        self.marks[arms] = OUT
        return arms

    def readmit(self, arms: list[int]) -> None:
        """Let arms contend again."""
        self.marks[arms] = CONTENDS

    def to_dict(self) -> dict[str, Any]:
        """The bets as plain values."""
        content: dict[str, Any] = {"epoch": self.epoch, "contenders": self.contenders}
        for name in _ARRAYS:
            values = getattr(self, name).ravel()
            content[name] = pack_floats(values) if name in _FLOATS else pack_ints(values)
        return content

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "Outs":
        """Restore the result of `to_dict`."""
        flat: dict[str, Any] = {}
        for name in _ARRAYS:
            is_float = name in _FLOATS
            flat[name] = unpack_floats(content[name]) if is_float else unpack_ints(content[name])
        rows = (len(flat["marks"]), len(STAKES))
        outs = cls(
            won=flat["won"].reshape(rows),
            powers=flat["powers"].reshape(rows),
            money=flat["money"],
            marks=flat["marks"],
            led=flat["led"],
            epoch=content["epoch"],
            contenders=content["contenders"],
        )
        outs._check()
        return outs

    def _check(self) -> None:
        """Raise an error if no bets could have led to these, as far as each number shows."""
        arms = len(self.marks)
        is_possible = {
            "won": ((self.won > 0.0) & (self.won < np.inf)).all(),
            "powers": (np.abs(self.powers) < 2**31).all(),
            "money": self.money.shape == (arms,) and (self.money >= 0.0).all(),
            "marks": np.isin(self.marks, [CONTENDS, OUT]).all(),
            "led": self.led.shape == (arms,) and np.isin(self.led, [0, 1]).all(),
            "epoch": type(self.epoch) is int and self.epoch >= 0,
            "contenders": type(self.contenders) is int and 2 <= self.contenders <= arms,
        }
        for name, is_right in is_possible.items():
            if not is_right:
                raise ValueError(f"{name} of outs cannot be")


def closed_evidence(logs: Floats) -> Floats:
    """The logarithm of the least mean money of each arm and any of the others.

    An arm is out by closed testing if this reaches log(1 / risk).

    >>> import numpy as np
    >>> np.exp(closed_evidence(np.log([100.0, 1.0, 0.5]))).round(2).tolist()
    [33.83, 0.75, 0.5]
    """
    shift = float(logs.max(initial=0.0))
    money = np.exp(logs - shift)
    order = np.argsort(money, kind="stable")
    least_sums = np.cumsum(money[order])  # of so many arms
    counts = np.arange(1.0, len(logs) + 1.0)
    least_means = np.empty(len(logs))
    for place, arm in enumerate(order.tolist()):
        # With those before it in the order it is among the sums; else it comes in addition.
        sums_with_arm = np.append(money[arm], money[arm] + least_sums[:place])
        means = sums_with_arm / np.arange(1.0, place + 2.0)
        means_of_more = (least_sums / counts)[place:]
        least_means[arm] = min(float(means.min()), float(means_of_more.min(initial=np.inf)))
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(least_means) + shift)


_FLOATS = ("won", "money")
_ARRAYS = ("won", "powers", "money", "marks", "led")
LOG_START: Floats = np.log(fresh_money(1)[0])

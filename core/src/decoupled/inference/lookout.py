"""The alarm of a verdict that no longer holds: an e-detector.

Let arm a be decided. For a rival r, with the numbers y_n of `decoupled.inference.pairs` from the
rounds after the verdict,

    M_n(r) = (1 + M_{n-1}(r)) (1 + lam y_n),    M_0(r) = 0,

sums a bet that starts at every round. As long as a is no worse, the mean of y_n is at most 0, so
M_n(r) - n is a supermartingale, and so is the mean M_n of M_n(r) over the rivals, minus n. The
alarm is the first n with M_n >= A. At that moment tau the mean of M_tau is at most that of tau, so
the mean of tau is at least A, and P(tau <= n) <= n / A.

Shin, Ramdas and Rinaldo (2022, arXiv:2203.03532) call M an e-detector of Shiryaev-Roberts type. The
bet must be the same for all the starts and known before the round. It is constant here: for losses
of 0 and 1, half the money finds a difference of 0.1 about as soon as the best bet does.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ..base.arrays import Bools, Floats
from ..kernels.betting import RATE
from .sequences import Sequences, empty_like
from .sums import Observation

BET = 0.5
# Observations between two looks whether it is decided: a look sums what was seen.
_LOOK_EVERY = 10


class Alarm(NamedTuple):
    """Whether a budget with a `decided_share` explores less now, and how close it is to an alarm.

    Attributes:
        decided: the arm that was decided for; None while none is, and after an alarm.
        evidence: the mean M over its rivals, which raises an alarm at `alarm_every`; 0 while
            nothing is decided.
        looks: how often arms were explored since it was decided.
        raised: how many alarms there were.

    >>> import decoupled as dc
    >>> learner = dc.Ladder().start(arms=["a", "b"], seed=7)
    >>> learner.watch()
    >>> meter = dc.Meter(dc.Budget(decided_share=0.1), seed=7)
    >>> for _ in range(1_000):
    ...     decision = meter.decide(learner)
    ...     if isinstance(decision, dc.Decision):
    ...         learner.observe(decision, loss=0.2 if decision.explore == "a" else 0.7)
    >>> learner.inference.alarm.decided, learner.inference.alarm.raised
    ('a', 0)
    """

    decided: Any
    evidence: float
    looks: int
    raised: int


class _State(NamedTuple):
    """Everything that a look changes. It is replaced in one step."""

    taken: int = 0
    own: int = 0  # how many are in the own sequences
    decided: int | None = None
    looks: int = 0
    raised: int = 0
    level: float = 0.5
    rivals: tuple[int, ...] = ()
    wealth: tuple[float, ...] = ()


class Lookout:
    """Says whether the best arm is decided, and raises an alarm when it becomes worse than a rival.

    Until the first alarm it goes by the sequences of the watch. Each alarm begins sequences of its
    own. `every` is at most the mean number of looks until a false alarm.
    """

    def __init__(self, every: float) -> None:
        self.every = every
        self.own: Sequences | None = None  # since the last alarm
        self._now = _State()

    @property
    def alarm(self) -> Alarm:
        """How things stand."""
        now = self._now
        evidence = sum(now.wealth) / max(len(now.wealth), 1)
        return Alarm(now.decided, evidence, now.looks, now.raised)

    def take(self, number: int, seen: Observation, sequences: Sequences) -> None:
        """Take an observation, which is in the sequences already; this may be repeated.

        Args:
            number: how many observations were there before it.
            seen: the observation.
            sequences: the sequences of the watch.
        """
        now = self._now
        if number < now.taken:
            return
        if now.decided is None:
            self._take_undecided(number, seen, sequences)
            return
        level, wealth = self._bet(now, seen, sequences.width)
        if sum(wealth) >= self.every * len(wealth):
            self.own = empty_like(sequences, drift=sequences.drift)
            self._now = _State(taken=number + 1, raised=now.raised + 1)
            return
        self._now = now._replace(taken=number + 1, looks=now.looks + 1, level=level, wealth=wealth)

    def _take_undecided(self, number: int, seen: Observation, sequences: Sequences) -> None:
        """Take an observation while nothing is decided, and look now and then whether it is."""
        now = self._now
        own_count = now.own
        if self.own is not None:
            self.own.add_once(now.own, seen)
            own_count += 1
        self._now = now._replace(taken=number + 1, own=own_count)
        if number % _LOOK_EVERY == _LOOK_EVERY - 1:
            self.look(sequences)

    def look(self, sequences: Sequences) -> None:
        """Look which arm is decided among those there are now; an arm that came is not compared
        yet.
        """
        now = self._now
        sums = (sequences if self.own is None else self.own).sums
        decided = sums.decided
        if decided == now.decided and set(sums.live) - {decided} <= set(now.rivals):
            return
        rivals = () if decided is None else tuple(arm for arm in sums.live if arm != decided)
        self._now = _State(
            taken=now.taken,
            own=now.own,
            decided=decided,
            raised=now.raised,
            rivals=rivals,
            wealth=(0.0,) * len(rivals),
        )

    @staticmethod
    def _bet(now: _State, seen: Observation, width: float) -> tuple[float, tuple[float, ...]]:
        """The level and the wealth after an observation. Rivals that it does not compare keep
        theirs.
        """
        wealth = np.array(now.wealth)
        estimate = 0.5 + width * (seen.loss - 0.5)
        above = seen.rho * (estimate - now.level)  # in [-1, 1], whatever the level
        level = min(max(now.level + RATE * above, 0.0), 1.0)
        if seen.law is not None:
            compared, gain = _gain_by_law(now, seen.explore, seen.law, above)
        elif seen.weight is not None and seen.weight > 1.0:
            compared, gain = _gain_by_weight(now, seen, seen.weight)
        else:  # it says nothing about two arms
            return level, now.wealth
        changed = np.where(compared, (1.0 + wealth) * (1.0 + BET * gain), wealth)
        return level, tuple(changed.tolist())

    def copy(self) -> "Lookout":
        """The same, which goes on independently."""
        twin = Lookout(self.every)
        twin.own = None if self.own is None else self.own.copy()
        twin._now = self._now
        return twin

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        since = None if self.own is None else self.own.to_dict()
        return {"every": self.every, "since": since, **self._now._asdict()}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "Lookout":
        """Restore the result of `to_dict`."""
        lookout = cls(content["every"])
        state = {name: content[name] for name in _State._fields}
        state["rivals"] = tuple(state["rivals"])
        state["wealth"] = tuple(state["wealth"])
        lookout._now = _State(**state)
        since = content["since"]
        lookout.own = None if since is None else Sequences.from_dict(since)
        return lookout


def _gain_by_law(now: _State, explore: int, law: Floats, above: float) -> tuple[Bools, Floats]:
    """Which rivals a round with a known law compares, and what was won per unit bet on each."""
    rivals = np.array(now.rivals)
    mine = law[now.decided]
    theirs = law[rivals]
    compared: Bools = (theirs > 0.0) & (mine > 0.0)
    explored_share = theirs if explore == now.decided else -mine * (rivals == explore)
    gain: Floats = above * explored_share / np.where(compared, mine + theirs, 1.0)
    return compared, gain


def _gain_by_weight(now: _State, seen: Observation, weight: float) -> tuple[Bools, Floats]:
    """The same for a round of which only the weight is known."""
    rivals = np.array(now.rivals)
    available = set(now.rivals) | {now.decided} if seen.available is None else seen.available
    compared = np.array([arm in available and now.decided in available for arm in now.rivals])
    share = 1.0 / max(len(available), 2)
    loss_or_gain: Any = seen.loss
    if seen.explore != now.decided:
        loss_or_gain = (1.0 - seen.loss) * (rivals == seen.explore)
    return compared, np.asarray(share * (weight * loss_or_gain - 1.0))

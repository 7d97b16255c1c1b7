"""The alarm of a verdict that no longer holds: an e-detector.

Let arm a be decided. For a rival r and a stake f, with the numbers z_n of "a is worse than r" of
`decoupled.inference.pairs` from the rounds after the verdict,

    M_n(r, f) = (1 + M_{n-1}(r, f)) (1 + f z_n),    M_0(r, f) = 0,

sums a bet that starts at every round. As long as a is no worse, the mean of z_n is at most 0 in
every round, so M_n(r, f) - n is a supermartingale, and so is the mean M_n over the rivals and the
stakes, with their shares, minus n. The alarm is the first n with M_n >= A. At that moment tau the
mean of M_tau is at most that of tau, so the mean of tau is at least A, and P(tau <= n) <= n / A.

Shin, Ramdas and Rinaldo (2022, arXiv:2203.03532) call M an e-detector of Shiryaev-Roberts type. The
bet of a round must be the same for all the starts and known before the round. So the level is of
all losses that the lookout took, from whichever round a bet starts.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ..base.arrays import Floats, Ints
from ..kernels.alarm_bets import AlarmTotals, bet_since
from ..kernels.observed import Observed, ObservedNumbers, ObservedRow
from ..kernels.stakes import PRIOR, STAKES
from .adding import empty_standing, expected_and_label
from .sequences import Sequences, empty_like
from .sums import Observation

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
    """Everything that a look changes, replaced in one step.

    Attributes:
        taken: how many observations were taken.
        own: how many of them are in the sequences since the last alarm.
        decided: the arm that was decided for; None while none is.
        looks: how many observations were taken since it was decided.
        raised: how many alarms there were.
        rivals: the arms that may have become better than it.
        sums: for each rival, and each stake, the sum of the bets that started at every round.
        counts: for each arm, how many losses were taken.
        totals: for each arm, the sum of these losses.
    """

    taken: int = 0
    own: int = 0
    decided: int | None = None
    looks: int = 0
    raised: int = 0
    rivals: tuple[int, ...] = ()
    sums: tuple[tuple[float, ...], ...] = ()
    counts: tuple[int, ...] = ()
    totals: tuple[float, ...] = ()


class Lookout:
    """Says whether the best arm is decided, and raises an alarm when it becomes worse than a rival.

    Until the first alarm it goes by the sequences of the watch. Each alarm begins sequences of its
    own: `since_alarm`, None before the first.

    Args:
        every: a false alarm takes this many looks or more, on average.
    """

    def __init__(self, every: float) -> None:
        self.every = every
        self.since_alarm: Sequences | None = None
        self._now = _State()

    @property
    def alarm(self) -> Alarm:
        """How things stand."""
        now = self._now
        evidence = 0.0
        if now.sums:
            evidence = float((np.array(now.sums) @ PRIOR).mean())
        return Alarm(now.decided, evidence, now.looks, now.raised)

    def take(self, number: int, observation: Observation, sequences: Sequences) -> None:
        """Take an observation, which is in the sequences already; this may be repeated.

        Args:
            number: how many observations were there before it.
            observation: the observation.
            sequences: the sequences of the watch.
        """
        now = self._now
        if number < now.taken:
            return
        if now.decided is None:
            self._take_undecided(number, observation, sequences)
            return
        evidence, sums = _bet(now, observation, sequences)
        if evidence >= self.every:
            self.since_alarm = empty_like(sequences, drift=sequences.drift)
            state = _State(
                taken=number + 1, raised=now.raised + 1, counts=now.counts, totals=now.totals
            )
        else:
            state = now._replace(taken=number + 1, looks=now.looks + 1, sums=sums)
        self._now = _with_loss(state, observation, sequences.width)

    def _take_undecided(self, number: int, observation: Observation, sequences: Sequences) -> None:
        """Take an observation while nothing is decided, and look now and then whether it is."""
        now = self._now
        own_count = now.own
        if self.since_alarm is not None:
            self.since_alarm.add_once(now.own, observation)
            own_count += 1
        self._now = _with_loss(
            now._replace(taken=number + 1, own=own_count), observation, sequences.width
        )
        if number % _LOOK_EVERY == _LOOK_EVERY - 1:
            self.look(sequences)

    def look(self, sequences: Sequences) -> None:
        """Look which arm is decided among those there are now; an arm that came is not compared
        yet.
        """
        now = self._now
        sums = (sequences if self.since_alarm is None else self.since_alarm).sums
        decided = None if sums.missing.is_uneven else sums.decided
        if decided == now.decided and set(sums.live) - {decided} <= set(now.rivals):
            return
        rivals = () if decided is None else tuple(arm for arm in sums.live if arm != decided)
        self._now = _State(
            taken=now.taken,
            own=now.own,
            decided=decided,
            raised=now.raised,
            rivals=rivals,
            sums=((0.0,) * len(STAKES),) * len(rivals),
            counts=now.counts,
            totals=now.totals,
        )

    def copy(self) -> "Lookout":
        """The same, which goes on independently."""
        twin = Lookout(self.every)
        twin.since_alarm = None if self.since_alarm is None else self.since_alarm.copy()
        twin._now = self._now
        return twin

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        since = None if self.since_alarm is None else self.since_alarm.to_dict()
        return {"every": self.every, "since": since, **self._now._asdict()}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "Lookout":
        """Restore the result of `to_dict`."""
        lookout = cls(content["every"])
        state = {name: content[name] for name in _State._fields}
        state["rivals"] = tuple(state["rivals"])
        state["sums"] = tuple(tuple(row) for row in state["sums"])
        state["counts"] = tuple(state["counts"])
        state["totals"] = tuple(state["totals"])
        lookout._now = _State(**state)
        since = content["since"]
        lookout.since_alarm = None if since is None else Sequences.from_dict(since)
        return lookout


def _bet(
    now: _State, observation: Observation, sequences: Sequences
) -> tuple[float, tuple[tuple[float, ...], ...]]:
    """The mean of the sums over rivals after an observation, and the sums.

    Rivals that the observation does not compare keep theirs.
    """
    observed, chances = _packed(now, observation, sequences)
    counts = _padded(now.counts, len(chances))
    totals = _padded(now.totals, len(chances))
    standing = empty_standing(len(chances))
    standing.means[:] = (totals + 0.5) / (counts + 1.0)
    standing.counts[:] = counts
    standing.chances[:] = chances
    alarm = AlarmTotals(
        stakes=STAKES,
        prior=PRIOR,
        rivals=np.array(now.rivals, np.int64),
        sums=np.array(now.sums),
    )
    evidence = bet_since(observed, alarm, standing, int(now.decided or 0), 0)
    return evidence, tuple(map(tuple, alarm.sums.tolist()))


def _packed(now: _State, observation: Observation, sequences: Sequences) -> tuple[Observed, Floats]:
    """An observation as compiled code takes it, and the chance of each arm; without a law, 1 for
    each arm that could be explored.
    """
    arms = sequences.count
    chances = np.zeros(arms)
    share = 0.0
    weight = 0.0
    if observation.law is not None:
        chances[: len(observation.law)] = observation.law
    elif observation.weight is not None and observation.weight > 1.0:
        compared = {*now.rivals, int(now.decided or 0)}
        available = compared if observation.available is None else set(observation.available)
        chances[sorted(available)] = 1.0
        share = 1.0 / max(len(available), 2)
        weight = observation.weight
    expected, label = expected_and_label(sequences.width, observation)
    row = ObservedRow(
        explore=observation.explore,
        exploit=-1,
        law=-1 if observation.law is None else 0,
        is_weighted=False,
        is_whole=False,
        serves=False,
        is_coupled=False,
    )
    numbers = ObservedNumbers(
        weight=weight,
        loss=observation.loss,
        share=share,
        width=sequences.width,
        expected=expected,
        label=label,
        rho=observation.rho,
    )
    rows: Ints = np.array([row], np.int64)
    return Observed(rows, np.array([numbers]), chances[None, :]), chances


def _with_loss(state: _State, observation: Observation, width: float) -> _State:
    """The state with one more loss of the explored arm."""
    estimate = 0.5 + width * (observation.loss - 0.5)
    size = max(len(state.counts), observation.explore + 1)
    counts = _padded(state.counts, size).astype(np.int64).tolist()
    totals = _padded(state.totals, size).tolist()
    counts[observation.explore] += 1
    totals[observation.explore] += estimate
    return state._replace(counts=tuple(counts), totals=tuple(totals))


def _padded(values: tuple[float, ...], size: int) -> Floats:
    """Values of arms, with zeros for those that came later."""
    return np.array([*values, *[0.0] * (size - len(values))])

"""The calls of a learner that is watched: confidence sequences by the names of the arms, and verdicts."""

from typing import TYPE_CHECKING

from ..base.turns import TakesTurns, in_turn
from ..decision import Arm
from ..errors import ParameterError, UnsupportedError
from .arms import ArmNames
from .loss_range import LossRange
from .pending import Waiting
from .runner import Running

if TYPE_CHECKING:  # loaded when a learner is watched
    from ..inference.interval import Interval
    from ..inference.sequences import Sequences
    from ..inference.verdicts import Verdict
    from .watch import Watch


MOST_WATCHED = 10_000  # arms


def check_watchable(arms: int) -> None:
    """Raise an error if a learner has too many arms to be watched: with 10^6 of them, a verdict takes minutes."""
    if arms > MOST_WATCHED:
        raise UnsupportedError(
            f"watch(): this learner has {arms:,} arms, and confidence sequences are kept of at most {MOST_WATCHED:,}, "
            "because they say next to nothing about so many; do without, or choose fewer arms"
        )


class Watchable(TakesTurns):
    """The part of a learner that watches it. It costs a learner that is not watched nothing."""

    _arms: ArmNames
    _losses: LossRange
    _running: Running
    _waiting: Waiting
    _watch: "Watch | None"

    if TYPE_CHECKING:  # the other parts of a learner have these

        def _replace(self, **parts: object) -> None: ...

    @property
    def watched(self) -> bool:
        """Whether `watch` was called."""
        return self._watch is not None

    @in_turn
    def watch(self, risk: float = 0.05, *, drift: bool = True) -> None:
        """Keep confidence sequences from now on, for `intervals`, `served`, `difference` and `verdict`.

        They hold at every moment at once, so you may look as often as you like. Call this before the first decision: what
        was observed before it does not count. Decisions and feedback take tens of microseconds longer.

        Args:
            risk: the probability with which an interval of a family may ever fail; see `decoupled.inference.Sequences`.
            drift: whether losses may drift. If you are sure that no arm's mean loss ever changes, False gives narrower
                intervals.

        >>> import decoupled as dc
        >>> learner = dc.Ladder().start(arms=["small", "large"], seed=7)
        >>> learner.watch()
        >>> for _ in range(1_000):
        ...     decision = learner.decide()
        ...     learner.observe(decision, loss=0.2 if decision.explore == "large" else 0.6)
        >>> print(learner.verdict())
        large is better than small (99.9 %)
        >>> low, high = learner.intervals()["large"][1:]
        >>> low < 0.2 < high
        True
        """
        if self._watch is not None:
            raise ParameterError("watch(): this learner is watched already; call it once")
        self._replace(watch=self._new_watch(risk, drift))

    @in_turn
    def unwatch(self) -> None:
        """Drop the confidence sequences. What is learned stays as it is.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=["a", "b"], seed=7)
        >>> learner.watch()
        >>> learner.unwatch()
        >>> learner.watched
        False
        """
        self._replace(watch=None)

    @property
    @in_turn
    def sequences(self) -> "Sequences":
        """A copy of the confidence sequences, which number arms in the order in which these came, also if some are retired.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=["a", "b"], seed=7)
        >>> learner.watch()
        >>> learner.sequences
        <Sequences of 2 arms, risk 0.05, 0 observations>
        """
        return self._watching("sequences").sequences.copy()

    def _new_watch(self, risk: float, drift: bool) -> "Watch":
        from .watch import Watch

        check_watchable(len(self._arms))
        return Watch.start(
            self._running.serials, risk, drift, self._running.policy, self._waiting.decisions
        )

    @in_turn
    def verdict(self, *, risk: float | None = None, drift: bool | None = None) -> "Verdict":
        """Say which arm is best, as far as that is decided; see `decoupled.inference.Verdict`.

        Args:
            risk: another risk than that of `watch`; None for that of `watch`. Choose it before you look.
            drift: whether losses may drift; None for what `watch` was told.
        """
        from ..inference.verdicts import verdict

        watch = self._watching("verdict")
        names: list[Arm] = [""] * watch.sequences.count
        for place, name in enumerate(self._arms.names):
            names[self._running.serials.of_one(place)] = name
        return verdict(watch.sequences, names, risk=risk, drift=drift)

    @in_turn
    def intervals(self, *, drift: bool | None = None) -> "dict[Arm, Interval]":
        """The estimated mean loss of each arm, with an interval that holds at every moment at once.

        Args:
            drift: whether losses may drift; None for what `watch` was told.
        """
        found = self._watching("intervals").sequences.arms(drift=drift)
        of = self._running.serials.of_one
        return {name: found[of(i)].scaled(*self._losses) for i, name in enumerate(self._arms.names)}

    @in_turn
    def served(self, *, drift: bool | None = None) -> "Interval":
        """The estimated mean loss of what was exploited, with an interval that holds at every moment at once.

        Args:
            drift: whether losses may drift; None for what `watch` was told.
        """
        return self._watching("served").sequences.served(drift=drift).scaled(*self._losses)

    @in_turn
    def regret(self, *, drift: bool | None = None) -> "Interval | None":
        """How much more was lost in all than by always exploiting the arm that looks best now, with its interval.

        It holds at every moment at once. None if nothing can be compared yet; see `decoupled.inference.regret`.

        Args:
            drift: whether losses may drift; None for what `watch` was told.

        >>> import decoupled as dc
        >>> learner = dc.Ladder().start(arms=["small", "large"], seed=7)
        >>> learner.watch()
        >>> for _ in range(1_000):
        ...     decision = learner.decide()
        ...     learner.observe(decision, loss=0.2 if decision.explore == "large" else 0.6)
        >>> estimate, low, high = learner.regret()
        >>> low < estimate < high
        True
        """
        from ..inference.regrets import regret

        found = regret(self._watching("regret").sequences, drift=drift)
        return None if found is None else found.scaled(*self._losses, difference=True)

    @in_turn
    def difference(self, arm: Arm, other: Arm | None = None, *, drift: bool | None = None) -> "Interval":
        """The mean loss of an arm minus that of another, or of what was exploited, with its interval.

        It is above 0 if the arm is worse.

        Args:
            arm: the arm.
            other: the arm to compare it with; None for what was exploited.
            drift: whether losses may drift; None for what `watch` was told.

        >>> import decoupled as dc
        >>> learner = dc.Ladder().start(arms=["small", "large"], seed=7)
        >>> learner.watch()
        >>> for _ in range(1_000):
        ...     decision = learner.decide()
        ...     learner.observe(decision, loss=0.2 if decision.explore == "large" else 0.6)
        >>> learner.difference("small", "large").low > 0.0
        True
        """
        sequences, of = self._watching("difference").sequences, self._running.serials.of_one
        first = of(self._arms.place(arm))
        if other is None:
            found = sequences.against_served(first, drift=drift)
        else:
            found = sequences.difference(first, of(self._arms.place(other)), drift=drift)
        return found.scaled(*self._losses, difference=True)

    def _watching(self, call: str) -> "Watch":
        if self._watch is None:
            raise UnsupportedError(
                f"{call}(): this learner is not watched; call watch() before the first decision"
            )
        return self._watch

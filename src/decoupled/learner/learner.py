"""A policy running: it decides, and it learns from the losses of what it explored."""

import hashlib
import os
import warnings
from collections.abc import Iterable
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar, Self, overload

import numpy as np

from ..base.arrays import Floats, Ints
from ..base.files import write_atomically
from ..base.validation import whole_number
from ..decision import Arm, Decision
from ..errors import ArmError, ParameterError, UnseenArmWarning, UnsupportedError, invalid_value
from ..kernels.state import SHARED_SCALARS
from .arms import ArmNames, Arms, listed
from .loss_range import LossRange
from .pending import Baseline, Waiting
from .predictions import Predictions, listed_predictions, scaled_predictions
from .protocol import RunnablePolicy
from .replay import (
    Record,
    checked_records,
    is_unrandomised,
    listed_records,
    unrandomised_error,
    unseen_message,
)
from .runner import Running
from .saving import Kept, from_text, to_text
from .seeds import Seed, randomness

DEFAULT_PENDING = 100_000


class Learner:
    """A running policy. Make one with `policy.start(arms, seed)`.

    Only `observe` and `replay` change what is learned: the estimates, and the round, which is 1 + the
    number of observations applied. `decide`, `exploit` and `explore` draw from that state and change
    only the random stream and the list of pending decisions, so any number of them may come between
    two observations, and feedback may come late, out of order, or never. Arms may come and go meanwhile:
    `add_arms`, `retire_arms`.

    Threads: every method holds the learner's one lock while it works. Calls from several threads
    happen one after another, in some order, each of them whole; compiled code runs inside the lock.

    >>> import decoupled as dc
    >>> learner = dc.FTPL().start(arms=["a", "b", "c"], seed=7)
    >>> decision = learner.decide()
    >>> learner.observe(decision, loss=0.3)      # the loss of decision.explore
    >>> learner.round, len(learner.pending)
    (2, 0)
    """

    # Where from_json finds policies by name; the policies' base class puts itself here.
    policy_family: ClassVar[Any]

    def __init__(
        self,
        policy: RunnablePolicy,
        arms: Arms,
        seed: Seed = None,
        *,
        loss_range: tuple[float, float] = (0.0, 1.0),
        max_pending: int = DEFAULT_PENDING,
    ) -> None:
        names, losses = ArmNames.checked(arms), LossRange.checked(loss_range)
        limit = whole_number("max_pending", max_pending, 1, f"the default is {DEFAULT_PENDING}")
        stream, tag = randomness(seed)
        self._take(Kept(names, losses, Running.fresh(policy, len(names), stream), Waiting(tag, limit)))

    def _take(self, kept: Kept) -> None:
        self._arms, self._losses, self._running, self._waiting = kept
        self._policy = self._running.policy
        self._lock = Lock()

    def __repr__(self) -> str:
        return (
            f"<Learner {self._policy!r}, {len(self._arms)} arms, round {self.round}, "
            f"{len(self._waiting)} pending>"
        )

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        # The policy's class goes along, because loading it is what makes the policy known by name.
        return _unpickled, (type(self), type(self._policy), self.to_json())

    # What it is

    @property
    def policy(self) -> RunnablePolicy:
        """The policy that is running."""
        return self._policy

    @property
    def arms(self) -> tuple[Arm, ...]:
        """The names of the arms, in order."""
        return tuple(self._arms.names)

    @property
    def loss_range(self) -> tuple[float, float]:
        """The lowest and highest loss there can be."""
        return self._losses.low, self._losses.high

    @property
    def round(self) -> int:
        """1 + the number of observations applied."""
        return self._running.round

    @property
    def pending(self) -> tuple[Decision, ...]:
        """The decisions that await feedback, oldest first."""
        with self._lock:
            return tuple(pending[0] for pending in self._waiting.decisions.values())

    @property
    def forgotten(self) -> int:
        """How many decisions were forgotten before their feedback came."""
        return self._waiting.forgotten

    @property
    def place_in_stream(self) -> bytes:
        """Where the random stream stands. A log that has it beside each decision can be checked draw by draw.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=3, seed=7)
        >>> twin, place = learner.fork(seed=7), learner.place_in_stream
        >>> twin.place_in_stream == place, learner.decide().round, learner.place_in_stream == place
        (True, 1, False)
        """
        return self._running.stream.tobytes()

    # Deciding

    @overload
    def decide(
        self,
        count: None = None,
        *,
        available: Iterable[Arm] | None = None,
        baseline: Predictions | None = None,
    ) -> Decision: ...
    @overload
    def decide(
        self, count: int, *, available: Iterable[Arm] | None = None, baseline: Predictions | None = None
    ) -> list[Decision]: ...

    def decide(
        self,
        count: int | None = None,
        *,
        available: Iterable[Arm] | None = None,
        baseline: Predictions | None = None,
    ) -> Decision | list[Decision]:
        """An arm to exploit and an arm to explore; with `count`, a list of such decisions.

        With `available`, both arms come from those named, by the policy's own rule applied to their
        estimates alone, and the propensity is exact for that choice. When the loss arrives, arms that
        could not be chosen are charged the same loss: it is an unbiased estimate of what the available
        arms cost on average, so that an arm gains nothing by being away.

        With `baseline`, what you expect of each arm's loss in this very round stands in the place of the
        running mean that a centred estimator takes off it: a mapping from arms to losses (arms that it
        leaves out keep the running mean), or a list of losses in the order of `arms`. Good predictions
        make estimates less noisy, and none can bias them. They count for arms that pass the policy's own
        gate, and a policy whose estimator has no baseline refuses them.

        A policy of the standard game, `policy.coupled`, gives one arm as both.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=["a", "b", "c"], seed=7)
        >>> [decision.explore for decision in learner.decide(count=3)]
        ['b', 'b', 'a']
        >>> learner.decide(available=["b"]).propensity
        1.0
        >>> centred = dc.FTPL.recommended().start(arms=["a", "b", "c"], seed=7)
        >>> decision = centred.decide(baseline={"a": 0.9, "b": 0.2, "c": 0.4})
        >>> centred.observe(decision, loss=0.2)
        >>> decision.explore, centred.estimates().tolist()    # it was foreseen: each arm learns what it is
        ('b', [0.9, 0.2, 0.4])
        """
        some, expected = _listed(available), self._predictions(baseline)
        if count is None:
            with self._lock:
                part = self._part(some)
                return self._draw(part, self._baseline(part, expected), exploiting=True)
        repeats = whole_number("count", count, 1, "leave it out for a single decision")
        if repeats > self._waiting.limit:
            rule = f"must not exceed max_pending = {self._waiting.limit}"
            raise ParameterError(invalid_value("count", count, rule, "raise max_pending in start()"))
        with self._lock:
            part = self._part(some)
            shared = self._baseline(part, expected)
            return [self._draw(part, shared, exploiting=True) for _ in range(repeats)]

    def explore(
        self, *, available: Iterable[Arm] | None = None, baseline: Predictions | None = None
    ) -> Decision:
        """A decision that only explores: its `exploit` is None. Both arguments are as in `decide`.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=["a", "b", "c"], seed=7)
        >>> learner.explore().exploit is None
        True
        """
        self._refuse_coupled("explore")
        some, expected = _listed(available), self._predictions(baseline)
        with self._lock:
            part = self._part(some)
            return self._draw(part, self._baseline(part, expected), exploiting=False)

    def exploit(self, *, available: Iterable[Arm] | None = None) -> Arm:
        """An arm to use now. It awaits no feedback and never advances the schedule.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=["a", "b", "c"], seed=7)
        >>> [learner.exploit() for _ in range(4)], learner.round, learner.pending
        (['b', 'c', 'a', 'b'], 1, ())
        """
        self._refuse_coupled("exploit")
        some = _listed(available)
        with self._lock:
            return self._arms.names[self._running.draw(self._part(some))[0]]

    def _refuse_coupled(self, call: str) -> None:
        if self._policy.coupled:
            raise UnsupportedError(
                f"{call}(): {type(self._policy).__name__} plays the standard game, where the arm played is "
                "the arm seen; use decide(), or a decoupled policy such as FTPL"
            )

    def _predictions(self, baseline: Predictions | None) -> Any:
        if baseline is None:
            return None
        if self._policy.baseline is None or self._policy.cumulative is None:
            raise UnsupportedError(
                f"baseline: the estimator of {type(self._policy).__name__} has none, so that a prediction "
                "would change nothing; leave it out, or use a centred estimator such as FTPL.recommended()"
            )
        return listed_predictions(baseline)

    def _baseline(self, part: Ints | None, expected: Any) -> Baseline | None:
        if expected is None:
            return self._running.baseline_of(part)
        predicted = scaled_predictions(expected, self._arms, self._losses)
        return self._running.baseline_of(part, predicted)

    def _draw(self, part: Ints | None, baseline: Baseline | None, exploiting: bool) -> Decision:
        running, names = self._running, self._arms.names
        exploit, explore, weight, propensity = running.draw(part)
        chosen = (
            running.round,
            names[exploit] if exploiting else None,
            names[explore],
            propensity if propensity == propensity else None,  # NaN stands for unknown
            weight,
        )
        serials = running.serials
        covered = None if part is None else serials.of(part)
        return self._waiting.add(chosen, serials.of_one(explore), covered, baseline)

    def _part(self, some: list[object] | None) -> Ints | None:
        """The places of the arms that can be had, to be asked for while the lock is held: places shift."""
        return None if some is None else self._arms.places(some)

    # Learning

    def observe(
        self, decision: Decision | str, loss: float | None = None, *, reward: float | None = None
    ) -> None:
        """Learn the loss of the arm that `decision` explored; give the decision or its id.

        In place of a loss a `reward` may be given: its mirror image within the loss range. The loss of
        the *exploited* arm is nobody's feedback: it is suffered and not seen.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=["a", "b"], seed=7, loss_range=(0, 250))
        >>> late, prompt = learner.decide(count=2)
        >>> learner.observe(prompt, loss=120)
        >>> learner.observe(late.id, reward=200)
        """
        scaled = self._losses.scaled(loss, reward)
        with self._lock:
            pending = self._waiting.find(decision)
            self._running.settle(pending, scaled)
            del self._waiting.decisions[pending[0].id]  # last: a solver that fails loses no feedback

    def replay(self, records: Iterable[Any], *, unrandomised: bool = False) -> int:
        """Learn from a log, and return how many records it had.

        Each record is (explored arm, propensity, loss), or a mapping with the keys "explore",
        "propensity" and "loss". The propensity is the probability with which the log's own policy chose
        to explore that arm, whatever policy it was. All records are checked before the first is applied.

        A log without propensities is refused, and so is one whose propensities are all 1, unless the policy
        keeps means, to which propensities do not matter: where nothing was left to chance, the sums of losses
        that other policies learn show how often an arm was tried, not how good it is. If a log of two records
        or more leaves out arms that have no loss on record, an `UnseenArmWarning` names them.

        Args:
            records: the log.
            unrandomised: accept a log whose propensities are all 1. Right only if every arm was seen in
                every round, with a record for each.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=["a", "b"], seed=7)
        >>> learner.replay([("a", 0.5, 0.9), {"explore": "b", "propensity": 0.5, "loss": 0.2}])
        2
        >>> learner.estimates().tolist()
        [1.8, 0.4]
        """
        given = listed_records(records)
        with self._lock:
            checked = checked_records(given, self._arms, self._losses)
            if not unrandomised and is_unrandomised(checked) and self._running.weighs():
                raise unrandomised_error(checked, self._arms)
            self._warn_of_unseen(checked)
            for arm, weight, loss in checked:
                self._running.learn(arm, weight, loss)  # a log brings a propensity and no baseline
        return len(checked)

    def _warn_of_unseen(self, records: list[Record]) -> None:
        if len(records) < 2:  # one record is an observation, as they come in one by one
            return
        unseen = self._running.unknown()
        unseen[[record.arm for record in records]] = False
        if unseen.any():
            names = [self._arms.names[place] for place in np.flatnonzero(unseen).tolist()]
            # Before anything is learned: a program may have made errors of warnings.
            warnings.warn(unseen_message(names), UnseenArmWarning, stacklevel=3)

    def forget(self, decision: Decision | str) -> None:
        """Stop waiting for the feedback of a pending decision; the estimates stay unbiased.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=2, seed=7)
        >>> learner.forget(learner.decide())
        >>> learner.pending, learner.forgotten
        ((), 1)
        """
        with self._lock:
            self._waiting.forget(decision)

    # Coming and going

    def add_arms(self, names: Iterable[Arm]) -> None:
        """Let arms come, at the end of the list. Nothing else changes: neither the round nor the random stream.

        A newcomer of a policy that adds up losses starts with all that the leader has, the arm with the
        smallest sum: level with the best, as every arm is in round 1, so that it is tried at once. A
        policy that keeps means has not seen it yet. Decisions that are pending could not choose it: when
        their feedback comes it is charged the loss seen, like any arm that was away.

        Args:
            names: strings or whole numbers that no arm of this learner has. That of an arm retired before
                will do; it is a new arm all the same.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=["a", "b"], seed=7)
        >>> learner.replay([("a", 0.5, 0.9), ("b", 0.5, 0.2)])
        2
        >>> learner.add_arms(["c"])
        >>> learner.arms, learner.estimates().tolist()
        (('a', 'b', 'c'), [1.8, 0.4, 0.4])
        """
        given = listed("names", names)
        with self._lock:
            if given:
                arms, running = self._arms.extended(given), self._running.extended(len(given))
                self._waiting.add_arm(self._running.serials.born)
                self._arms, self._running = arms, running

    def retire_arms(self, names: Iterable[Arm]) -> None:
        """Let arms go: they are not drawn again, and what was learned of the others stays as it is.

        Feedback of a decision that explored such an arm is welcome still. It counts as a round, and does
        to the other arms what it would have done, so that their estimates stay unbiased; of the arm
        itself nothing is learned, also where its name has come back. Two arms at least must stay.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=["a", "b", "c"], seed=7)
        >>> decision = learner.decide()
        >>> learner.retire_arms([decision.explore])
        >>> learner.observe(decision, loss=0.3)
        >>> decision.explore, learner.arms, learner.round, learner.estimates().tolist()
        ('b', ('a', 'c'), 2, [0.0, 0.0])
        """
        given = listed("names", names)
        with self._lock:
            gone = self._arms.places(given)
            if len(gone) > 0:
                arms = self._arms.without(gone)
                self._arms, self._running = arms, self._running.without(gone)

    # Looking

    def exploitation_probabilities(self, *, available: Iterable[Arm] | None = None) -> Floats:
        """The exact probability with which `decide` would now exploit each arm, in the order of `arms`.

        >>> import decoupled as dc
        >>> dc.FTPL().start(arms=4, seed=7).exploitation_probabilities().round(6).tolist()
        [0.25, 0.25, 0.25, 0.25]
        """
        some = _listed(available)
        with self._lock:
            return self._running.exploitation_law(self._part(some))

    def exploration_probabilities(self, *, available: Iterable[Arm] | None = None) -> Floats:
        """The exact probability with which `decide` would now explore each arm, in the order of `arms`.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=3, seed=7)
        >>> learner.exploration_probabilities(available=[0, 2]).round(3).tolist()
        [0.5, 0.0, 0.5]
        """
        some = _listed(available)
        with self._lock:
            return self._running.exploration_law(self._part(some))

    def estimates(self) -> Floats:
        """What is learned about each arm, on losses scaled to [0, 1]: see the policy for its meaning.

        >>> import decoupled as dc
        >>> dc.FTPL().start(arms=3, seed=7).estimates().tolist()
        [0.0, 0.0, 0.0]
        """
        with self._lock:
            return self._running.form.estimates(self._running.state)

    def diagnostics(self) -> dict[str, float]:
        """The single numbers the policy keeps, by name.

        >>> import decoupled as dc
        >>> dc.TsallisINF().start(arms=8, seed=7).diagnostics()["steps"]
        2.0
        """
        with self._lock:
            names = SHARED_SCALARS + self._running.layout.scalars
            return dict(zip(names, self._running.state.scalars.tolist(), strict=True))

    # Keeping

    def fork(self, seed: Seed) -> Self:
        """A copy that has learned the same and goes on with randomness of its own.

        Two replicas that load one saved state draw the same arms and explore nothing new between
        them; fork each with a seed of its own. Pending decisions are copied as well.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=100, seed=7)
        >>> one, two = learner.fork(seed=1), learner.fork(seed=2)
        >>> one.decide().explore == two.decide().explore
        False
        """
        stream, tag = randomness(seed)
        copy = self.from_json(self.to_json())
        waiting = copy._waiting
        # The new ids differ from the old ones also where the seed is the same.
        lineage = f"{self._waiting.tag}-{waiting.made}-{tag}".encode()
        copy._running.stream[:] = stream
        waiting.tag, waiting.made = hashlib.sha256(lineage).hexdigest()[:12], 0
        return copy

    def to_json(self) -> str:
        """The whole state as text: what is learned, what is pending, and the random stream.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=3, seed=7)
        >>> twin = dc.Learner.from_json(learner.to_json())
        >>> twin.decide() == learner.decide()
        True
        """
        with self._lock:
            return to_text(Kept(self._arms, self._losses, self._running, self._waiting))

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """The learner that `to_json` wrote; it continues bit for bit as if never stopped.

        >>> import decoupled as dc
        >>> text = dc.Exp3().start(arms=3, seed=7).to_json()
        >>> dc.Learner.from_json(text.replace('"round":1', '"round":9'))
        Traceback (most recent call last):
            ...
        decoupled.errors.StateError: state: does not match its checksum, so it was altered; give the text that Learner.to_json() wrote
        """
        learner = cls.__new__(cls)
        learner._take(from_text(text, cls.policy_family))
        return learner

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `to_json` to a file, whole or not at all.

        >>> import decoupled as dc, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "learner.json"
        >>> learner = dc.FTPL().start(arms=3, seed=7)
        >>> learner.save(path)
        >>> dc.Learner.load(path).decide() == learner.decide()
        True
        """
        write_atomically(path, self.to_json())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The learner that `save` wrote."""
        return cls.from_json(Path(path).read_bytes())


def _unpickled(kind: type[Learner], policy: object, text: str) -> Learner:
    return kind.from_json(text)


def _listed(available: Iterable[Arm] | None) -> list[object] | None:
    """The arms that can be had, gone through before the lock is taken: what gives them may use the learner."""
    some = None if available is None else listed("available", available)
    if some == []:
        raise ArmError("available = []: names no arm; leave it out where every arm can be had")
    return some

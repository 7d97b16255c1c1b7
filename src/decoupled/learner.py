"""A policy running: it decides, and it learns from the losses of what it explored."""

import hashlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar, Protocol, Self, TypeAlias, overload

import numpy as np

from .arms import ArmNames, Arms
from .arrays import Floats, Ints, Words
from .checks import as_float, whole_number
from .decision import Arm, Decision
from .errors import (
    ArmError,
    FeedbackError,
    LossError,
    ParameterError,
    StateError,
    UnsupportedError,
    complaint,
    shown,
)
from .kernels.dispatch import Entries
from .kernels.state import ROUND, SHARED_SCALARS, Layout, State
from .kernels.stream import new_stream
from .loss_range import LossRange
from .sealed import seal, unseal, write_atomically

FORMAT = "decoupled-learner"
VERSION = 1
DEFAULT_PENDING = 100_000

Seed: TypeAlias = int | np.random.SeedSequence | None


class RunnablePolicy(Protocol):
    """What a learner needs of a policy."""

    layout: ClassVar[Layout]
    cumulative: ClassVar[str | None]
    coupled: ClassVar[bool]
    baseline: ClassVar[str | None]

    def entries(self) -> Entries:
        """The compiled calls."""

    def params(self) -> Any:
        """The parameters as a tuple of floats."""

    def exploitation_law(self, state: State) -> Floats:
        """The exact probability with which each arm is exploited."""

    def exploration_law(self, state: State) -> Floats:
        """The exact probability with which each arm is explored."""

    def estimates(self, state: State) -> Floats:
        """What is learned about each arm."""

    def to_dict(self) -> dict[str, Any]:
        """The name and every parameter."""


# A decision that awaits feedback, with all that its estimate will need: the place of the arm explored,
# the places of the arms it could choose from, None for all, and the baselines of all arms, None where
# all are zero. A plain tuple, because one is made for every decision.
Pending: TypeAlias = tuple[Decision, int, tuple[int, ...] | None, Floats | None]


class Learner:
    """A running policy. Make one with `policy.start(arms, seed)`.

    Only `observe` and `replay` change what is learned: the estimates, and the round, which is 1 + the
    number of observations applied. `decide`, `exploit` and `explore` draw from that state and change
    only the random stream and the list of pending decisions, so any number of them may come between
    two observations, and feedback may come late, out of order, or never.

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
        self._policy = policy
        self._arms = ArmNames(arms)
        self._losses = LossRange.checked(loss_range)
        self._max_pending = whole_number("max_pending", max_pending, 1, f"the default is {DEFAULT_PENDING}")
        self._stream, self._tag = _randomness(seed)
        self._set_state(policy.layout.new_state(len(self._arms)))
        self._pending: dict[str, Pending] = {}
        self._made = 0
        self._forgotten = 0
        self._lock = Lock()

    def _set_state(self, state: State) -> None:
        self._state = state
        self._values = np.array(self._policy.params(), np.float64)
        self._entries = self._policy.entries()
        self._entries.init(self._values, *state)
        # The arrays every compiled call takes, kept together because gathering them is part of its cost.
        self._flat = (self._values, *state)
        self._round = int(state.scalars[ROUND])  # every decision carries it, and an array is slow to ask
        self._baseline: Floats | None = None
        self._shared_baseline: Floats | None = None
        self._shared_round = 0
        if self._policy.baseline is not None:
            self._baseline = self._policy.layout.row(state, self._policy.baseline)

    def __repr__(self) -> str:
        return (
            f"<Learner {self._policy!r}, {len(self._arms)} arms, round {self.round}, "
            f"{len(self._pending)} pending>"
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
        return self._round

    @property
    def pending(self) -> tuple[Decision, ...]:
        """The decisions that await feedback, oldest first."""
        with self._lock:
            return tuple(pending[0] for pending in self._pending.values())

    @property
    def forgotten(self) -> int:
        """How many decisions were forgotten before their feedback came."""
        return self._forgotten

    # Deciding

    @overload
    def decide(self, count: None = None, *, available: Iterable[Arm] | None = None) -> Decision: ...
    @overload
    def decide(self, count: int, *, available: Iterable[Arm] | None = None) -> list[Decision]: ...

    def decide(
        self, count: int | None = None, *, available: Iterable[Arm] | None = None
    ) -> Decision | list[Decision]:
        """An arm to exploit and an arm to explore; with `count`, a list of such decisions.

        With `available`, both arms come from those named, by the policy's own rule applied to their
        estimates alone, and the propensity is exact for that choice. When the loss arrives, arms that
        could not be chosen are charged the same loss: it is an unbiased estimate of what the available
        arms cost on average, so that an arm gains nothing by being away.

        A policy of the standard game, `policy.coupled`, gives one arm as both.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=["a", "b", "c"], seed=7)
        >>> [decision.explore for decision in learner.decide(count=3)]
        ['a', 'a', 'a']
        >>> learner.decide(available=["b"]).propensity
        1.0
        """
        part = None if available is None else self._arms.places(available)
        if count is None:
            with self._lock:
                return self._draw(part, exploiting=True)
        repeats = whole_number("count", count, 1, "leave it out for a single decision")
        if repeats > self._max_pending:
            rule = f"must not exceed max_pending = {self._max_pending}"
            raise ParameterError(complaint("count", count, rule, "raise max_pending in start()"))
        with self._lock:
            return [self._draw(part, exploiting=True) for _ in range(repeats)]

    def explore(self, *, available: Iterable[Arm] | None = None) -> Decision:
        """A decision that only explores: its `exploit` is None.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=["a", "b", "c"], seed=7)
        >>> learner.explore().exploit is None
        True
        """
        self._refuse_coupled("explore")
        part = None if available is None else self._arms.places(available)
        with self._lock:
            return self._draw(part, exploiting=False)

    def exploit(self, *, available: Iterable[Arm] | None = None) -> Arm:
        """An arm to use now. It awaits no feedback and never advances the schedule.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=["a", "b", "c"], seed=7)
        >>> [learner.exploit() for _ in range(4)], learner.round, learner.pending
        (['b', 'c', 'a', 'b'], 1, ())
        """
        self._refuse_coupled("exploit")
        part = None if available is None else self._arms.places(available)
        with self._lock:
            chosen = (
                self._entries.decide(*self._flat, self._stream) if part is None else self._choose_from(part)
            )
            return self._arms.names[chosen[0]]

    def _refuse_coupled(self, call: str) -> None:
        if self._policy.coupled:
            raise UnsupportedError(
                f"{call}(): {type(self._policy).__name__} plays the standard game, where the arm played is "
                "the arm seen; use decide(), or a decoupled policy such as FTPL"
            )

    def _choose_from(self, part: Ints) -> tuple[int, int, float, float]:
        state = self._restricted(part)
        exploit, explore, weight, propensity = self._entries.decide(self._values, *state, self._stream)
        return int(part[exploit]), int(part[explore]), weight, propensity

    def _draw(self, part: Ints | None, exploiting: bool) -> Decision:
        exploit, explore, weight, propensity = (
            self._entries.decide(*self._flat, self._stream) if part is None else self._choose_from(part)
        )
        self._made += 1
        name = f"{self._tag}-{self._made}"
        names = self._arms.names
        decision = Decision(
            name,
            self._round,
            names[exploit] if exploiting else None,
            names[explore],
            propensity if propensity == propensity else None,  # NaN stands for unknown
            weight,
        )
        pending = self._pending
        baseline = None if self._baseline is None else self._baseline_of(part)
        pending[name] = (decision, explore, None if part is None else tuple(part.tolist()), baseline)
        if len(pending) > self._max_pending:
            del pending[next(iter(pending))]
            self._forgotten += 1
        return decision

    def _baseline_of(self, part: Ints | None) -> Floats | None:
        """The baseline of every arm for decisions made now, None if all are zero.

        An arm that cannot be had has none. Decisions made in one round share theirs.
        """
        if part is None and self._shared_round == self._round:
            return self._shared_baseline
        baseline = np.zeros(len(self._arms))
        if part is None:
            baseline[:] = self._baseline
        else:
            baseline[part] = self._policy.layout.row(self._restricted(part), str(self._policy.baseline))
        found = baseline if baseline.any() else None
        if part is None:
            self._shared_round, self._shared_baseline = self._round, found
        return found

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
            made, arm, covered, baseline = self._find(decision)
            if covered is not None:
                self._charge_absent(covered, scaled)
            if self._baseline is not None:
                self._baseline[:] = 0.0 if baseline is None else baseline
            self._entries.update(*self._flat, arm, made.weight, scaled)
            self._round += 1
            del self._pending[made.id]  # last: a solver that fails loses no feedback

    def replay(self, records: Iterable[Any]) -> int:
        """Learn from a log, and return how many records it had.

        Each record is (explored arm, propensity, loss), or a mapping with the keys "explore",
        "propensity" and "loss". The propensity is the probability with which the log's own policy chose
        to explore that arm, whatever policy it was. All records are checked before the first is applied.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=["a", "b"], seed=7)
        >>> learner.replay([("a", 0.5, 0.9), {"explore": "b", "propensity": 0.5, "loss": 0.2}])
        2
        >>> learner.estimates().tolist()
        [1.8, 0.4]
        """
        if isinstance(records, (str, bytes)) or not isinstance(records, Iterable):
            rule, remedy = "must be a list of records", "each is (explored arm, propensity, loss)"
            raise ParameterError(complaint("records", records, rule, remedy))
        checked = [self._checked_record(i, record) for i, record in enumerate(records)]
        with self._lock:
            for arm, weight, loss in checked:
                if self._baseline is not None:  # a log brings a propensity and no baseline
                    self._baseline[:] = 0.0
                self._entries.update(*self._flat, arm, weight, loss)
            self._round += len(checked)
        return len(checked)

    def forget(self, decision: Decision | str) -> None:
        """Stop waiting for the feedback of a pending decision; the estimates stay unbiased.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=2, seed=7)
        >>> learner.forget(learner.decide())
        >>> learner.pending, learner.forgotten
        ((), 1)
        """
        with self._lock:
            del self._pending[self._find(decision)[0].id]
            self._forgotten += 1

    def _find(self, decision: Decision | str) -> Pending:
        key = decision.id if isinstance(decision, Decision) else decision
        pending = self._pending.get(key) if isinstance(key, str) else None
        if pending is not None and (decision is pending[0] or decision is key or decision == pending[0]):
            return pending
        raise FeedbackError(f"decision {shown(key)}: {self._why_unknown(key, pending)}")

    def _why_unknown(self, key: object, pending: Pending | None) -> str:
        tag, _, number = key.rpartition("-") if isinstance(key, str) else ("", "", "")
        if pending is not None:
            return "is pending with other contents; give the decision as this learner made it"
        if tag == self._tag and number.isdecimal() and len(number) < 20 and 0 < int(number) <= self._made:
            return (
                "is not pending: its feedback was applied before, or it was forgotten; "
                "send feedback once for each decision"
            )
        return "was never made by this learner; give a decision that decide() or explore() returned"

    def _checked_record(self, place: int, record: Any) -> tuple[int, float, float]:
        try:
            if isinstance(record, Mapping):
                arm, propensity, loss = record["explore"], record["propensity"], record["loss"]
            else:
                arm, propensity, loss = record
        except (TypeError, ValueError, KeyError):
            raise ParameterError(
                f"records[{place}] = {shown(record)}: must be (arm, propensity, loss), or a mapping with the "
                "keys 'explore', 'propensity' and 'loss'; mend that record"
            ) from None
        chance = as_float(propensity)
        # Far below any real propensity, and far enough from overflow that no sum of estimates reaches it.
        if chance is None or not 1e-200 <= chance <= 1.0:
            rule = "must be a probability of at least 1e-200"
            remedy = "log the probability with which the arm was explored"
            raise ParameterError(complaint(f"records[{place}].propensity", propensity, rule, remedy))
        try:
            return self._arms.place(arm), 1.0 / chance, self._losses.scaled(loss)
        except (ArmError, LossError) as error:
            raise type(error)(f"records[{place}]: {error}") from None

    def _charge_absent(self, covered: tuple[int, ...], loss: float) -> None:
        if self._policy.cumulative is None:
            return
        absent = np.ones(len(self._arms), np.bool_)
        absent[list(covered)] = False
        self._policy.layout.row(self._state, self._policy.cumulative)[absent] += loss
        self._entries.init(*self._flat)

    def _restricted(self, part: Ints) -> State:
        state = self._policy.layout.restrict(self._state, part)
        self._entries.init(self._values, *state)
        return state

    # Looking

    def exploitation_probabilities(self, *, available: Iterable[Arm] | None = None) -> Floats:
        """The exact probability with which `decide` would now exploit each arm, in the order of `arms`.

        >>> import decoupled as dc
        >>> dc.FTPL().start(arms=4, seed=7).exploitation_probabilities().round(6).tolist()
        [0.25, 0.25, 0.25, 0.25]
        """
        return self._law(self._policy.exploitation_law, available)

    def exploration_probabilities(self, *, available: Iterable[Arm] | None = None) -> Floats:
        """The exact probability with which `decide` would now explore each arm, in the order of `arms`.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=3, seed=7)
        >>> learner.exploration_probabilities(available=[0, 2]).round(3).tolist()
        [0.614, 0.0, 0.386]
        """
        return self._law(self._policy.exploration_law, available)

    def _law(self, law: Any, available: Iterable[Arm] | None) -> Floats:
        part = None if available is None else self._arms.places(available)
        probabilities = np.zeros(len(self._arms))
        with self._lock:
            if part is None:
                probabilities[:] = law(self._state)
            else:
                probabilities[part] = law(self._restricted(part))
        return probabilities

    def estimates(self) -> Floats:
        """What is learned about each arm, on losses scaled to [0, 1]: see the policy for its meaning.

        >>> import decoupled as dc
        >>> dc.FTPL().start(arms=3, seed=7).estimates().tolist()
        [0.0, 0.0, 0.0]
        """
        with self._lock:
            return self._policy.estimates(self._state)

    def diagnostics(self) -> dict[str, float]:
        """The single numbers the policy keeps, by name.

        >>> import decoupled as dc
        >>> dc.TsallisINF().start(arms=8, seed=7).diagnostics()["steps"]
        2.0
        """
        names = SHARED_SCALARS + self._policy.layout.scalars
        with self._lock:
            return dict(zip(names, self._state.scalars.tolist(), strict=True))

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
        stream, tag = _randomness(seed)
        copy = self.from_json(self.to_json())
        # The new ids differ from the old ones also where the seed is the same.
        lineage = f"{self._tag}-{copy._made}-{tag}".encode()
        copy._stream, copy._tag, copy._made = stream, hashlib.sha256(lineage).hexdigest()[:12], 0
        return copy

    def to_json(self) -> str:
        """The whole state as text: what is learned, what is pending, and the random stream.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=3, seed=7)
        >>> twin = dc.Learner.from_json(learner.to_json())
        >>> twin.decide() == learner.decide()
        True
        """
        layout = self._policy.layout
        with self._lock:
            content = {
                "policy": self._policy.to_dict(),
                "arms": self._arms.to_json(),
                "loss_range": list(self._losses),
                "max_pending": self._max_pending,
                "round": self.round,
                "learned": {name: layout.row(self._state, name).tolist() for name in layout.learned},
                "stream": [hex(int(word)) for word in self._stream],
                "tag": self._tag,
                "made": self._made,
                "forgotten": self._forgotten,
                "pending": [_record(pending) for pending in self._pending.values()],
            }
        return seal(FORMAT, VERSION, content)

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
        content = unseal(text, FORMAT, VERSION, "Learner.to_json()")
        try:
            return cls._restore(content)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise StateError(
                f"state: cannot be restored ({type(error).__name__}: {error}); "
                "give the text that Learner.to_json() wrote"
            ) from error

    @classmethod
    def _restore(cls, content: dict[str, Any]) -> Self:
        policy = cls.policy_family.from_dict(content["policy"])
        low, high = content["loss_range"]
        learner = cls(
            policy, content["arms"], 0, loss_range=(low, high), max_pending=content["max_pending"]
        )
        state = policy.layout.new_state(len(learner._arms))
        state.scalars[ROUND] = content["round"]
        for name in policy.layout.learned:
            policy.layout.row(state, name)[:] = content["learned"][name]
        learner._set_state(state)
        learner._stream[:] = [int(word, 16) for word in content["stream"]]
        learner._tag = content["tag"]
        learner._made = content["made"]
        learner._forgotten = content["forgotten"]
        for record in content["pending"]:
            pending = _pending(record)
            learner._pending[pending[0].id] = pending
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


def _record(pending: Pending) -> list[Any]:
    """A pending decision as plain values; a baseline comes last, where there is one."""
    decision, arm, covered, baseline = pending
    return [*decision, arm, covered, *([] if baseline is None else [baseline.tolist()])]


def _pending(record: list[Any]) -> Pending:
    fields = len(Decision._fields)
    arm, covered, *baseline = record[fields:]
    return (
        Decision(*record[:fields]),
        arm,
        None if covered is None else tuple(covered),
        np.array(baseline[0], np.float64) if baseline else None,
    )


def _randomness(seed: object) -> tuple[Words, str]:
    """A random stream, and a tag that keeps one learner's decision ids apart from another's."""
    if not isinstance(seed, np.random.SeedSequence):
        if seed is not None:
            seed = whole_number("seed", seed, 0, "leave it out for fresh randomness")
        seed = np.random.SeedSequence(seed)
    tag = int(seed.generate_state(3, np.uint64)[2]) >> 16
    return new_stream(seed), f"{tag:012x}"

"""What real traffic is like: late or no feedback, and rounds that do not explore."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..base.arrays import Ints, Words
from ..base.validation import MOST_ROUNDS, as_float, check_number, whole_number
from ..errors import ParameterError, near_name
from ..kernels import feedback_delay
from ..kernels.feedback_delay import FeedbackQueue, Rules
from ..kernels.random.stream import new_stream
from ..policies import Policy

Delay: TypeAlias = int | tuple[str, float] | tuple[str, int, int]
"""How many rounds late feedback is: a number, or a law to draw it from; see `Traffic`."""

MOST_BYTES = 2**31  # of pending decisions, in each run under way

_DELAYS = 'a number of rounds, ("geometric", mean) or ("uniform", low, high)'
_LAWS = {"geometric": 1, "uniform": 2}  # how many numbers follow the name


@dataclass(frozen=True)
class Traffic:
    """How feedback reaches the policy. By default: at once, in every round.

    To simulate anything else, such as a judge that errs or users that come back, play the rounds
    with a `Learner`.

    Args:
        delay: the feedback of round t arrives after the decision of round t + delay. A number of
            rounds, or a law from which each round draws: ("geometric", mean), on 0, 1, 2, ..., or
            ("uniform", low, high), both ends included.
        missing: the probability with which the feedback of a round never arrives.
        explore_share: the share of rounds that explore, each by chance. The others exploit only,
            and nothing is learned there.

    >>> import decoupled as dc
    >>> dc.Traffic(delay=["geometric", 100], missing=0.5).to_dict()
    {'delay': ['geometric', 100.0], 'missing': 0.5}
    >>> dc.Traffic(delay=100, explore_share=0.05).label
    'delay 100, explore_share 0.05'
    """

    delay: Any = 0
    missing: float = 0.0
    explore_share: float = 1.0

    def __post_init__(self) -> None:
        share = as_float(self.explore_share)
        if share is None or not 0.0 < share <= 1.0:
            rule = "must be a number above 0 and at most 1"
            remedy = "leave it out to explore always"
            raise ParameterError.of("explore_share", self.explore_share, rule, remedy)
        missing = check_number(
            "missing", self.missing, "leave it out if nothing is lost", at_least=0.0, below=1.0
        )
        object.__setattr__(self, "delay", _checked_delay(self.delay))
        object.__setattr__(self, "missing", missing)
        object.__setattr__(self, "explore_share", share)

    @property
    def is_direct(self) -> bool:
        """Whether feedback is prompt and complete."""
        return self == DIRECT

    def to_dict(self) -> dict[str, Any]:
        """The fields that differ from the defaults, as plain values."""
        plain: dict[str, Any] = json.loads(json.dumps(self._set_fields()))
        return plain

    @property
    def label(self) -> str:
        """The fields that differ from the defaults, for titles; empty if none does."""
        return ", ".join(f"{name} {_text_of(value)}" for name, value in self._set_fields().items())

    def _set_fields(self) -> dict[str, Any]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value != getattr(DIRECT, name)}

    @property
    def longest_delay(self) -> int:
        """The longest delay that a round can have."""
        if isinstance(self.delay, int):
            return self.delay
        law, *numbers = self.delay
        if law == "uniform":
            return int(numbers[1])
        # The least of the random numbers is 2 ** -53.
        return int(53.0 * math.log(2.0) / -_tail(numbers[0])) + 1

    def slots(self, horizon: int) -> int:
        """How many decisions may be pending at once: those that arrive within the horizon."""
        return min(self.longest_delay, horizon - 1) + 1

    def rules(self) -> Rules:
        """The rules as numbers."""
        rules = Rules(
            law=feedback_delay.CONSTANT,
            low=0,
            span=1,
            tail=-1.0,
            missing=self.missing,
            explore_share=self.explore_share,
        )
        if isinstance(self.delay, int):
            return rules._replace(low=self.delay)
        law, *numbers = self.delay
        if law == "uniform":
            low, high = numbers
            return rules._replace(law=feedback_delay.UNIFORM, low=low, span=high - low + 1)
        return rules._replace(law=feedback_delay.GEOMETRIC, tail=_tail(numbers[0]))


def _tail(mean: float) -> float:
    """The logarithm of the chance that a geometric delay goes on for another round."""
    return -math.log1p(1.0 / mean)


def _text_of(value: Any) -> str:
    """A number, or a law with its numbers, as in `geometric(100)`."""
    if not isinstance(value, tuple):
        return f"{value:g}"
    law, *numbers = value
    return f"{law}({', '.join(map(_text_of, numbers))})"


def _checked_delay(delay: Any) -> Delay:
    """A delay as a user may give it: a number of rounds, or a law with its numbers."""
    if not isinstance(delay, tuple | list | str | dict):
        return whole_number("delay", delay, 0, _DELAYS, MOST_ROUNDS)
    rule = f"must be {_DELAYS}"
    if not isinstance(delay, tuple | list) or not delay or not isinstance(delay[0], str):
        raise ParameterError.of("delay", delay, rule, "for example ('geometric', 100)")
    law, *numbers = delay
    if law not in _LAWS:
        raise ParameterError.of("delay", delay, rule, near_name(law, tuple(_LAWS)))
    if len(numbers) != _LAWS[law]:
        raise ParameterError.of("delay", delay, rule, f"give {_LAWS[law]} after the name")
    if law == "geometric":
        return law, check_number(
            "delay[1]", numbers[0], "give the mean in rounds", above=0.0, below=1e12
        )
    remedy = "give two numbers of rounds"
    low, high = (whole_number("delay", number, 0, remedy, MOST_ROUNDS) for number in numbers)
    if low > high:
        rule = "must name the lower end first"
        raise ParameterError.of("delay", delay, rule, f"write ('uniform', {high}, {low})")
    return law, low, high


DIRECT = Traffic()
NAMES = tuple(field.name for field in fields(Traffic))


def traffic_of(values: Mapping[str, Any]) -> Traffic:
    """The traffic that a specification describes among other things."""
    return Traffic(**{name: values[name] for name in NAMES if name in values})


class PendingCapacity(NamedTuple):
    """The slots for the pending decisions of a run, and the columns of their floats and ints."""

    slots: int
    floats: int
    ints: int

    def bytes(self) -> int:
        """The memory it takes."""
        return 8 * self.slots * (self.floats + self.ints)


def kept_places(policy: Policy, arms: int) -> Ints:
    """What a pending decision keeps: three counts, then places of scalars, floats and ints.

    The places are those that `Baselines.write` or `recall_law` write, which is where a learner puts
    the baselines or the law of a late decision, and what is named in `kept`.
    """
    layout = policy.layout
    least = np.iinfo(np.int64).min
    state = layout.new_state(arms)
    state.scalars[:] = math.nan
    state.floats[:] = math.nan
    state.ints[:] = least
    baselines = policy.baselines
    if baselines is None:
        return np.zeros(3, np.int64)
    if baselines.keep_law:
        baselines.recall_law(state, np.arange(arms), np.ones(arms), is_same=True)
    elif baselines.row is not None:
        baselines.write(state, np.arange(arms), np.ones(arms))
    for name in baselines.kept:
        layout.row(state, name)[:] = 0
    scalars = np.flatnonzero(~np.isnan(state.scalars))
    floats = np.flatnonzero(~np.isnan(state.floats).all(axis=1))
    ints = np.flatnonzero((state.ints != least).any(axis=1))
    return np.concatenate([[len(scalars), len(floats), len(ints)], scalars, floats, ints]).astype(
        np.int64
    )


def pending_capacity(policy: Policy, arms: int, traffic: Traffic, horizon: int) -> PendingCapacity:
    """The room that pending decisions of a policy take."""
    scalars, floats, ints = kept_places(policy, arms)[:3].tolist()
    slots = traffic.slots(horizon)
    return PendingCapacity(
        slots=slots,
        floats=feedback_delay.OWN_FLOATS + scalars + floats * arms,
        ints=feedback_delay.OWN_INTS + ints * arms,
    )


def pending_bytes(policy: Policy, arms: int, traffic: Traffic, horizon: int) -> int:
    """The memory of the pending decisions of a run; none if feedback is direct."""
    return 0 if traffic.is_direct else pending_capacity(policy, arms, traffic, horizon).bytes()


def check_traffic(traffic: Traffic, policies: tuple[Policy, ...], arms: int, horizon: int) -> None:
    """Raise an error if a policy cannot be simulated with this traffic."""
    for policy in policies:
        if policy.coupled and traffic.explore_share < 1.0:
            rule = f"is for decoupled policies, and {policy.label} sees the arm that it plays"
            raise ParameterError.of(
                "explore_share",
                traffic.explore_share,
                rule,
                "leave out one of them, or use missing=",
            )
        needed = pending_capacity(policy.at(arms), arms, traffic, horizon).bytes()
        if needed > MOST_BYTES:
            rule = (
                f"needs {needed:,} bytes for pending decisions of {policy.label} with {arms} arms"
            )
            rule += f", and at most {MOST_BYTES:,} are allowed"
            raise ParameterError.of(
                "delay", traffic.delay, rule, "give a shorter delay, or fewer arms"
            )


def new_queue(policy: Policy, arms: int, traffic: Traffic, horizon: int) -> FeedbackQueue:
    """The rules for compiled code, and room for pending decisions. The key belongs to a run."""
    capacity = pending_capacity(policy, arms, traffic, horizon)
    return FeedbackQueue(
        rules=traffic.rules(),
        kept=kept_places(policy, arms),
        floats=np.zeros((capacity.slots, capacity.floats)),
        ints=np.zeros((capacity.slots, capacity.ints), np.int64),
        key=np.zeros(2, np.uint64),
    )


LOSS_NOISE, DRAWS, KEY = range(3)  # the children of a run's seed; the last is for these rules


def stream_of(seed: int, run: int, *child: int) -> Words:
    """The stream of a child of a run's seed; the draws have children too, one for each segment."""
    return new_stream(np.random.SeedSequence(seed, spawn_key=(run, *child)))

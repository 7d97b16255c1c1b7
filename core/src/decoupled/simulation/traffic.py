"""What real traffic is like: feedback comes late or never, on a share of the rounds, altered or from a judge; and keys come back."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..base.arrays import Floats, Ints, Words
from ..base.validation import MOST_ROUNDS, as_float, check_number, whole_number
from ..errors import ParameterError, near_name
from ..kernels import late
from ..kernels.late import Late, Rules
from ..kernels.random.stream import new_stream
from ..learner.labels import Labels, checked_labels
from ..policies import Policy

Delay: TypeAlias = int | tuple[str, float] | tuple[str, int, int]
"""How many rounds late feedback is: a number, or a law to draw it from; see `Traffic`."""
Reported: TypeAlias = tuple[str, float] | tuple[str, float, float] | None
"""How the reported loss differs from the one suffered; see `Traffic`."""
Arrivals: TypeAlias = str | tuple[str, float]
"""Which keys come how often; see `Traffic`."""

MOST_BYTES = 2**31  # of pending decisions, in each run under way

_DELAYS = 'a number of rounds, ("geometric", mean) or ("uniform", low, high)'
_REPORTS = '("flip", probability), ("noise", standard deviation) or ("scale", factor, shift)'


@dataclass(frozen=True)
class Traffic:
    """How feedback reaches the policy, and which keys arrive. By default: exact feedback at once in every round, no keys.

    Args:
        delay: the feedback of round t arrives after the decision of round t + delay. A number of rounds, or a law from
            which each round draws: ("geometric", mean), on 0, 1, 2, ..., or ("uniform", low, high), both ends included.
        missing: the probability with which the feedback of a round never arrives.
        slice: the share of rounds that explore, each by chance. The others exploit only, and nothing is learned there.
        reported: how the reported loss differs from the one suffered. ("flip", probability) reports 1 - loss with this
            probability; ("noise", sd) adds normal noise, clipped to [0, 1]; ("scale", factor, shift) reports
            factor * loss + shift.
        keys: the number of keys, such as users or sessions, one of which comes in each round; 0 for none. Results then
            have `switches`, how often a key was moved to another arm. Only on the CPU, with tables and direct feedback.
        arrivals: "even" if the keys take turns; ("zipf", s) if key i comes with a probability proportional to i ** -s.
        sticky: whether a key decides the draw of its arm, see `Learner.decide`; policies of the standard game draw afresh.
        judge: how a judge errs that reports a loss of 0 or 1. For each arm, or once for all, the probability of 1 if
            the true loss is 0, and if it is 1; in between it is linear in the loss. Regret counts true losses. Only
            on the CPU.
        labels: the learner's `Labels`, which are true losses; None if it learns from the judge alone.
        label_delay: how many rounds after the judge's loss a label arrives.

    >>> import decoupled as dc
    >>> dc.Traffic(delay=["geometric", 100], missing=0.5).to_dict()
    {'delay': ['geometric', 100.0], 'missing': 0.5}
    >>> dc.Traffic(delay=100, reported=("noise", 0.2)).label
    'delay 100, reported noise(0.2)'
    >>> dc.Traffic(judge=(0.1, 0.9), labels=dc.Labels(share=0.2), label_delay=50).to_dict()["labels"]
    {'share': 0.2, 'first': 200, 'deadline': 10000, 'missing': 0.5}
    """

    delay: Any = 0
    missing: float = 0.0
    slice: float = 1.0
    reported: Any = None
    keys: int = 0
    arrivals: Any = "even"
    sticky: bool = True
    judge: Any = None
    labels: Any = None
    label_delay: int = 0

    def __post_init__(self) -> None:
        share = as_float(self.slice)
        if share is None or not 0.0 < share <= 1.0:
            rule = "must be a number above 0 and at most 1"
            raise ParameterError.of("slice", self.slice, rule, "leave it out to explore always")
        if not isinstance(self.sticky, bool):
            raise ParameterError.of(
                "sticky", self.sticky, "must be True or False", "the default is True"
            )
        checked = {
            "delay": _checked_delay(self.delay),
            "missing": check_number(
                "missing", self.missing, "leave it out if nothing is lost", at_least=0.0, below=1.0
            ),
            "slice": share,
            "reported": _checked_report(self.reported),
            "keys": whole_number("keys", self.keys, 0, "leave it out for none"),
            "arrivals": _checked_arrivals(self.arrivals),
            "judge": _checked_judge(self.judge, self.reported),
            "labels": _checked_labels(self.labels, self.judge, self.label_delay),
            "label_delay": whole_number("label_delay", self.label_delay, 0, _DELAYS, MOST_ROUNDS),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def direct(self) -> bool:
        """Whether feedback is prompt, complete and exact, without keys."""
        return self == DIRECT

    def to_dict(self) -> dict[str, Any]:
        """The fields that differ from the defaults, as plain values."""
        plain: dict[str, Any] = json.loads(json.dumps(self._set(), default=Labels.to_dict))
        return plain

    @property
    def label(self) -> str:
        """The fields that differ from the defaults, for titles; empty if none does."""
        return ", ".join(f"{name} {_shown(value)}" for name, value in self._set().items())

    def _set(self) -> dict[str, Any]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value != getattr(DIRECT, name)}

    @property
    def longest(self) -> int:
        """The longest delay that a round can have."""
        if isinstance(self.delay, int):
            return self.delay
        law, *numbers = self.delay
        # The least of the random numbers is 2 ** -53.
        return (
            int(numbers[1])
            if law == "uniform"
            else int(53.0 * math.log(2.0) / -_tail(numbers[0])) + 1
        )

    def slots(self, horizon: int) -> int:
        """How many decisions may be pending at once, among those whose feedback arrives within the horizon."""
        return min(self.longest + self.label_delay, horizon - 1) + 1

    def rules(self) -> Rules:
        """The rules as numbers."""
        law, low, span, tail = late.CONSTANT, 0, 1, -1.0
        if isinstance(self.delay, int):
            low = self.delay
        elif self.delay[0] == "uniform":
            law, low, span = late.UNIFORM, self.delay[1], self.delay[2] - self.delay[1] + 1
        else:
            law, tail = late.GEOMETRIC, _tail(self.delay[1])
        altered: tuple[Any, ...] = self.reported or ("exact",)
        how, first, second, *_ = (*altered, 0.0, 0.0)
        report = {"exact": late.EXACT, "flip": late.FLIP, "noise": late.NOISE, "scale": late.SCALE}[
            how
        ]
        wanted = self.labels or Labels(first=0)
        label_share = 0.0 if self.labels is None else wanted.share
        told = self.judge is not None, label_share, wanted.first, self.label_delay, wanted.width
        return Rules(law, low, span, tail, self.missing, self.slice, report, first, second, *told)


def _tail(mean: float) -> float:
    return -math.log1p(1.0 / mean)


def _shown(value: Any) -> str:
    if isinstance(value, bool | Labels):
        return str(value).lower()
    if isinstance(value, tuple):
        name, parts = (value[0], value[1:]) if isinstance(value[0], str) else ("", value)
        return f"{name}({', '.join(map(_shown, parts))})"
    return f"{value:g}"


def _parts(
    name: str, value: Any, laws: dict[str, int], allowed: str, example: tuple[str, float]
) -> tuple[str, list[Any]]:
    """The name of a law and its numbers, as many as it takes."""
    rule, remedy = f"must be {allowed}", f"for example {example}"
    if not isinstance(value, tuple | list) or not value or not isinstance(value[0], str):
        raise ParameterError.of(name, value, rule, remedy)
    if value[0] not in laws:
        raise ParameterError.of(name, value, rule, near_name(value[0], tuple(laws)))
    if len(value) != 1 + laws[value[0]]:
        raise ParameterError.of(name, value, rule, f"give {laws[value[0]]} after the name")
    return value[0], list(value[1:])


def _checked_delay(delay: Any) -> Delay:
    if not isinstance(delay, tuple | list | str | dict):
        return whole_number("delay", delay, 0, _DELAYS, MOST_ROUNDS)
    law, numbers = _parts(
        "delay", delay, {"geometric": 1, "uniform": 2}, _DELAYS, ("geometric", 100)
    )
    if law == "geometric":
        return law, check_number(
            "delay[1]", numbers[0], "give the mean in rounds", above=0.0, below=1e12
        )
    remedy = "give two numbers of rounds"
    low, high = (whole_number("delay", each, 0, remedy, MOST_ROUNDS) for each in numbers)
    if low > high:
        rule = "must name the lower end first"
        raise ParameterError.of("delay", delay, rule, f"write ('uniform', {high}, {low})")
    return law, low, high


def _checked_report(reported: Any) -> Reported:
    if reported is None:
        return None
    hows = {"flip": 1, "noise": 1, "scale": 2}
    how, numbers = _parts("reported", reported, hows, _REPORTS, ("noise", 0.2))
    if how == "noise":
        return how, check_number(
            "reported[1]", numbers[0], "give a standard deviation", above=0.0, below=1e6
        )
    if how == "flip":
        return how, check_number(
            "reported[1]", numbers[0], "give a probability, such as 0.1", at_least=0.0, at_most=1.0
        )
    factor, shift = (as_float(each) for each in numbers)
    if (
        factor is None
        or shift is None
        or not (0.0 <= shift <= 1.0 and 0.0 <= factor + shift <= 1.0)
    ):
        rule = "must map losses in [0, 1] to [0, 1]: shift and factor + shift are both in [0, 1]"
        raise ParameterError.of("reported", reported, rule, "try ('scale', 0.8, 0.1)")
    return how, factor, shift


def _checked_arrivals(arrivals: Any) -> Arrivals:
    if isinstance(arrivals, str) and arrivals == "even":
        return arrivals
    law, numbers = _parts(
        "arrivals", arrivals, {"zipf": 1}, '"even" or ("zipf", exponent)', ("zipf", 1.0)
    )
    return law, check_number("arrivals[1]", numbers[0], "try 1.0", above=0.0, below=100.0)


def _checked_judge(judge: Any, reported: Any) -> tuple[tuple[float, ...], ...] | None:
    if judge is None:
        return None
    rule, remedy = "must be two probabilities, or two for each arm", "for example (0.15, 0.85)"
    if reported is not None:
        rule, remedy = "cannot be combined with reported", "leave out one of them"
    try:
        values = np.atleast_2d(np.array(judge, np.float64))
    except (TypeError, ValueError):
        raise ParameterError.of("judge", judge, rule, remedy) from None
    within = values.shape == (len(values), 2) and ((values >= 0.0) & (values <= 1.0)).all()
    if not within or reported is not None:
        raise ParameterError.of("judge", judge, rule, remedy)
    return tuple(map(tuple, values.tolist()))


def _checked_labels(labels: Any, judge: Any, delay: Any) -> Labels | None:
    needs = (("labels", labels, "judge", judge), ("label_delay", delay, "labels", labels))
    for name, value, needed, known in needs:
        if value not in (None, 0) and known is None:
            raise ParameterError.of(
                name, value, f"needs {needed}", f"give {needed}= too, or leave it out"
            )
    if not isinstance(labels, Mapping):
        return None if labels is None else checked_labels(labels)
    try:
        return Labels(**labels)
    except (TypeError, ParameterError) as error:
        raise ParameterError(f"labels: {error}") from None


DIRECT = Traffic()
NAMES = tuple(field.name for field in fields(Traffic))


def traffic_of(values: Mapping[str, Any]) -> Traffic:
    """The traffic that a specification describes among other things."""
    return Traffic(**{name: values[name] for name in NAMES if name in values})


class Room(NamedTuple):
    """What the pending decisions of a run take: slots, and the columns of their floats and ints."""

    slots: int
    floats: int
    ints: int

    def bytes(self) -> int:
        """The memory it takes."""
        return 8 * self.slots * (self.floats + self.ints)


def kept_places(policy: Policy, arms: int) -> Ints:
    """What a pending decision keeps of the state: three counts, then places of scalars, rows of floats and of ints.

    These are what `Baselines.write` or `recall_law` write, which is where a learner puts the baselines or the law of a late
    decision, and what is named in `kept`.
    """
    layout, least = policy.layout, np.iinfo(np.int64).min
    state = layout.new_state(arms)
    state.scalars[:], state.floats[:], state.ints[:] = math.nan, math.nan, least
    baselines = policy.baselines
    if baselines is None:
        return np.zeros(3, np.int64)
    if baselines.keep_law:
        baselines.recall_law(state, np.arange(arms), np.ones(arms), True)
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


def room_for(policy: Policy, arms: int, traffic: Traffic, horizon: int) -> Room:
    """The room that pending decisions of a policy take."""
    scalars, floats, ints = kept_places(policy, arms)[:3].tolist()
    slots = traffic.slots(horizon)
    return Room(slots, late.OWN_FLOATS + scalars + floats * arms, late.OWN_INTS + ints * arms)


def pending_bytes(policy: Policy, arms: int, traffic: Traffic, horizon: int) -> int:
    """The memory of the pending decisions of a run; none if feedback is direct."""
    return 0 if traffic.direct else room_for(policy, arms, traffic, horizon).bytes()


def check_traffic(traffic: Traffic, policies: tuple[Policy, ...], arms: int, horizon: int) -> None:
    """Raise an error if a policy cannot be simulated with this traffic."""
    if len(traffic.judge or "1") not in (1, arms):
        rule = f"must have two for each of {arms} arms"
        raise ParameterError.of("judge", traffic.judge, rule, "or give two for all")
    if traffic.labels is not None and traffic.slots(horizon) > traffic.labels.deadline:
        rule = f"must be below labels.deadline = {traffic.labels.deadline}, together with the longest delay"
        raise ParameterError.of("label_delay", traffic.label_delay, rule, "raise the deadline")
    for policy in policies:
        if policy.coupled and traffic.slice < 1.0:
            rule = f"is for decoupled policies, and {policy.label} sees the arm that it plays"
            raise ParameterError.of(
                "slice", traffic.slice, rule, "leave out one of them, or use missing="
            )
        needed = room_for(policy.at(arms), arms, traffic, horizon).bytes()
        if needed > MOST_BYTES:
            rule = (
                f"needs {needed:,} bytes for pending decisions of {policy.label} with {arms} arms"
            )
            rule += f", and at most {MOST_BYTES:,} are allowed"
            raise ParameterError.of(
                "delay", traffic.delay, rule, "give a shorter delay, or fewer arms"
            )


def new_late(policy: Policy, arms: int, traffic: Traffic, horizon: int) -> Late:
    """The rules for compiled code, and room for pending decisions."""
    room = room_for(policy, arms, traffic, horizon)
    floats: Floats = np.zeros((room.slots, room.floats))
    ints: Ints = np.zeros((room.slots, room.ints), np.int64)
    judge: Floats = np.broadcast_to(traffic.judge or (0.0, 1.0), (arms, 2)).copy()
    places, key = kept_places(policy, arms), np.zeros(2, np.uint64)
    return Late(traffic.rules(), places, floats, ints, key, judge, np.zeros(late.TOLD))


LOSS_NOISE, DRAWS, KEY = range(3)  # the children of a run's seed; the last is for these rules


def stream_of(seed: int, run: int, *child: int) -> Words:
    """The stream of a child of a run's seed; the draws have children too, one for each segment."""
    return new_stream(np.random.SeedSequence(seed, spawn_key=(run, *child)))

"""Guardrails: rules about the arm that is served, whatever the policy has drawn."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self, TypedDict, Unpack

from ..base.validation import LEAST_RISK, number_in, share_of
from ..decision import Arm, ByArm
from ..errors import ArmError, ParameterError, near_name
from .arms import ArmNames, listed

_NO_RISK = "the default is 0.05"


class GuardrailFields(TypedDict, total=False):
    """Guardrails to set; those that are left out stay as they are. `Guardrails` explains each in full.

    Attributes:
        pinned: the arm to exploit in every decision; None for no pin.
        floors: the least probability of exploiting each of these arms.
        holdout: the share of decisions that exploit `control`.
        control: the arm of the hold-out; None draws one of the available arms.
        incumbent: the arm to exploit until another is known to be better; None for none.
        risk: the probability, at most, that the incumbent is ever left although no other arm is better at that moment.
        drift: whether losses may drift.
        down: arms that are not available.

    >>> import decoupled as dc
    >>> changes: GuardrailFields = {"pinned": "a", "holdout": 0.05}
    >>> dc.Guardrails().updated(**changes).holdout
    0.05
    """

    pinned: Arm | None
    floors: ByArm
    holdout: float
    control: Arm | None
    incumbent: Arm | None
    risk: float
    drift: bool
    down: Sequence[Arm]


@dataclass(frozen=True)
class Guardrails:
    """Rules that a learner applies to the arm to exploit, after the policy has drawn it.

    In the decoupled game the exploited arm teaches nothing, so these rules change what is served and nothing else:
    with and without them, the same arms are explored, and estimates are equal to the bit. The exception is `down`,
    which takes arms away from exploring too.

    The first rule that applies chooses the arm, and the `guard` of the decision names it:

    1. "pinned": every decision exploits this arm. It is the kill switch.
    2. "holdout": a share of the decisions exploits the control arm.
    3. "floor": an arm with the floor f is exploited in a share f of the decisions, and more if the policy likes it.
    4. "incumbent": the arm to keep until the observed losses show that another arm is better.

    With a hold-out share h and floors f, arm i is exploited with probability h * 1{i = control} + f_i +
    (1 - h - sum f) * w_i, where w are the policy's probabilities. An arm that is not available cannot be served; its
    part of the probability falls back to the policy.

    Args:
        pinned: the arm to exploit in every decision; None for no pin.
        floors: the least probability of exploiting each of these arms.
        holdout: the share of decisions that exploit `control`.
        control: the arm of the hold-out; None draws one of the available arms, each with the same probability.
        incumbent: the arm to exploit until another is known to be better; None for none.
        risk: the probability, at most, that the incumbent is ever left at a moment at which no other arm is better. The
            learner compares arms by confidence sequences, from the decisions that are made after an incumbent is set; see
            `Learner.watch`, and `decoupled.inference.Verdict` for what "better" means if losses drift.
        drift: whether losses may drift. If no arm's mean loss ever changes, False may find a better arm sooner.
        down: arms that are not available, such as those that fail a health check.

    >>> import decoupled as dc
    >>> learner = dc.FTPL().start(arms=["a", "b", "c"], seed=7)
    >>> learner.guardrails = dc.Guardrails(floors={"a": 0.1}, down=["c"])
    >>> learner.exploitation_probabilities().round(3).tolist()
    [0.55, 0.45, 0.0]
    >>> learner.guardrails = learner.guardrails.updated(pinned="b")
    >>> decision = learner.decide()
    >>> decision.exploit, decision.drawn, decision.guard
    ('b', 'b', 'pinned')
    """

    pinned: Arm | None = None
    floors: ByArm = field(default_factory=dict)
    holdout: float = 0.0
    control: Arm | None = None
    incumbent: Arm | None = None
    risk: float = 0.05
    drift: bool = True
    down: Sequence[Arm] = ()

    def __post_init__(self) -> None:
        set_field = object.__setattr__
        set_field(self, "floors", _checked_floors(self.floors))
        set_field(self, "down", _checked_down(self.down))
        set_field(self, "holdout", share_of("holdout", self.holdout, "it is a probability"))
        set_field(self, "risk", number_in("risk", self.risk, LEAST_RISK, 1.0, _NO_RISK))
        if not isinstance(self.drift, bool):
            raise ParameterError.of("drift", self.drift, "must be True or False", "the default is True")
        if self.control is not None and self.holdout == 0.0:
            rule = "is the arm of the hold-out, and holdout is 0"
            raise ParameterError.of("control", self.control, rule, "set holdout too")
        whole = self.holdout + sum(self.floors.values())
        if whole > 1.0:
            rule = f"must sum to at most 1 together with holdout, and sum to {whole:g}"
            raise ParameterError.of("floors", dict(self.floors), rule, "lower some of them")

    def __hash__(self) -> int:
        return hash(repr(self))  # a mapping has no hash

    def __bool__(self) -> bool:
        """Whether there is any rule. Every decision asks."""
        return (
            self.pinned is not None
            or self.control is not None
            or self.incumbent is not None
            or self.holdout > 0.0
            or len(self.floors) > 0
            or len(self.down) > 0
        )

    @property
    def replace_arms(self) -> bool:
        """Whether a rule may serve another arm than the policy drew; `down` does not."""
        return bool(self.updated(down=()))

    def updated(self, **changes: Unpack[GuardrailFields]) -> Self:
        """The same rules with some of them changed.

        Args:
            **changes: the rules to change, by name: see `GuardrailFields`.

        >>> import decoupled as dc
        >>> dc.Guardrails(pinned="a", floors={"b": 0.1}).updated(pinned=None)
        Guardrails(pinned=None, floors={'b': 0.1}, holdout=0.0, control=None, incumbent=None, risk=0.05, drift=True, down=())
        """
        return replace(self, **changes)

    def check_arms(self, arms: ArmNames) -> None:
        """Raise an error if a rule names something that is not an arm, or leaves no arm available.

        Args:
            arms: the arms of the learner.
        """
        for rule, name in self._named():
            if name not in arms:
                remedy = near_name(name, arms.names)
                raise ArmError.of(rule, name, "is not an arm", remedy)
        if len(self.down) >= len(arms):
            remedy = "leave one of them up"
            raise ArmError.of("down", list(self.down), "must not name every arm", remedy)

    def check_retiring(self, names: Iterable[object]) -> None:
        """Raise an error if a rule names one of these arms: a guardrail must not vanish with its arm.

        Args:
            names: the arms that are to be retired.
        """
        gone = {(type(name), name) for name in names}
        for rule, name in self._named():
            if (type(name), name) in gone and rule != "down":
                problem = f"is named by the guardrail {rule!r}, which must not vanish with its arm"
                raise ArmError.of("names", name, problem, "change that guardrail first")

    def without(self, names: Iterable[object]) -> Self:
        """The rules without these retired arms, which can only be down.

        Args:
            names: the arms that are retired.
        """
        gone = set(names)
        return (
            self
            if gone.isdisjoint(self.down)
            else self.updated(down=[x for x in self.down if x not in gone])
        )

    def _named(self) -> list[tuple[str, Arm]]:
        """Each arm that a rule names, with the rule."""
        alone = [(rule, getattr(self, rule)) for rule in ("pinned", "control", "incumbent")]
        found = [(rule, name) for rule, name in alone if name is not None]
        found += [("floors", name) for name in self.floors]
        return found + [("down", name) for name in self.down]

    def to_dict(self) -> dict[str, Any]:
        """The rules as plain values, without those that have their defaults. Floors are pairs: an arm may be a number."""
        values: dict[str, Any] = {
            name: getattr(self, name)
            for name in ("pinned", "holdout", "control", "incumbent", "risk", "drift")
        }
        values |= {"floors": [list(pair) for pair in self.floors.items()], "down": list(self.down)}
        return {name: value for name, value in values.items() if value != _PLAIN.get(name)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote.

        Args:
            values: what `to_dict` returned.

        >>> import decoupled as dc
        >>> rules = dc.Guardrails(floors={1: 0.2}, holdout=0.1)
        >>> dc.Guardrails.from_dict(rules.to_dict()) == rules
        True
        """
        return cls(**{**values, "floors": dict(values.get("floors", []))})


_PLAIN: dict[str, Any] = {"holdout": 0.0, "risk": 0.05, "drift": True, "floors": [], "down": []}


def _checked_floors(floors: object) -> dict[Arm, float]:
    if not isinstance(floors, Mapping):
        rule = "must be a mapping from arms to probabilities"
        raise ParameterError.of("floors", floors, rule, "for example {'a': 0.1}")
    return {
        arm: share_of(f"floors[{arm!r}]", least, "it is a probability") for arm, least in floors.items()
    }


def _checked_down(down: object) -> tuple[Arm, ...]:
    return tuple(dict.fromkeys(listed("down", down)))  # type: ignore[arg-type]

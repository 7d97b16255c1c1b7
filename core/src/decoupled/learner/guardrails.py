"""Guardrails: rules about the arm that is served, whatever the policy has drawn."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn, Self, TypedDict, Unpack

from ..base.validation import LEAST_RISK, check_number
from ..decision import Arm, ByArm
from ..errors import ArmError, ParameterError, UnsupportedError, near_name
from .arms import ArmNames, listed

MOST_PRICED = 100  # arms, those that confidence sequences compare two by two
_NO_RISK = "the default is 0.05"


class GuardrailChanges(TypedDict, total=False):
    """Guardrails to change; those that are left out stay as they are, and None removes a rule.

    `Guardrails` explains each.

    Attributes:
        pinned: the arm that every decision exploits.
        floors: the least probability of exploiting each of these arms.
        holdout: the share of decisions that exploit `control`.
        control: the arm of the hold-out; None draws one of the available arms.
        incumbent: the arm to exploit until another is known to be better.
        risk: the probability, at most, that the incumbent is ever left although no other arm is
            better at that moment; and that `cheapest_within` ever serves an arm that is worse by
            more than the margin.
        drift: whether losses may drift; False may find a better arm sooner, if no arm's mean loss
            ever changes.
        down: the arms that are not available.
        cheapest_within: the margin of loss within which the cheapest arm is good enough.
        prices: the price of each arm, for `cheapest_within`.
        switch_margin: the margin of loss beyond which keys move to other arms.
        by_segment: whether the incumbent is left in each segment by that segment's own evidence.

    >>> import decoupled as dc
    >>> changes: GuardrailChanges = {"pinned": None, "holdout": 0.05}
    >>> dc.Guardrails(pinned="a").updated(**changes).holdout
    0.05
    """

    pinned: Arm | None
    floors: ByArm | None
    holdout: float | None
    control: Arm | None
    incumbent: Arm | None
    risk: float | None
    drift: bool | None
    down: Sequence[Arm] | None
    cheapest_within: float | None
    prices: ByArm | None
    switch_margin: float | None
    by_segment: bool | None


@dataclass(frozen=True)
class Guardrails:
    """Rules that a learner applies to the arm to exploit, after the policy has drawn it.

    In the decoupled game the exploited arm teaches nothing, so these rules change what is served
    and nothing else: the same arms are explored, and estimates are equal to the bit. Only arms that
    are `down` are not explored either.

    The first rule that applies chooses the arm, and the `guard` of the decision names it:

    1. "pinned": every decision exploits this arm. It is the kill switch.
    2. "holdout": a share of the decisions exploits the control arm.
    3. "floor": an arm with the floor f is exploited in a share f of the decisions, or more if the
       policy prefers it.
    4. "incumbent": the arm to keep until the observed losses show that another arm is better.
    5. "cheapest": without an incumbent to keep, the cheapest arm known to be within
       `cheapest_within` of every other arm.
    6. "frozen": a decision with a key draws its arm from a frozen law, which `switch_margin`
       replaces.

    With a hold-out share h and floors f, arm i is exploited with probability h * 1{i = control} +
    f_i + (1 - h - sum f) * w_i, where w are the policy's probabilities. The part of an unavailable
    arm falls back to the policy.

    Args:
        pinned: the arm to exploit in every decision; None for no pin.
        floors: the least probability of exploiting each of these arms.
        holdout: the share of decisions that exploit `control`.
        control: the arm of the hold-out; None draws one of the available arms, each with the same
            probability.
        incumbent: the arm to exploit until another is known to be better; None for none.
        risk: the largest probability that the incumbent is ever left while no other arm is better.
            The learner compares arms by confidence sequences, from the decisions that are made
            after an incumbent is set; see `Learner.watch`, and `decoupled.inference.Verdict` for
            what "better" means if losses drift. `cheapest_within` has another risk of this size: of
            ever serving an arm that is worse by more than its margin.
        drift: whether losses may drift. If no arm's mean loss ever changes, False may find a better
            arm sooner.
        down: arms that are not available, such as those that fail a health check.
        cheapest_within: a difference of losses, smaller than the width of the loss range; None for
            no such rule. The learner compares at most 100 arms. With segments, it compares them in
            the request's segment.
        prices: the price of each arm, 0 or more, in any unit. An arm that is added later has none,
            so that this rule does not serve it. Among equal prices the first arm counts as cheaper.
        switch_margin: a difference of losses, smaller than the width of the loss range; None for no
            such rule. Decisions with a key draw from a frozen law of the policy, until an arm's
            estimated mean loss is lower than that of the law by more than this. Nothing is stored
            for a key. Not for a `ContextualLadder`, and not together with `Labels`.
        by_segment: whether to leave the incumbent segment by segment, each by its own evidence: one
            segment may leave it while others keep it. Only for a `ContextualLadder` with segments.
            The s-th segment to appear has the share 6 / (pi s)^2 of `risk`. False compares arms
            over all requests.

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
    cheapest_within: float | None = None
    prices: ByArm = field(default_factory=dict)
    switch_margin: float | None = None
    by_segment: bool = False

    def __post_init__(self) -> None:
        set_field = object.__setattr__
        for name in ("cheapest_within", "switch_margin"):
            if getattr(self, name) is not None:
                remedy = "None for no such rule"
                value = check_number(name, getattr(self, name), remedy, at_least=0.0)
                set_field(self, name, value)
        set_field(self, "prices", _by_arm("prices", self.prices, "in any unit"))
        floors = _by_arm("floors", self.floors, "it is a probability", at_most=1.0)
        set_field(self, "floors", floors)
        set_field(self, "down", tuple(dict.fromkeys(listed("down", self.down))))
        remedy = "it is a probability"
        holdout = check_number("holdout", self.holdout, remedy, at_least=0.0, at_most=1.0)
        set_field(self, "holdout", holdout)
        risk = check_number("risk", self.risk, _NO_RISK, above=LEAST_RISK, below=1.0)
        set_field(self, "risk", risk)
        for name in ("drift", "by_segment"):
            if not isinstance(getattr(self, name), bool):
                remedy = f"the default is {name == 'drift'}"
                raise ParameterError.of(name, getattr(self, name), "must be True or False", remedy)
        if self.by_segment and self.incumbent is None:
            rule = "is for an incumbent, and there is none"
            raise ParameterError.of(
                "by_segment", self.by_segment, rule, "set incumbent too, or leave it out"
            )
        if self.control is not None and self.holdout == 0.0:
            rule = "is the arm of the hold-out, and holdout is 0"
            raise ParameterError.of("control", self.control, rule, "set holdout too")
        if self.cheapest_within is None and self.prices:
            rule = "are for cheapest_within, which is None"
            raise ParameterError.of(
                "prices", dict(self.prices), rule, "set it too, or leave them out"
            )
        if self.cheapest_within is not None and not self.prices:
            rule = "needs the price of every arm"
            raise ParameterError.of("cheapest_within", self.cheapest_within, rule, "set prices too")
        whole = self.holdout + sum(self.floors.values())
        if whole > 1.0:
            rule = f"must sum to at most 1 together with holdout, and sum to {whole:g}"
            raise ParameterError.of("floors", dict(self.floors), rule, "lower some of them")

    def __hash__(self) -> int:
        return hash(repr(self))  # a mapping has no hash

    def __bool__(self) -> bool:
        """Whether there is any rule. Every decision asks."""
        served = self.pinned, self.control, self.incumbent, self.cheapest_within, self.switch_margin
        return (
            served.count(None) < len(served) or self.holdout > 0.0 or bool(self.floors or self.down)
        )

    @property
    def replace_arms(self) -> bool:
        """Whether a rule may serve another arm than the policy drew; `down` may not."""
        return bool(self.updated(down=()))

    @property
    def compare_arms(self) -> bool:
        """Whether a rule compares arms by confidence sequences."""
        return self.incumbent is not None or self.cheapest_within is not None

    def updated(self, **changes: Unpack[GuardrailChanges]) -> Self:
        """The same rules with some of them changed.

        Args:
            **changes: the rules to change, by name; None removes a rule: see `GuardrailChanges`.

        >>> import decoupled as dc
        >>> rules = dc.Guardrails(pinned="a", floors={"b": 0.1})
        >>> rules.updated(pinned=None) == dc.Guardrails(floors={"b": 0.1})
        True
        """
        if "cheapest_within" in changes and changes["cheapest_within"] is None:
            changes.setdefault("prices", None)  # they belong to that rule
        if "incumbent" in changes and changes["incumbent"] is None:
            changes.setdefault("by_segment", None)
        none = vars(Guardrails())
        values = dict[str, Any](changes)
        values |= {name: none.get(name) for name, value in values.items() if value is None}
        return replace(self, **values)

    def check_arms(self, arms: ArmNames) -> None:
        """Raise an error if a rule names what is not an arm, or no arm is left available."""
        for rule, name in self._named():
            if name not in arms:
                raise ArmError.of(rule, name, "is not an arm", near_name(name, arms.names))
        if len(self.down) >= len(arms):
            raise ArmError.of(
                "down", list(self.down), "must not name every arm", "leave one of them up"
            )

    def check_fits(
        self,
        arms: ArmNames,
        losses: tuple[float, float],
        now: "Guardrails",
        *,
        contextual: bool,
        segmented: bool,
        labelled: bool,
    ) -> None:
        """Raise an error if a learner cannot have these rules; `now` may lack the price of an arm
        that was added later.
        """
        self._check_policy(contextual=contextual, segmented=segmented, labelled=labelled)
        width = losses[1] - losses[0]
        for name in ("cheapest_within", "switch_margin"):
            margin = getattr(self, name)
            if margin is not None and margin >= width:
                rule = f"must be below {width:g}, the width of the loss range"
                raise ParameterError.of(name, margin, rule, "give a difference of two losses")
        if self.cheapest_within is not None and self.prices != now.prices:
            self._check_prices(arms)

    def _check_policy(self, *, contextual: bool, segmented: bool, labelled: bool) -> None:
        """Raise an error if a rule makes no sense for the policy of a learner, or with labels."""
        if self.switch_margin is not None and contextual:
            rule = "keys would draw from one law, and this policy has another for each context"
            raise UnsupportedError(f"switch_margin: {rule}; leave it out")
        if self.by_segment and not segmented:
            refuse_by_segment("by_segment")
        if contextual and self._assumes_constant_means:
            refuse_constant_means("guardrails", CONTEXTS)
        if self.switch_margin is not None and labelled:
            rule = (
                "is a difference of losses, and with labels the policy's estimates are on the map "
                "of Labels.to_unit"
            )
            raise UnsupportedError(f"switch_margin: {rule}; leave it out, or start without labels")

    def _check_prices(self, arms: ArmNames) -> None:
        """Raise an error if an arm has no price, or too many arms would be compared."""
        for arm in arms.names:
            if arm not in self.prices:
                rule = f"has no price of the arm {arm!r}"
                raise ParameterError.of(
                    "prices", dict(self.prices), rule, "give the price of every arm"
                )
        if len(arms) > MOST_PRICED:
            most = f"at most {MOST_PRICED} of them"
            rule = f"compares arms two by two, {most}, and there are {len(arms):,}"
            raise ParameterError.of(
                "cheapest_within", self.cheapest_within, rule, "choose fewer arms"
            )

    @property
    def _assumes_constant_means(self) -> bool:
        """Whether a rule compares arms as if no mean loss ever changed."""
        return not self.drift and self.compare_arms

    def check_takes_preferences(self) -> None:
        """Raise an error if a rule assumes what does not hold for preferences between two arms."""
        if self._assumes_constant_means:
            refuse_constant_means("guardrails", PREFERENCES)

    def tries_as(self, other: "Guardrails") -> bool:
        """Whether these rules judge the same incumbent alike, so that its evidence goes on.

        Args:
            other: the rules that may take the place of these.
        """
        return (self.incumbent, self.by_segment) == (other.incumbent, other.by_segment)

    def check_retiring(self, names: Iterable[object]) -> None:
        """Raise an error if a rule names one of these arms, because it would vanish with them."""
        gone = {(type(name), name) for name in names}
        for rule, name in self._named():
            if (type(name), name) in gone and rule not in ("down", "prices"):
                problem = f"is named by the guardrail {rule!r}, which must not vanish with its arm"
                raise ArmError.of("names", name, problem, "change that guardrail first")

    def without(self, names: Iterable[object]) -> Self:
        """The rules without these retired arms, which can only be down or have a price."""
        gone = set(names)
        if gone.isdisjoint(self.down) and gone.isdisjoint(self.prices):
            return self
        prices = {name: price for name, price in self.prices.items() if name not in gone}
        return self.updated(down=[name for name in self.down if name not in gone], prices=prices)

    def _named(self) -> list[tuple[str, Arm]]:
        """Each arm that a rule names, with the rule."""
        alone = [(rule, getattr(self, rule)) for rule in ("pinned", "control", "incumbent")]
        named = [(rule, name) for rule, name in alone if name is not None]
        for rule in ("floors", "prices", "down"):
            named += [(rule, name) for name in getattr(self, rule)]
        return named

    def to_dict(self) -> dict[str, Any]:
        """The rules as plain values, without those that have their defaults.

        Floors are pairs: an arm may be a number.
        """
        none = vars(Guardrails())
        values = {name: value for name, value in vars(self).items() if value != none[name]}
        for name in values.keys() & {"floors", "prices"}:
            values[name] = [list(pair) for pair in values[name].items()]
        if self.down:
            values["down"] = list(self.down)
        return values

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
        rules = dict(values)
        for name in ("floors", "prices"):
            rules[name] = dict(rules.get(name, []))
        return cls(**rules)


def checked_guardrails(rules: object) -> Guardrails:
    """Guardrails as a learner takes them."""
    if not isinstance(rules, Guardrails):
        remedy = "for example dc.Guardrails(pinned='a')"
        raise ParameterError.of("guardrails", rules, "must be guardrails", remedy)
    return rules


CONTEXTS = (
    "this policy looks at contexts, and how often it explores an arm may depend on the request"
)
PREFERENCES = "this learner gets preferences, and such a loss depends on the arm that is exploited"


def refuse_constant_means(what: str, reason: str) -> None:
    """Raise the error of `drift=False` where constant mean losses are not enough for it, which is
    what `reason` says.

    >>> refuse_constant_means("watch()", PREFERENCES)  # doctest: +NORMALIZE_WHITESPACE
    Traceback (most recent call last):
    decoupled.errors.UnsupportedError: watch(): drift=False takes the losses seen of an arm for a
    fair sample; this learner gets preferences, and such a loss depends on the arm that is
    exploited; use drift=True
    """
    rule = "drift=False takes the losses seen of an arm for a fair sample"
    raise UnsupportedError(f"{what}: {rule}; {reason}; use drift=True")


def refuse_by_segment(what: str) -> NoReturn:
    """Raise the error of asking for evidence by segment where the policy tells no segments apart.

    >>> refuse_by_segment("by_segment")  # doctest: +NORMALIZE_WHITESPACE
    Traceback (most recent call last):
    decoupled.errors.UnsupportedError: by_segment: this policy tells no segments apart; leave it
    out, or use ContextualLadder(segments=...)
    """
    rule = "this policy tells no segments apart"
    raise UnsupportedError(f"{what}: {rule}; leave it out, or use ContextualLadder(segments=...)")


def _by_arm(
    name: str, numbers: object, remedy: str, *, at_most: float | None = None
) -> dict[Arm, float]:
    """A number of at least 0 for each of the arms that a mapping names."""
    if not isinstance(numbers, Mapping):
        rule = "must be a mapping from arms to numbers"
        raise ParameterError.of(name, numbers, rule, "for example {'a': 0.1}")
    return {
        arm: check_number(f"{name}[{arm!r}]", number, remedy, at_least=0.0, at_most=at_most)
        for arm, number in numbers.items()
    }

"""Settings, guardrails and budgets: checked, and settings as text with every default written out, so that defaults may change."""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields, replace
from typing import Any, get_args

from decoupled.base import LEAST_RISK, as_float, check_number
from decoupled.client import Invalid, ServiceError
from decoupled.decision import Arm
from decoupled.errors import DecoupledError, message_of, near_name, reworded, shown
from decoupled.learner import (
    ArmNames,
    Budget,
    Guardrails,
    Labels,
    LossRange,
    checked_patience,
    randomness,
)
from decoupled.policies import Policy

from .context import by_arm, with_fields_of
from .records import (
    DEFAULT_WAIT,
    LONGEST_DEADLINE,
    MOST_ARMS,
    RISK,
    ContextLog,
    FeedbackKind,
    KeyLog,
    Settings,
    UnknownFields,
)

_STANDARD = "plays the standard game and learns from the arm that is served"
_OTHER_POLICY = "use a decoupled policy such as FTPL"
_REDUCES = "where every decision explores"


def changed_guardrails(
    now: Guardrails,
    changes: Mapping[str, Any],
    arms: Collection[Arm],
    coupled: bool,
    losses: tuple[float, float] | None = None,
    contextual: bool = False,
    *,
    labelled: bool = False,
    takes_preferences: bool = False,
) -> Guardrails:
    """The guardrails with some of them changed; `Invalid` if the experiment, with this loss range, cannot have them."""
    given = dict(changes)
    for name in ("floors", "prices"):
        if isinstance(given.get(name), Mapping):
            given[name] = by_arm(given[name], arms)
    try:
        rules = now.updated(**given)
        rules.check_arms(ArmNames(list(arms)))
        if rules.by_segment:
            rule = "is for learners in a program; an experiment leaves its incumbent for all requests at once"
            raise Invalid.of("by_segment", rules.by_segment, rule, "leave it out")
        if losses is not None:
            names = ArmNames(list(arms))
            rules.check_fits(
                names, losses, now, contextual=contextual, segmented=False, labelled=labelled
            )
        if takes_preferences:
            rules.check_takes_preferences()
    except ServiceError:
        raise
    except DecoupledError as error:
        raise Invalid(str(error)) from None
    if coupled and rules.replace_arms:
        raise Invalid(
            f"guardrails: the policy {_STANDARD}, so another must not be served; {_OTHER_POLICY}"
        )
    return rules


def checked_budget(
    values: Mapping[str, Any], arms: Collection[Arm], coupled: bool, contextual: bool = False
) -> Budget:
    """A budget from its fields; `Invalid` if the experiment cannot have it."""
    given = dict(values)
    if isinstance(given.get("cost"), Mapping):
        given["cost"] = by_arm(given["cost"], arms)
    try:
        budget = Budget(**given)
    except DecoupledError as error:
        raise Invalid(str(error)) from None
    if isinstance(budget.cost, Mapping):
        for name in budget.cost:
            if name not in arms:
                raise Invalid.of("cost", name, "is not an arm", near_name(name, arms))
    if coupled and budget:
        raise Invalid(f"budget: the policy plays the standard game, {_REDUCES}; {_OTHER_POLICY}")
    if contextual and budget.decided_share is not None:
        rule = "goes by a verdict about all requests, and a contextual policy may still learn what is best for some"
        raise Invalid.of("decided_share", budget.decided_share, rule, "leave it out")
    return budget


def checked_labels(values: Mapping[str, Any]) -> Labels:
    """Rules for labels from their fields; `Invalid` if they cannot be.

    >>> checked_labels({"share": 2})
    Traceback (most recent call last):
        ...
    decoupled.client.errors.Invalid: labels.share = 2: must be a number from 0.001 to 1; to do without labels, leave out labels=
    """
    try:
        return Labels(**values)
    except DecoupledError as error:
        raise Invalid(f"labels.{error}") from None


LONGEST_TEXT = 255
_A_POLICY = 'for example {"name": "FTPL"}'
# The words that a setting may have, the default first.
_KINDS = {
    "feedback": get_args(FeedbackKind),
    "log_keys": get_args(KeyLog),
    "unknown_context": get_args(UnknownFields),
    "log_context": get_args(ContextLog),
}


def plain_text(argument: str, value: object) -> str:
    """A name that every database can store."""
    if isinstance(value, str) and 1 <= len(value) <= LONGEST_TEXT and value.isprintable():
        return value
    rule = f"must be 1 to {LONGEST_TEXT} printable characters"
    raise Invalid.of(argument, value, rule, "letters and digits will do")


def checked_policy(values: object, place: str = "policy") -> Policy:
    """The policy that a description names; errors give the place in it, such as `policy.alpha`.

    >>> checked_policy({"name": "Forgetting", "policy": {"name": "FTPL", "alpha": 1}})
    Traceback (most recent call last):
        ...
    decoupled.client.errors.Invalid: policy.policy.alpha = 1: must be a finite number above 1 and below 1e+09; the default is 3
    """
    if not isinstance(values, dict) or "name" not in values:
        raise Invalid.of(place, values, "must be an object with the name of a policy", _A_POLICY)
    try:
        return Policy.from_dict(values)
    except DecoupledError as error:
        inner = _inner(values["name"])
        for name in inner & values.keys():
            checked_policy(values[name], f"{place}.{name}")
        remedy = _A_POLICY if message_of(error).argument in inner else None
        raise Invalid(f"{place}.{reworded(error, remedy=remedy)}") from None


def _inner(name: object) -> set[str]:
    """The parameters of a policy that are themselves policies."""
    known: Any = Policy.find(name)
    parameters = () if known is None else fields(known)
    return {each.name for each in parameters if isinstance(each.default, Policy)}


def checked(settings: Settings, seed: int | None = None) -> Settings:
    """The settings with every default written out; `Invalid` for anything a learner would refuse."""
    try:
        ready = _completed(settings)
        arms = len(ready.arms)
        form = Policy.from_dict(ready.policy).at(arms)
        form.layout.new_state(arms)
        form.entries()
        if seed is not None:
            randomness(seed)
        return ready
    except ServiceError:
        raise
    except DecoupledError as error:
        raise Invalid(str(error)) from None


def _completed(settings: Settings) -> Settings:
    policy = checked_policy(settings.policy)
    low, high = LossRange.checked(settings.loss_range)
    deadline, expired = as_float(settings.deadline), as_float(settings.expired_loss)
    if settings.deadline is not None and (
        deadline is None or not 0.0 < deadline <= LONGEST_DEADLINE
    ):
        rule = f"must be a number of seconds above 0 and at most {LONGEST_DEADLINE:g}"
        raise Invalid.of("deadline", settings.deadline, rule, "leave it out for none")
    if settings.expired_loss is not None and (expired is None or not low <= expired <= high):
        rule = f"must lie in [{low}, {high}]"
        raise Invalid.of("expired_loss", settings.expired_loss, rule, "leave it out for none")
    if expired is not None and deadline is None:
        remedy = "set a deadline, or leave both out"
        raise Invalid.of("expired_loss", expired, "needs a deadline", remedy)
    for name, kinds in _KINDS.items():
        if (value := getattr(settings, name)) not in kinds:
            *first, last = map(repr, kinds)
            rule, remedy = f"must be {', '.join(first)} or {last}", f"leave it out for {kinds[0]!r}"
            raise Invalid.of(name, value, rule, remedy)
    if settings.feedback == "preference" and policy.coupled:
        rule = f"needs two arms, and {type(policy).__name__} plays the standard game"
        raise Invalid.of("feedback", settings.feedback, rule, "use a decoupled policy such as FTPL")
    arms = tuple(ArmNames.checked(settings.arms).names)
    if len(arms) > MOST_ARMS:
        raise Invalid.of(
            "arms", len(arms), f"must not exceed {MOST_ARMS:,}", "use several experiments"
        )
    return replace(
        settings,
        policy=policy.to_dict(),
        arms=arms,
        loss_range=(low, high),
        deadline=deadline,
        expired_loss=expired,
        demo=_flag("demo", settings.demo, "false"),
        guardrails=changed_guardrails(
            Guardrails(),
            vars(settings.guardrails),
            arms,
            policy.coupled,
            (low, high),
            policy.contextual,
            labelled=settings.labels is not None,
            takes_preferences=settings.feedback == "preference",
        ),
        budget=checked_budget(vars(settings.budget), arms, policy.coupled, policy.contextual),
        risk=check_number(
            "risk", settings.risk, f"the default is {RISK}", above=LEAST_RISK, below=1.0
        ),
        drift=_drift(settings, policy),
        context=with_fields_of(settings.context, policy),
        patience=checked_patience(settings.patience),
        wait=DEFAULT_WAIT if deadline is None else None,
    )


def _drift(settings: Settings, policy: Policy) -> bool:
    """Whether losses may drift; they must, if the losses seen of an arm are no fair sample of its mean."""
    drift = _flag("drift", settings.drift, "true")
    rule = None
    if not drift and policy.contextual:
        rule = "takes the losses seen of an arm for a fair sample, and the policy looks at contexts"
    elif not drift and settings.feedback == "preference":
        rule = "takes the losses seen of an arm for a fair sample, and a preference depends on the other arm"
    if rule is not None:
        raise Invalid.of("drift", drift, rule, "leave it out for true")
    return drift


def _flag(name: str, value: object, default: str) -> bool:
    if not isinstance(value, bool):
        raise Invalid.of(name, value, "must be true or false", f"leave it out for {default}")
    return value


def as_text(settings: Settings) -> str:
    """Settings as JSON; equal settings give equal text."""
    content = {each.name: getattr(settings, each.name) for each in fields(settings)}
    content |= {"arms": list(settings.arms), "loss_range": list(settings.loss_range)}
    content |= {"guardrails": settings.guardrails.to_dict(), "budget": settings.budget.to_dict()}
    content["labels"] = None if settings.labels is None else settings.labels.to_dict()
    return json.dumps(content, sort_keys=True, allow_nan=False)


def as_settings(content: dict[str, Any]) -> Settings:
    """Settings from stored JSON."""
    low, high = content["loss_range"]
    read = {
        "arms": tuple(content["arms"]),
        "loss_range": (low, high),
        "guardrails": Guardrails.from_dict(content["guardrails"]),
        "budget": Budget.from_dict(content["budget"]),
        "labels": Labels(**content["labels"]) if content.get("labels") else None,
    }
    return Settings(**content | read)


_NAMES = {"deadline": "deadline_seconds"}  # settings that requests call otherwise


_FOLLOWING = {"wait"}  # settings that follow from others


def differences(stored: str, settings: Settings) -> list[str]:
    """Each setting that differs from the stored ones, with both values; empty if they agree.

    >>> there = as_text(Settings({"name": "FTPL"}, ("a", "b"), deadline=60.0))
    >>> differences(there, Settings({"name": "FTPL"}, ("a", "c")))
    ["arms is ['a', 'b'], and you sent ['a', 'c']", 'deadline_seconds is 60.0, and you sent none']
    """
    known, asked = json.loads(stored), json.loads(as_text(settings))
    compared = sorted(known.keys() - _FOLLOWING)
    return [line for name in compared for line in _lines(name, known, asked)]


def _lines(name: str, known: dict[str, Any], asked: dict[str, Any]) -> Iterator[str]:
    one, other = known.get(name), asked.get(name)
    if one == other:
        return
    if name == "imported":
        yield "it began with another saved learner, or with none"
    elif name == "policy" and (labels := _labels(one, other)) is not None:
        yield _line("policy", *labels)
    elif isinstance(one, dict) and isinstance(other, dict):
        for inner in sorted(one.keys() | other.keys()):
            yield from (f"{name}.{line}" for line in _lines(inner, one, other))
    else:
        yield _line(_NAMES.get(name, name), one, other)


def _line(name: str, known: object, asked: object) -> str:
    there = "not set" if known is None else shown(known)
    return f"{name} is {there}, and you sent {'none' if asked is None else shown(asked)}"


def _labels(known: Any, asked: Any) -> tuple[str, str] | None:
    """Both policies in a few words, which say more than their parameters; None if they do not tell them apart."""
    try:
        labels = Policy.from_dict(known).label, Policy.from_dict(asked).label
    except DecoupledError:  # a policy of another program
        return None
    return labels if labels[0] != labels[1] else None

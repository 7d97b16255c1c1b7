"""What callers attach to a decision: a key, tags, a baseline, a context and advice; each as the log holds it.

Every policy may have contexts, by the fields that an experiment declares: they are stored with the decision. A contextual
policy learns by them, and by advice, which says what other rules would exploit. A replay gives the learner what the log
holds, so the learner gets nothing else.
"""

import json
import math
import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple, TypeAlias

from decoupled.base import as_float, is_name, name_rule
from decoupled.client import Invalid
from decoupled.decision import Arm
from decoupled.errors import LossError, ParameterError, near_name, shown
from decoupled.learner import LARGEST_NUMBER, Key, LossRange, key_text

from .records import FIELD_TYPES, ContextLog, FieldType, KeyLog, UnknownFields

# A key may identify a user, so its text is neither logged nor shown in an error, unless the experiment says so.
_SIZE = 16  # bytes of a hash; even among a billion keys, two hardly ever share one


def new_secret() -> str:
    """A new secret to hash the keys of an experiment with."""
    return secrets.token_hex(32)


def checked_key(key: Key, log: KeyLog) -> str:
    """A key as text; `Invalid`, without the key, if it breaks a rule.

    >>> checked_key(17, "hashed")
    '17'
    >>> checked_key("", "hashed")
    Traceback (most recent call last):
        ...
    decoupled.client.errors.Invalid: key: has 0 bytes in UTF-8; must have 1 to 1024; use an id, or a hash of a longer text
    """
    try:
        text = key_text(key)
    except ParameterError as error:
        raise Invalid(str(error)) from None
    if log == "plain" and "\0" in text:
        rule = "has a NUL character; must have none where keys are logged plain"
        raise Invalid(f"key: {rule}; use another id")
    return text


def hashed_key(text: str, secret: str) -> str:
    """The keyed hash of a text.

    >>> hashed_key("session-17", "ab") == hashed_key("session-17", "ab") != hashed_key("session-17", "cd")
    True
    """
    return blake2b(text.encode(), digest_size=_SIZE, key=bytes.fromhex(secret)).hexdigest()


def logged_key(text: str, log: KeyLog, secret: str) -> str:
    """What the log holds of a key; an empty text if nothing, so that a replay still knows that there was one."""
    if log == "hashed":
        return hashed_key(text, secret)
    return text if log == "plain" else ""


# Tags find a decision, and a baseline predicts the losses of its arms. Neither changes what is drawn or learned. Both are
# stored with the decision as JSON: tags sorted by name, predictions by the places of their arms.
MOST_TAGS = 16
LONGEST_TAG_NAME = 64
LONGEST_TAG = 200
_NAME_RULE = name_rule(LONGEST_TAG_NAME)
_TAG_RULE = f"must be a string of 1 to {LONGEST_TAG} printable characters"
_EXAMPLE = "for example {'country': 'de'}"


class Annotations(NamedTuple):
    """The tags, the baseline, the context and the advice of a decision as they are stored; None for none.

    >>> Annotations(tags='{"country":"de"}').baseline is None
    True
    """

    tags: str | None = None
    baseline: str | None = None
    context: str | None = None
    advice: str | None = None


NOTHING = Annotations()


def by_arm(given: Mapping[Any, Any], arms: Collection[Arm]) -> dict[Any, Any]:
    """A mapping by arm. The names in a JSON object are texts: "7" is the arm 7, unless there is an arm "7"."""
    return {_named(name, arms): value for name, value in given.items()}


def _named(name: Any, arms: Collection[Arm]) -> Any:
    number = isinstance(name, str) and name not in arms and name.removeprefix("-").isdecimal()
    return int(name) if number and int(name) in arms else name


def place_of(argument: str, arm: object, places: Mapping[Arm, int], names: Sequence[Arm]) -> int:
    """The place of an arm that can be chosen; `Invalid` for anything else."""
    place = places.get(arm) if isinstance(arm, (str, int)) else None
    if place is None or type(arm) is not type(names[place]):
        raise Invalid(f"{argument}: {shown(arm)} is not an arm; {near_name(arm, places)}")
    return place


def checked_tags(tags: object) -> dict[str, str]:
    """Tags in the order of their names; `Invalid` if they break a limit.

    >>> checked_tags({"device": "phone", "country": "de"})
    {'country': 'de', 'device': 'phone'}
    >>> checked_tags({"country": 49})
    Traceback (most recent call last):
        ...
    decoupled.client.errors.Invalid: tags.country = 49: must be a string of 1 to 200 printable characters; for example {'country': 'de'}
    """
    if not isinstance(tags, Mapping):
        raise Invalid.of("tags", tags, "must be an object of strings", _EXAMPLE)
    if len(tags) > MOST_TAGS:
        rule = f"has {len(tags)} tags, and a decision takes {MOST_TAGS}"
        raise Invalid.of("tags", dict(tags), rule, "keep those that you filter by")
    for name, value in tags.items():
        if not is_name(name, LONGEST_TAG_NAME):
            raise Invalid.of("tags", name, f"the name of a tag {_NAME_RULE}", _EXAMPLE)
        if (
            not isinstance(value, str)
            or not 1 <= len(value) <= LONGEST_TAG
            or not value.isprintable()
        ):
            raise Invalid.of(f"tags.{name}", value, _TAG_RULE, _EXAMPLE)
    return dict(sorted(tags.items()))


def tag_filter(texts: Iterable[str]) -> dict[str, str]:
    """A filter from texts such as "country:de". A decision matches if it has all of these tags.

    >>> tag_filter(["country:de", "page:a:b"])
    {'country': 'de', 'page': 'a:b'}
    """
    wanted: dict[str, str] = {}
    for text in texts:
        name, colon, value = text.partition(":")
        if not colon:
            raise Invalid.of("tag", text, "must be NAME:VALUE", "for example country:de")
        if wanted.setdefault(name, value) != value:
            rule = f"is wanted as {wanted[name]!r} and as {value!r}, and a decision has a tag once"
            raise Invalid.of("tag", name, rule, "ask for one of them")
    return checked_tags(wanted)


def stored_tags(tags: object) -> str | None:
    """Tags as text; None if there are none."""
    return stored(checked_tags(tags)) if tags else None


def stored_baseline(
    baseline: object, places: Mapping[Arm, int], losses: LossRange, names: Sequence[Arm]
) -> str | None:
    """Predictions of losses, by arm or in a list of one for each arm that has a place now, as text; None if there are none."""
    if isinstance(baseline, Mapping):
        given: dict[Any, Any] = by_arm(baseline, places)
    elif isinstance(baseline, (list, tuple)):
        if len(baseline) != len(places):
            rule = f"must have one loss for each of {len(places)} arms, and has {len(baseline)}"
            raise Invalid.of("baseline", baseline, rule, "name the arms if only some have one")
        given = dict(zip(sorted(places, key=places.__getitem__), baseline, strict=True))
    else:
        rule = "must be an object of losses by arm, or a list of one loss for each arm"
        raise Invalid.of("baseline", baseline, rule, "for example {'a': 0.3}")
    found = {}
    for name, value in given.items():
        place = place_of("baseline", name, places, names)
        try:
            losses.scaled_as(
                f"baseline.{name}", value, "leave out the arms that you cannot predict"
            )
        except LossError as error:
            raise Invalid(str(error)) from None
        found[place] = float(value)
    return stored({str(place): found[place] for place in sorted(found)}) if found else None


def shown_tags(text: str | None) -> dict[str, str]:
    """Stored tags by name."""
    tags: dict[str, str] = {} if text is None else json.loads(text)
    return tags


def shown_baseline(text: str | None, names: Sequence[Arm]) -> dict[str, float] | None:
    """Stored predictions by arm; the names are texts, as in every JSON object."""
    if text is None:
        return None
    return {str(names[int(place)]): value for place, value in json.loads(text).items()}


def stored(content: Mapping[str, Any]) -> str:
    """What the caller attached, as the text of a row."""
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


Value: TypeAlias = str | float | bool
MOST_FIELDS = 64
LONGEST_FIELD = 64
LONGEST_VALUE = 200
_RULES = {
    "text": f"must be a string of at most {LONGEST_VALUE} printable characters, or a whole number",
    "number": f"must be a number from -{LARGEST_NUMBER:g} to {LARGEST_NUMBER:g}",
    "boolean": "must be true or false",
}
_LEAVE_OUT = "leave it out if it is not known"


class Declared(NamedTuple):
    """What an experiment says of contexts: its fields, what becomes of others, what is logged of texts, and its policy."""

    fields: Mapping[str, FieldType]
    unknown: UnknownFields
    log: ContextLog
    secret: str
    policy: Any = None


def checked_fields(fields: object) -> dict[str, FieldType]:
    """Declared fields in the order of their names; `Invalid` if they break a limit.

    >>> checked_fields({"tokens": "number", "subject": "text"})
    {'subject': 'text', 'tokens': 'number'}
    >>> checked_fields({"tokens": "int"})
    Traceback (most recent call last):
        ...
    decoupled.client.errors.Invalid: context.tokens = 'int': must be 'text', 'number', 'boolean' or 'vector'; for example {'subject': 'text'}
    """
    example = "for example {'subject': 'text'}"
    if not isinstance(fields, Mapping):
        raise Invalid.of("context", fields, "must be an object of types by field", example)
    if len(fields) > MOST_FIELDS:
        rule = f"has {len(fields)} fields, and an experiment takes {MOST_FIELDS}"
        raise Invalid(f"context: {rule}; keep those that tell requests apart")
    for name, kind in fields.items():
        if not is_name(name, LONGEST_FIELD):
            rule = f"the name of a field {name_rule(LONGEST_FIELD)}"
            raise Invalid.of("context", name, rule, example)
        if kind not in FIELD_TYPES:
            rule = "must be 'text', 'number', 'boolean' or 'vector'"
            raise Invalid.of(f"context.{name}", kind, rule, example)
    return dict(sorted(fields.items()))


def with_fields_of(fields: Mapping[str, FieldType], policy: Any) -> dict[str, FieldType]:
    """The fields with those that a policy learns by; `Invalid` for one of another type than it takes."""
    found = checked_fields(fields)
    vectors = policy.vectors if policy.contextual else ()
    for name in (name for name, kind in found.items() if kind == "vector" and name not in vectors):
        rule = "needs a policy that learns from it"
        raise Invalid.of(
            f"context.{name}", "vector", rule, f"use ContextualLadder(vectors=[{name!r}])"
        )
    if not policy.contextual:
        return found
    learned: list[tuple[Sequence[str], FieldType]] = [
        (policy.segments, "text"), (policy.all_numbers, "number"), (vectors, "vector"),
    ]  # fmt: skip
    for names, kind in learned:
        other = "vector" if kind == "vector" else "boolean"
        for name in names:
            if found.setdefault(name, kind) not in (kind, other):
                rule = f"must be '{kind}' or '{other}', as {type(policy).__name__} takes it"
                raise Invalid.of(f"context.{name}", found[name], rule, "or leave it out")
    return checked_fields(found)


def stored_context(context: object, declared: Declared) -> str | None:
    """A context as text: its fields by name, and of vectors what the policy makes of them. None if nothing is known.

    >>> fields = {"subject": "text", "tokens": "number", "beta": "boolean"}
    >>> declared = Declared(fields, "refuse", "plain", "")
    >>> stored_context({"tokens": 312, "subject": "law", "beta": None}, declared)
    '{"subject":"law","tokens":312.0}'
    >>> stored_context({"token": 312}, declared)
    Traceback (most recent call last):
        ...
    decoupled.client.errors.Invalid: context.token: is not a field of this experiment; did you mean 'tokens'?
    """
    if not isinstance(context, Mapping):
        rule = "must be an object of values by field"
        raise Invalid.of("context", context, rule, "for example {'subject': 'law'}")
    found: dict[str, Value] = {}
    for name, value in context.items():
        kind = declared.fields.get(name)
        if kind is None:
            if declared.unknown == "refuse":
                raise Invalid(_undeclared(name, declared.fields))
        elif value is not None and kind == "vector":
            try:
                found |= declared.policy.spread(name, value)
            except ParameterError as error:
                raise Invalid(f"context.{name}: {str(error).partition(': ')[2]}") from None
        elif value is not None:
            found[name] = _checked(name, value, kind)
    if declared.log == "hashed":
        texts = {name: each for name, each in found.items() if isinstance(each, str)}
        found |= {
            name: hashed_key(f"{name}\n{each}", declared.secret) for name, each in texts.items()
        }
    return stored({name: found[name] for name in sorted(found)}) if found else None


def _undeclared(name: object, fields: Iterable[str]) -> str:
    if not fields:
        return f"context.{name}: this experiment declares no fields; create one with a context, or leave it out"
    return f"context.{name}: is not a field of this experiment; {near_name(name, fields)}"


def _checked(name: str, value: object, kind: FieldType) -> Value:
    """A value of a field. Its error shows no text, which may be a user's."""
    if kind == "boolean" and isinstance(value, bool):
        return value
    if (
        kind == "number"
        and (number := as_float(value)) is not None
        and abs(number) <= LARGEST_NUMBER
    ):
        return number
    if kind == "text":
        text = str(value) if type(value) is int and abs(value) < 10**LONGEST_VALUE else value
        if (
            isinstance(text, str)
            and len(text) <= LONGEST_VALUE
            and (text.isprintable() or not text)
        ):
            return text
    raise Invalid(f"context.{name}: {_RULES[kind]}; {_LEAVE_OUT}")


def shown_context(text: str | None) -> dict[str, Value] | None:
    """A stored context by field; None if nothing was known."""
    found: dict[str, Value] | None = None if text is None else json.loads(text)
    return found


def segment_of(text: str | None, by: Sequence[str]) -> tuple[Value | None, ...]:
    """The values of some fields in a stored context, None for those that are not known.

    >>> segment_of('{"subject":"law","tokens":312.0}', ["subject", "country"])
    ('law', None)
    """
    known = {} if text is None else json.loads(text)
    return tuple(known.get(name) for name in by)


def stored_advice(
    advice: object, advisers: Sequence[str], places: Mapping[Arm, int], names: Sequence[Arm]
) -> str | None:
    """Advice as text, by adviser: the place of an arm, or probabilities by the places of arms. None if there is none.

    >>> stored_advice({"router": "large", "rules": {"small": 0.25, "large": 0.75}}, ["router", "rules"],
    ...               {"small": 0, "large": 1}, ["small", "large"])
    '{"router":1,"rules":{"0":0.25,"1":0.75}}'
    """
    example = "for example {'router-v2': 'large'}"
    if not isinstance(advice, Mapping):
        raise Invalid.of("advice", advice, "must be an object of arms by adviser", example)
    found: dict[str, Any] = {}
    for adviser, given in advice.items():
        if adviser not in advisers:
            raise Invalid(_no_adviser(adviser, advisers))
        if isinstance(given, Mapping):
            found[adviser] = _law(adviser, by_arm(given, places), places, names)
        elif given is not None:
            found[adviser] = place_of(f"advice.{adviser}", given, places, names)
    return stored({adviser: found[adviser] for adviser in sorted(found)}) if found else None


def _no_adviser(adviser: object, advisers: Sequence[str]) -> str:
    if not advisers:
        return "advice: the policy of this experiment takes none; leave it out, or name advisers in a ContextualLadder"
    return f"advice.{adviser}: is not an adviser of this experiment; {near_name(adviser, advisers)}"


def _law(
    adviser: str, law: Mapping[Any, Any], places: Mapping[Arm, int], names: Sequence[Arm]
) -> dict[str, float]:
    by_place: dict[int, float] = {}
    for arm, chance in law.items():
        place = place_of(f"advice.{adviser}", arm, places, names)
        number = as_float(chance)
        if number is None or not 0.0 <= number <= 1.0:
            rule = "must be a probability"
            raise Invalid.of(f"advice.{adviser}.{arm}", chance, rule, "give a number from 0 to 1")
        by_place[place] = number
    total = math.fsum(by_place.values())
    if abs(total - 1.0) > 1e-6:
        rule = f"its probabilities must sum to 1, and they sum to {total:g}"
        raise Invalid.of(f"advice.{adviser}", dict(law), rule, "scale them")
    return {str(place): by_place[place] / total for place in sorted(by_place)}


def given_advice(
    text: str | None, names: Sequence[Arm]
) -> dict[str, Arm | dict[Arm, float]] | None:
    """Stored advice as a learner takes it, by the names of arms."""
    if text is None:
        return None
    return {adviser: _given(each, names) for adviser, each in json.loads(text).items()}


def _given(stored: int | dict[str, float], names: Sequence[Arm]) -> Arm | dict[Arm, float]:
    if isinstance(stored, int):
        return names[stored]
    return {names[int(place)]: chance for place, chance in stored.items()}


def shown_advice(text: str | None, names: Sequence[Arm]) -> dict[str, Any] | None:
    """Stored advice as clients see it; the names in a law are texts, as in every JSON object."""
    found = given_advice(text, names)
    if found is None:
        return None
    return {
        adviser: {str(arm): chance for arm, chance in each.items()}
        if isinstance(each, dict)
        else each
        for adviser, each in found.items()
    }

"""What callers attach to a decision: tags to find it by, and a baseline, predictions of the losses of its arms.

Neither changes what is drawn or learned. Both are stored with the decision as JSON: tags sorted by name, predictions by
the places of their arms. A context and advice are attached, too; `context` has their rules.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from decoupled.base import is_name, name_rule
from decoupled.client import Invalid
from decoupled.decision import Arm
from decoupled.errors import LossError, near_name, shown
from decoupled.learner import LossRange

from .guarding import by_arm

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


def checked_tags(tags: object) -> dict[str, str]:
    """Tags in the order of their names; `Invalid` if they break a limit.

    >>> checked_tags({"device": "phone", "country": "de"})
    {'country': 'de', 'device': 'phone'}
    >>> checked_tags({"country": 49})
    Traceback (most recent call last):
        ...
    decoupled.client.service_errors.Invalid: tags.country = 49: must be a string of 1 to 200 printable characters; for example {'country': 'de'}
    """
    if not isinstance(tags, Mapping):
        raise Invalid.of("tags", tags, "must be an object of strings", _EXAMPLE)
    if len(tags) > MOST_TAGS:
        rule = f"has {len(tags)} tags, and a decision takes {MOST_TAGS}"
        raise Invalid.of("tags", dict(tags), rule, "keep those that you filter by")
    for name, value in tags.items():
        if not is_name(name, LONGEST_TAG_NAME):
            raise Invalid.of("tags", name, f"the name of a tag {_NAME_RULE}", _EXAMPLE)
        if not isinstance(value, str) or not 1 <= len(value) <= LONGEST_TAG or not value.isprintable():
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
    """Predictions as text; None if there are none.

    Args:
        baseline: losses by arm, or a list of one for each arm that can be chosen now.
        places: the places of those arms.
        losses: the range that predictions lie in.
        names: the names of all arms, by their places.
    """
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
        place = places.get(name) if isinstance(name, (str, int)) else None
        if place is None or type(name) is not type(names[place]):
            raise Invalid(f"baseline: {shown(name)} is not an arm; {near_name(name, places)}")
        try:
            losses.scaled_as(f"baseline.{name}", value, "leave out the arms that you cannot predict")
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

"""The command that makes decisions, once for each idempotency key."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple, TypedDict

from decoupled.client import Conflict, Invalid
from decoupled.decision import Arm, Mode
from decoupled.errors import near_name, shown
from decoupled.learner import Key

from ..commits.loop import SLICE, Continuation
from ..experiment.annotations import Annotations, stored_baseline, stored_tags
from ..experiment.context import stored_advice, stored_context
from ..experiment.live import Form, LiveExperiment, T
from ..experiment.numbered_arms import refuse_if_large
from ..experiment.records import MODES, MOST_DECISIONS
from ..experiment.rows import KeyRow
from ..experiment.settings import plain_text
from ..experiment.sticky import checked_key, hashed_key
from ..memory.session import Reference, Session
from .deadlines import expire, sweep


class DrawOptions(TypedDict, total=False):
    """What decisions to make; `DecideOptions` of the clients says what each means.

    There are `count` of them. `ignore_unknown` drops fields of the context that are not declared, whatever the experiment
    says.
    """

    mode: Mode
    count: int
    available: Iterable[Arm] | None
    key: Key | None
    idempotency_key: str | None
    tags: Mapping[str, str] | None
    baseline: Mapping[Any, float] | Sequence[float] | None
    context: Mapping[str, Any] | None
    advice: Mapping[str, Any] | None
    ignore_unknown: bool


def draw(
    session: Session,
    *,
    form: Form[T],
    about: Reference,
    max_pending: int,
    mode: Mode = "both",
    count: int = 1,
    available: Iterable[Arm] | None = None,
    key: Key | None = None,
    idempotency_key: str | None = None,
    tags: Mapping[str, str] | None = None,
    baseline: Mapping[Any, float] | Sequence[float] | None = None,
    context: Mapping[str, Any] | None = None,
    advice: Mapping[str, Any] | None = None,
    ignore_unknown: bool = False,
    made: Sequence[T] = (),
) -> list[T] | Continuation:
    """Draw `count` decisions and log them, or return those that the idempotency key made before.

    A slice has one of its own: if the rest is interrupted, the same request again finds what was made, and makes the rest.
    """
    running = session.get(about)
    _check(mode, count, idempotency_key)
    if available is not None:
        refuse_if_large(running.name, running.names, "choosing from some of the arms")
    places = None if available is None else _places(running, available)
    declared = running.declared._replace(unknown="ignore") if ignore_unknown else running.declared
    attached = Annotations(
        None if tags is None else stored_tags(tags),
        None
        if baseline is None
        else stored_baseline(baseline, running.places, running.losses, running.names),
        None if context is None else stored_context(context, declared),
        None if advice is None else stored_advice(advice, running.advisers, running.places, running.names),
    )
    text = None if key is None else _key(running, key, mode)
    request = ""
    if idempotency_key:
        # Salted, so that two requests with the same key cannot be linked where keys are not logged.
        known = None if text is None else hashed_key(f"{idempotency_key}\n{text}", running.key_secret)
        request = _digest(mode, count, places, attached, known)
    wanted = _Wanted(mode, places, attached, text, request)
    done = list(made)
    while len(done) < count:
        if len(done) > len(made) and session.others_wait():
            again = None if places is None else [running.names[each] for each in json.loads(places)]
            rest = partial(
                draw, form=form, about=about, mode=mode, count=count, available=again, key=key,
                idempotency_key=idempotency_key, max_pending=max_pending, tags=tags, baseline=baseline, context=context,
                advice=advice, ignore_unknown=ignore_unknown, made=done,
            )  # fmt: skip
            return Continuation(rest)
        part = idempotency_key if not idempotency_key or not done else f"{idempotency_key}\n{len(done)}"
        done += _slice(session, running, wanted, part, min(SLICE, count - len(done)), form)
        while len(running.pending) > max_pending and (oldest := running.oldest()) is not None:
            expire(session, running, oldest, running.now(session.clock()))
    return done


class _Wanted(NamedTuple):
    """What a request asks for, and the digest by which its idempotency key remembers it."""

    mode: Mode
    places: str | None
    attached: Annotations
    key: str | None
    request: str


def _slice(
    session: Session, running: LiveExperiment, wanted: _Wanted, key: str | None, count: int, form: Form[T]
) -> list[T]:
    """Draw some decisions, or return those that the idempotency key made before."""
    mode, places, attached, sticky, request = wanted
    if key is not None:
        before = session.store.key(running.id, key)
        if before is not None:
            return _again(session, running, before, request, form)
    if running.archived_at is not None:
        raise Conflict(f"experiment {running.name!r}: is archived and makes no decisions; create another")
    if running.coupled and mode != "both":
        rule = f"{running.policy} plays the standard game, where the arm played is the arm seen"
        remedy = "use mode 'both', or create an experiment with a decoupled policy such as FTPL"
        raise Invalid.of("mode", mode, rule, remedy)
    if running.learner.guardrails.down and running.up(places) == "[]":
        raise Conflict(
            f"experiment {running.name!r}: every arm of this decision is down; bring one up again"
        )
    sweep(session, running)
    now = running.now(session.clock())
    first = running.head + 1
    rows = [running.draw(mode, places, now, attached, sticky) for _ in range(count)]
    for row in rows:
        session.append(running, row)
    if key is not None:
        session.store.add_key(KeyRow(running.id, key, request, first, count, now))
    return [form(running, row, None) for row in rows]


def _check(mode: str, count: int, idempotency_key: str | None) -> None:
    if mode not in MODES:
        rule = "must be 'both', 'exploit' or 'explore'"
        raise Invalid.of("mode", mode, rule, near_name(mode, MODES))
    if type(count) is not int or not 1 <= count <= MOST_DECISIONS:
        rule = f"must be a whole number from 1 to {MOST_DECISIONS:,}"
        raise Invalid.of("count", count, rule, "leave it out for a single decision")
    if idempotency_key is not None:
        plain_text("idempotency_key", idempotency_key)


def _key(running: LiveExperiment, key: Key, mode: Mode) -> str:
    text = checked_key(key, running.settings.log_keys)
    if running.coupled:
        rule = f"{running.policy} plays the standard game, where the arm played is the arm seen"
        raise Invalid(f"key: {rule}; leave it out, or use a decoupled policy such as FTPL")
    if mode == "explore":
        raise Invalid("key: mode 'explore' serves no arm, so no key could keep it; leave the key out")
    return text


def _places(running: LiveExperiment, available: Iterable[Arm]) -> str:
    if isinstance(available, (str, bytes)) or not isinstance(available, Iterable):
        rule = "must be a list of arms"
        raise Invalid.of("available", available, rule, "put the names in a list")
    places = set()
    for name in available:
        place = running.places.get(name) if isinstance(name, (str, int)) else None
        if place is None or type(name) is not type(running.names[place]):
            hint = near_name(name, running.places)
            raise Invalid(f"available: {shown(name)} is not an arm of {running.name!r}; {hint}")
        places.add(place)
    if not places:
        raise Invalid("available = []: names no arm; leave it out if every arm is available")
    return json.dumps(sorted(places), separators=(",", ":"))


@lru_cache(1024)
def _digest(
    mode: str, count: int, places: str | None, attached: Annotations, key: str | None = None
) -> str:
    return hashlib.sha256(json.dumps([mode, count, places, *attached, key]).encode()).hexdigest()[:32]


def _again(
    session: Session, running: LiveExperiment, before: KeyRow, request: str, form: Form[T]
) -> list[T]:
    if before.request != request:
        raise Conflict(
            f"idempotency key {before.key!r}: was used for another request on {running.name!r}; use a new key for a new request"
        )
    rows = session.store.decided(running.id, before.first, before.size)
    if len(rows) < before.size:
        raise Conflict(
            f"idempotency key {before.key!r}: its decisions were dropped by retention; use a new key"
        )
    return [form(running, row, session.store.settled(running.id, row.seq)) for row in rows]

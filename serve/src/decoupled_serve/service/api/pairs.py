"""Pairs of answers that await a person's label: kept for a while, leased to one person at a time, and labelled once.

Nothing here is logged. A person sees neither the arms, nor the decision, nor what the judge said.
"""

import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Any, Literal, NamedTuple, TypeAlias

from decoupled.client import Conflict, Gone, Invalid, NotFound, StoreError
from decoupled.learner import Preference

from ..commits.background import Background, in_background
from ..commits.loop import CommitLoop
from ..experiment.records import DecisionId, DecisionRecord, FeedbackKind
from ..experiment.settings import as_settings
from ..memory.session import Session
from ..store.store import PairsConnection, insertion
from .decisions import Decisions

Choice: TypeAlias = Literal["first", "second", "tie"]
LEASE = 600.0  # seconds to label a pair in
LONGEST_TEXT = 100_000  # characters of a request or an answer
MOST = 10_000  # pairs of an experiment that await a label
LONGEST_KEPT = 365.0  # days
KEEP_DAYS = 7.0
_DAY = 86_400.0


class Pair(NamedTuple):
    """A request and its two answers, without anything private.

    The explored answer has the loss `low` if it is the better one, `high` if it is worse, and the mean of both for a tie. They are
    the lowest and the highest loss of the experiment if they are None.
    """

    title: str
    request: str
    exploit: str
    explore: str
    low: float | None = None
    high: float | None = None


class Leased(NamedTuple):
    """A pair as a person sees it: both answers in an order drawn at random."""

    lease: str
    leased_until: float
    title: str
    request: str
    first: str
    second: str


class Kept(NamedTuple):
    """A pair that is kept: what the judge said, from 0 (the explored answer is better) to 1, and what a person preferred."""

    pair: Pair
    verdict: float
    label: Preference | None


_KEPT = (
    "tag",
    "seq",
    "content",
    "low",
    "high",
    "judged",
    "explored_first",
    "expires_at",
    "leased_until",
)
_INTO = insertion("pairs", _KEPT)
_ONE = "WHERE tag = ? AND seq = ?"
_AWAITS = "tag = ? AND label IS NULL AND expires_at > ?"
_GIVE_BACK = "UPDATE pairs SET lease = NULL, leased_by = NULL, leased_until = 0 WHERE leased_by = ? AND label IS NULL"
_OLDEST = f"SELECT seq, content, explored_first FROM pairs WHERE {_AWAITS} AND leased_until <= ? ORDER BY seq LIMIT 1"
_LEASE = f"UPDATE pairs SET lease = ?, leased_by = ?, leased_until = ? {_ONE}"
_EXTEND = (
    "UPDATE pairs SET leased_until = ? WHERE tag = ? AND lease = ? AND leased_by = ? AND expires_at > ? "
    "RETURNING seq, explored_first, low, high, label"
)
_ALL = "SELECT content, low, high, judged, label FROM pairs WHERE tag = ? AND expires_at > ? ORDER BY seq"


class Pairs:
    """Keep, lease and label pairs. Replicas on PostgreSQL share them."""

    def __init__(self, commits: CommitLoop, background: Background, decisions: Decisions) -> None:
        self._commits, self._background, self._decisions = commits, background, decisions
        self._opened: PairsConnection | None = None
        self._lock = Lock()

    @in_background()
    def keep(self, tenant: str, decision: str, pair: Pair, days: float = KEEP_DAYS) -> None:
        """Keep the pair of a decision that was judged and awaits a label, for some days. The same again changes nothing."""
        if not 0.0 < days <= LONGEST_KEPT:
            rule = f"must be above 0 and at most {LONGEST_KEPT:g}"
            raise Invalid.of("days", days, rule, "the default is 7")
        for name, text in zip(Pair._fields, pair[:4], strict=False):
            if len(text) > LONGEST_TEXT:
                raise Invalid(f"{name}: must not exceed {LONGEST_TEXT:,} characters; cut it")
        tag, seq = DecisionId.parse(decision)
        made = self._decisions.get(tenant, decision).result()
        if not _awaits_label(made):
            rule = "awaits no label, so its answers are not kept"
            raise Conflict(f"decision {decision!r}: {rule}; send judged first")
        now = self._now()
        with self._transaction() as pairs:
            [(waiting,)] = pairs.run(f"SELECT count(*) FROM pairs WHERE {_AWAITS}", (tag, now))
            if waiting >= MOST:
                raise Conflict(f"pairs: {MOST:,} await a label already; label some, or keep fewer")
            content, first = json.dumps(pair[:4]), secrets.randbits(1)
            row = (tag, seq, content, *pair[4:], made.judged, first, now + days * _DAY, 0.0)
            pairs.run(f"{_INTO} ON CONFLICT DO NOTHING", row)

    @in_background()
    def lease(self, tenant: str, name: str, caller: str) -> tuple[Leased | None, int]:
        """The pair that has waited longest, for this caller alone, who gives the one before back, and how many wait; None for none."""
        found = self._find(tenant, name)
        while found.has_pairs:
            now = self._now()
            with self._transaction() as pairs:
                pairs.run(_GIVE_BACK, (caller,))
                [(waiting,)] = pairs.run(
                    f"SELECT count(*) FROM pairs WHERE {_AWAITS}", (found.tag, now)
                )
                free = pairs.run(_OLDEST, (found.tag, now, now))
                if not free:
                    return None, waiting
                [(seq, content, explored_first)] = free
                lease, until = secrets.token_urlsafe(16), now + LEASE
                pairs.run(_LEASE, (lease, caller, until, found.tag, seq))
            with suppress(NotFound, Gone):
                if _awaits_label(
                    self._decisions.get(tenant, str(DecisionId(found.tag, seq))).result()
                ):
                    title, request, exploit, explore = json.loads(content)
                    shown = (explore, exploit) if explored_first else (exploit, explore)
                    return Leased(lease, until, title, request, *shown), waiting
            self._delete(found.tag, seq)
        return None, 0

    @in_background()
    def label(self, tenant: str, name: str, caller: str, lease: str, choice: Choice) -> None:
        """Give the label of a pair that the caller has on lease. The same again changes nothing."""
        found, now, leased = self._find(tenant, name), self._now(), list[Any]()
        if found.has_pairs:
            with (
                self._transaction() as pairs
            ):  # while the label is on its way, nobody else gets the pair
                leased = pairs.run(_EXTEND, (now + LEASE, found.tag, lease, caller, now))
        if not leased:
            raise Conflict("lease: is not known or has run out; take the next pair")
        [(seq, explored_first, low, high, known)] = leased
        preferred: Preference = (
            "explore" if (choice == "first") == bool(explored_first) else "exploit"
        )
        preferred = "tie" if choice == "tie" else preferred
        if known is not None:
            if known == preferred:
                return
            raise Conflict("lease: this pair has its label already; take the next pair")
        low, high = found.range(low, high)
        losses: dict[Preference, float] = {
            "explore": low,
            "tie": low + 0.5 * (high - low),
            "exploit": high,
        }
        given: Any = (
            {"loss": losses[preferred]} if found.takes == "loss" else {"preference": preferred}
        )
        try:
            self._decisions.label(tenant, str(DecisionId(found.tag, seq)), **given).result()
        except (Conflict, Gone, NotFound):  # it takes no label any more
            self._delete(found.tag, seq)
            raise
        with self._transaction() as pairs:
            pairs.run(f"UPDATE pairs SET label = ? {_ONE}", (preferred, found.tag, seq))

    @in_background()
    def kept(self, tenant: str, name: str) -> list[Kept]:
        """All pairs of an experiment, oldest first, for another judge."""
        found, kept = self._find(tenant, name), list[Kept]()
        if found.has_pairs:
            with self._transaction() as pairs:
                rows = pairs.run(_ALL, (found.tag, self._now()))
            for content, low, high, judged, label in rows:
                least, most = found.range(low, high)
                verdict = (judged - least) / (most - least) if most > least else 0.5
                pair = Pair(*json.loads(content))._replace(low=least, high=most)
                kept.append(Kept(pair, verdict, label))
        return kept

    def sweep(self) -> None:
        """Delete pairs that have expired, and those of experiments that are deleted."""
        with suppress(StoreError):  # it comes again
            with self._transaction() as pairs:
                pairs.run("DELETE FROM pairs WHERE expires_at <= ?", (self._now(),))
                tags = [tag for (tag,) in pairs.run("SELECT DISTINCT tag FROM pairs")]
            rows = self._commits.submit(lambda it: [it.store.tagged(tag) for tag in tags]).result()
            for tag, row in zip(tags, rows, strict=True):
                if row is None or row.deleted_at is not None:
                    with self._transaction() as pairs:
                        pairs.run("DELETE FROM pairs WHERE tag = ?", (tag,))

    def close(self) -> None:
        """Close the connection, after the background has ended."""
        if self._opened is not None:
            self._opened.close()

    def _now(self) -> float:
        return self._commits.session.clock()

    def _find(self, tenant: str, name: str) -> "_Experiment":
        def look(session: Session) -> _Experiment:
            row = session.store.named(tenant, name)
            if row is None:
                raise NotFound(f"experiment {name!r}: is not known; check the name")
            settings = as_settings(json.loads(row.settings))
            return _Experiment(
                row.tag, settings.feedback, settings.loss_range, session.store.has_pairs()
            )

        return self._commits.submit(look).result()

    def _delete(self, tag: str, seq: int) -> None:
        with self._transaction() as pairs:
            pairs.run(f"DELETE FROM pairs {_ONE}", (tag, seq))

    @contextmanager
    def _transaction(self) -> Iterator[PairsConnection]:
        """A transaction over the pairs, after all others have ended, in any process. It must not wait for a commit: others of the
        background, whose turn it would then be, wait for it.
        """
        with self._lock:
            if self._opened is None:
                self._opened = self._commits.session.store.open_pairs()
            pairs = self._opened
            pairs.begin()
            try:
                pairs.lock_pairs()
                yield pairs
                pairs.end()
            except BaseException:
                with suppress(StoreError):
                    pairs.undo()
                raise


class _Experiment(NamedTuple):
    """What is needed of an experiment, and whether pairs were ever kept in its store."""

    tag: str
    takes: FeedbackKind
    losses: tuple[float, float]
    has_pairs: bool

    def range(self, low: float | None, high: float | None) -> tuple[float, float]:
        """The losses of a pair."""
        return self.losses[0] if low is None else low, self.losses[1] if high is None else high


def _awaits_label(made: DecisionRecord) -> bool:
    return made.status == "pending" and made.label and made.judged is not None

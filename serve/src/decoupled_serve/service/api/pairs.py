"""Pairs of answers that await a person's label: kept for a while, leased to one person at a time, and labelled once.

Nothing here is logged. A person sees neither the arms, nor the decision, nor what the judge said.
"""

import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Literal, NamedTuple, TypeAlias

from decoupled.client import Conflict, Gone, Invalid, NotFound, StoreError

from ..commits.background import Background, in_background
from ..commits.loop import CommitLoop
from ..experiment.records import DecisionId
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
_CLOSED = "closed"  # in place of a label: the decision takes none any more


class Pair(NamedTuple):
    """A request and its two answers, without anything private.

    The explored answer has the loss `low` if it is the better one, `high` if it is worse, and the mean of both for a tie.
    `judged` is the loss that the judge gave it.
    """

    title: str
    request: str
    exploit: str
    explore: str
    low: float = 0.0
    high: float = 1.0
    judged: float | None = None


class Leased(NamedTuple):
    """A pair as a person sees it: both answers in an order drawn at random."""

    lease: str
    leased_until: float
    title: str
    request: str
    first: str
    second: str


class Kept(NamedTuple):
    """A pair that is kept, and what the person preferred, "explore", "exploit" or "tie"; None if nobody has said."""

    pair: Pair
    label: str | None


_INTO = insertion(
    "pairs",
    ("tag", "seq", "content", "low", "high", "judged", "explored_first", "expires_at", "leased_until"),
)
_AWAITS = "tag = ? AND label IS NULL AND expires_at > ?"


class Pairs:
    """Keep, lease and label pairs. Replicas on PostgreSQL share them."""

    def __init__(self, commits: CommitLoop, background: Background, decisions: Decisions) -> None:
        self._commits, self._background, self._decisions = commits, background, decisions
        self._opened: PairsConnection | None = None
        self._lock = Lock()

    @in_background()
    def keep(self, tenant: str, decision: str, pair: Pair, days: float) -> None:
        """Keep a pair for some days. The same decision again changes nothing."""
        if not 0.0 < days <= LONGEST_KEPT:
            rule = f"must be above 0 and at most {LONGEST_KEPT:g}"
            raise Invalid.of("days", days, rule, "the default is 7")
        for name, text in zip(Pair._fields, pair[:4], strict=False):
            if len(text) > LONGEST_TEXT:
                raise Invalid(f"{name}: must not exceed {LONGEST_TEXT:,} characters; cut it")
        tag, seq = DecisionId.parse(decision)
        self._decisions.get(tenant, decision).result()
        now = self._now()
        with self._transaction() as pairs:
            [(waiting,)] = pairs.run(f"SELECT count(*) FROM pairs WHERE {_AWAITS}", (tag, now))
            if waiting >= MOST:
                raise Conflict(f"pairs: {MOST:,} await a label already; label some, or keep fewer")
            content, first = json.dumps(pair[:4]), secrets.randbits(1)
            row = (tag, seq, content, *pair[4:], first, now + days * _DAY, 0.0)
            pairs.run(f"{_INTO} ON CONFLICT DO NOTHING", row)

    @in_background()
    def lease(self, tenant: str, name: str, caller: str) -> tuple[Leased | None, int]:
        """The pair that has waited longest, for this caller alone, and how many wait; None if there is none.

        Whoever takes another pair gives the one before back.
        """
        tag = self._tag(tenant, name)
        while tag is not None:
            now = self._now()
            with self._transaction() as pairs:
                free = "UPDATE pairs SET lease = NULL, leased_by = NULL, leased_until = 0 WHERE leased_by = ? AND label IS NULL"
                pairs.run(free, (caller,))
                [(waiting,)] = pairs.run(f"SELECT count(*) FROM pairs WHERE {_AWAITS}", (tag, now))
                sql = f"SELECT seq, content, explored_first FROM pairs WHERE {_AWAITS} AND leased_until <= ? ORDER BY seq LIMIT 1"
                found = pairs.run(sql, (tag, now, now))
                if not found:
                    return None, waiting
                [(seq, content, explored_first)] = found
                lease, until = secrets.token_urlsafe(16), now + LEASE
                sql = (
                    "UPDATE pairs SET lease = ?, leased_by = ?, leased_until = ? WHERE tag = ? AND seq = ?"
                )
                pairs.run(sql, (lease, caller, until, tag, seq))
            if self._takes_a_label(tenant, tag, seq):
                title, request, exploit, explore = json.loads(content)
                first, second = (explore, exploit) if explored_first else (exploit, explore)
                return Leased(lease, until, title, request, first, second), waiting
        return None, 0

    @in_background()
    def label(self, tenant: str, name: str, caller: str, lease: str, choice: Choice) -> None:
        """Give the label of a pair that the caller has on lease. The same again changes nothing."""
        tag, now = self._tag(tenant, name), self._now()
        lost = Conflict("lease: is not known or has run out; take the next pair")
        if tag is None:
            raise lost
        with self._transaction() as pairs:
            # While the label is on its way, nobody else gets the pair.
            sql = (
                "UPDATE pairs SET leased_until = ? WHERE tag = ? AND lease = ? AND leased_by = ? AND expires_at > ? "
                "RETURNING seq, explored_first, low, high, label"
            )
            found = pairs.run(sql, (now + LEASE, tag, lease, caller, now))
        if not found:
            raise lost
        [(seq, explored_first, low, high, known)] = found
        preferred = (
            "tie" if choice == "tie" else "explore" if (choice == "first") == explored_first else "exploit"
        )
        if known is not None:
            if known == preferred:
                return
            raise Conflict("lease: this pair has its label already; take the next pair")
        loss = {"explore": low, "tie": 0.5 * (low + high), "exploit": high}[preferred]
        try:
            self._decisions.feedback(tenant, str(DecisionId(tag, seq)), loss=loss).result()
        except (Conflict, Gone, NotFound):
            self._settle(tag, seq, _CLOSED)
            raise
        self._settle(tag, seq, preferred)

    @in_background()
    def kept(self, tenant: str, name: str) -> list[Kept]:
        """All pairs of an experiment, oldest first, for another judge."""
        tag = self._tag(tenant, name)
        if tag is None:
            return []
        with self._transaction() as pairs:
            sql = "SELECT content, low, high, judged, label FROM pairs WHERE tag = ? AND expires_at > ? ORDER BY seq"
            rows = pairs.run(sql, (tag, self._now()))
        return [
            Kept(Pair(*json.loads(row[0]), *row[1:4]), None if row[4] == _CLOSED else row[4])
            for row in rows
        ]

    def sweep(self) -> None:
        """Delete pairs that have expired, and those of experiments that are deleted."""
        with suppress(StoreError), self._transaction() as pairs:  # it comes again
            pairs.run("DELETE FROM pairs WHERE expires_at <= ?", (self._now(),))
            tags = [tag for (tag,) in pairs.run("SELECT DISTINCT tag FROM pairs")]
            for tag in self._commits.submit(lambda session: _deleted(session, tags)).result():
                pairs.run("DELETE FROM pairs WHERE tag = ?", (tag,))

    def close(self) -> None:
        """Close the connection, after the background has ended."""
        if self._opened is not None:
            self._opened.close()

    def _now(self) -> float:
        return self._commits.session.clock()

    def _tag(self, tenant: str, name: str) -> str | None:
        """The tag of an experiment's decisions; None if no pairs were ever kept here."""

        def look(session: Session) -> str | None:
            row = session.store.named(tenant, name)
            if row is None:
                raise NotFound(f"experiment {name!r}: is not known; check the name")
            return row.tag if session.store.has_pairs() else None

        return self._commits.submit(look).result()

    def _takes_a_label(self, tenant: str, tag: str, seq: int) -> bool:
        """Whether the decision of a pair still takes a label; else the pair is closed."""
        with suppress(NotFound, Gone):
            if self._decisions.get(tenant, str(DecisionId(tag, seq))).result().status == "pending":
                return True
        self._settle(tag, seq, _CLOSED)
        return False

    def _settle(self, tag: str, seq: int, label: str) -> None:
        with self._transaction() as pairs:
            pairs.run("UPDATE pairs SET label = ? WHERE tag = ? AND seq = ?", (label, tag, seq))

    @contextmanager
    def _transaction(self) -> Iterator[PairsConnection]:
        """A transaction over the pairs, after all others have ended, in any process."""
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


def _deleted(session: Session, tags: list[str]) -> list[str]:
    found = [(tag, session.store.tagged(tag)) for tag in tags]
    return [tag for tag, row in found if row is None or row.deleted_at is not None]

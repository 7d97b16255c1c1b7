"""Lists that grow: experiments and decisions, a page at a time: filtered, sorted, and continued after the page before.

A page is continued by the values that it was sorted by, so what is added in between neither repeats nor hides an item.
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeAlias, TypeVar, get_args

from decoupled.client import Invalid
from decoupled.decision import Mode

from ..commits.background import Background, reading
from ..commits.loop import CommitLoop
from ..commits.replies import Reply
from ..experiment.live import Owner, decision_as
from ..experiment.records import DecisionRecord, Experiment, ExperimentRow, Status
from ..experiment.settings import plain_text
from ..memory.session import Session
from ..store.store import EXPERIMENTS, PAIRED, paired
from .experiments import as_experiment, with_status

T = TypeVar("T")
ExperimentSort: TypeAlias = Literal["name", "-name", "created_at", "-created_at"]
DecisionSort: TypeAlias = Literal["made_at", "-made_at"]
Filed: TypeAlias = Literal["active", "archived"]

SCANNED = 100_000  # rows of a log that one page looks at
_LAST = "\U0010ffff"  # sorts after every character of a name
_STATUS = {
    "pending": "d.explore IS NOT NULL AND s.kind IS NULL",
    "applied": "s.kind = 'observed'",
    "expired": "s.kind IN ('expired', 'missing')",
    "unobserved": "d.explore IS NULL",
}
_KEYS: dict[str, tuple[str, ...]] = {"name": ("name",), "created_at": ("created_at", "id")}
_MARK = "~"  # no name begins with it, and a name is a cursor as well


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some items of a list, and the cursor of those that follow; None if there are no more."""

    items: list[T]
    next: str | None


class Listing:
    """List experiments and decisions."""

    def __init__(self, commits: CommitLoop, background: Background) -> None:
        self._commits, self._background = commits, background

    def experiments(
        self,
        tenant: str,
        *,
        after: str | None = None,
        limit: int = 100,
        sort: ExperimentSort = "name",
        status: Filed | None = None,
        policy: str | None = None,
        prefix: str = "",
    ) -> Reply[Page[Experiment]]:
        """Experiments of a tenant, as `ExperimentFilters` of the clients says; `after` is `next` of the page before, or a name."""
        keys, descending = (
            _KEYS[_checked("sort", sort, ExperimentSort).removeprefix("-")],
            sort[0] == "-",
        )
        where, values = ["tenant = ?", "deleted_at IS NULL"], [tenant]
        if prefix:
            where.append("name >= ? AND name < ?")
            values += [plain_text("prefix", prefix), prefix + _LAST]
        if status is not None:
            archived = _checked("status", status, Filed) == "archived"
            where.append(f"archived_at IS {'NOT ' if archived else ''}NULL")
        if policy is not None:
            where.append(f"{self._commits.session.store.json_at('settings', 'policy', 'name')} = ?")
            values.append(plain_text("policy", policy))
        if (known := _after(after, sort)) is not None:
            where.append(
                f"({', '.join(keys)}) {'<' if descending else '>'} ({', '.join('?' * len(keys))})"
            )
            values += known
        order = ", ".join(f"{key} DESC" if descending else key for key in keys)
        sql = f"{EXPERIMENTS} WHERE {' AND '.join(where)} ORDER BY {order} LIMIT ?"

        def page(session: Session) -> Page[Experiment]:
            rows = [ExperimentRow(*row) for row in session.store.run(sql, (*values, limit))]
            following = None
            if len(rows) == limit:
                last = [getattr(rows[-1], key) for key in keys]
                following = rows[-1].name if sort == "name" else _cursor(sort, last)
            return Page(
                [with_status(session.compiler, as_experiment(row)) for row in rows], following
            )

        return self._commits.submit(page)

    def decisions(
        self,
        tenant: str,
        name: str,
        *,
        after: str | None = None,
        limit: int = 100,
        sort: DecisionSort = "-made_at",
        status: Status | None = None,
        mode: Mode | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> Reply[Page[DecisionRecord]]:
        """Decisions of an experiment, the newest first unless sorted otherwise. With filters, an empty page may still have a `next`."""
        descending = _checked("sort", sort, DecisionSort)[0] == "-"
        where, wanted = ["d.experiment = ?", "d.seq >= ?", "d.seq <= ?"], list[str]()
        if status is not None:
            where.append(_STATUS[_checked("status", status, Status)])
        if mode is not None:
            where.append("d.mode = ?")
            wanted.append(_checked("mode", mode, Mode))
        for tag, value in (tags or {}).items():
            where.append(f"{self._commits.session.store.json_at('d.tags', tag)} = ?")
            wanted.append(value)
        known = _after(after, sort)
        if known is not None and type(known[0]) is not int:
            raise _unknown(after)
        order = "DESC" if descending else "ASC"
        sql = f"{PAIRED} WHERE {' AND '.join(where)} ORDER BY d.seq {order} LIMIT ?"

        def page() -> Page[DecisionRecord]:
            with reading(self._commits, tenant, name, compiled=False) as (reader, row):
                policy = json.loads(row.settings)["policy"]["name"]
                owner = Owner(row.tag, row.name, json.loads(row.arms), policy)
                first, last = 1, row.head
                if known is not None:
                    first, last = (1, known[0] - 1) if descending else (known[0] + 1, row.head)
                end = (
                    max(first, last - SCANNED + 1) if descending else min(last, first + SCANNED - 1)
                )
                low, high = (end, last) if descending else (first, end)
                found = [
                    paired(each) for each in reader.run(sql, (row.id, low, high, *wanted, limit))
                ]
                following = end if (end > first if descending else end < last) else None
                if len(found) == limit:
                    following = found[-1][0].seq
                records = [decision_as(DecisionRecord, *each, owner) for each in found]
                return Page(records, None if following is None else _cursor(sort, [following]))

        return self._background.submit(page, tenant)


def _cursor(sort: str, values: list[Any]) -> str:
    text = json.dumps([sort, *values], separators=(",", ":"))
    return _MARK + base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _after(cursor: str | None, sort: str) -> list[Any] | None:
    """The values that a cursor stands for."""
    if cursor is None:
        return None
    if not cursor.startswith(_MARK):
        if sort == "name":
            return [plain_text("after", cursor)]
        raise _unknown(cursor)
    try:
        text = cursor.removeprefix(_MARK)
        found, *values = list[Any](
            json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        )
    except (ValueError, TypeError):
        raise _unknown(cursor) from None
    kinds = {"name": [str], "created_at": [float, int], "made_at": [int]}.get(
        sort.removeprefix("-")
    )
    if found != sort or [type(value) for value in values] != kinds:
        rule, remedy = f"is not of a list sorted by {sort}", "keep the sort of the first page"
        raise Invalid.of("after", cursor, rule, remedy)
    # A database cannot look for every text and every number.
    if not all(
        each.isprintable() if isinstance(each, str) else abs(each) < 2**63 for each in values
    ):
        raise _unknown(cursor)
    return values


def _unknown(cursor: str | None) -> Invalid:
    rule = "is not a cursor of this list"
    return Invalid.of("after", cursor, rule, "give `next` of the page before, or leave it out")


def _checked(argument: str, value: str, kinds: Any) -> str:
    known: tuple[str, ...] = get_args(kinds)
    if value not in known:
        rule = f"must be {', '.join(map(repr, known[:-1]))} or {known[-1]!r}"
        raise Invalid.of(argument, value, rule, "or leave it out")
    return value

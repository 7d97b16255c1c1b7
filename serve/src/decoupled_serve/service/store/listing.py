"""Pages of experiments and of decisions: filtered, sorted, and continued after the last item of the page before.

A page is continued by the values that it was sorted by, so what is added in between neither repeats nor hides an item.
"""

from collections.abc import Mapping
from typing import Any

from ..experiment.records import Decided, ExperimentRow, Settled
from .store import EXPERIMENTS, PAIRED, Store, paired

SCANNED = 100_000  # rows of a log that one page looks at
_LAST = "\U0010ffff"  # sorts after every character of a name

_STATUS = {
    "pending": "d.explore IS NOT NULL AND s.kind IS NULL",
    "applied": "s.kind = 'observed'",
    "expired": "s.kind = 'expired'",
    "unobserved": "d.explore IS NULL",
}


def experiments_page(
    store: Store,
    tenant: str,
    *,
    keys: tuple[str, ...],
    descending: bool,
    after: list[Any] | None,
    limit: int,
    prefix: str = "",
    archived: bool | None = None,
    policy: str | None = None,
) -> list[ExperimentRow]:
    """Experiments of a tenant, ordered by some columns, after one with these values."""
    where, values = ["tenant = ?", "deleted_at IS NULL"], [tenant]
    if prefix:
        where.append("name >= ? AND name < ?")
        values += [prefix, prefix + _LAST]
    if archived is not None:
        where.append(f"archived_at IS {'NOT ' if archived else ''}NULL")
    if policy is not None:
        where.append(f"{store.json_at('settings', 'policy', 'name')} = ?")
        values.append(policy)
    if after is not None:
        where.append(f"({', '.join(keys)}) {'<' if descending else '>'} ({', '.join('?' * len(keys))})")
        values += after
    order = ", ".join(f"{key} DESC" if descending else key for key in keys)
    sql = f"{EXPERIMENTS} WHERE {' AND '.join(where)} ORDER BY {order} LIMIT ?"
    return [ExperimentRow(*row) for row in store.run(sql, (*values, limit))]


def decisions_page(
    store: Store,
    experiment: int,
    head: int,
    *,
    descending: bool,
    after: int | None,
    limit: int,
    status: str | None = None,
    mode: str | None = None,
    tags: Mapping[str, str] | None = None,
) -> tuple[list[tuple[Decided, Settled | None]], int | None]:
    """Decisions with their outcomes, in the order of the log, and the row after which the next page begins.

    One page looks at a part of the log only: it may be short, or empty, and still not be the last.
    """
    first, last = (1, head) if after is None else (1, after - 1) if descending else (after + 1, head)
    end = max(first, last - SCANNED + 1) if descending else min(last, first + SCANNED - 1)
    low, high = (end, last) if descending else (first, end)
    where, values = ["d.experiment = ?", "d.seq >= ?", "d.seq <= ?"], [experiment, low, high]
    if status is not None:
        where.append(_STATUS[status])
    more: list[Any] = []
    if mode is not None:
        where.append("d.mode = ?")
        more.append(mode)
    for name, value in (tags or {}).items():
        where.append(f"{store.json_at('d.tags', name)} = ?")
        more.append(value)
    order = "DESC" if descending else "ASC"
    sql = f"{PAIRED} WHERE {' AND '.join(where)} ORDER BY d.seq {order} LIMIT ?"
    found = [paired(row) for row in store.run(sql, (*values, *more, limit))]
    if len(found) == limit:
        return found, found[-1][0].seq
    return found, end if (end > first if descending else end < last) else None

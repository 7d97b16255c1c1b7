"""The log for analysis: one line for each decision, with the true probability of the explored arm.

If a policy knows only an unbiased estimate of the inverse probability, the log is replayed, and the learner gives
the exact distribution of exploration before each draw.
"""

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from itertools import islice
from pathlib import Path
from typing import Any

from decoupled.base import replacing
from decoupled.client import Invalid
from decoupled.decision import Arm
from decoupled.inference import matches

from ..experiment.annotations import shown_baseline, shown_tags
from ..experiment.context import shown_advice, shown_context
from ..experiment.numbered_arms import from_stored, is_large
from ..experiment.records import microseconds, moment
from ..experiment.rows import Decided, ExperimentRow
from ..memory.restore import from_beginning
from ..store.store import Store

FORMATS = ("parquet", "csv")
_AT_ONCE = 2_000  # rows of a group, which are converted while everything else waits
_STATUSES = {None: "pending", "observed": "applied", "expired": "expired"}


@dataclass(frozen=True, slots=True)
class LoggedDecision:
    """A decision of the log, with its loss. `loss` is that of `explore`; docs/log.md describes each column.

    `propensity` is the true probability. It is None for mode "exploit", and for decisions that would have to be
    replayed but are older than the retained part of the log.
    """

    id: str
    seq: int
    mode: str
    available: tuple[Arm, ...] | None
    exploit: Arm | None
    explore: Arm | None
    propensity: float | None
    weight: float | None
    round: int
    state_version: int
    made_at: float
    expires_at: float | None
    status: str
    loss: float | None
    settled_seq: int | None
    settled_at: float | None
    drawn: Arm | None = None
    guard: str | None = None
    limited_by: str | None = None
    tags: dict[str, str] | None = None
    baseline: dict[str, float] | None = None
    key: str | None = None
    context: dict[str, Any] | None = None
    advice: dict[str, Any] | None = None


# The Parquet type of each column. Arms become text, since a column has one type.
_TYPES = {
    **dict.fromkeys(("seq", "round", "state_version", "settled_seq"), "int64"),
    **dict.fromkeys(("propensity", "weight", "loss"), "double"),
    **dict.fromkeys(("made_at", "expires_at", "settled_at"), "timestamp[us, tz=UTC]"),
}
COLUMNS = {field.name: _TYPES.get(field.name, "string") for field in fields(LoggedDecision)}
TIMES = tuple(name for name, kind in COLUMNS.items() if kind.startswith("timestamp"))


def logged(
    store: Store,
    row: ExperimentRow,
    after: int = 0,
    limit: int | None = None,
    tags: Mapping[str, str] | None = None,
) -> Iterator[LoggedDecision]:
    """The decisions after a row of the log that have all these tags, in order. `store` is a reader."""
    return islice(_logged(store, row, after, tags or {}), limit)


def _logged(
    store: Store, row: ExperimentRow, after: int, tags: Mapping[str, str]
) -> Iterator[LoggedDecision]:
    names = from_stored(json.loads(row.arms))
    # With very many arms, the exact probabilities of one state take longer than thousands of decisions.
    exact = not is_large(names) and store.lacks_propensity(row.id, after)
    true = true_propensities(store, row) if exact else iter(())
    for decided, settled in store.joined(row.id, after):
        own = shown_tags(decided.tags)
        if not matches(own, tags):
            continue
        propensity = decided.propensity
        if propensity is None and decided.explore is not None:
            propensity = _at(true, decided.seq)
        places = None if decided.available is None else json.loads(decided.available)
        yield LoggedDecision(
            f"{row.tag}-{decided.seq}",
            decided.seq,
            decided.mode,
            None if places is None else tuple(names[place] for place in places),
            None if decided.exploit is None else names[decided.exploit],
            None if decided.explore is None else names[decided.explore],
            propensity,
            decided.weight,
            decided.round,
            decided.version,
            decided.made_at,
            decided.expires_at,
            "unobserved" if decided.explore is None else _STATUSES[settled and settled.kind],
            settled and settled.loss,
            settled and settled.seq,
            settled and settled.at,
            None if decided.exploit is None else names[_drawn(decided)],
            decided.guard,
            decided.limited_by,
            own or None,
            shown_baseline(decided.baseline, names),
            decided.key or None,
            shown_context(decided.context),
            shown_advice(decided.advice, names),
        )


def _drawn(decided: Decided) -> int:
    """The place of the arm that the policy drew to exploit."""
    place = decided.exploit if decided.drawn is None else decided.drawn
    assert place is not None
    return place


def true_propensities(store: Store, row: ExperimentRow) -> Iterator[tuple[int, float]]:
    """The row and the exact probability of every explored arm, from a replay of the whole log."""
    running = from_beginning(store, row)
    state: tuple[int, str | None] | None = None
    distribution: Any = None
    for each in store.rows_since(row.id, running.head):
        if isinstance(each, Decided) and each.explore is not None:
            learner = running.learner
            if state != (running.version, each.available):
                places = None if each.available is None else json.loads(each.available)
                arms = None if places is None else [running.names[place] for place in places]
                probabilities = learner.exploration_probabilities(available=arms).tolist()
                distribution = dict(zip(learner.arms, probabilities, strict=True))
                state = (running.version, each.available)
            yield each.seq, distribution[running.names[each.explore]]
        running.replay(each)


def _at(true: Iterator[tuple[int, float]], sought: int) -> float | None:
    for seq, propensity in true:
        if seq == sought:
            return float(propensity)
        if seq > sought:
            break
    return None


def write(decisions: Iterable[LoggedDecision], path: Path, kind: str) -> int:
    """Write decisions to a file, whole or not at all; return their number."""
    if kind not in FORMATS:
        raise Invalid.of("format", kind, "must be 'parquet' or 'csv'", "choose one of them")
    with replacing(path) as temporary:
        return (_parquet if kind == "parquet" else _csv)(decisions, temporary)


def _plain(decision: LoggedDecision, time: Callable[[float], Any]) -> dict[str, Any]:
    """The values of a line, with times converted by `time`."""
    values = {name: getattr(decision, name) for name in COLUMNS}
    for name in ("exploit", "explore", "drawn"):
        values[name] = None if values[name] is None else str(values[name])
    if decision.available is not None:
        values["available"] = json.dumps(decision.available)
    for name in ("tags", "baseline", "context", "advice"):
        values[name] = None if values[name] is None else json.dumps(values[name], ensure_ascii=False)
    for name in TIMES:
        values[name] = None if values[name] is None else time(values[name])
    return values


def _csv(decisions: Iterable[LoggedDecision], path: Path) -> int:
    count = 0
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, tuple(COLUMNS))
        writer.writeheader()
        for decision in decisions:
            writer.writerow(_plain(decision, moment))
            count += 1
    return count


def _parquet(decisions: Iterable[LoggedDecision], path: Path) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {
        "string": pa.string(),
        "int64": pa.int64(),
        "double": pa.float64(),
        "timestamp[us, tz=UTC]": pa.timestamp("us", tz="UTC"),
    }
    schema = pa.schema([(name, types[kind]) for name, kind in COLUMNS.items()])
    count, left = 0, iter(decisions)
    with pq.ParquetWriter(path, schema) as writer:
        while part := [_plain(each, microseconds) for each in islice(left, _AT_ONCE)]:
            writer.write_table(pa.Table.from_pylist(part, schema))
            count += len(part)
    return count

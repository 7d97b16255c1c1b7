"""The log for analysis: one line for each decision, with the true probability of the explored arm; and evaluations.

If a policy knows only an unbiased estimate of the inverse probability, the log is replayed, and the learner gives
the exact distribution of exploration before each draw.
"""

import csv
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from heapq import heappop, heappush
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

from decoupled.base import replacing
from decoupled.client import Invalid
from decoupled.decision import Arm, LabelRequest, LabelSums, fit_line, with_label
from decoupled.inference import Interval, Sequences, iter_settled, matches
from decoupled.learner import Labels, LossRange

from ..experiment.context import shown_tags
from ..experiment.live import Owner, decision_as
from ..experiment.records import (
    Decided,
    DecisionRecord,
    ExperimentRow,
    Settings,
    microseconds,
    moment,
)
from ..memory.loader import from_beginning
from ..store.store import Store

Tags: TypeAlias = Mapping[str, str]
FORMATS = ("parquet", "csv")
_AT_ONCE = 2_000  # rows of a group, which are converted while everything else waits


@dataclass(slots=True, unsafe_hash=True)
class LoggedDecision(DecisionRecord):
    """A decision of the log, with what only the log has. docs/log.md describes each column.

    `propensity` is the true probability. It is None for mode "exploit", and for decisions that would have to be
    replayed but are older than the retained part of the log.
    """

    seq: int = 0
    round: int = 0
    available: tuple[Arm, ...] | None = None
    settled_seq: int | None = None


# The columns of an export, and their Parquet types. Arms become text, since a column has one type.
COLUMNS = dict.fromkeys(
    (
        "id", "seq", "mode", "available", "exploit", "explore", "propensity", "weight", "round", "state_version",
        "made_at", "expires_at", "status", "loss", "settled_seq", "settled_at", "drawn", "guard", "limited_by",
        "tags", "baseline", "key", "context", "advice", "judged", "label_probability", "position",
    ),
    "string",
)  # fmt: skip
TIMES = ("made_at", "expires_at", "settled_at")
COLUMNS |= dict.fromkeys(("seq", "round", "state_version", "settled_seq"), "int64")
_NUMBERS = ("propensity", "weight", "loss", "judged", "label_probability", "position")
COLUMNS |= dict.fromkeys(_NUMBERS, "double")
COLUMNS |= dict.fromkeys(TIMES, "timestamp[us, tz=UTC]")


def logged(
    store: Store,
    row: ExperimentRow,
    after: int = 0,
    limit: int | None = None,
    tags: Tags | None = None,
) -> Iterator[LoggedDecision]:
    """The decisions after a row of the log that have all these tags, in order. `store` is a reader."""
    return islice(_logged(store, row, after, tags or {}), limit)


def _logged(store: Store, row: ExperimentRow, after: int, tags: Tags) -> Iterator[LoggedDecision]:
    names = json.loads(row.arms)
    owner = Owner(row.tag, row.name, names, json.loads(row.settings)["policy"]["name"])
    true = true_propensities(store, row) if store.lacks_propensity(row.id, after) else iter(())
    for decided, settled in store.joined(row.id, after):
        if not matches(shown_tags(decided.tags), tags):
            continue
        if decided.propensity is None and decided.explore is not None:
            decided = decided._replace(propensity=_at(true, decided.seq))
        places = None if decided.available is None else json.loads(decided.available)
        available = None if places is None else tuple(names[place] for place in places)
        yield decision_as(
            LoggedDecision, decided, settled, owner,
            seq=decided.seq, round=decided.round, available=available, settled_seq=settled and settled.seq,
        )  # fmt: skip


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
        values[name] = json.dumps(values[name], ensure_ascii=False) if values[name] else None
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

    types = {"string": pa.string(), "int64": pa.int64(), "double": pa.float64()}
    types["timestamp[us, tz=UTC]"] = pa.timestamp("us", tz="UTC")
    schema = pa.schema([(name, types[kind]) for name, kind in COLUMNS.items()])
    count, left = 0, iter(decisions)
    with pq.ParquetWriter(path, schema) as writer:
        while part := [_plain(each, microseconds) for each in islice(left, _AT_ONCE)]:
            writer.write_table(pa.Table.from_pylist(part, schema))
            count += len(part)
    return count


# Off-policy evaluation: the mean loss of every arm, and of the exploited arms, estimated from the log.
#
# The estimates are importance-weighted: of the decisions that were observed and could explore arm a, each adds
# 1{explored a} loss / p to a sum, where p is the exact probability of the explored arm, and the sum is divided by that of
# 1{explored a} / p. For the value of what was exploited, the exploited arm replaces a, since the two arms are drawn
# independently. (A policy of the standard game sees the loss of the arm it plays: there the value is the mean of these
# losses.)
#
# The intervals are confidence sequences. They hold at every length of a log of which no part was dropped: an evaluation of a longer
# one goes on with the same sums. Decisions count in their order: one that is pending holds up those after it, as
# long as these are fewer than `patience`. One that expired has the experiment's `expired_loss`, if it declares one. Others
# without a loss are left out, as if it were missing by chance.
METHOD = "importance weighting; confidence sequences, which hold at every moment at once"
BLIND = (
    "some arms had no chance to be explored in some decisions, so the log cannot compare the arms"
)


@dataclass(frozen=True, slots=True)
class ArmValue:
    """The estimated mean loss of one arm, and how often it was explored and observed."""

    arm: Arm
    observed: int
    value: Interval | None


@dataclass(frozen=True, slots=True)
class LogEvaluation:
    """The estimates, in the experiment's own scale of losses; `EvaluationOut` says what each field means."""

    experiment: str
    method: str
    level: float
    decisions: int
    observed: int
    arms: tuple[ArmValue, ...]
    exploited: Interval | None
    remark: str | None
    drawn: Interval | None


def _without_late(decisions: Iterable[LoggedDecision], patience: int) -> Iterator[LoggedDecision]:
    """The decisions, without the losses that came when an evaluation had given them up, after so many newer decisions.

    They stay left out, so that an evaluation of a longer log goes on from that of a shorter one.
    """
    queue: deque[LoggedDecision] = deque()
    for each in decisions:
        queue.append(each)
        if len(queue) > patience:
            oldest = queue.popleft()
            is_late = oldest.settled_seq is not None and oldest.settled_seq > each.seq
            yield replace(oldest, loss=None, judged=None) if is_late else oldest
    yield from queue


def evaluate(
    experiment: str,
    decisions: Iterable[LoggedDecision],
    arms: Sequence[Arm],
    settings: Settings,
    coupled: bool,
) -> LogEvaluation:
    """Estimate the value of every arm and of what was exploited; with labels, by these, for any judge that is never silent."""
    labels, risk = settings.labels, settings.risk
    share = labels.share if labels else 1.0
    start = partial(
        Sequences, len(arms), risk, drift=settings.drift, coupled=coupled, label_share=share
    )
    sequences, drawn = start(), start()
    place = {arm: i for i, arm in enumerate(arms)}
    low, high = losses = LossRange.checked(settings.loss_range)
    made, blind, estimates = 0, False, None if labels is None else _Estimates(labels, losses)

    def exploring() -> Iterator[LoggedDecision]:
        nonlocal made
        for each in decisions:
            made += 1
            if each.explore is not None:
                yield each

    in_time = _without_late(exploring(), settings.patience)
    for each in iter_settled(in_time, lambda each: each.status == "pending", settings.patience):
        if each.explore is None or (
            each.loss is None and (estimates is None or each.judged is None)
        ):
            continue
        some = None if each.available is None else [place[arm] for arm in each.available]
        if some is None:
            blind = blind or each.propensity is None or each.propensity >= 1.0
        explore, rho, label = place[each.explore], 1.0, None
        if estimates is None:
            loss = losses.scaled(each.loss)
        else:
            loss, rho = estimates.of(each), each.label_probability or 1.0
            # An expired decision counts with its declared loss, as a label if one was wanted.
            if each.loss is not None and (each.judged is not None or each.label):
                label = losses.scaled(each.loss)
        weight = None if each.propensity is None else 1.0 / each.propensity
        for seen, exploit in ((sequences, each.exploit), (drawn, each.drawn)):
            seen.update(
                explore,
                weight,
                loss,
                None if exploit is None else place[exploit],
                some,
                rho=rho,
                label=label,
            )
    known: list[Interval | None] = [None] * len(arms)
    if not blind and sequences.observed > 0:
        known = [each.scaled(low, high) for each in sequences.arms()]
    values = tuple(ArmValue(arm, sequences.seen(place[arm]), known[place[arm]]) for arm in arms)
    exploited, by_policy = (
        _served(each, losses, coupled or not blind) for each in (sequences, drawn)
    )
    remark = BLIND if blind else None
    return LogEvaluation(
        experiment,
        METHOD,
        1.0 - risk,
        made,
        sequences.observed,
        values,
        exploited,
        remark,
        by_policy,
    )


class _Estimates:
    """What decisions say of their labels, by the labels that were known when each was made; see `Labels`."""

    def __init__(self, rules: Labels, losses: LossRange) -> None:
        self._rules, self._losses = rules, losses
        # By the row that brought the label: judged and label.
        self._coming: list[tuple[int, float, float]] = []
        self._sums: LabelSums = (0.0, 0.0, 0.0, 0.0, 0.0)

    def of(self, each: LoggedDecision) -> float:
        """The estimate, on the map of `Labels.to_unit`. Call it once for each decision, in order."""
        label = None if each.loss is None else self._losses.scaled(each.loss)
        if each.judged is None:  # what an expired decision counts as
            assert label is not None
            return self._rules.to_unit(label)
        while self._coming and self._coming[0][0] < each.seq:
            self._sums = with_label(self._sums, *heappop(self._coming)[1:])
        judged = self._losses.scaled(each.judged)
        if label is not None and each.settled_seq is not None:
            heappush(self._coming, (each.settled_seq, judged, label))
        asked = LabelRequest(
            label is not None, each.label_probability or 1.0, *fit_line(self._sums)
        )
        return self._rules.to_unit(asked.estimate(judged, label))


def _served(sequences: Sequences, losses: LossRange, known: bool) -> Interval | None:
    return sequences.served().scaled(*losses) if known and sequences.used().any() else None

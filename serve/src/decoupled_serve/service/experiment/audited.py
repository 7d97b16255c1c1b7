"""The audit trail: what was changed, when, by whom, and what it was before."""

import json
from typing import Any, NamedTuple

from .request_context import Origin

OPERATOR = "local"  # the tenant whose keys also manage the whole instance: metrics, backups, the trail of all tenants
# Every kind of change.
ACTIONS = (
    "experiment.create",
    "experiment.archive",
    "experiment.delete",
    "arms.add",
    "arms.retire",
    "guardrails.change",
    "budget.set",
    "incumbent.release",
    "verdict.decide",
    "log.drop",
    "log.replay",
    "key.add",
    "key.rotate",
    "key.revoke",
    "backup.write",
    "store.restore",
)


class AuditRecord(NamedTuple):
    """One change. `old` and `new` have what was changed, before and after, as JSON can hold it.

    `subject` is an experiment, the id of a key, or a file. `request`, `caller` and `label` say where the change comes from:
    see `Origin`.
    """

    id: int
    at: float
    tenant: str
    action: str
    subject: str
    caller: str
    label: str
    request: str | None
    old: Any
    new: Any


# The columns of a change in the store, which gives it its id.
AUDIT_COLUMNS = (*AuditRecord._fields[1:-2], "old_value", "new_value")


def audit_row(
    at: float, origin: Origin, action: str, tenant: str, subject: str, old: Any = None, new: Any = None
) -> tuple[Any, ...]:
    """A change as a row of the store.

    >>> audit_row(1.5, Origin("r-1", "key 3f29", "till"), "arms.add", "local", "models", new=["d"])[2:]
    ('arms.add', 'models', 'key 3f29', 'till', 'r-1', None, '["d"]')
    """
    whose = origin.caller, origin.label, origin.request
    return at, tenant, action, subject, *whose, _text(old), _text(new)


def audit_record(id: int, *row: Any) -> AuditRecord:  # noqa: A002
    """A stored change as it is shown.

    >>> audit_record(7, 1.5, "local", "arms.add", "models", "key 3f29", "till", "r-1", None, '["d"]').new
    ['d']
    """
    *before, old, new = row
    return AuditRecord._make((id, *before, _value(old), _value(new)))


def _text(value: Any) -> str | None:
    return None if value is None else json.dumps(value, sort_keys=True, allow_nan=False)


def _value(text: str | None) -> Any:
    return None if text is None else json.loads(text)

"""Prints the audit trail."""

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..service.experiment.records import AuditRecord

_LONGEST = 200  # characters of a value


def audit_line(entry: "AuditRecord") -> str:
    """A change as one line.

    >>> from decoupled_serve.service.experiment.records import AuditRecord
    >>> change = AuditRecord(7, 0.0, "local", "budget.set", "models", "key 3f29", "till", "r-1", {}, {"share": 0.1})
    >>> audit_line(change)
    '1970-01-01T00:00:00.000000Z  local  budget.set  models  by key 3f29 (till)  request r-1  {} -> {"share": 0.1}'
    """
    from ..service.experiment.records import moment

    who = entry.caller + (f" ({entry.label})" if entry.label else "")
    request = f"  request {entry.request}" if entry.request is not None else ""
    values = f"{_short(entry.old)} -> {_short(entry.new)}"
    return (
        f"{moment(entry.at)}  {entry.tenant}  {entry.action}  {entry.subject}  by {who}{request}  {values}"
    )


def _short(value: Any) -> str:
    if value is None:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."

"""The audit trail: who changed what. Commands record changes with `Session.record`, in their own transaction."""

from typing import TypeAlias

from ..commits.loop import CommitLoop
from ..commits.replies import Reply
from ..experiment.records import AuditRecord
from ..experiment.settings import plain_text

AuditPage: TypeAlias = list[AuditRecord]


class Audit:
    """Read the audit trail."""

    def __init__(self, commits: CommitLoop) -> None:
        self._commits = commits

    def read(
        self,
        tenant: str | None = None,
        *,
        subject: str | None = None,
        action: str | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> Reply[AuditPage]:
        """Changes, newest first: of a tenant, or of all tenants if None, from the one before the id `before`."""
        where = {"tenant": tenant, "subject": subject, "action": action}
        for name, value in where.items():
            if value is not None:
                plain_text(name, value)
        return self._commits.submit(lambda session: session.store.audit(where, before, limit))

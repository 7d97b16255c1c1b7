"""What operators manage: API keys, of which only digests are stored (`decoupled_serve.service.http.admission` makes them), and the audit trail."""

from dataclasses import dataclass
from typing import TypeAlias

from decoupled.client import Conflict, NotFound

from ..commits.loop import CommitLoop
from ..commits.replies import Reply
from ..experiment.records import AuditRecord
from ..experiment.settings import plain_text
from ..memory.cache import any_active
from ..memory.session import Session

_COLUMNS = "digest, tenant, role, label, created_at, revoked_at"


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key, by the SHA-256 digest of its secret in hexadecimal."""

    digest: str
    tenant: str
    role: str
    label: str
    created_at: float
    revoked_at: float | None = None

    @property
    def id(self) -> str:
        """The id of the key: the start of its digest, from which the key cannot be found."""
        return self.digest[:12]


ApiKeys: TypeAlias = list[ApiKey]


class Keys:
    """Add, list, revoke and find API keys."""

    def __init__(self, commits: CommitLoop) -> None:
        self._commits = commits

    def add(self, tenant: str, role: str, digest: str, label: str = "") -> Reply[ApiKey]:
        """Store a key by the SHA-256 digest of its secret."""
        key = ApiKey(digest, tenant, role, label, self._commits.session.clock())

        def run(session: Session) -> ApiKey:
            _insert(session, key)
            session.record(
                "key.add", key.tenant, key.id, new={"role": key.role, "label": key.label}
            )
            return key

        return self._commits.submit(run, alone=True)

    def list(self, tenant: str | None = None) -> Reply[ApiKeys]:
        """The keys of a tenant, or of all tenants, oldest first."""
        who = "tenant = ?" if tenant is not None else "CAST(? AS TEXT) IS NULL"
        sql = f"SELECT {_COLUMNS} FROM api_keys WHERE {who} ORDER BY created_at, digest"
        return self._commits.submit(
            lambda it: [ApiKey(*row) for row in it.store.run(sql, (tenant,))]
        )

    def revoke(self, digest: str) -> Reply[ApiKey]:
        """Refuse a key. No request that arrives after the reply runs with it, in any process on this store."""

        def run(session: Session) -> ApiKey:
            found, revoked = _refused(session, digest)
            if revoked:
                old = {"role": found.role, "label": found.label}
                session.record("key.revoke", found.tenant, found.id, old=old)
            return found

        return self._commits.submit(run, alone=True)

    def rotate(self, digest: str, new_digest: str, *, keep_old: bool = False) -> Reply[ApiKey]:
        """Store a key with the tenant, role and label of another, and refuse that one from now on unless it is kept."""

        def run(session: Session) -> ApiKey:
            old = _known(session, digest)
            made = ApiKey(new_digest, old.tenant, old.role, old.label, session.clock())
            _insert(session, made)
            if not keep_old:
                _refused(session, digest)
            was = {"key": old.id, "is": "kept" if keep_old else "revoked"}
            session.record("key.rotate", old.tenant, old.id, old=was, new={"key": made.id})
            return made

        return self._commits.submit(run, alone=True)

    def find(self, digest: str) -> Reply[ApiKey | None]:
        """The key with that digest, revoked or not."""
        return self._commits.submit(lambda session: _find(session, digest))

    def any_active(self) -> Reply[bool]:
        """Whether the store has a key that is not revoked."""
        return self._commits.submit(lambda session: any_active(session.store))


def _insert(session: Session, key: ApiKey) -> None:
    for name in ("digest", "tenant", "role"):
        plain_text(name, getattr(key, name))
    sql = f"INSERT INTO api_keys ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING 1"
    values = (key.digest, key.tenant, key.role, key.label, key.created_at, key.revoked_at)
    if not session.store.run(sql, values):
        raise Conflict("key: exists already; make another")
    session.store.count_key_change()


def _find(session: Session, digest: str) -> ApiKey | None:
    rows = session.store.run(f"SELECT {_COLUMNS} FROM api_keys WHERE digest = ?", (digest,))
    return ApiKey(*rows[0]) if rows else None


def _refused(session: Session, digest: str) -> tuple[ApiKey, bool]:
    """A key that is refused from now on, and whether it was not before."""
    sql = "UPDATE api_keys SET revoked_at = ? WHERE digest = ? AND revoked_at IS NULL RETURNING 1"
    revoked = bool(session.store.run(sql, (session.clock(), digest)))
    return _known(session, digest), revoked


def _known(session: Session, digest: str) -> ApiKey:
    found = _find(session, digest)
    if found is None:
        raise NotFound("key: is not known; choose one from the list of keys")
    session.store.count_key_change()
    return found


# The audit trail: who changed what. Commands record changes with `Session.record`, in their own transaction.
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
    ) -> Reply[list[AuditRecord]]:
        """Changes, newest first: of a tenant, or of all tenants if None, from the one before the id `before`."""
        where = {"tenant": tenant, "subject": subject, "action": action}
        for name, value in where.items():
            if value is not None:
                plain_text(name, value)
        return self._commits.submit(lambda session: session.store.audit(where, before, limit))

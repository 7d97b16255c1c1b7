"""API keys: who may ask. Only digests are stored; what a key itself looks like is decided above."""

from dataclasses import dataclass

from ..errors import Conflict, NotFound
from ..experiment.settings import plain_text
from ..store.store import Store

_COLUMNS = "digest, tenant, role, label, created_at, revoked_at"


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key by the SHA-256 digest of its secret, in hexadecimal."""

    digest: str
    tenant: str
    role: str
    label: str
    created_at: float
    revoked_at: float | None = None


def add(store: Store, key: ApiKey) -> ApiKey:
    """Store a key."""
    for name in ("digest", "tenant", "role"):
        plain_text(name, getattr(key, name))
    sql = f"INSERT INTO api_keys ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING 1"
    values = (key.digest, key.tenant, key.role, key.label, key.created_at, key.revoked_at)
    if not store.run(sql, values):
        raise Conflict("key: is known already; make another")
    return key


def find(store: Store, digest: str) -> ApiKey | None:
    """The key of that digest, revoked or not."""
    rows = store.run(f"SELECT {_COLUMNS} FROM api_keys WHERE digest = ?", (digest,))
    return ApiKey(*rows[0]) if rows else None


def listing(store: Store, tenant: str | None) -> list[ApiKey]:
    """The keys of a tenant, or of all, oldest first."""
    who = "tenant = ?" if tenant is not None else "CAST(? AS TEXT) IS NULL"
    sql = f"SELECT {_COLUMNS} FROM api_keys WHERE {who} ORDER BY created_at, digest"
    return [ApiKey(*row) for row in store.run(sql, (tenant,))]


def revoke(store: Store, digest: str, now: float) -> ApiKey:
    """Have a key be refused from now on."""
    store.run("UPDATE api_keys SET revoked_at = coalesce(revoked_at, ?) WHERE digest = ?", (now, digest))
    found = find(store, digest)
    if found is None:
        raise NotFound("key: is not known; list the keys there are")
    return found

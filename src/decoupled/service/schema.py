"""The tables, as numbered migrations: each runs once, in one transaction with the record that it ran.

A migration that was released is never edited; a change is a new migration at the end. The same text
serves both databases, with the words in braces replaced by what each calls them.
"""

from collections.abc import Iterable
from typing import NamedTuple


class Dialect(NamedTuple):
    """What a database calls things."""

    integer: str
    real: str
    blob: str
    serial: str
    clustered: str
    plain: str


SQLITE = Dialect("INTEGER", "REAL", "BLOB", "INTEGER PRIMARY KEY", " WITHOUT ROWID, STRICT", " STRICT")
POSTGRES = Dialect(
    "BIGINT", "DOUBLE PRECISION", "BYTEA", "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY", "", ""
)

RECORD = "CREATE TABLE IF NOT EXISTS schema_migrations (version {integer} PRIMARY KEY, at {real} NOT NULL){plain}"

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE experiments (
            id {serial}, tenant TEXT NOT NULL, name TEXT NOT NULL, tag TEXT NOT NULL UNIQUE,
            settings TEXT NOT NULL, seed TEXT NOT NULL, created_at {real} NOT NULL, archived_at {real},
            arms TEXT NOT NULL, retired TEXT NOT NULL,
            head {integer} NOT NULL, version {integer} NOT NULL, late {integer} NOT NULL,
            UNIQUE (tenant, name)){plain}""",
        """CREATE TABLE decided (
            experiment {integer} NOT NULL, seq {integer} NOT NULL, mode TEXT NOT NULL, available TEXT,
            exploit {integer}, explore {integer}, propensity {real}, weight {real}, round {integer} NOT NULL,
            version {integer} NOT NULL, stream {blob} NOT NULL, made_at {real} NOT NULL, expires_at {real},
            PRIMARY KEY (experiment, seq)){clustered}""",
        # The primary key is the promise that no decision is settled twice.
        """CREATE TABLE settled (
            experiment {integer} NOT NULL, seq {integer} NOT NULL, decision {integer} NOT NULL,
            kind TEXT NOT NULL, loss {real}, at {real} NOT NULL, late_at {real},
            PRIMARY KEY (experiment, decision)){clustered}""",
        "CREATE UNIQUE INDEX settled_in_order ON settled (experiment, seq)",
        """CREATE TABLE changed (
            experiment {integer} NOT NULL, seq {integer} NOT NULL, kind TEXT NOT NULL,
            content TEXT NOT NULL, at {real} NOT NULL, PRIMARY KEY (experiment, seq)){clustered}""",
        """CREATE TABLE snapshots (
            experiment {integer} NOT NULL, seq {integer} NOT NULL, content TEXT NOT NULL, at {real} NOT NULL,
            PRIMARY KEY (experiment, seq)){plain}""",
        """CREATE TABLE request_keys (
            experiment {integer} NOT NULL, key TEXT NOT NULL, request TEXT NOT NULL,
            first {integer} NOT NULL, count {integer} NOT NULL, at {real} NOT NULL,
            PRIMARY KEY (experiment, key)){clustered}""",
        "CREATE INDEX request_keys_by_age ON request_keys (at)",
        """CREATE TABLE api_keys (
            digest TEXT PRIMARY KEY, tenant TEXT NOT NULL, role TEXT NOT NULL, label TEXT NOT NULL,
            created_at {real} NOT NULL, revoked_at {real}){plain}""",
    ),
)


def statements(version: int, dialect: Dialect) -> Iterable[str]:
    """The statements of one migration, 1 for the first."""
    return (text.format(**dialect._asdict()) for text in MIGRATIONS[version - 1])

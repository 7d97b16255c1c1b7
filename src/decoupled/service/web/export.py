"""The log as CSV and as Parquet, one row for each decision, page after page."""

import csv
import io
import json
from collections.abc import AsyncIterator, Sequence
from tempfile import SpooledTemporaryFile
from typing import Any

CSV = "text/csv; charset=utf-8"
PARQUET = "application/vnd.apache.parquet"
CHUNK = 1 << 20
IN_MEMORY = 16 << 20  # a larger Parquet file goes to disk while it is made

# Arms may be names or numbers in one experiment: as text in JSON both keep their kind.
COLUMNS = (
    "seq",
    "decision",
    "made_at",
    "mode",
    "available",
    "exploit",
    "explore",
    "propensity",
    "weight",
    "round",
    "state_version",
    "expires_at",
    "status",
    "loss",
    "settled_at",
)
_WHOLE = frozenset(("seq", "round", "state_version"))
_REAL = frozenset(("made_at", "propensity", "weight", "expires_at", "loss", "settled_at"))

Page = Sequence[dict[str, Any]]


def flat(row: dict[str, Any]) -> list[Any]:
    """A row in the order of the columns; a list of arms becomes text."""
    values = [row[name] for name in COLUMNS]
    place = COLUMNS.index("available")
    if values[place] is not None:
        values[place] = json.dumps(list(values[place]))
    return values


async def as_csv(pages: AsyncIterator[Page]) -> AsyncIterator[bytes]:
    """Lines as they come; numbers are written so that they read back exactly."""
    yield _lines([list(COLUMNS)])
    async for page in pages:
        yield _lines([flat(row) for row in page])


def _lines(rows: list[list[Any]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


async def as_parquet(pages: AsyncIterator[Page]) -> AsyncIterator[bytes]:
    """A Parquet file, a row group for each page; its end must be known before its start can be trusted."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(name, _kind(pa, name)) for name in COLUMNS])
    with SpooledTemporaryFile(IN_MEMORY) as file:
        with pq.ParquetWriter(file, schema) as writer:
            async for page in pages:
                columns = zip(*(flat(row) for row in page), strict=True)
                arrays = [
                    pa.array([_plain(name, value) for value in column], _kind(pa, name))
                    for name, column in zip(COLUMNS, columns, strict=True)
                ]
                writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
        file.seek(0)
        while chunk := file.read(CHUNK):
            yield chunk


def _kind(pa: Any, name: str) -> Any:
    return pa.int64() if name in _WHOLE else pa.float64() if name in _REAL else pa.string()


def _plain(name: str, value: Any) -> Any:
    return value if value is None or name in _WHOLE or name in _REAL else str(value)

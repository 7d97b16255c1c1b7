"""One reader of logs, losses and contexts: CSV with NumPy alone, Parquet with pyarrow."""

import csv
from collections.abc import Iterable, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import Message, ParameterError
from .arrays import Floats
from .extras import needed_for

# What spreadsheets and data frames write for a missing value.
MISSING_WORDS = frozenset(("", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "<NA>"))
_BOOLEANS = {
    "True": True,
    "TRUE": True,
    "true": True,
    "False": False,
    "FALSE": False,
    "false": False,
}
_REMEDY = "export it again, or save it as CSV in UTF-8"


def read_columns(path: Path, place: str, wanted: Sequence[str] | None = None) -> dict[str, Any]:
    r"""Read the columns of a .parquet file, or of any other file as CSV with a header of names.

    A cell of a CSV file is a text; `as_numbers` and `as_values` say what it means. A column of
    Parquet is an array of numbers, or a list with None where a value is missing.

    Args:
        path: the file.
        place: what an error calls the file.
        wanted: the columns to read, of which some may be missing. None reads all, and then each
            needs a name of its own.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "log.csv"
    >>> _ = path.write_text("left,right\n0.1,0.9\n0.8,0.2\n")
    >>> read_columns(path, "log.csv")
    {'left': ('0.1', '0.8'), 'right': ('0.9', '0.2')}
    """
    if path.suffix == ".parquet":
        return _read_parquet(path, place, wanted)
    return _read_csv(path, place, wanted)


def _read_csv(path: Path, place: str, wanted: Sequence[str] | None) -> dict[str, Any]:
    """The wanted columns of a CSV file, as tuples of texts."""
    # Spreadsheets begin it with a byte order mark.
    with path.open(newline="", encoding="utf-8-sig") as file:
        return csv_columns(file, place, wanted)


def csv_columns(
    lines: Iterable[str], place: str, wanted: Sequence[str] | None = None
) -> dict[str, Any]:
    r"""The columns of CSV with a header of names, from its lines, as `read_columns` gives them.

    Args:
        lines: the lines.
        place: what an error calls them.
        wanted: the columns to read; None reads all.

    >>> csv_columns(["left,right\n", "0.1,0.9\n"], "log.csv", ["right"])
    {'right': ('0.9',)}
    """
    reader = csv.reader(lines)
    rows: list[Sequence[str]] = []
    try:
        header = next(reader, [])
        names = _chosen_names(place, header, wanted)
        if not names:
            return {}
        select = itemgetter(*map(header.index, names))
        for row in reader:
            if len(row) == len(header):
                rows.append(select(row))
            elif row:  # a blank line has no row
                sizes = f"{len(row)} values, and the header {len(header)}"
                raise _unreadable(place, f"line {reader.line_num} has {sizes}")
    except UnicodeDecodeError:
        raise _unreadable(place, f"is not UTF-8, after about {len(rows):,} rows") from None
    except csv.Error as error:
        rule = f"line {reader.line_num} is not CSV ({error})"
        raise _unreadable(place, rule) from None
    if len(names) == 1:  # then `select` gives no tuple
        return {names[0]: tuple(rows)}
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    return dict(zip(names, columns, strict=True))


def _read_parquet(path: Path, place: str, wanted: Sequence[str] | None) -> dict[str, Any]:
    """The wanted columns of a Parquet file, without the index that pandas adds."""
    with needed_for("a Parquet file", "export it as CSV"):
        import pyarrow as pa
        import pyarrow.parquet as pq
    try:
        schema = pq.read_schema(path)
        names = _chosen_names(place, schema.names, wanted)
        table = pq.read_table(path, columns=names)
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError) as error:
        text = " ".join(str(error).split())
        raise _unreadable(place, f"is not a whole Parquet file ({text})") from None
    if wanted is None:
        # pandas writes an index as a column too.
        index = (schema.pandas_metadata or {}).get("index_columns", [])
        names = [name for name in names if name not in index]
    return {name: as_column(table[name]) for name in names}


def _chosen_names(place: str, header: Sequence[str], wanted: Sequence[str] | None) -> list[str]:
    """The wanted names of a header; an error unless each of all names a column of its own."""
    if wanted is not None:
        return [name for name in wanted if name in header]
    for number, name in enumerate(header):
        if name.strip() == "":
            remedy = (
                "name it, or drop the column if it holds row numbers "
                "(in pandas, to_csv(..., index=False))"
            )
            raise broken(place, f"column {number + 1} has no name", remedy)
        if name in header[:number]:
            remedy = "give every column a name of its own"
            raise broken(place, f"has two columns named {name!r}", remedy)
    return list(header)


def _unreadable(place: str, rule: str) -> ParameterError:
    """The error for a file that is no table of its kind."""
    return broken(place, rule, _REMEDY)


def broken(place: str, rule: str, remedy: str) -> ParameterError:
    """The error for a file that holds no table.

    >>> str(broken("log.csv", "is empty", "write a line of names"))
    'log.csv: is empty; write a line of names'
    """
    return ParameterError(Message(f"{place}: {rule}", remedy))


def as_column(column: Any) -> Any:
    """A column of a data frame as a list, or as an array of numbers.

    >>> as_column(range(2)), as_column(np.ones(2))
    ([0, 1], array([1., 1.]))
    """
    if hasattr(column, "to_pylist"):  # Arrow
        kind = str(column.type)
        is_numeric = kind == "double" or (kind == "int64" and not column.null_count)
        return column.to_numpy(zero_copy_only=False) if is_numeric else column.to_pylist()
    return column if isinstance(column, np.ndarray) else list(column)


def as_numbers(cells: Sequence[str]) -> Floats | int:
    """The cells of a CSV file as numbers, NaN if missing, and the row of the first word.

    >>> as_numbers(("0.5", "", "True")), as_numbers(("0.5", "high"))
    (array([0.5, nan, 1. ]), 1)
    """
    numbers = np.empty(len(cells))
    for row, cell in enumerate(cells):
        number = _number(cell)
        if number is None:
            return row
        numbers[row] = number
    return numbers


def _number(cell: str) -> float | None:
    """A cell as a number: NaN if missing, 1 or 0 for a truth value, None for a word."""
    if cell in _BOOLEANS:
        return float(_BOOLEANS[cell])
    if cell.strip() in MISSING_WORDS:
        return float("nan")
    try:
        # Python reads 1_0 as 10, and a file has no such numbers.
        return float(cell.replace("_", " "))
    except ValueError:
        return None


def as_values(cells: Iterable[Any]) -> list[Any]:
    """The cells of a CSV file as truth values, numbers or texts, with None for a missing one.

    >>> as_values(("3", "", "4")), as_values(("True", "False")), as_values(("law", "3"))
    ([3.0, None, 4.0], [True, False], ['law', '3'])
    """
    values = [None if cell.strip() in MISSING_WORDS else cell for cell in cells]
    present = [value for value in values if value is not None]
    if all(value in _BOOLEANS for value in present):
        return [None if value is None else _BOOLEANS[value] for value in values]
    if all(value not in _BOOLEANS and _number(value) is not None for value in present):
        return [None if value is None else float(value) for value in values]
    return values

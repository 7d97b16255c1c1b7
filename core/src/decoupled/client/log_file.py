"""The file that a log is written to."""

import os
from pathlib import Path
from typing import Literal, TypeAlias

from ..base.files import write_atomically
from ..errors import ParameterError

Format: TypeAlias = Literal["csv", "parquet"]
"""The format of a log."""
FilePath: TypeAlias = str | os.PathLike[str]
"""The path of a file."""
_FORMATS: dict[str, Format] = {".csv": "csv", ".parquet": "parquet"}


def format_of(file: FilePath, format: str | None = None) -> Format:
    """The format of a log: the given one, or else the one that the file's suffix names.

    >>> format_of("log.parquet"), format_of("log.txt", "csv")
    ('parquet', 'csv')
    """
    suffix = os.path.splitext(os.fspath(file))[1].lower() if format is None else f".{format}"
    if suffix in _FORMATS:
        return _FORMATS[suffix]
    if format is not None:
        rule, remedy = f"must be one of {', '.join(_FORMATS.values())}", "or leave it out"
        raise ParameterError.of("format", format, rule, remedy)
    rule = f"its suffix names no format; known are {', '.join(_FORMATS)}"
    remedy = "use one of them, or give the format: csv or parquet"
    raise ParameterError.of("file", os.fspath(file), rule, remedy)


# What a log may be when it is sent, by its suffix.
_TYPES = {
    ".csv": "text/csv",
    ".parquet": "application/vnd.apache.parquet",
    ".jsonl": "application/x-ndjson",
}


def type_of(file: FilePath) -> str:
    """The media type of a log to send, by its suffix.

    >>> type_of("log.jsonl")
    'application/x-ndjson'
    """
    found = _TYPES.get(os.path.splitext(os.fspath(file))[1].lower())
    if found is None:
        rule = f"its suffix names no format; known are {', '.join(_TYPES)}"
        raise ParameterError.of("file", os.fspath(file), rule, "use one of them")
    return found


def write_log(file: FilePath, content: bytes, overwrite: bool) -> None:
    """Write a log whole or not at all. A pipe or a device is written to, since it cannot be replaced."""
    if os.path.exists(file) and not os.path.isfile(file):
        Path(file).write_bytes(content)
    else:
        write_atomically(os.path.realpath(file), content, overwrite=overwrite)

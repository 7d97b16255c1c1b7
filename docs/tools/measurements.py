"""Reads and writes `docs/data/measurements.json`, and makes the page of measurements from it.

A record is a measured number: its value or range, its unit, what it is, how it was made, on which machine, and of which
version. A group says the last three for all its records, unless a record says them itself.
"""

import json
import re
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "docs" / "data" / "measurements.json"
SHARED = ("how", "machine", "version")


class Record(NamedTuple):
    """A measurement. `decimals` says how many of them the page shows; None: as many as there are."""

    name: str
    what: str
    unit: str
    how: str
    machine: str
    version: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    decimals: int | None = None
    line: str = ""  # the line of `decoupled bench` that gives it


def records(file: Path = FILE) -> dict[str, Record]:
    """All records by name."""
    found = {}
    for group in json.loads(file.read_text())["groups"].values():
        shared = {key: group[key] for key in SHARED}
        found |= {
            name: Record(name, **(shared | fields)) for name, fields in group["records"].items()
        }
    return found


def written(number: float, decimals: int | None = None) -> str:
    """A number as the page shows it.

    >>> written(1950.0), written(0.5), written(22.345, 1), written(-0.3, 0), written(2.0e10)
    ('1,950', '0.5', '22.3', '0', '2e10')
    """
    if abs(number) >= 1e9:
        return f"{number:.2g}".replace("e+", "e")
    if decimals is not None:
        text = f"{number:,.{decimals}f}"
        return text.removeprefix("-") if not text.strip("-0.,") else text
    return f"{number:,.0f}" if number == int(number) else f"{number:,}"


def text_of(record: Record) -> str:
    """A value, a range, or both.

    >>> text_of(Record("a.b", "", "s", "", "", "", value=1950.0, low=1750.0, high=2150.0))
    '1,950 (1,750 to 2,150)'
    """
    value, low, high = (
        "" if each is None else written(each, record.decimals)
        for each in (record.value, record.low, record.high)
    )
    if not low:
        return value
    return f"{value} ({low} to {high})" if value else f"{low} to {high}"


def tables() -> str:
    """Every record, in a section for each group and a table for each way and place of measuring."""
    content = json.loads(FILE.read_text())
    parts = []
    for group, found in groupby(records().values(), lambda record: record.name.partition(".")[0]):
        parts.append(f"## {content['groups'][group]['title']}")
        ordered = sorted(found, key=lambda record: (record.how, record.machine, record.version))
        for (how, machine, version), same in groupby(
            ordered, lambda record: (record.how, record.machine, record.version)
        ):
            parts.append(
                f"How: {how}. Machine: {content['machines'][machine]}. Version of the package: {version}."
            )
            rows = (f"| {each.what} | {text_of(each)} | {each.unit} |" for each in same)
            parts.append("\n".join(("| what | measured | unit |", "|---|---|---|", *rows)))
    return "\n\n".join(parts)


def save(content: dict[str, Any], file: Path = FILE) -> None:
    """Write the file, with a line for each record."""
    text = json.dumps(content, indent=1, ensure_ascii=False)
    lines = re.sub(
        r'(?s)(\n    "[\w.-]+": )(\{\n     .*?\n    \})',
        lambda found: found[1] + _one_line(found[2]),
        text,
    )
    file.write_text(lines + "\n")


def _one_line(record: str) -> str:
    return json.dumps(json.loads(record), ensure_ascii=False)

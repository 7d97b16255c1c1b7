"""Writes measured numbers into the pages, from `docs/data/measurements.json`.

    python docs/tools/lists.py      # renews the numbers and the lists of all pages

A number on a page is followed by an invisible comment that names its record:

    Tsallis-INF takes 1,950 (1,750 to 2,150)<!-- m: engine.million.tsallis --> times as long.

The word after the name is the form: `value`, `range`, `interval` or `half`; `.1` asks for one decimal. Without a form,
all that the record has is written. Where there is no number yet, write `?`. The site does not show the comments.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "docs" / "data" / "measurements.json"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SHARED = (
    "how",
    "machine",
    "version",
)  # what a group says for all its records, and a record may say for itself

NUMBER = r"-?\d[\d,]*(?:\.\d+)?(?:e\d+)?"
FORMS = {
    "value": NUMBER,
    "range": rf"{NUMBER}\s+to\s+{NUMBER}",
    "interval": rf"{NUMBER}\s+\({NUMBER}\s+to\s+{NUMBER}\)",
    "half": rf"{NUMBER}\s+±\s+{NUMBER}",
}
MARKER = re.compile(r"<!-- m: (?P<name>[\w.-]+)(?: (?P<form>[a-z]+))?(?: \.(?P<decimals>\d))? -->")


class Record(NamedTuple):
    """A measurement. `decimals` says how many of them pages show; None: as many as there are."""

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

    @property
    def form(self) -> str:
        """How it is written if a page does not say."""
        if self.value is None:
            return "range"
        return "value" if self.low is None else "interval"


def written(number: float, decimals: int | None = None) -> str:
    """A number as pages show it.

    >>> written(1950.0), written(0.5), written(22.345, 1), written(-0.3, 0), written(2.0e10)
    ('1,950', '0.5', '22.3', '0', '2e10')
    """
    if abs(number) >= 1e9:
        return f"{number:.2g}".replace("e+", "e")
    if decimals is not None:
        text = f"{number:,.{decimals}f}"
        return text.removeprefix("-") if not text.strip("-0.,") else text
    return f"{number:,.0f}" if number == int(number) else f"{number:,}"


def text_of(record: Record, form: str | None = None, decimals: int | None = None) -> str:
    """A record as a page shows it."""
    places = record.decimals if decimals is None else decimals
    value, low, high = (
        None if each is None else written(each, places) for each in (record.value, record.low, record.high)
    )
    if (form or record.form) == "half" and record.low is not None and record.high is not None:
        return f"{value} ± {written((record.high - record.low) / 2, places)}"
    shown = {"value": value, "range": f"{low} to {high}", "interval": f"{value} ({low} to {high})"}
    text = shown[form or record.form]
    if text is None or "None" in text:
        raise ValueError(f"{record.name}: has no {form}")
    return text


def records(file: Path = FILE) -> dict[str, Record]:
    """All records by name."""
    found = {}
    for group in json.loads(file.read_text())["groups"].values():
        shared = {key: group[key] for key in SHARED}
        found |= {name: Record(name, **(shared | fields)) for name, fields in group["records"].items()}
    return found


def _shape(marker: re.Match[str], known: dict[str, Record]) -> str:
    """What may be before a marker: a text of its form, or a question mark."""
    if marker["name"] not in known:
        raise KeyError(f"{marker['name']}: no such record in {FILE.name}")
    return FORMS[marker["form"] or known[marker["name"]].form]


def marked(page: str, known: dict[str, Record]) -> Iterator[tuple[int, int, str]]:
    """Where the text of each marker begins and ends, and what should be there."""
    for marker in MARKER.finditer(page):
        shape = _shape(marker, known)
        before = re.search(rf"(?<![\d.,])(?P<text>{shape}|\?)(?:\*\*)?\Z", page[: marker.start()])
        if before is None:
            raise ValueError(f"{marker[0]}: is not after a number of its form; write ? there")
        decimals = None if marker["decimals"] is None else int(marker["decimals"])
        yield (
            *before.span("text"),
            text_of(known[marker["name"]], marker["form"], decimals),
        )


def renewed(page: str, known: dict[str, Record]) -> str:
    """A page with all marked numbers as they are in the file.

    >>> known = {"a.b": Record("a.b", "", "s", "", "", "", value=1950.0, low=1750.0, high=2150.0)}
    >>> renewed("It takes **1,387**<!-- m: a.b value -->, or ?<!-- m: a.b -->.", known)
    'It takes **1,950**<!-- m: a.b value -->, or 1,950 (1,750 to 2,150)<!-- m: a.b -->.'
    """
    parts, end = [], 0
    for start, stop, text in marked(page, known):
        parts += [page[end:start], text]
        end = stop
    return "".join((*parts, page[end:]))


def without_markers(page: str) -> str:
    """A page for the site."""
    return MARKER.sub("", page)


def save(content: dict[str, Any], file: Path = FILE) -> None:
    """Write the file, with a line for each record."""
    text = json.dumps(content, indent=1, ensure_ascii=False)
    lines = re.sub(
        r'(?s)(\n    "[\w.-]+": )(\{\n     .*?\n    \})', lambda found: found[1] + _one_line(found[2]), text
    )
    file.write_text(lines + "\n")


def _one_line(record: str) -> str:
    return json.dumps(json.loads(record), ensure_ascii=False)

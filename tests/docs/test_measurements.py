"""Measured numbers come from one file: pages show what is in it, nothing is copied by hand, and scripts make it."""

import json
import platform
import re
import runpy
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

import decoupled as dc
from decoupled_lab.bench import engine, learner, limits, mirror, service
from decoupled_lab.bench.timing import Ratio
from support.doc_tools import tool
from support.pages import ROOT

measure, measurements, regrets = map(tool, ("measure", "measurements", "regrets"))
tables = tool("measured_tables")
KNOWN = measurements.records()
CONTENT = json.loads(measurements.FILE.read_text())
PAGES = [page for page in measurements.PAGES if "api" not in page.parts and page.name != "changelog.md"]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


# Pages


def test_the_makefile_shows_what_was_measured() -> None:
    quick, installed = (
        measurements.text_of(KNOWN[f"reproduce.{name}"]) for name in ("quick", "quick-installed")
    )
    said = f"quick version: {quick} s on two cores, {installed} s with installation"
    assert said in (ROOT / "Makefile").read_text()


def test_every_record_is_on_a_page() -> None:
    texts = [page.read_text() for page in PAGES]
    named = {marker["name"] for text in texts for marker in measurements.MARKER.finditer(text)}
    # What a table shows is on no marker: take the record away, and the table cannot be made.
    listed = {name for text in texts for name in re.findall(r"<!-- list: (\w+) -->", text)}
    used, whole = set(named), tables.KNOWN
    tables.KNOWN = Watched(whole, used)
    try:
        for name in listed & set(tables.TABLES):
            tables.TABLES[name]("")
        runpy.run_path(str(ROOT / "docs" / "figures" / "make.py"))[
            "context_gains"
        ]()  # a picture, and no table
    finally:
        tables.KNOWN = whole
    assert sorted(set(KNOWN) - used) == []


class Watched(dict[str, Any]):
    """Notes which records are read."""

    def __init__(self, records: dict[str, Any], used: set[str]) -> None:
        super().__init__(records)
        self.used = used

    def __getitem__(self, name: str) -> Any:
        self.used.add(name)
        return super().__getitem__(name)


# Copies

NOT_PROSE = re.compile(
    r"^```.*?^```$|`[^`]*`|\]\([^)]*\)|<!-- list.*?end of list -->|^<[^!][^\n]*$", re.MULTILINE | re.DOTALL
)
UNITS = {
    "µs": r"(?:µs|microseconds?)",
    "ms": r"(?:ms|milliseconds?)",
    "s": r"(?:s|seconds?)",
    "MiB": "MiB",
    "bytes": "bytes",
    "a second": r"(?:pairs|times a second)",
}
# Laboratory records: what other pages quote of them is marked, and the rest has one place only.
OWN_TABLES = {
    "docs/beyond-appendix.md": "the record of what was tried",
    "docs/ladder.md": "numbers of a proof",
    "docs/leaderboard.md": "tables of its own, which docs/tools/leaderboard.py makes of the entries",
    "docs/ladder-proof.md": "numbers of a proof",
    "docs/theory.md": "numbers of a proof",
    "docs/inference.md": "tables of their own, which docs/tools/widths.py and make coverage print",
    "docs/preferences.md": "a table of its own, which docs/tools/guarding_table.py prints",
}
# Other numbers that look the same.
CHANCE = {
    ("docs/deploy.md", "75 seconds"): "a default of the service",
    ("docs/examples.md", "125"): "the judged calls of an example",
    ("docs/gpu.md", "15 s"): "the time of compiling a kernel",
}
MARKED = {marker["name"] for page in PAGES for marker in measurements.MARKER.finditer(page.read_text())}


def digits(number: str) -> int:
    """Significant digits; zeros at the end of a whole number count for nothing."""
    plain = number.replace(",", "").lstrip("-")
    return len((plain.replace(".", "") if "." in plain else plain.rstrip("0")).lstrip("0"))


def copies(record: Any) -> Iterator[str]:
    """What copies of a record would look like: patterns of its numbers, if these are distinctive."""
    whole = re.escape(measurements.text_of(record))
    if record.form == "interval":
        yield whole
    if record.unit in UNITS:
        yield f"{whole} {UNITS[record.unit]}"
    # A number that only a table shows may well be another one elsewhere, unless it is a long one.
    least = 3 if record.name in MARKED else 4
    ends = (record.low, record.high) if record.value is None else (record.value,)
    for number in {measurements.written(each, record.decimals) for each in ends}:
        if digits(number) >= least:
            yield re.escape(number)


# The longest first: an interval before its value.
PATTERNS = sorted({each for record in KNOWN.values() for each in copies(record)}, key=len, reverse=True)
COPY = re.compile(rf"(?<![\d.,-])(?:{'|'.join(PATTERNS)})(?!\w|[.,]\d)")


@pytest.mark.parametrize("page", [page for page in PAGES if name_of(page) not in OWN_TABLES], ids=name_of)
def test_no_number_is_copied_by_hand(page: Path) -> None:
    text = page.read_text()
    for start, end, _ in reversed(list(measurements.marked(text, KNOWN))):
        text = text[:start] + text[end:]
    found = set(COPY.findall(NOT_PROSE.sub("", measurements.without_markers(text))))
    unknown = {each for each in found if (name_of(page), each) not in CHANCE}
    assert unknown == set(), "mark it with <!-- m: name -->, or say in CHANCE why it is another number"


# Records


def test_records_say_what_how_where_and_of_which_version() -> None:
    for record in KNOWN.values():
        assert record.what, record.name
        assert record.how, record.name
        assert record.version, record.name
        assert record.machine in CONTENT["machines"], record.name
        for script in re.findall(r"(?:docs|tests)/[\w/]+\.py", record.how):
            assert (ROOT / script).exists(), script
        assert (record.low is None) == (record.high is None), record.name
        assert record.value is not None or record.low is not None, record.name
        ordered = [each for each in (record.low, record.value, record.high) if each is not None]
        assert ordered == sorted(ordered), record.name


def test_every_group_can_be_measured_or_says_how_else() -> None:
    for name, group in CONTENT["groups"].items():
        assert all(record.startswith(f"{name}.") for record in group["records"]), name
        asked = re.match(r"python docs/tools/measure.py (\w+)", group["how"])
        assert (asked is not None) == (name in measure.GROUPS), name
        assert asked is None or asked[1] == name
    assert set(measure.GROUPS) <= set(CONTENT["groups"])
    used = {record.machine for record in KNOWN.values()}
    assert used == set(CONTENT["machines"]), "a machine that nothing was measured on"


def test_records_name_lines_that_the_bench_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    def raced(name: str, function: object, rival: str, rival_function: object, **how: int) -> Ratio:
        return Ratio(name, 1.0, rival, 1.0, 1.0, 1.0, 1.0)

    load = service.Workload([1.0], [1.0], 1, 1.0, [1.0, 1.0])
    for module in (engine, learner):
        monkeypatch.setattr(module, "race", raced)
    monkeypatch.setattr(engine, "running", lambda *how: None)
    monkeypatch.setattr(learner, "pair", lambda *how, **more: None)
    monkeypatch.setattr(learner, "river_pair", lambda *how: None)
    monkeypatch.setattr(service, "run_load", lambda **how: load)
    monkeypatch.setattr(service, "run_batches", lambda **how: [1.0])
    monkeypatch.setattr(service, "flush_times", lambda folder: [1.0])
    monkeypatch.setattr(limits, "restarted", lambda: 1.0)
    monkeypatch.setattr(limits, "neighbours", lambda seconds: (load, load, load))
    monkeypatch.setattr(mirror, "server", lambda *how: nullcontext((1, None)))
    monkeypatch.setattr(mirror, "mirror", lambda *how, **more: nullcontext(1))
    monkeypatch.setattr(mirror, "compared", fake_comparison)
    for name, module in {
        "engine": engine,
        "learner": learner,
        "service": service,
        "limits": limits,
        "mirror": mirror,
    }.items():
        lines = {measure.key(line) for line in module.measure(1)}
        named = {
            record.line for record in KNOWN.values() if record.name.startswith(f"{name}.") and record.line
        }
        assert named - lines == set(), name
        assert named, name


def fake_comparison(name: str, port: int, rival: str, rival_port: int, repetitions: int) -> list[Ratio]:
    return [
        Ratio(f"{name}, {told}", 1.0, rival, 1.0, 1.0, 1.0, 1.0) for told in ("median", "99th percentile")
    ]


@pytest.mark.parametrize(("instance", "policy"), [("easy", "leader"), ("alternating", "ftpl")])
def test_regrets_are_those_of_the_code(instance: str, policy: str) -> None:
    played = regrets.CONTENDERS[policy]
    found = dict(regrets.of_policy(instance, policy, played, regrets.finals(instance, played)))
    for name, fields in found.items():
        record = KNOWN[name]
        if (platform.system(), platform.machine()) == ("Linux", "x86_64"):
            assert fields["value"] == record.value, name
        elif (
            record.low is not None and record.high is not None
        ):  # elsewhere a digit of a logarithm may differ
            assert abs(fields["value"] - record.value) < record.high - record.low, (
                name
            )  # four standard errors


# Tools


def test_the_tool_writes_only_the_groups_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = "FTPL compiled, K = 8 | NumPy, textbook step"
    name, rival = line.split(" | ")
    monkeypatch.setattr(
        engine, "measure", lambda repetitions: [Ratio(name, 1.0, rival, 9.0, 412.3, 99.0, 512.6)]
    )
    out = tmp_path / "measurements.json"
    arguments = ["measure.py", "engine", "--machine", "newer-xeon", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", arguments)
    measure.main()
    after = measurements.records(out)
    assert {each for each in KNOWN if after[each] != KNOWN[each]} == {"engine.textbook-8"}
    changed = after["engine.textbook-8"]
    assert (changed.value, changed.low, changed.high) == (412.0, 99.0, 513.0)
    assert (changed.machine, changed.version) == ("newer-xeon", dc.__version__)
    assert changed.what == KNOWN["engine.textbook-8"].what


RECORD = measurements.Record("a.b", "", "s", "", "", "", value=1950.0, low=1750.0, high=2150.0)


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("**1,387 (1 to 2)**<!-- m: a.b -->", "**1,950 (1,750 to 2,150)**<!-- m: a.b -->"),
        ("| 9<!-- m: a.b value --> |", "| 1,950<!-- m: a.b value --> |"),
        ("from 3 to 6<!-- m: a.b value -->", "from 3 to 1,950<!-- m: a.b value -->"),
        ("1 to\n2<!-- m: a.b range -->", "1,750 to 2,150<!-- m: a.b range -->"),
        ("?<!-- m: a.b half -->", "1,950 ± 200<!-- m: a.b half -->"),
        ("?<!-- m: a.b value .1 -->", "1,950.0<!-- m: a.b value .1 -->"),
    ],
)
def test_a_marked_number_is_written_anew(page: str, expected: str) -> None:
    assert measurements.renewed(page, {"a.b": RECORD}) == expected
    assert "<!--" not in measurements.without_markers(expected)


@pytest.mark.parametrize("page", ["about <!-- m: a.b -->", "5<!-- m: a.b -->", "5<!-- m: a.c value -->"])
def test_a_marker_that_cannot_be_filled_in_is_an_error(page: str) -> None:
    with pytest.raises((ValueError, KeyError), match=r"a\.[bc]"):
        measurements.renewed(page, {"a.b": RECORD})

"""Every command, option and setting in the code is documented, and every documented one exists."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from decoupled.cli.main import app
from decoupled_serve.mirror.counts import DROPPED, LEARNED, NOT_MIRRORED
from decoupled_serve.options import definitions
from decoupled_serve.options.definitions import Option
from decoupled_serve.service.analysis.export import COLUMNS
from decoupled_serve.service.analysis.history import MOST_POINTS
from decoupled_serve.service.experiment import records
from decoupled_serve.service.http import admission as limits
from decoupled_serve.service.http.models import schemas as shapes
from support.command_line import said
from support.http_service import served
from support.pages import PAGES, ROOT, commands, tool

leaves = tool("program_lists").leaves
LEAVES = list(leaves(typer.main.get_command(app)))
COMMANDS = tool("program_lists").commands("")
SETTINGS = tool("lists").on_page_markdown((ROOT / "docs" / "settings.md").read_text())
LINES = sorted({line for page in PAGES for line in commands(page)})
PIPED = re.compile(
    r"ID=\$\((decoupled .*) \|$"
)  # a command whose output is piped into the next line
INLINE = sorted(
    {
        command
        for page in PAGES
        for command in re.findall(r"`(decoupled [a-z-][^`]*)`", page.read_text())
        if not set("|{") & set(command)
    }
)


def command_of(line: str) -> str:
    """The command in a line, also if its output goes into a variable."""
    return PIPED.sub(r"\1", line)


@pytest.mark.parametrize(("name", "command"), LEAVES)
def test_every_command_and_option_is_documented(name: str, command: Any) -> None:
    written = COMMANDS.split(f"## decoupled {name}\n")[1].split("\n## ")[0]
    assert written.strip(), "a command without help"
    everywhere = ("--help", "--url", "--key-file") if name.startswith("client ") else ("--help",)
    settings = SETTINGS if "settings.md#" in written else ""
    for parameter in command.params:
        if parameter.opts[0] not in everywhere:
            shown = parameter.metavar or parameter.name.upper()
            names = (shown,) if parameter.param_type_name == "argument" else parameter.opts
            assert all(re.search(rf"`{each}[` ]", written + settings) for each in names), names
            assert parameter.help, names


@pytest.mark.parametrize(
    "line", [line for line in map(command_of, LINES) if line.startswith("decoupled ")] + INLINE
)
def test_every_command_line_of_the_pages_parses(line: str) -> None:
    root = typer.main.get_command(app)
    if any(f"decoupled {name} ".startswith(f"{line} ") for name, _ in LEAVES):
        return  # the text only names a command
    for _, command in leaves(root):
        command.callback = lambda **_: None  # parse only
    root.main(
        shlex.split(line, comments=True)[1:], standalone_mode=False
    )  # raises UsageError if invalid


def test_commands_of_make_and_example_programs_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for line in LINES:
        words = line.split()
        if words[0] == "make":
            assert re.search(rf"^{words[1]}:", makefile, re.MULTILINE), line
        assert all((ROOT / word).exists() for word in words if word.startswith("examples/")), line


def test_the_pages_commands_run_against_a_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pages = [ROOT / "docs" / f"{name}.md" for name in ("traffic", "operating", "guardrails")]
    lines = [command_of(line) for page in pages for line in commands(page)]
    run_lines = [line for line in lines if re.match("decoupled (client|doctor|backup) ", line)]
    assert len(run_lines) == 16
    with served(tmp_path) as service:
        monkeypatch.setenv("DECOUPLED_URL", service.url)
        decision = ""
        for line in run_lines:
            words = shlex.split(line.replace("$ID", decision).replace("decisions.db", "store.db"))
            done = said(*words[1:])
            if "decide" in line:
                decision = json.loads(done)["id"]
        guarded = json.loads(done)  # what the last command shows
        assert guarded["budget"]["allowance"] == [50.0, 86400.0]
        assert guarded["guardrails"]["incumbent"] == "medium"
        document = service.http.get("/v1/openapi.json").json()
    assert (tmp_path / "log.csv").read_text().count("\n") == 2, (
        "the decision of the page, under a heading"
    )
    assert (tmp_path / "copy.db").exists()
    check_requests(document["paths"])


def check_requests(paths: dict[str, dict[str, Any]]) -> None:
    """Every request on the pages exists; the list of all of them is made of the same document."""
    # The port 8080 is that of a mirror in front of any service, and 8081 that of its console.
    requests = [
        line for line in LINES if line.startswith("curl") and not re.search(":808[01]/", line)
    ]
    assert requests
    for line in requests:
        path = re.search(r"(?:localhost:8000|https://[^/]+)(/[^\s'?\"]*)", line)
        assert path, line
        method = (re.search(r"-X (\w+)", line) or ["", "GET"])[1].lower()
        shape = [
            re.sub(r"\{\w+\}", "[^/]+", known) for known, verbs in paths.items() if method in verbs
        ]
        assert any(re.fullmatch(each, path[1]) for each in shape), line


def test_every_environment_variable_is_documented() -> None:
    known = {
        name
        for file in ROOT.glob("*/src/**/*.py")
        for name in re.findall(r'"((?:DECOUPLED|XDG|NUMBA)_[A-Z_]+)"', file.read_text())
        if "options" not in file.parts
        or file.name == "definitions.py"  # examples, which the options have
    }
    assert {"DECOUPLED_KEY", "DECOUPLED_DATA"} <= known
    table = SETTINGS.split("## Environment variables")[1].split("\n## ")[0]
    shown = set(re.findall(r"^\| `([A-Z_]+)` \|", table, re.MULTILINE))
    assert known <= shown
    assert all(name in known for name in shown if name.startswith("DECOUPLED_"))


def named(option: Option) -> str:
    """The flag of an option as a name."""
    return option.flag.removeprefix("--").replace("-", "_")


def test_every_count_limit_column_and_key_is_documented_and_every_setting_has_an_option() -> None:
    page = (ROOT / "docs" / "mirror.md").read_text()
    for reason in (*NOT_MIRRORED, *DROPPED, *LEARNED):
        assert f"`{reason}`" in page, reason
    known = {
        name: value
        for name, value in {**vars(records), **vars(limits)}.items()
        if name.startswith(("MOST_", "LONGEST_", "LEAST_"))
    }
    known |= {"MOST_POINTS": MOST_POINTS} | vars(limits.Limits())
    table = SETTINGS.split("## Limits of the service")[1].split("\n## ")[0]
    shown = re.findall(r"^\| [a-zI`][^|]* \| ([\d,]+) \|", table, re.MULTILINE)
    assert set(shown) == {f"{value:,.0f}" for value in known.values()}
    page = (ROOT / "docs" / "log.md").read_text()
    words = {
        "string": "text",
        "int64": "whole number",
        "double": "number",
        "timestamp[us, tz=UTC]": "time",
    }
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", page, re.MULTILINE)
    assert [row[:2] for row in rows] == [(name, words[kind]) for name, kind in COLUMNS.items()]
    assert set(COLUMNS.values()) == words.keys()
    assert "`timestamp[us, tz=UTC]`" in page
    assert all(each.key == f"serve.{named(each)}" for each in definitions.SERVE)
    options = (definitions.CONFIG, *definitions.SERVE, *definitions.MIRROR)
    assert all(each.variable == f"DECOUPLED_{named(each).upper()}" for each in options)
    [create] = [each for name, each in LEAVES if name == "client create"]
    taken = {parameter.name for parameter in create.params}
    assert {name.removesuffix("_seconds") for name in shapes.ExperimentIn.model_fields} <= taken

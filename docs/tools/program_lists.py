"""Lists of what the program itself describes: its commands, in `commands.md`, and its HTTP requests, in `service.md`."""

from collections.abc import Iterator
from typing import Any, cast
from unittest.mock import Mock

import typer

from decoupled.cli.main import app
from decoupled_serve.options.definitions import CONFIG, MIRROR, SERVE
from decoupled_serve.service.http.app import create_app
from decoupled_serve.service.service import DecisionService

CLIENT = ("--url", "--key-file")
NOTE = "Variables set the options, too"


def leaves(command: Any, *path: str) -> Iterator[tuple[str, Any]]:
    """Every command with its name, such as `keys add`."""
    for name, below in command.commands.items():
        if hasattr(below, "commands"):
            yield from leaves(below, *path, name)
        else:
            yield " ".join((*path, name)), below


def settings_of(name: str) -> tuple[str, set[str]]:
    """Where settings.md has the options of a command, and the flags that it has there."""
    if name.endswith("mirror"):
        return "a-mirror", {each.flag for each in MIRROR}
    return "the-service", {each.flag for each in (CONFIG, *SERVE)}


def described(parameter: Any) -> str:
    """A row of the table: an argument or an option, its default, and its help."""
    if parameter.param_type_name == "argument":
        name = parameter.metavar or parameter.name.upper()
        default = "required" if parameter.required else ""
    else:
        name = " / ".join((*parameter.opts, *parameter.secondary_opts))
        value = parameter.default
        plain = value is None or value is False or value == ""
        default = "" if plain else f"`{value:g}`" if type(value) is float else f"`{value}`"
    text = " ".join(parameter.help.split()).replace("|", "\\|")
    return f"| `{name}` | {default} | {text} |"


def section(name: str, command: Any) -> str:
    """A command: what it does, and the options that are its own."""
    place, known = settings_of(name)
    own, taken = [], []
    for parameter in command.params:
        if parameter.name == "help" or (name.startswith("client ") and parameter.opts[0] in CLIENT):
            continue
        setting = parameter.param_type_name == "option" and parameter.opts[0] in known
        if setting and not name.startswith("client "):
            taken.append(f"`{parameter.opts[0]}`")
        else:
            own.append(described(parameter))
    parts = [f"## decoupled {name}", (command.help or "").partition(f"\n\n{NOTE}")[0]]
    if own:
        parts.append("\n".join(("| | default | |", "|---|---|---|", *own)))
    if len(taken) >= len(known) - 1:
        parts.append(f"It takes all of [these options](settings.md#{place}).")
    elif taken:
        parts.append(f"It also takes {', '.join(taken)}: see [settings](settings.md#{place}).")
    return "\n\n".join(parts)


def commands(page: str) -> str:
    """Every command of `decoupled`, from its help."""
    return "\n\n".join(section(name, each) for name, each in leaves(typer.main.get_command(app)))


def requests(page: str) -> str:
    """Every request of the HTTP API, from the OpenAPI document."""
    paths = create_app(cast(DecisionService, Mock())).inner.openapi()["paths"]
    rows = [
        f"| `{method.upper()} {path}` | {' '.join(told(each).split())} |"
        for path, methods in paths.items()
        for method, each in methods.items()
    ]
    return "\n".join(("| request | what it does |", "|---|---|", *rows))


def told(operation: dict[str, Any]) -> str:
    """What the document says about an operation.

    >>> told({"summary": "Stop making decisions", "description": "The log stays."})
    'Stop making decisions. The log stays.'
    """
    summary = operation["summary"]
    return f"{summary}{'' if summary.endswith('?') else '.'} {operation.get('description', '')}".strip()

"""Lists of what the program itself describes: its commands, its HTTP requests, and the settings of experiments and mirrors."""

import inspect
import re
from collections.abc import Iterator
from typing import Any, cast
from unittest.mock import Mock

import typer

from decoupled.cli.main import app
from decoupled_serve.mirror import config
from decoupled_serve.options.definitions import CONFIG, MIRROR, SERVE
from decoupled_serve.service.http.app import create_app
from decoupled_serve.service.service import DecisionService

CLIENT = ("--url", "--key-file")
# The tables of a mirror's file, and what says what is in them.
TABLES: dict[str, type[config.TableConfig]] = {
    "": config.MirrorConfig,
    "experiment.": config.ExperimentConfig,
    "mirror.": config.CopyConfig,
    "arm.": config.ArmConfig,
    "loss.": config.LossConfig,
    "loss.judge.": config.JudgeConfig,
    "webhook.": config.WebhookConfig,
    "sticky.": config.StickyConfig,
    "context.": config.FieldConfig,
}
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


def openapi() -> dict[str, Any]:
    """The OpenAPI document of the service."""
    document: dict[str, Any] = create_app(cast(DecisionService, Mock())).inner.openapi()
    return document


def requests(page: str) -> str:
    """Every request of the HTTP API, from the OpenAPI document."""
    rows = [
        f"| `{method.upper()} {path}` | {' '.join(told(each).split())} |"
        for path, methods in openapi()["paths"].items()
        for method, each in methods.items()
    ]
    return "\n".join(("| request | what it does |", "|---|---|", *rows))


def fields(schema: str) -> str:
    """The fields of a body, from the OpenAPI document."""
    known = openapi()["components"]["schemas"][schema]["properties"]
    rows = [
        f"| `{name}` | {default_of(each.get('default'))} | {each['description']} |"
        for name, each in known.items()
    ]
    return "\n".join(("| field | default | what it sets |", "|---|---|---|", *rows))


def default_of(value: Any) -> str:
    """A default as the tables show it; nothing for none, and for what takes more than a few words.

    >>> default_of(0.05), default_of(True), default_of(("GET /*", "HEAD /*")), default_of({"name": "Ladder"}), default_of(None)
    ('`0.05`', '`true`', '`GET /*`, `HEAD /*`', '`Ladder`', '')
    """
    if isinstance(value, dict):
        value = value.get("name")
    if isinstance(value, list | tuple):
        return ", ".join(map(default_of, value))
    if isinstance(value, bool):
        value = str(value).lower()
    plain = isinstance(value, str | int | float) and value != ""
    return (
        f"`{value:,.15g}`"
        if plain and not isinstance(value, str)
        else f"`{value}`"
        if plain
        else ""
    )


def mirror_keys(page: str) -> str:
    """The keys of a mirror's file that are no options, from the comments of the classes that read it."""
    options = {each.key for each in MIRROR} | {"key", "folder"}
    rows = []
    for place, kind in TABLES.items():
        source = inspect.getsource(kind)
        meanings = {
            name: " ".join((above + beside).replace("#", "").split()).removesuffix(".") + "."
            for above, name, beside in re.findall(
                r"^((?:    # .*\n)*)    (\w+): .*?(?:  (# .*))?$", source, re.M
            )
        }
        for name, field in kind.model_fields.items():
            key = field.alias or name
            table = f"{place}{key}." in TABLES
            if f"{place}{key}" not in options and not table:
                rows.append(f"| `{place}{key}` | {default_of(field.default)} | {meanings[name]} |")
    return "\n".join(("| key | default | what it sets |", "|---|---|---|", *rows))


def told(operation: dict[str, Any]) -> str:
    """What the document says about an operation.

    >>> told({"summary": "Stop making decisions", "description": "The log stays."})
    'Stop making decisions. The log stays.'
    """
    summary = operation["summary"]
    return f"{summary}{'' if summary.endswith('?') else '.'} {operation.get('description', '')}".strip()

"""`SPEC.toml`: a simulation as a file. Lists sweep; errors name the line."""

import itertools
import os
import re
import sys
import tomllib
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from ..base.spec import Description
from ..environments import Environment
from ..errors import ParameterError, near_name
from ..policies import Policy
from .baseline import Baseline
from .plan import DEFAULT_CHECKPOINTS, Plan, make_plan
from .traffic import NAMES, traffic_of

KEYS = ("horizon", "runs", "seed", "checkpoints", *NAMES, "policy", "environment")
REQUIRED = ("horizon", "runs", "policy", "environment")
FILES = ("rows", "losses")  # parameters that may name a recorded log

_HEAD = re.compile(r"\s*\[\[?\s*(\w+)\s*\]")


class _Text(NamedTuple):
    """The text of a specification, for finding the line of an error."""

    name: str
    lines: list[str]

    def error(
        self, message: object, key: str, table: str | None = None, number: int = 0
    ) -> ParameterError:
        """An error that names the line of a key."""
        return ParameterError(f"{self.name}, line {self.line_of(key, table, number)}: {message}")

    def line_of(self, key: str, table: str | None = None, number: int = 0) -> int:
        """The line of `key`, within the table `table` number `number` if one is named."""
        start = 0
        end = len(self.lines)
        heads = [i for i, line in enumerate(self.lines) if _HEAD.match(line)]
        if table is None:
            end = heads[0] if heads else end
        else:
            named = [i for i in heads if _HEAD.match(self.lines[i])[1] == table]  # type: ignore[index]
            if number < len(named):
                start = named[number]
                end = next((i for i in heads if i > start), end)
        pattern = re.compile(rf"^\s*[\"']?{re.escape(key)}[\"']?\s*=")
        return next((i for i in range(start, end) if pattern.match(self.lines[i])), start) + 1


def read_specification(path: str | os.PathLike[str]) -> list[Plan]:
    """Read a specification: one plan for each environment."""
    text = _Text(Path(path).name, [])
    try:
        content = Path(path).read_text(encoding="utf-8")
        text = text._replace(lines=content.splitlines())
        values = tomllib.loads(content)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ParameterError(f"{text.name}: is not TOML: {error}; fix that line") from None
    _check_keys(text, values)
    policies = _described(text, values, "policy", Policy, Path(path).parent)
    environments = _described(text, values, "environment", Environment, Path(path).parent)
    plans = []
    size = (values["horizon"], values["runs"], values.get("seed", 0))
    checkpoints = values.get("checkpoints", DEFAULT_CHECKPOINTS)
    for environment in environments:
        try:
            plans.append(
                make_plan(policies, environment, *size, checkpoints, traffic=traffic_of(values))
            )
        except ParameterError as error:
            word = _first_word(error)
            if word == "policies":
                raise text.error(error, "name", "policy", len(values["policy"]) - 1) from None
            raise text.error(error, word) from None
    return plans


def _first_word(error: Exception) -> str:
    """The parameter that an error is about: its message starts with it."""
    word = re.match(r"\w+", str(error))
    return word.group() if word else ""


def _check_keys(text: _Text, values: dict[str, Any]) -> None:
    for key in values:
        if key not in KEYS:
            raise text.error(f"{key} is not a key of a specification; {near_name(key, KEYS)}", key)
    for key in REQUIRED:
        if key not in values:
            raise ParameterError(
                f"{text.name}: has no {key}; a specification needs {', '.join(REQUIRED)}"
            )


def _described(
    text: _Text, values: dict[str, Any], table: str, family: type[Description], folder: Path
) -> list[Any]:
    """The policies or the environments of a specification; each entry may sweep over parameters."""
    entries = values[table]
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise text.error(f"{table} must be a list of tables; write [[{table}]] above it", table)
    if not entries:
        raise text.error(f"{table} is an empty list; name at least one", table)
    descriptions = []
    for number, entry in enumerate(entries):
        if "name" not in entry:
            names = near_name("", list(family.known()))
            raise text.error(f"this {table} has no name; {names}", "name", table, number)
        for key in [key for key, value in entry.items() if value == []]:
            raise text.error(f"{key} is an empty list; give at least one value", key, table, number)
        for key in FILES:
            if isinstance(entry.get(key), str):  # its path is relative to the specification
                entry[key] = str(folder / entry[key])
        for choice in _sweep(entry, family):
            try:
                _import_module_of(choice["name"], folder)
                kind = _family(family, choice["name"])
                descriptions.append(kind.from_dict(choice))
            except (ParameterError, FileNotFoundError) as error:
                raise text.error(error, _key_of(choice, error), table, number) from None
    return descriptions


def _import_module_of(name: object, folder: Path) -> None:
    """Import the module of your own class, such as `mine.FTPL` beside the specification."""
    module = name.rpartition(".")[0] if isinstance(name, str) else ""
    if not module or module in sys.modules:
        return
    sys.path.insert(0, str(folder.resolve()))
    try:
        import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # the module is there, and imports one that is not
        remedy = f"put {module.replace('.', '/')}.py beside this file, or install it"
        raise ParameterError.of("name", name, f"there is no module {error.name}", remedy) from None
    finally:
        sys.path.pop(0)


def _key_of(choice: dict[str, Any], error: Exception) -> str:
    """The parameter that an error is about, or whose file it is about."""
    for key in FILES:
        path = choice.get(key)
        ours = isinstance(path, str) and str(error).startswith(f"{Path(path).name}:")
        if ours or (isinstance(error, FileNotFoundError) and key in choice):
            return key
    word = _first_word(error)
    return word if word in choice else "name"


def _family(family: type[Description], name: object) -> type[Description]:
    """The family that a class is found in: baselines are listed among the policies."""
    return Baseline if family is Policy and Baseline.find(name) else family


def _sweep(entry: dict[str, Any], family: type[Description]) -> list[dict[str, Any]]:
    """Every combination of listed values; for a value that is a list, list several lists."""
    name = entry.get("name")
    if isinstance(name, list):
        return [choice for one in name for choice in _sweep({**entry, "name": one}, family)]
    kind = _family(family, name).find(name)
    depths = {field.name: field.metadata.get("depth", 0) for field in fields(kind)} if kind else {}  # type: ignore[arg-type]
    choices = []
    for key, value in entry.items():
        sweeps = isinstance(value, list) and _depth(value) > depths.get(key, 0)
        values = value if sweeps else [value]
        # A policy within a policy is a table, whose lists sweep as well.
        variants: list[Any] = []
        for option in values:
            if isinstance(option, dict) and "name" in option:
                variants.extend(_sweep(option, family))
            else:
                variants.append(option)
        choices.append([(key, variant) for variant in variants])
    return [dict(choice) for choice in itertools.product(*choices)]


def _depth(value: object) -> int:
    """The nesting depth of a list: 1 for a list of numbers."""
    if not isinstance(value, list):
        return 0
    return 1 + max((_depth(item) for item in value), default=0)

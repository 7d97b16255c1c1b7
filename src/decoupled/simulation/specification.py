"""`SPEC.toml`: a simulation written down. Lists sweep; mistakes are named with their line."""

import itertools
import os
import re
import tomllib
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, NamedTuple

from ..description import Description
from ..environments import Environment
from ..errors import ParameterError, near_name
from ..policies import Policy
from .plan import DEFAULT_CHECKPOINTS, Plan, make_plan

KEYS = ("horizon", "runs", "seed", "checkpoints", "policy", "environment")
REQUIRED = ("horizon", "runs", "policy", "environment")


class _Text(NamedTuple):
    """The text of a specification, to find the line of a mistake."""

    name: str
    lines: list[str]

    def error(self, line: int, message: str) -> ParameterError:
        return ParameterError(f"{self.name}, line {line}: {message}")

    def line_of(self, key: str, table: str | None = None, number: int = 0) -> int:
        """The line of `key`, within the given (number-th) table if one is named."""
        start, end = 0, len(self.lines)
        heads = [i for i, line in enumerate(self.lines) if line.strip().startswith("[")]
        if table is None:
            end = heads[0] if heads else end
        else:
            named = [i for i in heads if self.lines[i].strip().strip("[]").strip() == table]
            if number < len(named):
                start = named[number]
                end = next((i for i in heads if i > start), end)
        pattern = re.compile(rf"^\s*[\"']?{re.escape(key)}[\"']?\s*=")
        return next((i for i in range(start, end) if pattern.match(self.lines[i])), start) + 1


def read_specification(path: str | os.PathLike[str]) -> list[Plan]:
    """One plan for each environment of the specification.

    >>> import decoupled as dc, pathlib, tempfile
    >>> from decoupled.simulation.specification import read_specification
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "spec.toml"
    >>> _ = path.write_text('''
    ... horizon = 1000
    ... runs = 10
    ... [[policy]]
    ... name = "FTPL"
    ... c = [1.0, 2.0]
    ... [[environment]]
    ... name = "Alternating"
    ... arms = 8
    ... gap = 0.125
    ... ''')
    >>> [policy.label for policy in read_specification(path)[0].policies]
    ['FTPL(c=1)', 'FTPL']
    """
    content = Path(path).read_text(encoding="utf-8")
    text = _Text(Path(path).name, content.splitlines())
    try:
        values = tomllib.loads(content)
    except tomllib.TOMLDecodeError as error:
        raise ParameterError(f"{text.name}: is not TOML: {error}; mend that line") from None
    _check_keys(text, values)
    policies = _described(text, values, "policy", Policy)
    environments = _described(text, values, "environment", Environment)
    plans = []
    for environment in environments:
        try:
            plans.append(
                make_plan(
                    policies,
                    environment,
                    values["horizon"],
                    values["runs"],
                    values.get("seed", 0),
                    values.get("checkpoints", DEFAULT_CHECKPOINTS),
                )
            )
        except ParameterError as error:
            key = re.match(r"\w+", str(error))
            raise text.error(text.line_of(key.group() if key else ""), str(error)) from None
    return plans


def _check_keys(text: _Text, values: dict[str, Any]) -> None:
    for key in values:
        if key not in KEYS:
            raise text.error(
                text.line_of(key), f"{key} is no key of a specification; {near_name(key, KEYS)}"
            )
    for key in REQUIRED:
        if key not in values:
            raise ParameterError(f"{text.name}: has no {key}; a specification needs {', '.join(REQUIRED)}")


def _described(text: _Text, values: dict[str, Any], table: str, family: type[Description]) -> list[Any]:
    entries = values[table]
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise text.error(
            text.line_of(table), f"{table} must be a list of tables; write [[{table}]] above it"
        )
    found = []
    for number, entry in enumerate(entries):
        for choice in _sweep(entry, family):
            try:
                found.append(family.from_dict(choice))
            except ParameterError as error:
                raise text.error(*_placed(text, table, number, choice, error)) from None
    return found


def _placed(
    text: _Text, table: str, number: int, choice: dict[str, Any], error: ParameterError
) -> tuple[int, str]:
    """The line of the parameter that an error speaks of."""
    key = re.match(r"\w+", str(error))
    word = key.group() if key and key.group() in choice else "name"
    return text.line_of(word, table, number), str(error)


def _sweep(entry: dict[str, Any], family: type[Description]) -> list[dict[str, Any]]:
    """Every combination of the values that are lists; a parameter that is itself a list sweeps as lists."""
    if isinstance(entry.get("name"), list):
        return [choice for name in entry["name"] for choice in _sweep({**entry, "name": name}, family)]
    kind = family.known().get(entry.get("name", ""))
    lists = {field.name for field in fields(kind) if _takes_a_list(field)} if kind else set()  # type: ignore[arg-type]
    choices = []
    for key, value in entry.items():
        inner = value[0] if isinstance(value, list) and value else None
        sweeps = isinstance(value, list) and (key not in lists or isinstance(inner, list))
        choices.append([(key, each) for each in value] if sweeps else [(key, value)])
    return [dict(each) for each in itertools.product(*choices)]


def _takes_a_list(field: Any) -> bool:
    return "Sequence" in str(field.type) and field.default is MISSING

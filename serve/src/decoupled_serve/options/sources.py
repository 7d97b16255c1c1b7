"""Resolves options: flags before variables, variables before the file, the file before defaults."""

import os
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

from decoupled.base import read_secret
from decoupled.errors import ParameterError, near_name, reworded

from ..nested import at
from .definitions import CONFIG, MIRROR, OTHER_VARIABLES, PREFIX, SERVE, Option

DEFAULT, FILE, VARIABLE, FLAG = range(4)  # the stronger source has the higher number


class Held(NamedTuple):
    """The value of an option, and where it came from."""

    value: Any
    source: str = "default"
    rank: int = DEFAULT
    raw: object = None  # as a TOML file would have it


class OptionValues(dict[str, Any]):
    """The values of options by their names, and where each came from: `held`.

    >>> from decoupled_serve.options.definitions import SERVE
    >>> settings = resolved(SERVE, {"port": "9000"}, {"DECOUPLED_RATE": "50"})
    >>> settings["port"], settings["rate"], settings["host"]
    (9000, 50.0, '127.0.0.1')
    >>> settings.source("rate"), settings.source("host")
    ('DECOUPLED_RATE', 'default')
    """

    def __init__(self, held: Mapping[str, Held]) -> None:
        super().__init__({name: each.value for name, each in held.items()})
        self.held = held

    def source(self, name: str) -> str:
        """Where a value came from: a flag, a variable, a file, or "default"."""
        return self.held[name].source

    def given(self, name: str) -> bool:
        """Whether a value is not just the default."""
        return self.held[name].rank > DEFAULT


class ConfigFile(NamedTuple):
    """A TOML file, read."""

    path: Path
    values: dict[str, Any]


def read_file(path: Path) -> ConfigFile:
    """Read a TOML file."""
    try:
        return ConfigFile(path, tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        why = "does not exist" if missing else f"cannot be read: {error.strerror}"
        raise ParameterError(f"{path}: {why}; check the path of the configuration file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ParameterError(f"{path.name}: is not TOML: {error}; fix that line") from None


def config_path(flag: str | None, environ: Mapping[str, str] = os.environ) -> Path | None:
    """The file that `--config` or DECOUPLED_CONFIG names."""
    found = flag or environ.get(CONFIG.variable)
    return Path(found) if found else None


def serve_file(path: Path | None) -> ConfigFile | None:
    """The file of `decoupled serve`, if there is one; it must have no keys but those of the options."""
    if path is None:
        return None
    file = read_file(path)
    known = {option.key for option in SERVE}
    for table, values in file.values.items():
        if table != "serve":
            remedy = near_name(table, ["serve"])
            raise ParameterError(f"{path.name}: {table}: is not a table here; {remedy}")
        if not isinstance(values, dict):
            raise ParameterError(
                f"{path.name}: serve: must be a table; write [serve] above its keys"
            )
        for key in values:
            if f"serve.{key}" not in known:
                remedy = near_name(key, sorted(each.removeprefix("serve.") for each in known))
                raise ParameterError(f"{path.name}: serve.{key}: is not a key here; {remedy}")
    return file


def resolved(
    options: Sequence[Option],
    flags: Mapping[str, Any],
    environ: Mapping[str, str] = os.environ,
    file: ConfigFile | None = None,
) -> OptionValues:
    """The value of each option. `flags` has those that were given, by identifier.

    >>> from decoupled_serve.options.definitions import SERVE
    >>> resolved(SERVE, {}, {"DECOUPLED_PORT": "eighty"})
    Traceback (most recent call last):
        ...
    decoupled.errors.ParameterError: DECOUPLED_PORT = 'eighty': must be a whole number from 0 to 65535; choose another
    """
    held = {option.name: _held(option, flags, environ, file) for option in options}
    for option in options:
        if option.fills is not None and held[option.name].rank > DEFAULT:
            held[option.fills] = _filled(option, held[option.name], held[option.fills])
    return OptionValues(held)


def _held(
    option: Option, flags: Mapping[str, Any], environ: Mapping[str, str], file: ConfigFile | None
) -> Held:
    flag, variable = flags.get(option.identifier), environ.get(option.variable)
    if flag is not None:
        raw = option.kind.parse(flag) if isinstance(flag, str) else flag
        return Held(option.kind.check(option.flag, raw), option.flag, FLAG, raw)
    if variable:  # an empty one counts as not set, because compose files cannot leave one out
        raw = option.kind.parse(variable)
        return Held(_of_variable(option, raw), option.variable, VARIABLE, raw)
    found = None if file is None or not option.key else at(file.values, option.key)
    if file is None or found is None:
        return Held(option.default)
    value = option.kind.check(f"{file.path.name}: {option.key}", found)
    return Held(option.kind.locate(value, file.path.parent), file.path.name, FILE, found)


def _of_variable(option: Option, raw: object) -> Any:
    try:
        return option.kind.check(option.variable, raw)
    except ParameterError as error:
        if not str(raw).startswith("tcp://"):
            raise
        rule = "Kubernetes sets this variable for a Service of that name"
        remedy = f"{rule}; set enableServiceLinks: false in the pod"
        raise ParameterError(reworded(error, remedy=remedy)) from None


def _filled(option: Option, named: Held, target: Held) -> Held:
    """What an option holds after another has named a file with its value."""
    if target.rank > named.rank:
        return target
    if target.rank == named.rank:
        first, second = target.source, named.source
        if named.rank == FILE:
            first, second = f"{first}: {option.fills}", option.key
        raise ParameterError(f"{first}, {second}: both are given; keep one of them")
    source = named.source if named.rank != FILE else f"{named.source}: {option.key}"
    value = read_secret(source, named.value)
    return Held(value, f"{source} ({named.value})", named.rank, value)


def unknown_variables(environ: Mapping[str, str] = os.environ) -> Iterable[str]:
    """A warning for each variable that looks like one of this package, and is none.

    >>> list(unknown_variables({"DECOUPLED_PROT": "9000"}))
    ["DECOUPLED_PROT: is not a variable of decoupled and sets nothing; did you mean 'DECOUPLED_PORT'?"]
    """
    known = {option.variable for option in (*SERVE, *MIRROR)} | set(OTHER_VARIABLES)
    names = [name.removeprefix(PREFIX) for name in sorted(known)]
    for name in sorted(environ):
        if name.startswith(PREFIX) and name not in known:
            # Without the prefix: what all have in common says nothing.
            close = get_close_matches(name.removeprefix(PREFIX), names, n=1)
            known_ones = "`decoupled config serve` lists the options"
            remedy = f"did you mean {PREFIX + close[0]!r}?" if close else known_ones
            yield f"{name}: is not a variable of decoupled and sets nothing; {remedy}"


def held_rows(options: Sequence[Option], settings: OptionValues) -> list[tuple[str, ...]]:
    """What holds and where it came from, without secrets.

    >>> from decoupled_serve.options.definitions import STORES
    >>> from decoupled.cli import aligned
    >>> print(aligned(held_rows(STORES, resolved(STORES, {"store": "postgresql://me:secret@db/shop"}, {}))))
    store       postgresql://me@db/shop  --store
    store-file  none                     default
    """
    rows: list[tuple[str, ...]] = []
    for option in options:
        value, source = settings[option.name], settings.source(option.name)
        empty = value is None and option.default is None
        rows.append((option.name, "none" if empty else option.kind.show(value), source))
    return rows

"""Reads the TOML file of a mirror, and says in words what it means.

An error names the key and the rule: `arm[1].timeout: Input should be greater than 0`.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from decoupled.base import read_secret
from decoupled.errors import DecoupledError, ParameterError

from ..options.definitions import MIRROR
from ..options.kinds import STORE, shown, shown_store
from ..options.sources import FILE, OptionValues, read_file, resolved
from .config import FieldConfig, LossConfig, MirrorConfig, first_problem
from .judge_worker import function_named


def read_config(path: str | os.PathLike[str], settings: OptionValues | None = None) -> MirrorConfig:
    """Read and check a configuration. Variables come before the file, and so do flags, which are in `settings`.

    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "mirror.toml"
    >>> _ = file.write_text('''
    ... [[arm]]
    ... name = "stable"
    ... url = "http://127.0.0.1:9001"
    ... [[arm]]
    ... name = "next"
    ... url = "http://127.0.0.1:9002"
    ... ''')
    >>> config = read_config(file)
    >>> [arm.name for arm in config.arms], config.mirror.share, config.loss.status
    (['stable', 'next'], 0.05, 1.0)
    """
    file = read_file(Path(path))
    settings = settings or resolved(MIRROR, {}, file=file)
    options, held = {option.key for option in MIRROR}, _options(settings)
    try:
        _check_one_backend(settings)
        tables = {key: value for key, value in file.values.items() if key not in options}
        for name in {"key", "folder"} & tables.keys():
            raise ParameterError(f"{name}: is not a key here; see key_file and state_folder")
        config = MirrorConfig.model_validate({**tables, **held, "folder": file.path.parent})
    except ValidationError as error:
        raise ParameterError(f"{file.path.name}: {first_problem(error)}") from None
    except DecoupledError as error:
        raise ParameterError(f"{file.path.name}: {error}") from None
    experiment = config.experiment.model_copy(update={"name": settings["experiment"]})
    # Whoever sends copies to a sink has chosen them already.
    share = 1.0 if config.sink and not settings.given("share") else settings["share"]
    mirror = config.mirror.model_copy(update={"share": share})
    return config.model_copy(update={"experiment": experiment, "mirror": mirror})


def _check_one_backend(settings: OptionValues) -> None:
    if settings.given("store") and settings.given("service"):
        sources = f"{settings.source('store')} and {settings.source('service')}"
        remedy = "keep one, the store here or the address of a service"
        raise ParameterError(f"store, service: both are given ({sources}); {remedy}")


def _options(settings: OptionValues) -> dict[str, Any]:
    """What flags and variables can set, too."""
    found = {each.key: settings[each.name] for each in MIRROR if each.key in MirrorConfig.model_fields}
    store, key_file = settings.held["store"], settings["key-file"]
    # A path in a flag or a variable starts from the current folder, one in the file from that of the mirror.
    outside = store.rank > FILE
    found["store"] = STORE.locate(store.value, Path.cwd()) if outside else str(store.raw or store.value)
    found["key"] = None if key_file is None else read_secret(settings.source("key-file"), key_file)
    return found


def explained(config: MirrorConfig) -> str:
    """What a configuration means, without secrets. Raises the error that starting it would raise.

    >>> arms = [{"name": "a", "url": "http://a:80"}, {"name": "b", "url": "http://b:80"}]
    >>> print(explained(MirrorConfig.model_validate({"arm": arms})))
    listens on 127.0.0.1:8080, console on 127.0.0.1:8081
    decides with experiment 'mirror' in mirror.db
    arm 'a': http://a:80
    arm 'b': http://b:80
    mirrors 5% of: GET /*, HEAD /*, OPTIONS /*
    loss: status 1
    """
    mirror, listen, console = config.mirror, shown(config.listen), config.console
    judge = config.loss.judge
    if judge is not None and judge.python is not None:
        function_named(judge.python, config.folder, alone=judge.alone)
    does, store = "takes copies" if config.sink else "listens", config.service or shown_store(config.store)
    lines = [
        f"{does} on {listen}, " + ("no console" if console is None else f"console on {shown(console)}"),
        f"decides with experiment {config.experiment.name!r} in {store}",
    ]
    for arm in config.arms:
        passed = f", gets {', '.join(arm.pass_credentials)} of clients" if arm.pass_credentials else ""
        added = f", adds {', '.join(arm.headers)}" if arm.headers else ""
        sets = f", sets {', '.join(arm.fields)} in JSON" if arm.fields else ""
        lines.append(f"arm {arm.name!r}: {arm.url}{added}{sets}{passed}")
    except_for = f"; never {', '.join(mirror.skip)}" if mirror.skip else ""
    lines.append(f"mirrors {100 * mirror.share:g}% of: {', '.join(mirror.repeat)}{except_for}")
    if config.sticky is not None:
        [(kind, place)] = config.sticky.model_dump(by_alias=True, exclude_none=True).items()
        lines.append(f"serves requests with the same {kind} {place!r} by the same arm")
    if config.context:
        lines.append(f"knows of a request: {', '.join(map(_shown_field, config.context.items()))}")
    lines.append(f"loss: {_shown_loss(config.loss)}")
    if (labels := config.labels) is not None:
        kept = f", kept for {labels.keep_days:g} days" if labels.to == "console" else ""
        lines.append(
            f"labels: {100 * labels.share:g}% and the first {labels.first:,}, by {labels.to}{kept}"
        )
    return "\n".join(lines)


def doubts(config: MirrorConfig) -> list[str]:
    """What is allowed, and likely a mistake.

    >>> arms = [{"name": "a", "url": "http://a:80"}, {"name": "b", "url": "http://b:80"}]
    >>> [each.partition(":")[0] for each in doubts(MirrorConfig.model_validate({"arm": arms}))]
    ['arm.pass_credentials']
    >>> arms[0]["pass_credentials"] = ["Authorization"]
    >>> doubts(MirrorConfig.model_validate({"arm": arms}))
    []
    """
    known = [(*arm.pass_credentials, *arm.headers) for arm in config.arms]
    gets, found = "copy" if config.sink else "client", []
    if config.labels is not None and config.labels.redact is None:
        found.append(
            "labels.redact: is not set, so answers are kept or sent with all that is private in them"
        )
    if any(name.lower() == "authorization" for names in known for name in names):
        return found
    return [
        *found,
        "arm.pass_credentials: no arm gets the Authorization of clients, or has one of its own under headers; if the arms "
        f"ask for it, every {gets} gets 401: add pass_credentials to each arm",
    ]


def _shown_field(named: tuple[str, FieldConfig]) -> str:
    name, field = named
    [(place, where)] = field.model_dump(by_alias=True, exclude_defaults=True, exclude={"type"}).items()
    return f"{name} ({field.type} of {place}{'' if where is True else f' {where!r}'})"


def _shown_loss(loss: LossConfig) -> str:
    parts = [f"status {loss.status:g}"] if loss.status else []
    for name in ("latency", "duration", "bytes", "cost"):
        term = getattr(loss, name)
        if term is not None:
            parts.append(f"{name} {term.weight:g} ({term.low:g} to {term.high:g})")
    if loss.judge is not None:
        model = "" if loss.judge.model is None else f"model {loss.judge.model} at "
        parts.append(f"judge {loss.judge.weight:g} ({loss.judge.python or f'{model}{loss.judge.url}'})")
    return ", ".join(parts)


def file_keys(path: Path) -> list[tuple[str, str, str]]:
    """The keys of a file that no flag can set: their names, their values without secrets, and the file."""
    file, known = read_file(path), {option.key for option in MIRROR}
    return [(key, shown, path.name) for key, shown in _flat(file.values) if key not in known]


def _flat(values: dict[str, Any], place: str = "") -> Iterator[tuple[str, str]]:
    """The keys and values of tables. The values of headers may be secrets.

    >>> list(_flat({"arm": [{"url": "http://a", "headers": {"X-Key": "secret"}}]}))
    [('arm[0].url', 'http://a'), ('arm[0].headers.X-Key', '***')]
    """
    for key, value in values.items():
        name = f"{place}{key}"
        if isinstance(value, dict):
            yield from _flat(value, f"{name}.")
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            for number, each in enumerate(value):
                yield from _flat(each, f"{name}[{number}].")
        else:
            yield name, "***" if ".headers." in name else str(value)

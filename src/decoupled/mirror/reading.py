"""`mirror.toml`: the configuration of a mirror as a file."""

import os
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import DecoupledError, ParameterError, invalid_value
from ..policies import Policy
from ..service.http.server import is_loopback
from .config import ArmConfig, CopyConfig, ExperimentConfig, MirrorConfig
from .headers import CREDENTIALS
from .reading_loss import read_loss
from .tables import A_URL, Table, flag, header_name, header_names, headers, number, text, texts, url, whole

_AN_ARM = 'write [[arm]], name = "..." and url = "http://..." for each upstream'


def read_config(path: str | os.PathLike[str]) -> MirrorConfig:
    """Read and check a configuration.

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
    file = Path(path)
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ParameterError(f"{file.name}: is not TOML: {error}; fix that line") from None
    try:
        return replace(_whole(Table(values)), folder=file.parent)
    except ParameterError as error:
        raise ParameterError(f"{file.name}: {error}") from None


def _whole(table: Table) -> MirrorConfig:
    config = MirrorConfig(
        arms=table.required("arm", _arms, _AN_ARM),
        loss=table.get("loss", read_loss, MirrorConfig.loss),
        mirror=table.get("mirror", _copies, MirrorConfig.mirror),
        experiment=table.get("experiment", _experiment, ExperimentConfig()),
        listen=table.get("listen", _address, MirrorConfig.listen),
        console=table.get("console", _console, MirrorConfig.console),
        store=table.get("store", text, MirrorConfig.store),
        service=table.get("service", url, None),
        drain=table.get("drain", whole(1), MirrorConfig.drain),
        budget=table.get("budget", _settings, {}),
        guardrails=table.get("guardrails", _settings, {}),
    )
    table.finish()
    if config.service is not None and "store" in table:
        raise ParameterError(
            "store, service: both are given; keep one, the store here or the address of a service"
        )
    _check_credentials(config)
    size, limit = config.loss.bytes, config.mirror.answer_limit
    if size is not None and size.high > limit:
        rule = f"must not exceed mirror.answer_limit = {limit}, where answers are cut"
        raise ParameterError(
            invalid_value("loss.bytes.high", size.high, rule, "lower it, or raise the limit")
        )
    return config


# Arms


def _arms(name: str, value: object) -> tuple[ArmConfig, ...]:
    if not isinstance(value, list) or len(value) < 2:
        raise ParameterError(f"{name}: must be two tables or more; {_AN_ARM}")
    arms = tuple(_arm(Table(each, f"{name}[{place}]")) for place, each in enumerate(value))
    names = [each.name for each in arms]
    for each in names:
        if names.count(each) > 1:
            raise ParameterError(
                invalid_value(f"{name}.name", each, "is there twice", "give each arm its own name")
            )
    return arms


def _arm(table: Table) -> ArmConfig:
    arm = ArmConfig(
        name=table.required("name", text, "name the arm"),
        url=table.required("url", url, A_URL),
        headers=table.get("headers", headers, ()),
        pass_credentials=table.get("pass_credentials", header_names, ()),
        preserve_host=table.get("preserve_host", flag, False),
        cost=table.get("cost", number(0.0), 0.0),
        timeout=table.get("timeout", number(0.0, above=True), ArmConfig.timeout),
        health=table.get("health", _path, None),
    )
    table.finish()
    return arm


def _path(name: str, value: object) -> str:
    found = text(name, value)
    if not found.startswith("/") or not found.isascii() or " " in found:
        raise ParameterError(invalid_value(name, value, "must be a path", 'for example "/healthz"'))
    return found


def _check_credentials(config: MirrorConfig) -> None:
    """Refuse to pass on what is not declared as a credential: the setting would have no effect."""
    known = config.mirror.all_credentials()
    for place, arm in enumerate(config.arms):
        for name in arm.pass_credentials:
            if name.lower() not in known:
                rule = f"is not a credential: those are {', '.join(CREDENTIALS)}, and mirror.credentials"
                remedy = (
                    "all other headers are passed on anyway; leave it out, or add it to mirror.credentials"
                )
                raise ParameterError(invalid_value(f"arm[{place}].pass_credentials", name, rule, remedy))


# Addresses to listen on


def _address(name: str, value: object) -> tuple[str, int]:
    host, colon, port = text(name, value).rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise ParameterError(
            invalid_value(name, value, "must be an address and a port", 'for example "127.0.0.1:8080"')
        )
    return host, int(port)


def _console(name: str, value: object) -> tuple[str, int] | None:
    if value is False:
        return None
    host, port = _address(name, value)
    if not is_loopback(host):
        rule = "must be loopback: everyone who can reach it can see and change everything"
        remedy = "use 127.0.0.1, or run `decoupled serve` with keys and give its address as `service`"
        raise ParameterError(invalid_value(name, value, rule, remedy))
    return host, port


# The experiment


def _experiment(name: str, value: object) -> ExperimentConfig:
    table = Table(value, name)
    config = ExperimentConfig(
        name=table.get("name", _experiment_name, ExperimentConfig.name),
        policy=table.get("policy", _policy, ExperimentConfig().policy),
        deadline_seconds=table.get(
            "deadline_seconds", number(0.0, 1e9, above=True), ExperimentConfig.deadline_seconds
        ),
        seed=table.get("seed", whole(0), None),
        keep_days=table.get("keep_days", number(0.0), ExperimentConfig.keep_days),
    )
    table.finish()
    return config


def _experiment_name(name: str, value: object) -> str:
    found = text(name, value)
    if len(found) > 100 or "/" in found or not found.isprintable() or set(found) == {"."}:
        rule = "must be 1 to 100 printable characters without '/'"
        raise ParameterError(invalid_value(name, value, rule, "letters and digits will do"))
    return found


def _policy(name: str, value: object) -> dict[str, Any]:
    if isinstance(value, str):
        value = {"name": value}
    if not isinstance(value, dict):
        raise ParameterError(
            invalid_value(name, value, "must be the name of a policy, or a table", '"FTPL"')
        )
    try:
        policy = Policy.from_dict(value)
    except DecoupledError as error:
        raise ParameterError(f"{name}.{error}") from None
    if policy.coupled:
        rule = "plays the standard game, where the arm that serves is the arm that is seen"
        raise ParameterError(
            invalid_value(name, value.get("name"), rule, "use a decoupled policy such as FTPL")
        )
    return value


def _settings(name: str, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ParameterError(
            invalid_value(name, value, "must be a table", f"write [{name}] above its keys")
        )
    return value


# What is mirrored


def _copies(name: str, value: object) -> CopyConfig:
    table, default = Table(value, name), CopyConfig()
    config = CopyConfig(
        share=table.get("share", number(0.0, 1.0), default.share),
        repeat=table.get("repeat", texts, default.repeat),
        skip=table.get("skip", texts, default.skip),
        dry_run_header=table.get("dry_run_header", header_name, None),
        headers=table.get("headers", headers, ()),
        credentials=table.get("credentials", header_names, ()),
        body_limit=table.get("body_limit", whole(0), default.body_limit),
        answer_limit=table.get("answer_limit", whole(0), default.answer_limit),
        queue=table.get("queue", whole(1), default.queue),
        queue_bytes=table.get("queue_bytes", whole(1), default.queue_bytes),
        concurrency=table.get("concurrency", whole(1), default.concurrency),
        timeout=table.get("timeout", number(0.0, above=True), default.timeout),
    )
    table.finish()
    config.rules()  # refuses rules that cannot be read
    return config

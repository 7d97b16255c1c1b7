"""`mirror.toml`: the configuration of a mirror as a file."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..base.secret_files import read_secret
from ..errors import DecoupledError, ParameterError, invalid_value
from ..options.definitions import MIRROR
from ..options.kinds import STORE
from ..options.readers import A_URL, experiment_name, flag, number, text, texts, url, whole
from ..options.sources import FILE, Settings, read_file, resolved
from ..policies import Policy
from .config import ArmConfig, CopyConfig, ExperimentConfig, MirrorConfig, WebhookConfig
from .headers import CREDENTIALS
from .reading_loss import read_loss
from .tables import Table, header_name, header_names, headers

_AN_ARM = 'write [[arm]], name = "..." and url = "http://..." for each upstream'


def read_config(path: str | os.PathLike[str], settings: Settings | None = None) -> MirrorConfig:
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
    try:
        _check_one_decider(settings)
        config = _whole(Table(file.values))
    except ParameterError as error:
        raise ParameterError(f"{file.path.name}: {error}") from None
    return _with_options(replace(config, folder=file.path.parent), settings)


def _check_one_decider(settings: Settings) -> None:
    if settings.given("store") and settings.given("service"):
        sources = f"{settings.source('store')} and {settings.source('service')}"
        remedy = "keep one, the store here or the address of a service"
        raise ParameterError(f"store, service: both are given ({sources}); {remedy}")


def _with_options(config: MirrorConfig, settings: Settings) -> MirrorConfig:
    """The configuration with the options that flags and variables can set, too."""
    key_file, store = settings["key-file"], settings.held("store")
    return replace(
        config,
        listen=settings["listen"],
        console=settings["console"],
        # A path in a flag or a variable starts from the current folder, one in the file from that of the mirror.
        store=STORE.locate(store.value, Path.cwd()) if store.rank > FILE else str(store.raw or store.value),
        service=settings["service"],
        key=None if key_file is None else read_secret(settings.source("key-file"), key_file),
        state_folder=settings["state-folder"],
        clients=settings["clients"],
        client_timeout=settings["client-timeout"],
        drain=settings["drain"],
        log_format=settings["log-format"],
        experiment=replace(config.experiment, name=settings["experiment"]),
        mirror=replace(config.mirror, share=settings["share"]),
    )


def _whole(table: Table) -> MirrorConfig:
    table.know(option.key for option in MIRROR)
    config = MirrorConfig(
        arms=table.required("arm", _arms, _AN_ARM),
        loss=table.get("loss", read_loss, MirrorConfig.loss),
        mirror=table.get("mirror", _copies, MirrorConfig.mirror),
        experiment=table.get("experiment", _experiment, ExperimentConfig()),
        webhook=table.get("webhook", _webhook, None),
        budget=table.get("budget", _settings, {}),
        guardrails=table.get("guardrails", _settings, {}),
    )
    table.finish()
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


# The experiment


def _experiment(name: str, value: object) -> ExperimentConfig:
    table = Table(value, name)
    config = ExperimentConfig(
        name=table.get("name", experiment_name, ExperimentConfig.name),
        policy=table.get("policy", _policy, ExperimentConfig().policy),
        deadline_seconds=table.get(
            "deadline_seconds", number(0.0, 1e9, above=True), ExperimentConfig.deadline_seconds
        ),
        seed=table.get("seed", whole(0), None),
        keep_days=table.get("keep_days", number(0.0), ExperimentConfig.keep_days),
    )
    table.finish()
    return config


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


def _webhook(name: str, value: object) -> WebhookConfig:
    table = Table(value, name)
    config = WebhookConfig(
        url=table.required("url", url, 'for example "https://hooks.example/decided"'),
        headers=table.get("headers", headers, ()),
        timeout=table.get("timeout", number(0.0, above=True), WebhookConfig.timeout),
        attempts=table.get("attempts", whole(1), WebhookConfig.attempts),
    )
    table.finish()
    return config


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

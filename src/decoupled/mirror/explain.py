"""A configuration in words, for `decoupled mirror --check` and `decoupled config mirror`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..options.definitions import MIRROR
from ..options.kinds import shown_store
from ..options.sources import read_file
from .config import LossConfig, MirrorConfig
from .judge_worker import function_named


def explained(config: MirrorConfig) -> str:
    """What a configuration means, without secrets. Raises the error that starting it would raise.

    >>> from decoupled.mirror.config import ArmConfig
    >>> print(explained(MirrorConfig((ArmConfig("a", "http://a:80"), ArmConfig("b", "http://b:80")))))
    listens on 127.0.0.1:8080, console on 127.0.0.1:8081
    decides with experiment 'mirror' in mirror.db
    arm 'a': http://a:80
    arm 'b': http://b:80
    mirrors 5% of: GET /*, HEAD /*, OPTIONS /*
    loss: status 1
    """
    mirror, listen, console = config.mirror, _address(config.listen), config.console
    judge = config.loss.judge
    if judge is not None and judge.python is not None:
        function_named(judge.python, config.folder)
    lines = [
        f"listens on {listen}, " + ("no console" if console is None else f"console on {_address(console)}")
    ]
    lines.append(
        f"decides with experiment {config.experiment.name!r} in {config.service or shown_store(config.store)}"
    )
    for arm in config.arms:
        passed = f", gets {', '.join(arm.pass_credentials)} of clients" if arm.pass_credentials else ""
        added = f", adds {', '.join(name for name, _ in arm.headers)}" if arm.headers else ""
        lines.append(f"arm {arm.name!r}: {arm.url}{added}{passed}")
    except_for = f"; never {', '.join(mirror.skip)}" if mirror.skip else ""
    lines.append(f"mirrors {100 * mirror.share:g}% of: {', '.join(mirror.repeat)}{except_for}")
    lines.append(f"loss: {_loss(config.loss)}")
    return "\n".join(lines)


def doubts(config: MirrorConfig) -> list[str]:
    """What is allowed, and likely a mistake.

    >>> from decoupled.mirror.config import ArmConfig
    >>> arms = (ArmConfig("a", "http://a:80"), ArmConfig("b", "http://b:80"))
    >>> [each.partition(":")[0] for each in doubts(MirrorConfig(arms))]
    ['arm.pass_credentials']
    >>> doubts(MirrorConfig((ArmConfig("a", "http://a", pass_credentials=("Authorization",)), *arms)))
    []
    """
    known = [(*arm.pass_credentials, *(name for name, _ in arm.headers)) for arm in config.arms]
    if any(name.lower() == "authorization" for names in known for name in names):
        return []
    return [
        "arm.pass_credentials: no arm gets the Authorization of clients, or has one of its own under headers; if the arms "
        "ask for it, every client gets 401: add pass_credentials to each arm"
    ]


def _address(address: tuple[str, int]) -> str:
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _loss(loss: LossConfig) -> str:
    parts = [f"status {loss.status:g}"] if loss.status else []
    for name in ("latency", "duration", "bytes", "cost"):
        term = getattr(loss, name)
        if term is not None:
            parts.append(f"{name} {term.weight:g} ({term.low:g} to {term.high:g})")
    if loss.judge is not None:
        parts.append(f"judge {loss.judge.weight:g} ({loss.judge.python or loss.judge.url})")
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

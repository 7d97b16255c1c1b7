"""A configuration in words, for `decoupled mirror --check`."""

from .config import LossConfig, MirrorConfig
from .judges import function_named


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
    lines.append(f"decides with experiment {config.experiment.name!r} in {config.service or config.store}")
    for arm in config.arms:
        passed = f", gets {', '.join(arm.pass_credentials)} of clients" if arm.pass_credentials else ""
        added = f", adds {', '.join(name for name, _ in arm.headers)}" if arm.headers else ""
        lines.append(f"arm {arm.name!r}: {arm.url}{added}{passed}")
    except_for = f"; never {', '.join(mirror.skip)}" if mirror.skip else ""
    lines.append(f"mirrors {100 * mirror.share:g}% of: {', '.join(mirror.repeat)}{except_for}")
    lines.append(f"loss: {_loss(config.loss)}")
    return "\n".join(lines)


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

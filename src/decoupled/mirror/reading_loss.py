"""The table [loss] of a mirror's configuration."""

from ..errors import ParameterError, invalid_value
from ..options.readers import number, text, url, whole
from .config import JudgeConfig, LossConfig, TermConfig
from .tables import Table, headers


def read_loss(name: str, value: object) -> LossConfig:
    """The table [loss].

    >>> read_loss("loss", {"latency": {"high": 2.0}}).latency
    TermConfig(weight=1.0, low=0.0, high=2.0)
    """
    table = Table(value, name)
    config = LossConfig(
        status=table.get("status", number(0.0), 0.0),
        bad_status=table.get("bad_status", whole(100, 599), LossConfig.bad_status),
        good_status=table.get("good_status", _statuses, LossConfig.good_status),
        latency=table.get("latency", _term, None),
        duration=table.get("duration", _term, None),
        bytes=table.get("bytes", _term, None),
        cost=table.get("cost", _term, None),
        judge=table.get("judge", _judge, None),
    )
    table.finish()
    parts = (config.latency, config.duration, config.bytes, config.cost, config.judge)
    if config.status + sum(part.weight for part in parts if part is not None) <= 0.0:
        raise ParameterError(f"{name}: every weight is 0; give at least one part of the loss a weight")
    return config


def _statuses(name: str, value: object) -> tuple[int, ...]:
    if not isinstance(value, list):
        raise ParameterError(invalid_value(name, value, "must be a list", "for example [404, 429]"))
    return tuple(whole(100, 599)(f"{name}[{place}]", each) for place, each in enumerate(value))


def _term(name: str, value: object) -> TermConfig:
    table = Table(value, name)
    low = table.get("low", number(0.0), 0.0)
    remedy = "give the value that counts as 1"
    high = table.required("high", number(0.0, above=True), remedy)
    weight = table.get("weight", number(0.0), 1.0)
    table.finish()
    if high <= low:
        raise ParameterError(
            invalid_value(table.name("high"), high, f"must be above low = {low:g}", remedy)
        )
    return TermConfig(weight, low, high)


def _judge(name: str, value: object) -> JudgeConfig:
    table = Table(value, name)
    config = JudgeConfig(
        python=table.get("python", text, None),
        url=table.get("url", url, None),
        headers=table.get("headers", headers, ()),
        weight=table.get("weight", number(0.0), JudgeConfig.weight),
        timeout=table.get("timeout", number(0.0, above=True), JudgeConfig.timeout),
        attempts=table.get("attempts", whole(1), JudgeConfig.attempts),
        concurrency=table.get("concurrency", whole(1), JudgeConfig.concurrency),
        otherwise=table.get("otherwise", number(0.0, 1.0), None),
    )
    table.finish()
    if (config.python is None) == (config.url is None):
        remedy = 'for example python = "judge:compare", or url = "http://127.0.0.1:9100/compare"'
        raise ParameterError(f"{name}: must have either python or url; {remedy}")
    return config

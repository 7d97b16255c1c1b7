"""Checks single values: `read(name, value)` returns the value, or raises an error with the name."""

import ipaddress
import math
from collections.abc import Callable
from urllib.parse import urlsplit

from decoupled.base import as_float, is_name, name_rule
from decoupled.errors import ParameterError

A_URL = "for example http://127.0.0.1:9001"


def text(name: str, value: object) -> str:
    """Text that is not empty."""
    if isinstance(value, str) and value:
        return value
    raise ParameterError.of(name, value, "must be text", "put it in quotation marks")


def flag(name: str, value: object) -> bool:
    """True or false."""
    if isinstance(value, bool):
        return value
    raise ParameterError.of(name, value, "must be true or false", "write it without quotation marks")


def number(low: float, high: float = math.inf, *, above: bool = False) -> Callable[[str, object], float]:
    """A reader of numbers from `low` to `high`; with `above`, `low` itself is refused."""

    def read(name: str, value: object) -> float:
        found = as_float(value)
        if found is None or not low <= found <= high or (above and found == low):
            ends = f"{'above' if above else 'from'} {low:g}" + (
                f" to {high:g}" if high < math.inf else " on"
            )
            ends = ends.removesuffix(" on") if above else ends
            raise ParameterError.of(name, value, f"must be a number {ends}", "choose another")
        return found

    return read


def whole(low: int, high: int = 2**62) -> Callable[[str, object], int]:
    """A reader of whole numbers from `low` to `high`."""

    def read(name: str, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            ends = f"from {low} to {high}" if high < 2**62 else f"from {low} on"
            raise ParameterError.of(name, value, f"must be a whole number {ends}", "choose another")
        return value

    return read


def url(name: str, value: object) -> str:
    """An address of HTTP."""
    found = text(name, value)
    try:
        parts = urlsplit(found)
        good = (
            parts.scheme in ("http", "https")
            and bool(parts.hostname)
            and not parts.query
            and parts.port != 0
        )
        good = good and found.isascii() and parts.username is None
    except ValueError:
        good = False
    if not good:
        rule = "must be an address that begins with http:// or https://, without a user or a query"
        raise ParameterError.of(name, value, rule, A_URL)
    return found


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a service that listens on `host`.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def address(name: str, value: object) -> tuple[str, int]:
    """An address and a port to listen on.

    >>> address("listen", "[::1]:8080")
    ('::1', 8080)
    """
    host, colon, port = text(name, value).rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise ParameterError.of(
            name, value, "must be an address and a port", 'for example "127.0.0.1:8080"'
        )
    return host, int(port)


def console(name: str, value: object) -> tuple[str, int] | None:
    """An address and a port on loopback, or False for none."""
    if value is False:
        return None
    host, port = address(name, value)
    if not is_loopback(host):
        rule = "must be loopback: everyone who can reach it can see and change everything"
        remedy = "use 127.0.0.1, or run `decoupled serve` with keys and give its address as `service`"
        raise ParameterError.of(name, value, rule, remedy)
    return host, port


def experiment_name(name: str, value: object) -> str:
    """The name of an experiment."""
    found = text(name, value)
    if not is_name(found):
        raise ParameterError.of(name, value, name_rule(), "choose another name")
    return found

"""Prints which options hold as a table."""

from collections.abc import Sequence

from .option import Option
from .sources import OptionValues


def held_rows(options: Sequence[Option], settings: OptionValues) -> list[tuple[str, ...]]:
    """What holds and where it came from, without secrets.

    >>> from decoupled_serve.options.definitions import STORES
    >>> from decoupled_serve.options.sources import resolved
    >>> from decoupled.cli.shared import aligned
    >>> print(aligned(held_rows(STORES, resolved(STORES, {"store": "postgresql://me:secret@db/shop"}, {}))))
    store       postgresql://me@db/shop  --store
    store-file  none                     default
    """
    rows: list[tuple[str, ...]] = []
    for option in options:
        value = settings[option.name]
        empty = value is None and option.default is None
        rows.append(
            (option.name, "none" if empty else option.kind.show(value), settings.source(option.name))
        )
    return rows

"""Prints rows as a table."""

from collections.abc import Iterable


def aligned(rows: Iterable[tuple[str, ...]]) -> str:
    """Rows as text in columns.

    >>> print(aligned([("a", "bb"), ("ccc", "d")]))
    a    bb
    ccc  d
    """
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )

"""One option of a command."""

from dataclasses import dataclass
from typing import Any

from .kinds import Kind

PREFIX = "DECOUPLED_"


@dataclass(frozen=True)
class Option:
    """An option that a flag, a variable and a key of a file can set.

    Args:
        name: its name, as in its flag.
        kind: what values it takes.
        default: its value if nothing sets it.
        meaning: one sentence for the help and the documentation.
        key: its key in the file, with the tables that it is in.
        fills: the option that gets the content of the file which this one names.

    >>> from decoupled_serve.options.kinds import whole
    >>> limit = Option("body-limit", whole(1024), 1_048_576, "Largest body, in bytes.", key="serve.body_limit")
    >>> limit.flag, limit.variable, limit.key, limit.shown_default
    ('--body-limit', 'DECOUPLED_BODY_LIMIT', 'serve.body_limit', '1048576')
    """

    name: str
    kind: Kind
    default: Any
    meaning: str
    key: str
    fills: str | None = None

    @property
    def flag(self) -> str:
        """The flag of the command."""
        return f"--{self.name}"

    @property
    def identifier(self) -> str:
        """The name as Python writes it."""
        return self.name.replace("-", "_")

    @property
    def variable(self) -> str:
        """The environment variable."""
        return PREFIX + self.identifier.upper()

    @property
    def shown_default(self) -> str:
        """The default in words, empty if there is none."""
        return "" if self.default is None else self.kind.show(self.default)

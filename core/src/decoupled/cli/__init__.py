"""The command line, and what packages that add commands to it share: flags, errors, tables."""

import sys

from ..base.extras import as_missing_extra
from ..base.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)

# The commands of the other packages of this project, by the extra that brings them.
ELSEWHERE = {
    "serve": (
        *(
            "serve",
            "mirror",
            "weights",
            "health",
            "config",
            "init",
            "keys",
            "migrate",
            "doctor",
            "backup",
        ),
        *("restore", "audit", "mcp"),
    ),
    "lab": ("reproduce", "report", "benchmark", "bench"),
}
# What commands need besides the command line itself.
EXTRAS = {
    **{command: extra for extra, commands in ELSEWHERE.items() for command in commands},
    "client": "client",
    "simulate": "cli,simulate",
}


def run() -> None:
    """Run the command `decoupled`."""
    try:
        from .main import app
    except ModuleNotFoundError as error:
        extras = EXTRAS.get(sys.argv[1]) if len(sys.argv) > 1 else None
        missing = as_missing_extra(error, "the command line", extras=extras)
        raise SystemExit(f"error: {missing or error}") from None
    app()


main = run  # the name of the console script, until the submodule of that name is imported

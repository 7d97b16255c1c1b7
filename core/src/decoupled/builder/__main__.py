"""`python -m decoupled.builder`."""

import argparse
import re
import sys
from pathlib import Path

from ..native import load
from .build import UnbuiltError, build, is_built, renew_digests


def main() -> int:
    """Build the machine code that ships. The exit status is 0 if there is nothing to do."""
    parser = argparse.ArgumentParser(prog="python -m decoupled.builder", description=__doc__)
    parser.add_argument(
        "--out", type=Path, default=load.FOLDER, help="the folder for libraries and manifest"
    )
    parser.add_argument(
        "--processes", type=int, help="how many compile at once; all cores without it"
    )
    parser.add_argument(
        "--only",
        help="an expression: only the policies whose description matches it, and what all share",
    )
    parser.add_argument(
        "--if-stale", action="store_true", help="do nothing where what is there is up to date"
    )
    options = parser.parse_args()
    if load.switched_off():
        print(f"{load.SWITCH} is off: no machine code is built")
        return 0
    if options.if_stale and is_built(options.out):
        renew_digests(options.out)
        print("the machine code is up to date")
        return 0
    try:
        only = None if options.only is None else lambda name: chosen(name, options.only)
        build(options.out, options.processes, only)
    except UnbuiltError as error:
        print(f"no machine code is built: {error}", file=sys.stderr)
        return 1
    return 0


def chosen(name: str, expression: str) -> bool:
    """Whether `--only` selects a group."""
    return not name.startswith("{") or re.search(expression, name) is not None


if __name__ == "__main__":
    sys.exit(main())

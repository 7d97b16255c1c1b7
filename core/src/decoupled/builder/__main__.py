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
    given = parser.parse_args()
    if load.switched_off():
        print(f"{load.SWITCH} is off: no machine code is built")
        return 0
    if given.if_stale and is_built(given.out):
        renew_digests(given.out)
        print("the machine code is up to date")
        return 0
    try:
        only = None if given.only is None else lambda name: chosen(name, given.only)
        build(given.out, given.processes, only)
    except UnbuiltError as error:
        print(f"no machine code is built: {error}", file=sys.stderr)
        return 1
    return 0


def chosen(name: str, part: str) -> bool:
    """Whether `--only` selects a group."""
    return not name.startswith("{") or re.search(part, name) is not None


if __name__ == "__main__":
    sys.exit(main())

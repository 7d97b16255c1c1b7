"""Keeps unfinished copies in a file from the end of one run to the start of the next."""

import json
import logging
import os
from collections.abc import Iterable
from pathlib import Path

from ..base.files import replacing
from .copies import Copy

_log = logging.getLogger("decoupled.mirror")


def keep_copies(path: Path, copies: Iterable[Copy]) -> int:
    """Write copies for the next start; returns how many.

    A copy that is on its way is left out, because it must not arrive twice, and so is one that still needs credentials:
    they never reach the disk. Only the user who runs the mirror can read the file.
    """
    kept = [copy for copy in copies if copy.can_be_kept]
    if kept:
        with replacing(path) as temporary:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(descriptor, "w", encoding="utf-8") as file:
                file.writelines(json.dumps(copy.to_dict()) + "\n" for copy in kept)
    return len(kept)


def take_copies(path: Path) -> list[Copy]:
    """The copies of an earlier run; the file is removed. Lines that cannot be read are left out."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    found = []
    for line in lines:
        try:
            found.append(Copy.from_dict(json.loads(line)))
        except (ValueError, KeyError, TypeError) as error:
            _log.warning("%s: a copy cannot be read and is left out: %s", path.name, error)
    path.unlink()
    return found

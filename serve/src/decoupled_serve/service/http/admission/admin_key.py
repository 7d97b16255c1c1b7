"""The first key of a fresh store, from a file that is mounted into a container."""

import logging
import re
from pathlib import Path

from decoupled.base import read_secret
from decoupled.client import Conflict
from decoupled.errors import ParameterError

from ...api.keys import Keys
from ...experiment.audited import OPERATOR
from .auth import digest_of

LABEL = "admin key file"
_LIKE_A_KEY = re.compile(r"[\x21-\x7e]{32,200}")
_log = logging.getLogger("decoupled.service")


def register_admin_key(keys: Keys, path: Path) -> None:
    """Add the key in a file to a store that lacks it, as an admin key of the operator.

    A key that the store has stays as it is, also if it was revoked. An earlier key of the file stays active, because
    other replicas may still use it.
    """
    name = "--admin-key-file"
    key = read_secret(name, path)
    if not _LIKE_A_KEY.fullmatch(key):  # a short one could be guessed
        rule = "must contain 32 to 200 visible ASCII characters"
        raise ParameterError(f"{name}: {path} {rule}; write what `decoupled keys new` prints to it")
    digest = digest_of(key)
    found = keys.find(digest).result()
    if found is None:
        try:
            keys.add(OPERATOR, "admin", digest, LABEL).result()
            _log.info("key %s: added from %s", digest[:12], path)
        except Conflict:
            pass  # another replica was faster
    elif found.revoked_at is not None:
        _log.warning("key %s: is in %s, but was revoked; put another key there", digest[:12], path)
    elif (found.tenant, found.role) != (OPERATOR, "admin"):
        _log.warning(
            "key %s: is in %s, but is the key of tenant %s with the role %s",
            digest[:12],
            path,
            found.tenant,
            found.role,
        )

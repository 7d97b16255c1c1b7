"""Which sources machine code is made of, as one number: code made of others is stale."""

import hashlib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COMPILED = ("kernels", "policies", "environments")  # the folders whose machine code other folders use


@cache
def source_digest(*folders: str) -> str:
    """A digest of the source files in these folders of the package, or of all of it."""
    digest = hashlib.sha256()
    for path in sorted(path for folder in folders or (".",) for path in (ROOT / folder).rglob("*.py")):
        digest.update(str(path.relative_to(ROOT)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]

"""A digest of the sources of the machine code; code with another digest is stale."""

import hashlib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COMPILED = ("kernels", "policies", "environments")  # the folders whose machine code other folders use


@cache
def source_digest(*folders: str) -> str:
    """A digest of the source files in these folders of the package, or in the whole package."""
    digest = hashlib.sha256()
    for path in sorted(path for folder in folders or (".",) for path in (ROOT / folder).rglob("*.py")):
        digest.update(str(path.relative_to(ROOT)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]

"""The machine that a measurement was made on."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version


def describe() -> dict[str, object]:
    """Describe the machine and the versions that affect speed."""
    return {
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "python": platform.python_version(),
        **{name: _version(name) for name in ("numba", "numpy", "decoupled-bandits")},
    }


def _version(name: str) -> str | None:
    """None if it is not installed: machine code that ships runs without Numba."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None

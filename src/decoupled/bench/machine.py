"""The machine that a measurement was made on."""

import os
import platform
from importlib.metadata import version


def describe() -> dict[str, object]:
    """Describe the machine and the versions that affect speed."""
    return {
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "python": platform.python_version(),
        **{name: version(name) for name in ("numba", "numpy", "decoupled-bandits")},
    }

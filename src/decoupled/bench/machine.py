"""What a measurement was made on."""

import os
import platform
from importlib.metadata import version


def describe() -> dict[str, object]:
    """The machine and the versions that matter for speed."""
    return {
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "python": platform.python_version(),
        **{name: version(name) for name in ("numba", "numpy", "decoupled-bandits")},
    }

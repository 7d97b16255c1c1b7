"""Find the libraries that this processor can run."""

import platform
import sys
from pathlib import Path

# The flags in /proc/cpuinfo that define the levels of x86-64, best first.
_V2 = frozenset({"cx16", "lahf_lm", "popcnt", "ssse3", "sse4_1", "sse4_2"})
_V3 = _V2 | {"abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "xsave"}
LEVELS = {"x86-64-v3": _V3, "x86-64-v2": _V2}

CPUINFO = Path("/proc/cpuinfo")


def machine() -> str:
    """The kind of machine that a library is for, such as Linux-x86_64, Linux-aarch64 or Darwin-arm64."""
    return f"{platform.system()}-{platform.machine()}"


def targets() -> tuple[str, ...]:
    """The processors for which libraries are built on this kind of machine, by their LLVM names."""
    return tuple(LEVELS) if platform.machine() in ("x86_64", "AMD64") else ("generic",)


def runnable(cpuinfo: Path = CPUINFO) -> tuple[str, ...]:
    """The targets that this processor can run, best first."""
    if targets() == ("generic",):
        return ("generic",)
    flags = _flags(cpuinfo)
    return tuple(level for level, needed in LEVELS.items() if needed <= flags)


def _flags(cpuinfo: Path) -> frozenset[str]:
    if sys.platform == "darwin":  # true for every Mac whose system is less than ten years old
        return _V2
    try:
        with cpuinfo.open(encoding="utf-8") as file:
            for line in file:
                if line.startswith("flags"):
                    return frozenset(line.partition(":")[2].split())
    except OSError:
        pass
    return frozenset()

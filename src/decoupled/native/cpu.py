"""Which of the libraries this processor can run."""

import platform
import sys
from pathlib import Path

# The flags in /proc/cpuinfo that make up the levels of x86-64, the best first.
_V2 = frozenset({"cx16", "lahf_lm", "popcnt", "ssse3", "sse4_1", "sse4_2"})
_V3 = _V2 | {"abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "xsave"}
LEVELS = {"x86-64-v3": _V3, "x86-64-v2": _V2}

CPUINFO = Path("/proc/cpuinfo")


def machine() -> str:
    """The kind of machine, as libraries are told apart by it: Linux-x86_64, Linux-aarch64, Darwin-arm64."""
    return f"{platform.system()}-{platform.machine()}"


def targets() -> tuple[str, ...]:
    """The processors that libraries are built for on this kind of machine, as LLVM calls them."""
    return tuple(LEVELS) if platform.machine() in ("x86_64", "AMD64") else ("generic",)


def runnable(cpuinfo: Path = CPUINFO) -> tuple[str, ...]:
    """Of these targets those that this processor runs, the best first."""
    if targets() == ("generic",):
        return ("generic",)
    flags = _flags(cpuinfo)
    return tuple(level for level, needed in LEVELS.items() if needed <= flags)


def _flags(cpuinfo: Path) -> frozenset[str]:
    if sys.platform == "darwin":  # every Mac that runs a system of the last ten years
        return _V2
    try:
        with cpuinfo.open() as file:
            for line in file:
                if line.startswith("flags"):
                    return frozenset(line.partition(":")[2].split())
    except OSError:
        pass
    return frozenset()

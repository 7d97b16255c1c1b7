"""Builds the machine code that a wheel carries, when the wheel is built. See `decoupled.builder`."""

import os
import platform
import re
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LIBRARIES = "src/decoupled/native/lib"


class NativeBuildHook(BuildHookInterface):
    """Compiles everything before the files of a wheel are gathered; without a compiler the wheel has only sources."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build, unless what is there is up to date, and let the wheel carry it."""
        if self.target_name != "wheel" or os.environ.get("DECOUPLED_NATIVE", "").lower() == "off":
            return
        root = Path(self.root)
        # With the sources of this folder, which are not installed yet.
        environment = {**os.environ, "PYTHONPATH": str(root / "src")}
        command = [sys.executable, "-m", "decoupled.builder", "--if-stale"]
        if subprocess.run(command, env=environment, cwd=root).returncode:
            self.app.display_warning("no machine code is built: everything is compiled on first use")
            return
        if version != "editable":  # there it lies where it is looked for
            build_data["artifacts"].append(f"/{LIBRARIES}/*")
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{platform_tag(root / LIBRARIES)}"


def platform_tag(libraries: Path) -> str:
    """The machines that a wheel with these libraries is for; any Python will do."""
    found = re.sub(r"[^a-z0-9]", "_", sysconfig.get_platform().lower())
    if not found.startswith("linux_") or platform.libc_ver()[0] != "glibc":
        return found
    # A library names the versions of the C library that it needs; a newer one does as well.
    needed = [
        int(minor)
        for path in libraries.glob("*.so")
        for minor in re.findall(rb"GLIBC_2\.(\d+)", path.read_bytes())
    ]
    return f"manylinux_2_{max(needed, default=17)}_{found.removeprefix('linux_')}"

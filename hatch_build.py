"""Build the machine code when a wheel is built. See `decoupled.builder`."""

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
    """Compiles everything before the wheel is assembled. Without a linker, the wheel has only sources."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the libraries, unless they are up to date, and add them to the wheel."""
        if self.target_name != "wheel" or os.environ.get("DECOUPLED_NATIVE", "").lower() == "off":
            return
        root = Path(self.root)
        # Import the sources from here, because they are not installed yet.
        environment = {**os.environ, "PYTHONPATH": str(root / "src")}
        command = [sys.executable, "-m", "decoupled.builder", "--if-stale"]
        if subprocess.run(command, env=environment, cwd=root).returncode:
            self.app.display_warning("no machine code is built: everything is compiled on first use")
            return
        if version != "editable":  # an editable install finds the libraries in the source folder
            build_data["artifacts"].append(f"/{LIBRARIES}/*")
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{platform_tag(root / LIBRARIES)}"


def platform_tag(libraries: Path) -> str:
    """The platform tag of a wheel with these libraries."""
    found = re.sub(r"[^a-z0-9]", "_", sysconfig.get_platform().lower())
    if not found.startswith("linux_") or platform.libc_ver()[0] != "glibc":
        return found
    # The libraries name the versions of the C library that they need; newer ones work too.
    needed = [
        int(minor)
        for path in libraries.glob("*.so")
        for minor in re.findall(rb"GLIBC_2\.(\d+)", path.read_bytes())
    ]
    return f"manylinux_2_{max(needed, default=17)}_{found.removeprefix('linux_')}"

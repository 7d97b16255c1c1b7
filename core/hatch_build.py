"""Build the machine code when a wheel is built. See `decoupled.builder`."""

import json
import os
import platform
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LIBRARIES = "src/decoupled/native/lib"
OLDEST_GLIBC = 17  # 2.17: checkers know no older one for all kinds of processors


class NativeBuildHook(BuildHookInterface):
    """Compiles everything before the wheel is assembled. Without a linker, the wheel has only
    sources.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the libraries, unless they are up to date, and add them to the wheel."""
        if self.target_name != "wheel" or os.environ.get("DECOUPLED_NATIVE", "").lower() == "off":
            return
        root = Path(self.root)
        # Import the sources from here, because they are not installed yet.
        environment = {**os.environ, "PYTHONPATH": str(root / "src")}
        command = [sys.executable, "-m", "decoupled.builder", "--if-stale"]
        with terminal() as screen:
            status = followed(command, environment, root, screen)
        if status:
            self.app.display_warning(
                "no machine code is built: everything is compiled on first use"
            )
            return
        if version != "editable":  # an editable install finds the libraries in the source folder
            files = carried(root / LIBRARIES)
            build_data["artifacts"].extend(f"/{LIBRARIES}/{file.name}" for file in files)
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{platform_tag(files)}"


@contextmanager
def terminal() -> Iterator[TextIO | None]:
    """The user's terminal, where output does not go there anyway: pip shows nothing of what a build
    prints.
    """
    screen = None
    if not sys.stdout.isatty():
        with suppress(OSError):
            screen = open("/dev/tty", "w", encoding="utf-8")  # noqa: SIM115
    try:
        yield screen
    finally:
        if screen:
            screen.close()


def followed(
    command: list[str], environment: dict[str, str], root: Path, screen: TextIO | None
) -> int:
    """Run the builder and return its exit status. Print its output, a part of it on the screen."""

    def show(line: str) -> None:
        if screen:
            print(
                f"\rdecoupled-bandits: {line}", file=screen, flush=True
            )  # over the line that pip animates

    show("building the machine code takes a few minutes; DECOUPLED_NATIVE=off skips it")
    tenth = 0
    with subprocess.Popen(
        command, env=environment, cwd=root, stdout=subprocess.PIPE, text=True
    ) as builder:
        assert builder.stdout
        for line in builder.stdout:
            print(line, end="", flush=True)
            done = re.match(r" *(\d+)/(\d+) ", line)
            if done is None:
                show(line.rstrip())
            elif 10 * int(done[1]) // int(done[2]) > tenth:
                tenth = 10 * int(done[1]) // int(done[2])
                show(f"{tenth}0 % of the machine code")
    return builder.returncode


def carried(libraries: Path) -> list[Path]:
    """The manifest and the files that it names: the folder may have others, of an earlier build."""
    manifest = libraries / "manifest.json"
    named = json.loads(manifest.read_text())["libraries"].values()
    return [manifest, *(libraries / name for name in named)]


def platform_tag(files: list[Path]) -> str:
    """The platform tag of a wheel with these files."""
    found = re.sub(r"[^a-z0-9]", "_", sysconfig.get_platform().lower())
    if not found.startswith("linux_") or platform.libc_ver()[0] != "glibc":
        return found
    # The libraries name the versions of the C library that they need; newer ones work too.
    needed = [
        int(minor) for path in files for minor in re.findall(rb"GLIBC_2\.(\d+)", path.read_bytes())
    ]
    return f"manylinux_2_{max([OLDEST_GLIBC, *needed])}_{found.removeprefix('linux_')}"

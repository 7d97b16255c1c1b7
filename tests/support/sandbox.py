"""A sandbox like a container, by bubblewrap: a read-only root, no home folder, an unprivileged user, one writable folder."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import decoupled
import decoupled_lab
import decoupled_serve

USER = 10001
HIDDEN = ("/home", "/root", "/tmp", "/data", "/proc", "/dev", "/run", "/venv")
_LISTENING = re.compile(r"Serving on https?://\S+:(\d+)\s*$")


@cache
def why_not() -> str | None:
    """Why there can be no sandbox here; None if there can."""
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed"
    tried = subprocess.run([*_isolated(), *_root(), "true"], capture_output=True, text=True)
    return None if tried.returncode == 0 else f"bubblewrap cannot make one ({tried.stderr.strip()})"


def _isolated() -> list[str]:
    """The command is the first process of its own process namespace, as in a container. It has the network of all."""
    user = ["--uid", str(USER), "--gid", str(USER)]
    own = ["--unshare-user", *user, "--unshare-pid", "--unshare-ipc", "--as-pid-1"]
    return ["bwrap", *own, "--die-with-parent", "--cap-drop", "ALL"]


def _root() -> list[str]:
    """Every folder of the root, read-only, except those of HIDDEN."""
    bound = []
    for name in sorted(os.listdir("/")):
        path = f"/{name}"
        if path in HIDDEN:
            continue
        if os.path.islink(path):
            bound += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            bound += ["--ro-bind", path, path]
    return [*bound, "--proc", "/proc", "--dev", "/dev"]


@dataclass
class Sandbox:
    """The folders of a sandbox.

    Attributes:
        data: the folder that is /data inside, the only one besides /tmp that can be written to.
        tmp: the folder that is /tmp inside.
        shown: folders that are inside where they are outside, read-only, even if the folder above is hidden.
    """

    data: Path
    tmp: Path
    shown: Sequence[str | Path] = ()

    def command(self, command: Sequence[str], environment: Mapping[str, str]) -> list[str]:
        """A command line that runs `command` inside, with no other environment than the given one."""
        binds = ["--bind", str(self.tmp), "/tmp", "--bind", str(self.data), "/data"]
        for path in self.shown:
            binds += ["--ro-bind", str(path), str(path)]
        variables = [
            word for name, value in environment.items() for word in ("--setenv", name, value)
        ]
        read_only = ["--remount-ro", "/"]
        options = [*_root(), *binds, *read_only, "--clearenv", *variables, "--chdir", "/data", "--"]
        return [*_isolated(), *options, *command]


class Process:
    """A process in a sandbox, by its number outside, and the port that it listens on."""

    def __init__(self, bwrap: "subprocess.Popen[str]", pid: int, port: int) -> None:
        self.bwrap, self.pid, self.port = bwrap, pid, port

    def wait(self, seconds: float = 60.0) -> int:
        return self.bwrap.wait(seconds)


@contextmanager
def serving_in(
    sandbox: Sandbox, command: Sequence[str], environment: Mapping[str, str], log: Path
) -> Iterator[Process]:
    """A service in a sandbox, once it listens. It is killed at the end of the block if it still runs."""
    reading, writing = os.pipe()
    with log.open("a") as errors:
        whole = sandbox.command(command, environment)
        whole[1:1] = ["--info-fd", str(writing)]
        bwrap = subprocess.Popen(
            whole,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            pass_fds=(writing,),
            stdin=subprocess.DEVNULL,
        )
    os.close(writing)
    try:
        with os.fdopen(reading) as information:
            text = information.read()
        line = bwrap.stdout.readline() if bwrap.stdout else ""
        found = _LISTENING.search(line)
        if found is None:
            raise ChildProcessError(f"the service did not start: {log.read_text()[-2000:]!r}")
        yield Process(bwrap, int(json.loads(text)["child-pid"]), int(found[1]))
    finally:
        bwrap.kill()
        bwrap.wait()
        if bwrap.stdout:
            bwrap.stdout.close()


def this_python() -> tuple[Sequence[str | Path], dict[str, str]]:
    """The folders and the environment that this interpreter and these packages need in a sandbox."""
    loaded = (decoupled, decoupled_serve, decoupled_lab)
    packages = [str(Path(str(each.__file__)).resolve().parents[1]) for each in loaded]
    folders = {sys.prefix, sys.base_prefix, *packages}
    hidden = sorted(each for each in folders if each.startswith(tuple(f"{top}/" for top in HIDDEN)))
    return hidden, {
        "PATH": os.defpath,
        "PYTHONPATH": os.pathsep.join(packages),
        "PYTHONDONTWRITEBYTECODE": "1",
    }

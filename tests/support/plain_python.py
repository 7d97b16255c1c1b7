"""Kernels as plain Python, in a process of their own: nothing is compiled, and Python checks every index."""

import os
import subprocess
import sys


def output_of(module: str) -> str:
    """What a module of the tests prints where Numba is disabled."""
    environment = {
        **os.environ,
        "NUMBA_DISABLE_JIT": "1",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
    done = subprocess.run([sys.executable, "-m", module], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout

"""The GPUs of this machine, or the reason why none can be used."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from threading import Lock
from typing import Any, NamedTuple

import numba
import numpy as np

from ...base.extras import how_to_install
from ...errors import UnsupportedError

_one_at_a_time = Lock()
REMEDY = "use device='cpu'"
_settings: Any = numba.config


class Card(NamedTuple):
    """A device: its number, its name, its number of multiprocessors, and its free memory in bytes."""

    number: int
    name: str
    processors: int
    free: int


def simulated() -> bool:
    """Whether Numba's simulator replaces the device (NUMBA_ENABLE_CUDASIM=1): slow, for tests only."""
    return bool(_settings.ENABLE_CUDASIM)


@cache
def toolkit() -> Any:
    """`numba.cuda`, or an error that says why it cannot be used."""
    if simulated():
        if not _settings.DISABLE_JIT:
            raise UnsupportedError(
                "device = 'cuda': Numba's CUDA simulator calls Python functions only; "
                f"set NUMBA_DISABLE_JIT=1 as well, or {REMEDY}"
            )
        return import_module("numba.cuda")
    try:
        with _names_removed_from_numpy():
            cuda: Any = import_module("numba.cuda")
            if getattr(cuda, "implementation", "") == "NVIDIA":
                import_module("numba.cuda.cudaimpl")  # otherwise loaded later, at the first compilation
    except ImportError as error:
        raise UnsupportedError(
            f"device = 'cuda': numba-cuda cannot be loaded ({error}); {REMEDY}"
        ) from None
    if getattr(cuda, "implementation", "") != "NVIDIA":
        raise UnsupportedError(
            "device = 'cuda': needs the package numba-cuda, which is not installed; "
            f"{how_to_install('cuda')}, or {REMEDY}"
        )
    if not cuda.is_available():
        raise UnsupportedError(f"device = 'cuda': no NVIDIA GPU was found{_why(cuda)}; {REMEDY}")
    # A few runs leave most of a device idle; a small simulation should not warn about that.
    _settings.CUDA_LOW_OCCUPANCY_WARNINGS = 0
    return cuda


@contextmanager
def _names_removed_from_numpy() -> Iterator[None]:
    # numba-cuda 0.30 needs an alias of vstack that NumPy 2.5 removed.
    name = "row_stack"
    missing = not hasattr(np, name)
    if missing:
        setattr(np, name, np.vstack)
    try:
        yield
    finally:
        if missing:
            delattr(np, name)


def _why(cuda: Any) -> str:
    try:
        reason = str(cuda.cuda_error() or "")
    except Exception:  # the driver can raise anything
        return ""
    first = next((line.strip() for line in reason.splitlines() if line.strip()), "")
    return f" ({first.rstrip('.:')})" if first else ""


@cache
def cards() -> tuple[Card, ...]:
    """Every device, with the memory that was free at the first call."""
    cuda = toolkit()
    if simulated():
        return (Card(0, "simulator", 1, 2**30),)
    with _one_at_a_time:  # Numba does not support calls from several threads here
        return _found(cuda)


def _found(cuda: Any) -> tuple[Card, ...]:
    found = []
    for number in range(len(cuda.gpus)):
        with cuda.gpus[number]:
            device = cuda.get_current_device()
            free = int(cuda.current_context().get_memory_info().free)
            name = device.name.decode() if isinstance(device.name, bytes) else str(device.name)
            found.append(Card(number, name, int(device.MULTIPROCESSOR_COUNT), free))
    return tuple(found)

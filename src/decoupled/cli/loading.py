"""Loads what a long-running command needs."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def loading() -> Iterator[None]:
    """Load modules without looking for garbage in between, and never look at what they made again.

    Modules stay for good, so there is no garbage to find; looking for it takes a seventh of the time to start the service.
    """
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        gc.enable()

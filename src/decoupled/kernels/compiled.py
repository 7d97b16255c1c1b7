"""The place of compiled in version 0.1.0; new code imports from `decoupled.extend`."""

from .jit import compiled as compiled

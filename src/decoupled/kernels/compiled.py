"""Where version 0.1.0 had `compiled`; new code imports it from `decoupled.extend`."""

from .jit import compiled as compiled

"""Where version 0.1.0 had `Table`; new code imports it from `decoupled.extend`."""

from .rounds import Table as Table

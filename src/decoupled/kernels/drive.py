"""The place of Table in version 0.1.0; new code imports from `decoupled.extend`."""

from .rounds import Table as Table

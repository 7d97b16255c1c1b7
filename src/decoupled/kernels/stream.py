"""Where version 0.1.0 had these functions; new code imports them from `decoupled.extend`."""

from .random.stream import below as below
from .random.stream import new_stream as new_stream
from .random.stream import next_word as next_word
from .random.stream import uniform as uniform
from .random.stream import unit as unit

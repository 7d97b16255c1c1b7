"""Decoupled bandits for research: the paper's experiments, its theory as code, the benchmark and the measurements."""

from decoupled.base import attach

__version__ = "0.2.0"

__getattr__, __dir__, __all__ = attach(__name__)

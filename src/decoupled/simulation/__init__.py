"""Simulation: policies against environments, many runs at once."""

from .results import Results
from .simulate import simulate

__all__ = ["Results", "simulate"]

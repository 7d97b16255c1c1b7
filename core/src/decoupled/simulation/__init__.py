"""Simulation: policies against environments, many runs at once."""

from ..base.lazy import attach

# Imported when first used: the service plays rounds without the packages that label results.
__getattr__, __dir__, __all__ = attach(__name__)

"""Helpers that packages built on this one share: checked numbers, names, files written whole,
optional packages.
"""

from .lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)

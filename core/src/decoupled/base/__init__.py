"""Helpers that packages built on this one share.

They check numbers and names, write files whole, and import optional packages.
"""

from .lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)

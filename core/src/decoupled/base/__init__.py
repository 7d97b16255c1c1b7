"""Helpers for packages built on this one: checks, names, whole files, optional imports."""

from .lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)

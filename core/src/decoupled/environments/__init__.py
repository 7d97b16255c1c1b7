"""Environments, each read when it is first used. `__init__.pyi` lists them."""

from ..base.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)

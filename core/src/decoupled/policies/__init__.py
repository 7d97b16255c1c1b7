"""Policies: one file each, read when its policy is first used. `__init__.pyi` lists them."""

from ..base.lazy import attach
from .base import Policy as Policy

__getattr__, __dir__, __all__ = attach(__name__)

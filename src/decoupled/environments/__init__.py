"""Environments: one file each."""

from .alternating import Alternating
from .base import Environment

__all__ = ["Alternating", "Environment"]

"""Statements about losses that may be watched: confidence sequences, verdicts, and evaluations of
logs.
"""

from ..base.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__)

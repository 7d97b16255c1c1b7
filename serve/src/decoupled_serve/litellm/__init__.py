"""A plug-in for LiteLLM: it serves the model that is best so far, and learns from shadows sent to another."""

from decoupled.base import attach

# Imported when first used: all but the plug-in itself works without LiteLLM.
__getattr__, __dir__, __all__ = attach(__name__)

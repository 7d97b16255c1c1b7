# What the package exports, for type checkers and at run time: see base/lazy.py.
from .plugin import Plugin as Plugin  # needs litellm

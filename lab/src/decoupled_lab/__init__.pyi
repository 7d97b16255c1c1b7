# What the package exports, for type checkers and at run time: see decoupled.base.lazy.
from . import theory as theory
from .movielens.environment import MovieLens as MovieLens
from .report.comparison import compare as compare

__version__: str

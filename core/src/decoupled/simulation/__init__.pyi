# What the package exports, for type checkers and at run time: see base/lazy.py.
from . import baselines as baselines
from .api import simulate as simulate
from .results import Results as Results

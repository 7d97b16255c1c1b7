# Every baseline, one line each. Type checkers read this file, and so does the package at run time:
# see base/lazy.py.
from ..baseline import Baseline as Baseline
from .contextual import LinUCB as LinUCB
from .contextual import PerSegment as PerSegment

# Every baseline, one line each. Type checkers read this file, and so does the package at run time: see base/lazy.py.
from .base import Baseline as Baseline
from .linucb import LinUCB as LinUCB
from .per_segment import PerSegment as PerSegment

# What the package exports, for type checkers and at run time: see base/lazy.py.
from .boundary import lower_difference as lower_difference
from .boundary import lower_mean as lower_mean
from .interval import Interval as Interval
from .sequences import Sequences as Sequences
from .verdicts import Verdict as Verdict
from .verdicts import verdict as verdict

# What the package exports, for type checkers and at run time: see base/lazy.py.
from .boundary import lower_difference as lower_difference
from .boundary import lower_mean as lower_mean
from .evaluated import Evaluated as Evaluated
from .evaluated import Evaluation as Evaluation
from .evaluation import evaluate as evaluate
from .interval import Interval as Interval
from .regrets import regret as regret
from .sequences import Sequences as Sequences
from .verdicts import Verdict as Verdict
from .verdicts import verdict as verdict

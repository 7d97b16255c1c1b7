"""Everything that your own policy, environment or adversary needs beside `decoupled` itself.

>>> from decoupled.extend import Functions, Layout, compiled
>>> Layout(floats=("estimates",), learned=("estimates",)).new_state(3).floats.shape
(1, 3)
"""

from .base.arrays import Floats as Floats
from .base.arrays import Ints as Ints
from .base.arrays import Words as Words
from .base.validation import check_number as check_number
from .base.validation import one_of as one_of
from .base.validation import set_number as set_number
from .kernels.argmin import LOWEST_SCALARS as LOWEST_SCALARS
from .kernels.argmin import fill_gaps as fill_gaps
from .kernels.argmin import find_lowest as find_lowest
from .kernels.argmin import lowest_law as lowest_law
from .kernels.argmin import pick_lowest as pick_lowest
from .kernels.argmin import sample_mean as sample_mean
from .kernels.dispatch import AdversaryFunctions as AdversaryFunctions
from .kernels.dispatch import Functions as Functions
from .kernels.dispatch import Memory as Memory
from .kernels.dispatch import decide as decide
from .kernels.dispatch import fill_losses as fill_losses
from .kernels.dispatch import note_play as note_play
from .kernels.dispatch import update as update
from .kernels.jit import compiled as compiled
from .kernels.random.sampling import BERNOULLI as BERNOULLI
from .kernels.random.sampling import KINDS as _KINDS
from .kernels.random.sampling import categorical as categorical
from .kernels.random.sampling import draw_both as draw_both
from .kernels.random.sampling import draw_loss as draw_loss
from .kernels.random.sampling import draw_one as draw_one
from .kernels.random.sampling import pareto_leader as pareto_leader
from .kernels.random.sampling import total as total
from .kernels.random.stream import below as below
from .kernels.random.stream import new_stream as new_stream
from .kernels.random.stream import uniform as uniform
from .kernels.rounds import Table as Table
from .kernels.state import ARMS as ARMS
from .kernels.state import ROUND as ROUND
from .kernels.state import SHARED_SCALARS as SHARED_SCALARS
from .kernels.state import Layout as Layout
from .kernels.state import State as State
from .kernels.winner_law import winner_law as winner_law
from .learner.portable import diagnostics as diagnostics
from .policy import Baselines as Baselines

NOISE_KINDS = _KINDS

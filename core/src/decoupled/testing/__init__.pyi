# What the package exports, for type checkers and at run time: see base/lazy.py.
from ..learner.inspecting import NamedState as NamedState
from ..learner.inspecting import state_of as state_of
from .case import PolicyUnderTest as PolicyUnderTest
from .engine import CHECKS as CHECKS
from .engine import check_defined as check_defined
from .engine import check_endurance as check_endurance
from .engine import check_init as check_init
from .engine import check_laws as check_laws
from .engine import check_newcomers as check_newcomers
from .engine import check_parity as check_parity
from .engine import check_policy as check_policy
from .engine import check_retired as check_retired
from .engine import check_saving as check_saving
from .engine import check_sound as check_sound
from .engine import check_unbiased as check_unbiased

"""The round loops as plain Python, for policies that are plain Python, too.

What does not depend on the policy, such as the noise on a loss, stays machine code.
"""

from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any

from ..kernels.late import learn_arrived


@cache
def interpreted(loop: Any) -> Callable[..., None]:
    """A round loop as plain Python."""
    source = getattr(loop, "py_func", loop)
    # The one function that a loop calls, and that calls the policy in its turn.
    known = {**source.__globals__, learn_arrived.__name__: getattr(learn_arrived, "py_func", learn_arrived)}
    return FunctionType(source.__code__, known, source.__name__)

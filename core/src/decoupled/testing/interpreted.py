"""Run the functions of a policy as plain Python, before they are compiled.

Compiled code checks nothing: it reads and writes past the end of an array without a word. Plain Python notices names
that are not defined and indices out of range.
"""

import warnings
from collections.abc import Callable
from functools import partial
from types import CellType, FunctionType
from typing import Any, NamedTuple

import numpy as np

from ..base.arrays import Floats
from ..base.validation import kind_of
from ..errors import ContractError, shown
from ..kernels.dispatch import Functions
from ..kernels.jit import is_ours
from ..kernels.random.stream import new_stream
from ..kernels.state import ROUND
from ..policies import Policy
from .failures import fail, one_line, place_of, raised

DECISION = "(exploit, explore, weight, propensity)"


class DrawnRound(NamedTuple):
    """The result of `decide`."""

    exploit: int
    explore: int
    weight: float
    propensity: float


def check_interpreted(policy: Policy, losses: Floats, seed: int) -> None:
    """Run some rounds of the functions as plain Python."""
    functions = policy.functions
    # The package's own functions have stricter tests.
    if is_ours(*functions) or policy.interpreted or policy.in_python:
        return
    seen: dict[int, Any] = {}
    calls = Functions(*(_interpreted(function, seen) for function in functions))
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _play(policy, calls, losses, seed)
    except _CompiledDiffers:  # compiled code has other rules of arithmetic, and it runs next
        return


class _CompiledDiffers(Exception):  # noqa: N818 - no error
    """Plain Python stops at an operation, such as a division by zero, at which compiled code may continue."""


def _play(policy: Policy, calls: Functions, losses: Floats, seed: int) -> None:
    arms = losses.shape[1]
    params, state = policy.params(), policy.layout.new_state(arms)
    stream = new_stream(np.random.SeedSequence(seed))
    _step(policy, "init", partial(calls.init, params, state))
    for row in losses:
        drawn = _step(policy, "decide", partial(calls.decide, params, state, stream))
        _, explore, weight, _ = checked_draw(policy, drawn, arms)
        state.scalars[ROUND] += 1.0
        _step(policy, "update", partial(calls.update, params, state, explore, weight, float(row[explore])))


def _step(policy: Policy, part: str, call: Callable[[], Any]) -> Any:
    try:
        return call()
    except IndexError as error:
        problem = f"{part} reaches outside an array: {one_line(error)}{place_of(error)}"
        remedy = f"Name in the layout every scalar and row that {part} uses"
        fail(policy, f"{problem}; compiled code would not notice. {remedy}")
    except (NameError, AttributeError) as error:
        fail(policy, f"{part} {raised(error)}")
    except ContractError:
        raise
    except Exception as error:
        raise _CompiledDiffers from error


def _interpreted(function: Any, seen: dict[int, Any]) -> Any:
    """A user's compiled function as plain Python, and the user's functions that it calls."""
    if not hasattr(function, "py_func") or is_ours(function.py_func):
        return function
    if id(function) not in seen:
        source = function.py_func
        known = dict(source.__globals__)
        cells = tuple(CellType() for _ in source.__closure__ or ())
        plain = FunctionType(source.__code__, known, source.__name__, source.__defaults__, cells or None)
        plain.__kwdefaults__ = source.__kwdefaults__
        seen[id(function)] = plain
        for name in source.__code__.co_names:
            if name in known:
                known[name] = _interpreted(known[name], seen)
        for cell, given in zip(cells, source.__closure__ or (), strict=True):
            cell.cell_contents = _interpreted(given.cell_contents, seen)
    return seen[id(function)]


def checked_draw(policy: Policy, drawn: Any, arms: int) -> DrawnRound:
    """Check the result of `decide`: two arms, a weight and a propensity."""
    if not isinstance(drawn, tuple):
        what = "nothing" if drawn is None else f"{shown(drawn)}, {kind_of(drawn)}"
        fail(policy, f"decide returned {what}; return {DECISION}")
    if len(drawn) != 4:
        fail(policy, f"decide returned {len(drawn)} values, {shown(drawn)}; return four, {DECISION}")
    for name, value in zip(DrawnRound._fields, drawn, strict=True):
        whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        if name in ("exploit", "explore"):
            if not whole:
                message = f"decide returned {name} = {shown(value)}, {kind_of(value)}"
                fail(policy, f"{message}; an arm is a whole number: convert it with int()")
            if not 0 <= value < arms:
                numbers = f"arms are numbered 0 to {arms - 1}"
                fail(policy, f"decide gave {name} = {value} of {arms} arms; {numbers}")
        elif not whole and not isinstance(value, (float, np.floating)):
            unknown = "; where it is not known give math.nan" if name == "propensity" else "; give a float"
            fail(policy, f"decide returned {name} = {shown(value)}, {kind_of(value)}{unknown}")
    return DrawnRound(int(drawn[0]), int(drawn[1]), float(drawn[2]), float(drawn[3]))

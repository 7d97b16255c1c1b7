"""Check the parts of a policy one by one, and run its functions as plain Python, before they are
compiled.

Compiled code checks nothing: it reads and writes past the end of an array without a word. Plain
Python notices names that are not defined and indices out of range.
"""

import inspect
import warnings
from collections.abc import Callable
from functools import partial
from types import CellType, FunctionType
from typing import Any, NamedTuple

import numpy as np

from ..base.arrays import Floats
from ..base.validation import is_number, kind_of
from ..errors import ContractError, near_name, shown
from ..kernels.dispatch import Functions
from ..kernels.jit import is_ours
from ..kernels.lazy_numba import jit_disabled
from ..kernels.random.stream import new_stream
from ..kernels.state import ROUND, SHARED_SCALARS, Layout
from ..policies import Policy
from ..policies.python import OWN_NAMES, PythonPolicy
from .case import fail, one_line, place_of, raised

LAYOUT = "layout = Layout(floats=('estimates',), learned=('estimates',))"
TAKES = {
    "init": ("params", "state"),
    "decide": ("params", "state", "stream"),
    "update": ("params", "state", "arm", "weight", "loss"),
}


def check_parts(policy: Policy) -> None:
    """Check every part of a policy."""
    _check_class(policy)
    if isinstance(policy, PythonPolicy):
        _check_learned(policy)
        _check_python_methods(policy)
        return
    for check in (_check_layout, _check_rows, _check_params, _check_functions, _check_methods):
        check(policy)


def _check_class(policy: Policy) -> None:
    name, own = type(policy).__name__, vars(type(policy))
    if "__dataclass_fields__" not in own:
        fail(policy, f"class {name} is not a dataclass; put @dataclass(frozen=True) above it")
    if not own["__dataclass_params__"].frozen:
        fail(policy, f"class {name} can be changed after it is made; write @dataclass(frozen=True)")


def _check_learned(policy: PythonPolicy) -> None:
    names: object = policy.learned
    listed = isinstance(names, tuple) and all(isinstance(name, str) for name in names)
    if not listed or not all(map(str.isidentifier, policy.learned)):
        one = f"; for one name write ({names!r},)" if isinstance(names, str) else ""
        fail(policy, f"learned = {shown(names)} must be a tuple of names{one}")
    for name in policy.learned:
        if name in OWN_NAMES:
            fail(policy, f"learned names {name!r}, which the package keeps; choose another name")
    if "estimates" not in policy.learned and type(policy).estimates is PythonPolicy.estimates:
        remedy = "add a method estimates(self, state) that gives what is learned about each arm"
        fail(policy, f"it has neither an array nor a method called estimates; {remedy}")


def _check_python_methods(policy: PythonPolicy) -> None:
    for name, takes in (("decide", ("known",)), ("update", ("known", "arm", "weight", "loss"))):
        if getattr(type(policy), name) is getattr(PythonPolicy, name):
            fail(policy, f"it has no method {name}; add {name}(self, {', '.join(takes)})")
        signature = inspect.signature(getattr(policy, name))
        try:
            signature.bind(*takes)
        except TypeError:
            found, must = ", ".join(signature.parameters), ", ".join(takes)
            fail(policy, f"{name} takes ({found}); it must take ({must})")


def _part(policy: Policy, name: str) -> Any:
    """An attribute of a policy, or None if it is not implemented."""
    try:
        return getattr(policy, name)
    except NotImplementedError:
        return None


def _check_layout(policy: Policy) -> None:
    layout = _part(policy, "layout")
    if not isinstance(layout, Layout):
        example = f"name the rows of its state, for example {LAYOUT} (from decoupled.extend import Layout)"
        fail(policy, f"layout = {shown(layout)} is not a Layout; {example}")
    names: Any
    for part, names in layout._asdict().items():
        if part == "forgets":
            continue
        if not isinstance(names, tuple) or not all(isinstance(name, str) for name in names):
            one = f"; for one name write ({names!r},)" if isinstance(names, str) else ""
            fail(policy, f"layout: {part} = {shown(names)} must be a tuple of names{one}")
    rows = (*SHARED_SCALARS, *layout.scalars, *layout.floats, *layout.ints, *layout.pairs)
    for place, name in enumerate(rows):
        if name in rows[:place]:
            fail(policy, f"layout: {name!r} appears twice; give every row a name of its own")
    for name in layout.learned:
        if name not in rows:
            problem = f"layout: learned names {name!r}, which is not one of its rows"
            fail(policy, f"{problem}; {near_name(name, rows)}")
        if name in SHARED_SCALARS:
            fail(policy, f"layout: learned names {name!r}, which the package keeps; leave it out")


def _check_rows(policy: Policy) -> None:
    layout, sums = policy.layout, policy.cumulative
    if sums is not None and (sums not in layout.learned or sums not in layout.floats):
        remedy = "name the one that adds up losses, or write cumulative = None if there is none"
        fail(policy, f"cumulative = {sums!r} is not a learned row of floats; {remedy}")
    for name in policy.fading or ():
        if name not in layout.floats and name not in layout.scalars:
            fail(
                policy,
                f"fading names {name!r}, which is not a row of floats; {_known(layout.learned)}",
            )
    row = None if policy.baselines is None else policy.baselines.row
    if row is not None and row not in layout.floats:
        fail(policy, f"baselines.row = {row!r} is not a row of floats; {_known(layout.floats)}")
    if "estimates" not in layout.floats and type(policy).estimates is Policy.estimates:
        remedy = "add a method estimates(self, state) that gives what is learned about each arm"
        fail(policy, f"it has neither a row nor a method called estimates; {remedy}")


def _known(names: tuple[str, ...]) -> str:
    return f"the rows are {', '.join(repr(name) for name in names)}" if names else "there are none"


def _check_params(policy: Policy) -> None:
    kind = _part(policy, "params_type")
    if not (isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")):
        remedy = "write class Params(NamedTuple) and name it there"
        fail(policy, f"params_type = {shown(kind)} is not a NamedTuple; {remedy}")
    if not kind._fields:
        remedy = "give it one, such as unused: float, to make it a type of its own"
        fail(policy, f"{kind.__name__} has no fields; {remedy}")
    try:
        values = policy.params()
    except NotImplementedError:
        fail(policy, f"it has no method params; add one that returns {kind.__name__}(...)")
    except Exception as error:
        fail(policy, f"params() {raised(error)}")
    if type(values) is not kind:
        remedy = f"return {kind.__name__}(...), its params_type"
        fail(policy, f"params() gave {shown(values)}, {kind_of(values)}; {remedy}")
    for field, value in zip(kind._fields, values, strict=True):
        if not is_number(value) or value != value:
            problem = f"params() gave {field} = {shown(value)}, which is not a number"
            fail(policy, f"{problem}; compiled code takes floats")


def _check_functions(policy: Policy) -> None:
    functions = _part(policy, "functions")
    if not isinstance(functions, Functions):
        example = "Functions(init, decide, update) (from decoupled.extend import Functions)"
        fail(policy, f"functions = {shown(functions)}; write functions = {example}")
    function: Any
    for part, function in zip(Functions._fields, functions, strict=True):
        if not callable(function):
            problem = f"functions: {part} = {shown(function)} is not a function"
            fail(policy, f"{problem}; give one that is @compiled")
        if not hasattr(function, "py_func") and not jit_disabled():
            above = f"put @compiled above def {getattr(function, '__name__', part)}"
            fail(policy, f"{part} is not compiled; {above} (from decoupled.extend import compiled)")
        signature = inspect.signature(getattr(function, "py_func", function))
        try:
            signature.bind(*TAKES[part])
        except TypeError:
            takes, must = ", ".join(signature.parameters), ", ".join(TAKES[part])
            order = "and Functions has them in the order init, decide, update"
            fail(policy, f"{part} takes ({takes}); it must take ({must}), {order}")


def _check_methods(policy: Policy) -> None:
    for name, arm in (("exploitation_law", "exploited"), ("exploration_law", "explored")):
        missing = getattr(type(policy), name) is getattr(Policy, name)
        if missing and not (policy.coupled and arm == "explored"):
            remedy = (
                f"add {name}(self, state) that gives the probability with which each arm is {arm}"
            )
            fail(policy, f"it has no method {name}; {remedy}")


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
    """Plain Python stops at an operation, such as a division by zero, at which compiled code may
    continue.
    """


def _play(policy: Policy, calls: Functions, losses: Floats, seed: int) -> None:
    arms = losses.shape[1]
    params, state = policy.params(), policy.layout.new_state(arms)
    stream = new_stream(np.random.SeedSequence(seed))
    _step(policy, "init", partial(calls.init, params, state))
    for row in losses:
        drawn = _step(policy, "decide", partial(calls.decide, params, state, stream))
        _, explore, weight, _ = checked_draw(policy, drawn, arms)
        state.scalars[ROUND] += 1.0
        _step(
            policy,
            "update",
            partial(calls.update, params, state, explore, weight, float(row[explore])),
        )


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
        plain = FunctionType(
            source.__code__, known, source.__name__, source.__defaults__, cells or None
        )
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
        fail(
            policy, f"decide returned {len(drawn)} values, {shown(drawn)}; return four, {DECISION}"
        )
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
            unknown = (
                "; where it is not known give math.nan"
                if name == "propensity"
                else "; give a float"
            )
            fail(policy, f"decide returned {name} = {shown(value)}, {kind_of(value)}{unknown}")
    return DrawnRound(int(drawn[0]), int(drawn[1]), float(drawn[2]), float(drawn[3]))

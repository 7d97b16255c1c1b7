"""Check the parts of a policy one by one, as plain Python, before they are compiled.

Compiled code checks nothing: it reads and writes past the end of an array without a word. Plain
Python notices names that are not defined and indices out of range.
"""

import inspect
import warnings
from collections.abc import Callable, Sequence
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
from ..kernels.parameters import is_named_tuple, kinds_of
from ..kernels.random.stream import new_stream
from ..kernels.state import ROUND, SHARED_SCALARS, Layout
from ..policies import Policy
from ..policies.python import OWN_NAMES, PythonPolicy
from .case import describe, fail, one_line, place_of

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
    """Check that the policy is a frozen dataclass."""
    name = type(policy).__name__
    members = vars(type(policy))
    if "__dataclass_fields__" not in members:
        fail(policy, f"class {name} is not a dataclass; put @dataclass(frozen=True) above it")
    if not members["__dataclass_params__"].frozen:
        fail(policy, f"class {name} can be changed after it is made; write @dataclass(frozen=True)")


def _check_learned(policy: PythonPolicy) -> None:
    """Check the names of what a policy in plain Python learns."""
    names: object = policy.learned
    if not _are_names(names) or not all(map(str.isidentifier, policy.learned)):
        fail(policy, f"learned = {shown(names)} must be a tuple of names{_one_name(names)}")
    for name in policy.learned:
        if name in OWN_NAMES:
            fail(policy, f"learned names {name!r}, which the package keeps; choose another name")
    if "estimates" not in policy.learned and type(policy).estimates is PythonPolicy.estimates:
        remedy = "add a method estimates(self, state) that gives what is learned about each arm"
        fail(policy, f"it has neither an array nor a method called estimates; {remedy}")


def _are_names(names: object) -> bool:
    return isinstance(names, tuple) and all(isinstance(name, str) for name in names)


def _one_name(names: object) -> str:
    """A hint for a text in place of a tuple of names."""
    return f"; for one name write ({names!r},)" if isinstance(names, str) else ""


def _check_python_methods(policy: PythonPolicy) -> None:
    """Check that a policy in plain Python decides and updates."""
    takes = {"decide": ("known",), "update": ("known", "arm", "weight", "loss")}
    for name, arguments in takes.items():
        if getattr(type(policy), name) is getattr(PythonPolicy, name):
            fail(policy, f"it has no method {name}; add {name}(self, {', '.join(arguments)})")
        parameters = inspect.signature(getattr(policy, name))
        if not _accepts(parameters, arguments):
            actual = ", ".join(parameters.parameters)
            fail(policy, f"{name} takes ({actual}); it must take ({', '.join(arguments)})")


def _accepts(signature: inspect.Signature, arguments: Sequence[str]) -> bool:
    """Whether a function can be called with so many arguments."""
    try:
        signature.bind(*arguments)
    except TypeError:
        return False
    return True


def _attribute(policy: Policy, name: str) -> Any:
    """An attribute of a policy, or None if it is not implemented."""
    try:
        return getattr(policy, name)
    except NotImplementedError:
        return None


def _check_layout(policy: Policy) -> None:
    """Check that the layout is one, and names each row once."""
    layout = _attribute(policy, "layout")
    if not isinstance(layout, Layout):
        example = f"name the rows of its state, for example {LAYOUT}"
        where = "(from decoupled.extend import Layout)"
        fail(policy, f"layout = {shown(layout)} is not a Layout; {example} {where}")
    for field, names in layout._asdict().items():
        if field != "forgets" and not _are_names(names):
            problem = f"layout: {field} = {shown(names)} must be a tuple of names"
            fail(policy, f"{problem}{_one_name(names)}")
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
    """Check the names of rows that the policy gives elsewhere."""
    layout = policy.layout
    sums = policy.cumulative
    if sums is not None and (sums not in layout.learned or sums not in layout.floats):
        remedy = "name the one that adds up losses, or write cumulative = None if there is none"
        fail(policy, f"cumulative = {sums!r} is not a learned row of floats; {remedy}")
    for name in policy.fading or ():
        if name not in layout.floats and name not in layout.scalars:
            problem = f"fading names {name!r}, which is not a row of floats"
            fail(policy, f"{problem}; {_list_rows(layout.learned)}")
    row = None if policy.baselines is None else policy.baselines.row
    if row is not None and row not in layout.floats:
        problem = f"baselines.row = {row!r} is not a row of floats"
        fail(policy, f"{problem}; {_list_rows(layout.floats)}")
    if "estimates" not in layout.floats and type(policy).estimates is Policy.estimates:
        remedy = "add a method estimates(self, state) that gives what is learned about each arm"
        fail(policy, f"it has neither a row nor a method called estimates; {remedy}")


def _list_rows(names: tuple[str, ...]) -> str:
    """A hint: the rows that there are."""
    return f"the rows are {', '.join(repr(name) for name in names)}" if names else "there are none"


def _check_params(policy: Policy) -> None:
    """Check that the parameters are a named tuple, and each what its annotation says."""
    kind = _attribute(policy, "params_type")
    if not is_named_tuple(kind):
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
        fail(policy, f"params() {describe(error)}")
    if type(values) is not kind:
        remedy = f"return {kind.__name__}(...), its params_type"
        fail(policy, f"params() gave {shown(values)}, {kind_of(values)}; {remedy}")
    for field, expected in kinds_of(kind).items():
        value = getattr(values, field)
        if not _is_of(expected, value):
            problem = f"params() gave {field} = {shown(value)}, which is not {_described(expected)}"
            fail(policy, f"{problem}; compiled code takes what the field's annotation says")


def _is_of(kind: Any, value: Any) -> bool:
    """Whether a value is what a field of the parameters takes: see `kinds_of`."""
    if isinstance(kind, tuple):
        is_vector = isinstance(value, tuple) and len(value) == len(kind)
        return is_vector and all(map(_is_of, kind, value))
    if is_named_tuple(kind):
        return type(value) is kind and all(map(_is_of, kinds_of(kind).values(), value))
    if kind is bool:
        return isinstance(value, (bool, np.bool_))
    if kind is int:
        return isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    return is_number(value) and bool(value == value)


def _described(kind: Any) -> str:
    """What a field takes, in words."""
    if isinstance(kind, tuple):
        return f"a tuple of {len(kind)}, each {_described(kind[0])}"
    if is_named_tuple(kind):
        return f"a {kind.__qualname__} of numbers"
    return {bool: "a bool", int: "a whole number"}.get(kind, "a number")


def _check_functions(policy: Policy) -> None:
    """Check that the functions are compiled and take the right arguments."""
    functions = _attribute(policy, "functions")
    if not isinstance(functions, Functions):
        example = "Functions(init, decide, update) (from decoupled.extend import Functions)"
        fail(policy, f"functions = {shown(functions)}; write functions = {example}")
    function: Any
    for name, function in zip(Functions._fields, functions, strict=True):
        if not callable(function):
            problem = f"functions: {name} = {shown(function)} is not a function"
            fail(policy, f"{problem}; give one that is @compiled")
        if not hasattr(function, "py_func") and not jit_disabled():
            remedy = f"put @compiled above def {getattr(function, '__name__', name)}"
            where = "(from decoupled.extend import compiled)"
            fail(policy, f"{name} is not compiled; {remedy} {where}")
        signature = inspect.signature(getattr(function, "py_func", function))
        if not _accepts(signature, TAKES[name]):
            actual = ", ".join(signature.parameters)
            order = "and Functions has them in the order init, decide, update"
            rule = f"it must take ({', '.join(TAKES[name])}), {order}"
            fail(policy, f"{name} takes ({actual}); {rule}")


def _check_methods(policy: Policy) -> None:
    """Check that the policy states its laws."""
    for name, arm in (("exploitation_law", "exploited"), ("exploration_law", "explored")):
        is_missing = getattr(type(policy), name) is getattr(Policy, name)
        if is_missing and not (policy.coupled and arm == "explored"):
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
    plain_of: dict[int, Any] = {}
    calls = Functions(*(_interpreted(function, plain_of) for function in functions))
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _play(policy, calls, losses, seed)
    except _CompiledDiffers:  # compiled code has other rules of arithmetic, and it runs next
        return


class _CompiledDiffers(Exception):  # noqa: N818 - no error
    """Say that an operation stops plain Python, such as a division by zero.

    Compiled code may continue there.
    """


def _play(policy: Policy, calls: Functions, losses: Floats, seed: int) -> None:
    """Play a round for each row of losses."""
    arms = losses.shape[1]
    params = policy.params()
    state = policy.layout.new_state(arms)
    stream = new_stream(np.random.SeedSequence(seed))
    _step(policy, "init", partial(calls.init, params, state))
    for row in losses:
        drawn = _step(policy, "decide", partial(calls.decide, params, state, stream))
        draw = checked_draw(policy, drawn, arms)
        state.scalars[ROUND] += 1.0
        loss = float(row[draw.explore])
        update = partial(calls.update, params, state, draw.explore, draw.weight, loss)
        _step(policy, "update", update)


def _step(policy: Policy, name: str, call: Callable[[], Any]) -> Any:
    """Call one of the policy's functions; what plain Python notices breaks the contract."""
    try:
        return call()
    except IndexError as error:
        problem = f"{name} reaches outside an array: {one_line(error)}{place_of(error)}"
        remedy = f"Name in the layout every scalar and row that {name} uses"
        fail(policy, f"{problem}; compiled code would not notice. {remedy}")
    except (NameError, AttributeError) as error:
        fail(policy, f"{name} {describe(error)}")
    except ContractError:
        raise
    except Exception as error:
        raise _CompiledDiffers from error


def _interpreted(function: Any, plain_of: dict[int, Any]) -> Any:
    """A user's compiled function as plain Python, and the user's functions that it calls.

    Args:
        function: the function.
        plain_of: the plain functions made so far, by the `id` of the compiled ones.
    """
    if not hasattr(function, "py_func") or is_ours(function.py_func):
        return function
    if id(function) not in plain_of:
        source = function.py_func
        names = dict(source.__globals__)
        cells = tuple(CellType() for _ in source.__closure__ or ())
        plain = FunctionType(
            source.__code__, names, source.__name__, source.__defaults__, cells or None
        )
        plain.__kwdefaults__ = source.__kwdefaults__
        plain_of[id(function)] = plain
        for name in source.__code__.co_names:
            if name in names:
                names[name] = _interpreted(names[name], plain_of)
        for cell, original in zip(cells, source.__closure__ or (), strict=True):
            cell.cell_contents = _interpreted(original.cell_contents, plain_of)
    return plain_of[id(function)]


def checked_draw(policy: Policy, drawn: Any, arms: int) -> DrawnRound:
    """Check the result of `decide`: two arms, a weight and a propensity."""
    if not isinstance(drawn, tuple):
        what = "nothing" if drawn is None else f"{shown(drawn)}, {kind_of(drawn)}"
        fail(policy, f"decide returned {what}; return {DECISION}")
    if len(drawn) != 4:
        problem = f"decide returned {len(drawn)} values, {shown(drawn)}"
        fail(policy, f"{problem}; return four, {DECISION}")
    exploit, explore, weight, propensity = drawn
    _check_arm(policy, "exploit", exploit, arms)
    _check_arm(policy, "explore", explore, arms)
    _check_float(policy, "weight", weight, "give a float")
    remedy = "where it is not known give math.nan"
    _check_float(policy, "propensity", propensity, remedy)
    return DrawnRound(int(exploit), int(explore), float(weight), float(propensity))


def _is_whole(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _check_arm(policy: Policy, name: str, value: Any, arms: int) -> None:
    """Check that a value is the number of an arm."""
    if not _is_whole(value):
        problem = f"decide returned {name} = {shown(value)}, {kind_of(value)}"
        fail(policy, f"{problem}; an arm is a whole number: convert it with int()")
    if not 0 <= value < arms:
        rule = f"arms are numbered 0 to {arms - 1}"
        fail(policy, f"decide gave {name} = {value} of {arms} arms; {rule}")


def _check_float(policy: Policy, name: str, value: Any, remedy: str) -> None:
    """Check that a value is a number."""
    if not _is_whole(value) and not isinstance(value, (float, np.floating)):
        problem = f"decide returned {name} = {shown(value)}, {kind_of(value)}"
        fail(policy, f"{problem}; {remedy}")

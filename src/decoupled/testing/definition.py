"""Whether a policy is defined as it must be: what `decoupled.testing.check_policy` looks at first.

Compiled code checks nothing. It reads and writes past the end of an array without a word, and where it cannot
be compiled the compiler speaks of its own workings. So the parts of a policy are looked at one by one, then its
functions run as plain Python, where an array knows its ends, and only then compiled.
"""

import inspect
import re
import traceback
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import CellType, FunctionType
from typing import Any, NamedTuple, NoReturn

import numba
import numpy as np
from numba.core.errors import NumbaError

from ..base.arrays import Floats
from ..base.validation import is_number, kind_of
from ..errors import ContractError, DecoupledError, near_name, shown
from ..kernels.dispatch import Functions
from ..kernels.jit import is_ours
from ..kernels.random.stream import new_stream
from ..kernels.state import ROUND, SHARED_SCALARS, Layout
from ..policies import Policy

HERE = Path(__file__).resolve().parent
LAYOUT = "layout = Layout(floats=('estimates',), learned=('estimates',))"
DECISION = "(exploit, explore, weight, propensity)"
TAKES = {
    "init": ("params", "state"),
    "decide": ("params", "state", "stream"),
    "update": ("params", "state", "arm", "weight", "loss"),
}

# What the compiler says of the package's own calls, on the way to what is wrong.
_ON_THE_WAY = re.compile(
    r"Failed in |No implementation of function Function\(<function (init|decide|update) |>>> |There (are|is) "
    r"|- Of which|Overload in function '_(init|decide|update)'|With argument|Rejected as|TypingError: Failed"
    r"|During: |raised from|\[\d+\]|$"
)


class Drawn(NamedTuple):
    """What `decide` returns."""

    exploit: int
    explore: int
    weight: float
    propensity: float


def fail(policy: Policy, message: str) -> NoReturn:
    """Say what is wrong with a policy."""
    try:
        name = policy.label
    except Exception:  # whatever is wrong with it, it has a class
        name = type(policy).__name__
    raise ContractError(f"{name}: {message}")


# Its parts


def check_parts(policy: Policy) -> None:
    """The class, its layout, parameters, functions and methods, without running any of its code but `params`."""
    _check_class(policy)
    _check_layout(policy)
    _check_rows(policy)
    _check_params(policy)
    _check_functions(policy)
    _check_methods(policy)


def _check_class(policy: Policy) -> None:
    name, own = type(policy).__name__, vars(type(policy))
    if "__dataclass_fields__" not in own:
        fail(policy, f"class {name} is not a dataclass; put @dataclass(frozen=True) above it")
    if not own["__dataclass_params__"].frozen:
        fail(policy, f"class {name} can be changed after it is made; write @dataclass(frozen=True)")


def _part(policy: Policy, name: str) -> Any:
    """What a policy says of itself, None where it does not."""
    try:
        return getattr(policy, name)
    except NotImplementedError:
        return None


def _check_layout(policy: Policy) -> None:
    layout = _part(policy, "layout")
    if not isinstance(layout, Layout):
        fail(
            policy,
            f"layout = {shown(layout)} is no Layout; name the rows of its state, for example {LAYOUT}",
        )
    names: Any
    for part, names in zip(Layout._fields, layout, strict=True):
        if not isinstance(names, tuple) or not all(isinstance(name, str) for name in names):
            one = f"; for one name write ({names!r},)" if isinstance(names, str) else ""
            fail(policy, f"layout: {part} = {shown(names)} must be a tuple of names{one}")
    rows = (*SHARED_SCALARS, *layout.scalars, *layout.floats, *layout.ints, *layout.pairs)
    for place, name in enumerate(rows):
        if name in rows[:place]:
            fail(policy, f"layout: {name!r} appears twice; give every row a name of its own")
    for name in layout.learned:
        if name not in rows:
            fail(
                policy,
                f"layout: learned names {name!r}, which is none of its rows; {near_name(name, rows)}",
            )
        if name in SHARED_SCALARS:
            fail(policy, f"layout: learned names {name!r}, which the package keeps; leave it out")


def _check_rows(policy: Policy) -> None:
    layout, sums = policy.layout, policy.cumulative
    if sums is not None and (sums not in layout.learned or sums not in layout.floats):
        fail(
            policy,
            f"cumulative = {sums!r} is no learned row of floats; name the one that adds up losses, or write "
            "cumulative = None if there is none",
        )
    for name in policy.fading or ():
        if name not in layout.floats and name not in layout.scalars:
            fail(policy, f"fading names {name!r}, which is no row of floats; {_known(layout.learned)}")
    if policy.baseline is not None and policy.baseline not in layout.floats:
        fail(policy, f"baseline = {policy.baseline!r} is no row of floats; {_known(layout.floats)}")
    if "estimates" not in layout.floats and type(policy).estimates is Policy.estimates:
        fail(
            policy,
            "it has neither a row nor a method called estimates; add a method estimates(self, state) that gives "
            "what is learned about each arm",
        )


def _known(names: tuple[str, ...]) -> str:
    return f"the rows are {', '.join(repr(name) for name in names)}" if names else "there are none"


def _check_params(policy: Policy) -> None:
    kind = _part(policy, "params_type")
    if not (isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")):
        fail(
            policy,
            f"params_type = {shown(kind)} is no NamedTuple; write class Params(NamedTuple) and name it there",
        )
    if not kind._fields:
        fail(
            policy,
            f"{kind.__name__} has no fields; give it one, such as unused: float, to make it a type of its own",
        )
    try:
        values = policy.params()
    except NotImplementedError:
        fail(policy, f"it has no method params; add one that returns {kind.__name__}(...)")
    except Exception as error:
        fail(policy, f"params() {raised(error)}")
    if type(values) is not kind:
        fail(
            policy,
            f"params() gave {shown(values)}, {kind_of(values)}; return {kind.__name__}(...), its params_type",
        )
    for field, value in zip(kind._fields, values, strict=True):
        if not is_number(value) or value != value:
            fail(
                policy,
                f"params() gave {field} = {shown(value)}, which is no number; compiled code takes floats",
            )


def _check_functions(policy: Policy) -> None:
    functions = _part(policy, "functions")
    if not isinstance(functions, Functions):
        fail(policy, f"functions = {shown(functions)}; write functions = Functions(init, decide, update)")
    for part, function in zip(Functions._fields, functions, strict=True):
        if not callable(function):
            fail(
                policy, f"functions: {part} = {shown(function)} is no function; give one that is @compiled"
            )
        if not hasattr(function, "py_func") and not numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
            name = getattr(function, "__name__", part)
            fail(
                policy,
                f"{part} is not compiled; put @compiled above def {name} "
                "(from decoupled.kernels.jit import compiled)",
            )
        signature = inspect.signature(_plain(function))
        try:
            signature.bind(*TAKES[part])
        except TypeError:
            told = (
                f"{part} takes ({', '.join(signature.parameters)}); it must take ({', '.join(TAKES[part])})"
            )
            fail(policy, f"{told}, and Functions has them in the order init, decide, update")


def _check_methods(policy: Policy) -> None:
    for name, arm in (("exploitation_law", "exploited"), ("exploration_law", "explored")):
        if getattr(type(policy), name) is getattr(Policy, name) and not (
            policy.coupled and arm == "explored"
        ):
            fail(
                policy,
                f"it has no method {name}; add {name}(self, state) that gives the probability with which each "
                f"arm is {arm}",
            )


# Its functions, as plain Python


def check_interpreted(policy: Policy, losses: Floats, seed: int) -> None:
    """Some rounds of the functions as plain Python, which sees names that are not there and arrays that end."""
    functions = policy.functions
    if is_ours(*functions) or policy.interpreted:  # the package's own are held to more than this
        return
    seen: dict[int, Any] = {}
    calls = Functions(*(_interpreted(function, seen) for function in functions))
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _play(policy, calls, losses, seed)
    except _CompiledDiffers:  # of arithmetic compiled code has its own view, and it is asked next
        return


class _CompiledDiffers(Exception):  # noqa: N818 - no error
    """Plain Python stops where compiled code may go on: at a division by zero, say."""


def _play(policy: Policy, calls: Functions, losses: Floats, seed: int) -> None:
    arms = losses.shape[1]
    params, state = policy.params(), policy.layout.new_state(arms)
    stream = new_stream(np.random.SeedSequence(seed))
    _step(policy, "init", partial(calls.init, params, state))
    for row in losses:
        drawn = checked_draw(
            policy, _step(policy, "decide", partial(calls.decide, params, state, stream)), arms
        )
        state.scalars[ROUND] += 1.0
        explore, weight = drawn.explore, drawn.weight
        _step(policy, "update", partial(calls.update, params, state, explore, weight, float(row[explore])))


def _step(policy: Policy, part: str, call: Callable[[], Any]) -> Any:
    try:
        return call()
    except IndexError as error:
        fail(
            policy,
            f"{part} reaches outside an array: {_one_line(error)}{_place(error)}; compiled code would not notice. "
            f"Name in the layout every scalar and row that {part} uses",
        )
    except (NameError, AttributeError) as error:
        fail(policy, f"{part} {raised(error)}")
    except ContractError:
        raise
    except Exception as error:
        raise _CompiledDiffers from error


def _interpreted(function: Any, seen: dict[int, Any]) -> Any:
    """A compiled function of somebody else's as plain Python, and whatever it calls of theirs as well."""
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


def checked_draw(policy: Policy, drawn: Any, arms: int) -> Drawn:
    """What `decide` returned: two arms, a weight and a propensity."""
    if not isinstance(drawn, tuple):
        what = "nothing" if drawn is None else f"{shown(drawn)}, {kind_of(drawn)}"
        fail(policy, f"decide returned {what}; return {DECISION}")
    if len(drawn) != 4:
        fail(policy, f"decide returned {len(drawn)} values, {shown(drawn)}; return four, {DECISION}")
    for name, value in zip(Drawn._fields, drawn, strict=True):
        whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        if name in ("exploit", "explore"):
            if not whole:
                told = f"decide returned {name} = {shown(value)}, {kind_of(value)}"
                fail(policy, f"{told}; an arm is a whole number: convert it with int()")
            if not 0 <= value < arms:
                fail(
                    policy,
                    f"decide gave {name} = {value} of {arms} arms; arms are numbered 0 to {arms - 1}",
                )
        elif not whole and not isinstance(value, (float, np.floating)):
            unknown = "; where it is not known give math.nan" if name == "propensity" else "; give a float"
            fail(policy, f"decide returned {name} = {shown(value)}, {kind_of(value)}{unknown}")
    return Drawn(int(drawn[0]), int(drawn[1]), float(drawn[2]), float(drawn[3]))


# What went wrong


def raised(error: BaseException) -> str:
    """An exception in one line, and where it came from."""
    if isinstance(error, NumbaError):
        return _not_compiled(error)
    if isinstance(error, DecoupledError):
        return f"was refused: {error}"
    return f"raised {type(error).__name__}: {_one_line(error)}{_place(error)}"


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())


def _place(error: BaseException) -> str:
    """The last line of the policy's own code that led to an error."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if HERE not in Path(frame.filename).parents
        and "site-packages" not in frame.filename
        and Path(frame.filename).name != "on_first_use.py"  # which stands between a function and its caller
    ]
    own = [frame for frame in frames if frame.name != "<module>"]
    return f" ({own[-1].name}, line {own[-1].lineno} of {Path(own[-1].filename).name})" if own else ""


def _not_compiled(error: NumbaError) -> str:
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    lines = [line.strip() for line in text.splitlines()]
    if "NRT required" in text or "Only accept returning of array" in text:
        return (
            f"allocates memory{_compiler_place(lines)}; compiled functions make no arrays, lists or strings: "
            "keep work space in rows that the layout names"
        )
    places = [place for place, line in enumerate(lines) if not _ON_THE_WAY.match(line)]
    first = places[0] if places else 0
    where = _compiler_place(lines[first:])
    said = lines[first] if lines else ""
    if found := re.match(r"Untyped global name '(\w+)':.*<class 'function'>", said):
        return f"calls {found[1]}{where}, which is not compiled; put @compiled above def {found[1]}"
    if found := re.match(r"Untyped global name '(\w+)':.*<class '(.+)'>", said):
        return f"uses {found[1]}{where}, a {found[2]}; compiled code takes numbers, arrays and compiled functions"
    if said.startswith("Can't unify return type"):
        return f"returns values of different types in different places{where}; return the same types everywhere"
    return f"cannot be compiled: {said}{where}; compiled code takes numbers, arrays and compiled functions"


def _compiler_place(lines: list[str]) -> str:
    for line in lines:
        found = re.match(r'File "(.+)", line (\d+)', line)
        if found and Path(found[1]).name != "dispatch.py" and "numba" not in found[1]:
            return f" (line {found[2]} of {Path(found[1]).name})"
    return ""


def _plain(function: Any) -> Any:
    return getattr(function, "py_func", function)

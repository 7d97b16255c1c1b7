"""How `check_policy` reports what is wrong: one line that says what, where, and what to do."""

import re
import sys
import traceback
from pathlib import Path
from typing import NoReturn

from ..errors import ContractError, DecoupledError
from ..policies import Policy

HERE = Path(__file__).resolve().parent

# Lines of the compiler about the package's own calls, before it comes to the error.
_PREAMBLE = re.compile(
    r"Failed in |No implementation of function Function\(<function (init|decide|update) |>>> |There (are|is) "
    r"|- Of which|Overload in function '_(init|decide|update)'|With argument|Rejected as|TypingError: Failed"
    r"|During: |raised from|\[\d+\]|$"
)


def fail(policy: Policy, message: str) -> NoReturn:
    """Raise the error for a policy that breaks the contract."""
    try:
        name = policy.label
    except Exception:  # a broken policy still has a class
        name = type(policy).__name__
    raise ContractError(f"{name}: {message}")


def raised_from(policy: Policy, what: str, error: Exception) -> NoReturn:
    """Raise the error for a part of a policy that cannot be compiled or raised an exception."""
    try:
        fail(policy, f"{what} {raised(error)}")
    except ContractError as broken:
        raise broken from error


def raised(error: BaseException) -> str:
    """An exception in one line, with its place in the policy's code."""
    compiler = sys.modules.get("numba.core.errors")  # a policy in plain Python never loads it
    if compiler is not None and isinstance(error, compiler.NumbaError):
        return _not_compiled(error)
    if isinstance(error, DecoupledError):
        return f"was refused: {error}"
    return f"raised {type(error).__name__}: {one_line(error)}{place_of(error)}"


def one_line(error: BaseException) -> str:
    """The message of an exception in one line."""
    return " ".join(str(error).split())


def place_of(error: BaseException) -> str:
    """The last line of the policy's own code in an error's traceback."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if HERE not in Path(frame.filename).parents
        and "site-packages" not in frame.filename
        and Path(frame.filename).name != "jit.py"  # which stands between a function and its caller
    ]
    own = [frame for frame in frames if frame.name != "<module>"]
    return f" ({own[-1].name}, line {own[-1].lineno} of {Path(own[-1].filename).name})" if own else ""


def _not_compiled(error: BaseException) -> str:
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    lines = [line.strip() for line in text.splitlines()]
    if "NRT required" in text or "Only accept returning of array" in text:
        return (
            f"allocates memory{_compiler_place(lines)}; compiled functions make no arrays, lists or strings: "
            "keep work space in rows that the layout names"
        )
    places = [place for place, line in enumerate(lines) if not _PREAMBLE.match(line)]
    first = places[0] if places else 0
    where = _compiler_place(lines[first:])
    message = lines[first] if lines else ""
    if found := re.match(r"Untyped global name '(\w+)':.*<class 'function'>", message):
        return f"calls {found[1]}{where}, which is not compiled; put @compiled above def {found[1]}"
    if found := re.match(r"Untyped global name '(\w+)':.*<class '(.+)'>", message):
        return f"uses {found[1]}{where}, a {found[2]}; compiled code takes numbers, arrays and compiled functions"
    if message.startswith("Can't unify return type"):
        return f"returns values of different types in different places{where}; return the same types everywhere"
    return (
        f"cannot be compiled: {message}{where}; compiled code takes numbers, arrays and compiled functions"
    )


def _compiler_place(lines: list[str]) -> str:
    for line in lines:
        found = re.match(r'File "(.+)", line (\d+)', line)
        if found and Path(found[1]).name != "dispatch.py" and "numba" not in found[1]:
            return f" (line {found[2]} of {Path(found[1]).name})"
    return ""

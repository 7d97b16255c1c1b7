"""A policy under test, and shared checks that say what is wrong, where, and what to do."""

import re
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ..base.arrays import Floats
from ..errors import ContractError, DecoupledError, shown
from ..kernels.state import State
from ..learner.learner import Learner
from ..policies import Policy

HERE = Path(__file__).resolve().parent
_TAKES = "compiled code takes numbers, arrays and compiled functions"

# Lines of the compiler about the package's own calls, before it comes to the error.
_PREAMBLE = re.compile(
    r"Failed in |No implementation of function Function\(<function (init|decide|update) |>>> "
    r"|There (are|is) |- Of which|Overload in function '_(init|decide|update)'|With argument"
    r"|Rejected as|TypingError: Failed|During: |raised from|\[\d+\]|$"
)


def fail(policy: Policy, message: str, cause: Exception | None = None) -> NoReturn:
    """Raise the error for a policy that breaks the contract."""
    try:
        name = policy.label
    except Exception:  # a broken policy still has a class
        name = type(policy).__name__
    raise ContractError(f"{name}: {message}") from cause


def describe(error: BaseException) -> str:
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
    """The last line of the policy's own code in an error's traceback, in parentheses."""
    own_frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if HERE not in Path(frame.filename).parents
        and "site-packages" not in frame.filename
        and Path(frame.filename).name != "jit.py"  # which stands between a function and its caller
        and frame.name != "<module>"
    ]
    if not own_frames:
        return ""
    last = own_frames[-1]
    return f" ({last.name}, line {last.lineno} of {Path(last.filename).name})"


def _not_compiled(error: BaseException) -> str:
    """What the compiler says, in one line, with its place in the policy's code."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    lines = [line.strip() for line in text.splitlines()]
    if "NRT required" in text or "Only accept returning of array" in text:
        rule = "compiled functions make no arrays, lists or strings"
        remedy = "keep work space in rows that the layout names"
        return f"allocates memory{_compiler_place(lines)}; {rule}: {remedy}"
    own_lines = [place for place, line in enumerate(lines) if not _PREAMBLE.match(line)]
    first = own_lines[0] if own_lines else 0
    where = _compiler_place(lines[first:])
    message = lines[first] if lines else ""
    function = re.match(r"Untyped global name '(\w+)':.*<class 'function'>", message)
    if function is not None:
        name = function[1]
        return f"calls {name}{where}, which is not compiled; put @compiled above def {name}"
    value = re.match(r"Untyped global name '(\w+)':.*<class '(.+)'>", message)
    if value is not None:
        return f"uses {value[1]}{where}, a {value[2]}; {_TAKES}"
    if message.startswith("Can't unify return type"):
        rule = "returns values of different types in different places"
        return f"{rule}{where}; return the same types everywhere"
    return f"cannot be compiled: {message}{where}; {_TAKES}"


def _compiler_place(lines: list[str]) -> str:
    """The first place in the policy's code that the compiler names, in parentheses."""
    for line in lines:
        place = re.match(r'File "(.+)", line (\d+)', line)
        if place and Path(place[1]).name != "dispatch.py" and "numba" not in place[1]:
            return f" (line {place[2]} of {Path(place[1]).name})"
    return ""


DRAWS = 50_000
HISTORY = 60


class PolicyUnderTest(NamedTuple):
    """A policy under test.

    >>> import decoupled as dc
    >>> PolicyUnderTest(dc.FTPL(), arms=3, rounds=100, seed=0).losses(2).shape
    (2, 3)
    """

    policy: Policy
    arms: int
    rounds: int
    seed: int

    @property
    def draws(self) -> int:
        """How many decisions to compare with the laws; fewer if each takes long."""
        return DRAWS // 5 if self.policy.in_python else DRAWS

    def expect(self, holds: object, message: str) -> None:
        """Raise an error with this message unless `holds`."""
        if not holds:
            fail(self.policy, message)

    def call(self, what: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a part of the policy; an exception breaks the contract."""
        try:
            return function(*arguments)
        except ContractError:
            raise
        except Exception as error:
            fail(self.policy, f"{what} {describe(error)}", error)

    def losses(self, rounds: int) -> Floats:
        """Losses that differ between arms and rounds."""
        generator = np.random.default_rng(self.seed)
        return generator.random((rounds, self.arms)) * np.linspace(0.4, 1.0, self.arms)

    def learner(self, rounds: int) -> Learner:
        """A learner that has seen every arm, and then this many rounds."""
        learner = self.policy.start(self.arms, self.seed, max_pending=10 * DRAWS)
        learner.replay([(arm, 1.0 / self.arms, arm / self.arms) for arm in range(self.arms)])
        for losses in self.losses(rounds):
            decision = learner.decide()
            learner.observe(decision, loss=float(losses[arm_place(decision.explore)]))
        return learner

    def check_finite(self, state: State, when: str) -> None:
        """Check that every number of the state is finite."""
        layout = self.policy.layout
        remedy = "look at what init and update write there"
        for name in (*layout.scalars, *layout.floats):
            row = layout.row(state, name)
            message = f"{name!r} is {row.tolist()} {when}: not finite; {remedy}"
            self.expect(np.isfinite(row).all(), message)

    def check_laws(self, state: State) -> None:
        """Check both laws of a state."""
        self.law(state, "exploitation_law")
        self.law(state, "exploration_law")

    def law(self, state: State, name: str) -> Floats:
        """A law of the policy, checked."""
        return self.check_law(self.call(name, getattr(self.policy, name), state), name)

    def check_law(self, values: Any, name: str) -> Floats:
        """Check that an array holds probabilities that sum to 1."""
        law = _as_floats(values)
        is_law = law.shape == (self.arms,) and (law >= 0.0).all() and abs(law.sum() - 1.0) < 1e-9
        problem = f"{name} is {shown(_as_list(values))}, which is not a law on {self.arms} arms"
        self.expect(is_law, f"{problem}; give {self.arms} probabilities that sum to 1")
        return law

    def check_estimates(self, state: State) -> None:
        """Check that there is a finite estimate for each arm."""
        values = self.call("estimates", self.policy.estimates, state)
        estimates = _as_floats(values)
        remedy = f"give a finite number for each of {self.arms} arms"
        is_right = estimates.shape == (self.arms,) and np.isfinite(estimates).all()
        self.expect(is_right, f"estimates gave {shown(_as_list(values))}; {remedy}")

    def has_weighted_sums(self) -> bool:
        """Whether the policy sums weighted losses; a mean does not depend on the weight."""
        return self.policy.cumulative == "estimates"


def _as_floats(values: Any) -> Floats:
    """What a policy returned as an array of numbers; an empty one if it is none."""
    try:
        return np.array(values, np.float64)
    except (TypeError, ValueError):
        return np.empty(0)


def _as_list(values: Any) -> object:
    return values.tolist() if isinstance(values, np.ndarray) else values


def arm_place(arm: object) -> int:
    """The place of an arm, whose name is a number."""
    return int(arm)  # type: ignore[call-overload,no-any-return]

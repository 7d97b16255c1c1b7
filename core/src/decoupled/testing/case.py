"""A policy under test, the checks that several tests share, and one line that says what is wrong,
where, and what to do.
"""

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
    r"Failed in |No implementation of function Function\(<function (init|decide|update) |>>> |There (are|is) "
    r"|- Of which|Overload in function '_(init|decide|update)'|With argument|Rejected as|TypingError: Failed"
    r"|During: |raised from|\[\d+\]|$"
)


def fail(policy: Policy, message: str, cause: Exception | None = None) -> NoReturn:
    """Raise the error for a policy that breaks the contract."""
    try:
        name = policy.label
    except Exception:  # a broken policy still has a class
        name = type(policy).__name__
    raise ContractError(f"{name}: {message}") from cause


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
    own = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if HERE not in Path(frame.filename).parents
        and "site-packages" not in frame.filename
        and Path(frame.filename).name != "jit.py"  # which stands between a function and its caller
        and frame.name != "<module>"
    ]
    return (
        f" ({own[-1].name}, line {own[-1].lineno} of {Path(own[-1].filename).name})" if own else ""
    )


def _not_compiled(error: BaseException) -> str:
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    lines = [line.strip() for line in text.splitlines()]
    if "NRT required" in text or "Only accept returning of array" in text:
        rule = "compiled functions make no arrays, lists or strings: keep work space in rows that the layout names"
        return f"allocates memory{_compiler_place(lines)}; {rule}"
    places = [place for place, line in enumerate(lines) if not _PREAMBLE.match(line)]
    first = places[0] if places else 0
    where = _compiler_place(lines[first:])
    message = lines[first] if lines else ""
    if found := re.match(r"Untyped global name '(\w+)':.*<class 'function'>", message):
        return f"calls {found[1]}{where}, which is not compiled; put @compiled above def {found[1]}"
    if found := re.match(r"Untyped global name '(\w+)':.*<class '(.+)'>", message):
        return f"uses {found[1]}{where}, a {found[2]}; {_TAKES}"
    if message.startswith("Can't unify return type"):
        return f"returns values of different types in different places{where}; return the same types everywhere"
    return f"cannot be compiled: {message}{where}; {_TAKES}"


def _compiler_place(lines: list[str]) -> str:
    for line in lines:
        found = re.match(r'File "(.+)", line (\d+)', line)
        if found and Path(found[1]).name != "dispatch.py" and "numba" not in found[1]:
            return f" (line {found[2]} of {Path(found[1]).name})"
    return ""


DRAWS = 50_000
HISTORY = 60


class Case(NamedTuple):
    """A policy under test.

    >>> import decoupled as dc
    >>> Case(dc.FTPL(), arms=3, rounds=100, seed=0).losses(2).shape
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
            fail(self.policy, f"{what} {raised(error)}", error)

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
        for name in (*layout.scalars, *layout.floats):
            row, remedy = layout.row(state, name), "look at what init and update write there"
            self.expect(
                np.isfinite(row).all(), f"{name!r} is {row.tolist()} {when}: not finite; {remedy}"
            )

    def check_laws(self, state: State) -> None:
        """Check both laws of a state."""
        self.law(state, "exploitation_law")
        self.law(state, "exploration_law")

    def law(self, state: State, name: str) -> Floats:
        """A law of the policy, checked."""
        return self.check_law(self.call(name, getattr(self.policy, name), state), name)

    def check_law(self, given: Any, name: str) -> Floats:
        """Check that an array holds probabilities that sum to 1."""
        law = _numbers(given)
        good = law.shape == (self.arms,) and (law >= 0.0).all() and abs(law.sum() - 1.0) < 1e-9
        message = f"{name} is {shown(_listed(given))}, which is not a law on {self.arms} arms; "
        self.expect(good, message + f"give {self.arms} probabilities that sum to 1")
        return law

    def check_estimates(self, state: State) -> None:
        """Check that there is a finite estimate for each arm."""
        given = self.call("estimates", self.policy.estimates, state)
        estimates = _numbers(given)
        remedy = f"give a finite number for each of {self.arms} arms"
        good = estimates.shape == (self.arms,) and np.isfinite(estimates).all()
        self.expect(good, f"estimates gave {shown(_listed(given))}; {remedy}")

    def weighs(self) -> bool:
        """Whether the policy sums weighted losses; a mean does not depend on the weight."""
        return self.policy.cumulative == "estimates"


def _numbers(given: Any) -> Floats:
    try:
        return np.array(given, np.float64)
    except (TypeError, ValueError):
        return np.empty(0)


def _listed(given: Any) -> object:
    return given.tolist() if isinstance(given, np.ndarray) else given


def arm_place(arm: object) -> int:
    """The place of an arm, whose name is a number."""
    return int(arm)  # type: ignore[call-overload,no-any-return]

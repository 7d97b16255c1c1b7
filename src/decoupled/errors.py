"""Every error this package raises on purpose.

    DecoupledError
    |-- ParameterError     a parameter or argument outside its domain        (also a ValueError)
    |-- ArmError           arms that are unknown, repeated or too few        (also a ValueError)
    |-- LossError          a loss that is not a number of the declared range (also a ValueError)
    |-- FeedbackError      feedback for a decision that is not pending       (also a LookupError)
    |-- StateError         a saved state that cannot be read                 (also a ValueError)
    |-- StorageError       results that cannot be written or read back       (also an OSError)
    |-- ContractError      a policy that breaks the contract of all policies (also an AssertionError)
    `-- UnsupportedError   something this policy does not offer              (also a NotImplementedError)

Whatever raises one of these has changed nothing.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice

_LISTED = 20  # so many known names a hint shows: all policies there are
_COMPARED = 10_000  # so many it looks at: to compare a million would take a minute


class DecoupledError(Exception):
    """The root of the tree: catch it to catch every error of this package.

    >>> import decoupled as dc
    >>> try:
    ...     dc.FTPL(alpha=1.0)
    ... except dc.DecoupledError as error:
    ...     print(error)
    alpha = 1.0: must be a finite number above 1 and below 1e+09; the default is 3
    """


class ParameterError(DecoupledError, ValueError):
    """A parameter or argument lies outside its domain.

    >>> import decoupled as dc
    >>> dc.Exp3(c=-1)
    Traceback (most recent call last):
        ...
    decoupled.errors.ParameterError: c = -1: must be a finite number above 0 and below 1e+100; the default is 2
    """


class ArmError(DecoupledError, ValueError):
    """Arms are unknown, repeated, of the wrong type or too few.

    >>> import decoupled as dc
    >>> dc.FTPL().start(arms=["left", "left"], seed=0)
    Traceback (most recent call last):
        ...
    decoupled.errors.ArmError: arms: 'left' appears twice; give every arm a name of its own
    """


class LossError(DecoupledError, ValueError):
    """A loss or reward is not a number within the declared range.

    >>> import decoupled as dc
    >>> learner = dc.FTPL().start(arms=2, seed=0)
    >>> learner.observe(learner.decide(), loss=7.0)
    Traceback (most recent call last):
        ...
    decoupled.errors.LossError: loss = 7.0: must lie in [0.0, 1.0]; declare another range with start(..., loss_range=(low, high))
    """


class FeedbackError(DecoupledError, LookupError):
    """Feedback names a decision that is not pending: observed before, forgotten, or never made.

    >>> import decoupled as dc
    >>> learner = dc.FTPL().start(arms=2, seed=0)
    >>> decision = learner.decide()
    >>> learner.observe(decision, loss=0.5)
    >>> learner.observe(decision, loss=0.5)
    Traceback (most recent call last):
        ...
    decoupled.errors.FeedbackError: decision '20c6ed6d9d7b-1': is not pending: its feedback was applied before, or it was forgotten; send feedback once for each decision
    """


class StateError(DecoupledError, ValueError):
    """A saved state is damaged, or of a version this package cannot read.

    >>> import decoupled as dc
    >>> dc.Learner.from_json("{}")
    Traceback (most recent call last):
        ...
    decoupled.errors.StateError: state: has no 'format'; give the text that Learner.to_json() wrote
    """


class StorageError(DecoupledError, OSError):
    """Results cannot be written where they should go, or what is there belongs to something else.

    >>> import decoupled as dc, tempfile
    >>> folder, easy = tempfile.mkdtemp(), dc.environments.Bernoulli([0.2, 0.7])
    >>> _ = dc.simulate(dc.FTPL(), easy, horizon=10, runs=2, seed=0, out=folder)
    >>> try:
    ...     dc.simulate(dc.FTPL(), easy, horizon=20, runs=2, seed=0, out=folder)
    ... except dc.StorageError as error:
    ...     print(str(error).removeprefix(folder))
    : holds the results of another specification, or of other code; choose another folder, or remove this one
    """


class ContractError(DecoupledError, AssertionError):
    """A policy breaks the contract that every policy keeps; see `decoupled.testing.check_policy`.

    >>> import decoupled as dc
    >>> try:
    ...     raise dc.ContractError("Mine: its exploration law sums to 1.02")
    ... except AssertionError as error:
    ...     print(error)
    Mine: its exploration law sums to 1.02
    """


class UnsupportedError(DecoupledError, NotImplementedError):
    """A policy does not offer what was asked of it; the message says why and what does.

    >>> import decoupled as dc
    >>> dc.UCB1().start(arms=2, seed=0).exploit()
    Traceback (most recent call last):
        ...
    decoupled.errors.UnsupportedError: exploit(): UCB1 plays the standard game, where the arm played is the arm seen; use decide(), or a decoupled policy such as FTPL
    """


class Message(str):
    """One sentence that names the argument, its value, the rule and the remedy, and knows these parts.

    An error may be read far from where it was raised: over HTTP no one can call `start(...)`. Whoever
    passes it on puts a remedy that exists there in place of the other: see `reworded`.
    """

    argument: str
    value: str
    rule: str
    remedy: str

    def __new__(cls, argument: str, value: str, rule: str, remedy: str) -> "Message":
        """The sentence of these parts."""
        message = super().__new__(cls, f"{argument} = {value}: {rule}; {remedy}")
        message.argument, message.value, message.rule, message.remedy = argument, value, rule, remedy
        return message

    def __getnewargs__(self) -> tuple[str, str, str, str]:  # type: ignore[override]
        return self.argument, self.value, self.rule, self.remedy


def complaint(argument: str, value: object, rule: str, remedy: str) -> Message:
    """One sentence that names the argument, its value, the rule and the remedy."""
    return Message(argument, shown(value), rule, remedy)


def reworded(error: Exception, *, argument: str | None = None, remedy: str | None = None) -> str:
    """The message of an error for readers elsewhere: with their name of the argument, or their remedy.

    A message that was not made of parts is given as it is.

    >>> error = LossError(complaint("loss", 7.0, "must lie in [0.0, 1.0]", "see start()"))
    >>> reworded(error, remedy="see PUT /v1/experiments")
    'loss = 7.0: must lie in [0.0, 1.0]; see PUT /v1/experiments'
    """
    message = _parts(error)
    if message is None:
        return str(error)
    return Message(argument or message.argument, message.value, message.rule, remedy or message.remedy)


def argument_of(error: Exception) -> str | None:
    """The argument that an error is about; None where its message was not made of parts."""
    message = _parts(error)
    return None if message is None else message.argument


def _parts(error: Exception) -> Message | None:
    return error.args[0] if error.args and isinstance(error.args[0], Message) else None


def shown(value: object) -> str:
    """A value as an error shows it: never too long, and never an error of its own."""
    try:
        text = repr(value)
    except ValueError:  # a whole number of thousands of digits refuses to be printed
        text = f"<{type(value).__name__}>"
    return text if len(text) <= 500 else f"{text[:497]}..."


def near_name(name: object, known: Iterable[object]) -> str:
    """A hint at the known name most like `name`, or a list of those there are."""
    names = [str(each) for each in islice(known, _COMPARED)]
    close = get_close_matches(str(name), names, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    shown = ", ".join(repr(each) for each in names[:_LISTED])
    return f"known are {shown}" + (", ..." if len(names) > _LISTED else "")

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

Whatever raises one of these has changed nothing. Besides the errors there is one warning, `UnseenArmWarning`.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice
from typing import Self

_LISTED = 20  # so many known names a hint shows: all policies there are
_COMPARED = 10_000  # so many it looks at: to compare a million would take a minute


class DecoupledError(Exception):
    r"""The root of the tree: catch it to catch every error of this package.

    >>> import decoupled as dc
    >>> try:
    ...     dc.FTPL(alpha=1.0)
    ... except dc.DecoupledError as error:
    ...     print(error)
    alpha = 1.0: must be a finite number above 1 and below 1e+09; the default is 3

    Most messages have two parts, which can be had apart:

    >>> try:
    ...     dc.FTPL(alpha=1.0)
    ... except dc.DecoupledError as error:
    ...     print(error.problem, error.remedy, sep="\n")
    alpha = 1.0: must be a finite number above 1 and below 1e+09
    the default is 3
    """

    @property
    def problem(self) -> str:
        """What is wrong: the message without its remedy."""
        text = self.args[0] if self.args else ""
        return text.problem if isinstance(text, Message) else str(text)

    @property
    def remedy(self) -> str | None:
        """What to do about it; None where the message is of one piece."""
        text = self.args[0] if self.args else ""
        return text.remedy if isinstance(text, Message) else None

    def with_remedy(self, remedy: str) -> Self:
        """The same error with another remedy, for readers to whom the first is of no use.

        >>> import decoupled as dc
        >>> str(dc.LossError("loss = 7").with_remedy("create the experiment with another loss_range"))
        'loss = 7; create the experiment with another loss_range'
        """
        return self._saying(Message(self.problem, remedy))

    def within(self, place: str) -> Self:
        """The same error, said of a part of something larger, such as one record of a log."""
        problem = f"{place}: {self.problem}"
        return self._saying(problem if self.remedy is None else Message(problem, self.remedy))

    def _saying(self, text: str) -> Self:
        error = type(self).__new__(
            type(self)
        )  # an error may have more than a text, and its own way to be made
        error.args = (text, *self.args[1:])
        error.__dict__.update(self.__dict__)
        return error


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


class UnseenArmWarning(UserWarning):
    """A replayed log leaves out arms that have no loss on record.

    Nothing speaks against such an arm, so the learner may exploit it at once.

    >>> import warnings
    >>> import decoupled as dc
    >>> learner = dc.FTPL().start(arms=["a", "b", "c"], seed=0)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = learner.replay([("a", 0.5, 0.9), ("b", 0.5, 0.2)])
    >>> print(caught[0].message)
    records: arm 'c' never occurs and has no loss on record, so it may be exploited at once; start without it, replay, then bring it in with add_arms()
    """


class Message(str):
    """The text of an error, with its two parts: what is wrong, and what to do about it.

    An error may be read far from where it was raised: over HTTP no one can call `start(...)`. Whoever passes it
    on puts a remedy that exists there in place of the other: see `reworded`.
    """

    problem: str
    remedy: str
    argument: str | None  # what it is about, where the problem begins with its name

    def __new__(cls, problem: str, remedy: str, argument: str | None = None) -> "Message":
        """The text is both parts, with a semicolon between them."""
        text = super().__new__(cls, f"{problem}; {remedy}")
        text.problem, text.remedy, text.argument = problem, remedy, argument
        return text

    def __getnewargs__(self) -> tuple[str, str, str | None]:  # type: ignore[override]
        return self.problem, self.remedy, self.argument  # errors travel between processes


def invalid_value(argument: str, value: object, rule: str, remedy: str) -> Message:
    """One sentence that names the argument, its value, the rule and the remedy."""
    return Message(f"{argument} = {shown(value)}: {rule}", remedy, argument)


def reworded(error: Exception, *, argument: str | None = None, remedy: str | None = None) -> str:
    """The message of an error for readers elsewhere: with their name of the argument, or their remedy.

    A message that was not made of parts is given as it is.

    >>> error = LossError(invalid_value("loss", 7.0, "must lie in [0.0, 1.0]", "see start()"))
    >>> reworded(error, remedy="see PUT /v1/experiments")
    'loss = 7.0: must lie in [0.0, 1.0]; see PUT /v1/experiments'
    """
    message = _parts(error)
    if message is None:
        return str(error)
    problem, known = message.problem, message.argument
    if argument is not None and known is not None:
        problem = argument + problem.removeprefix(known)
    return Message(problem, remedy or message.remedy, argument or known)


def argument_of(error: Exception) -> str | None:
    """The argument that an error is about; None where its message does not tell."""
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

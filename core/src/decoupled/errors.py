"""Every error that this package raises on purpose, and one warning.

A call that raises one of them has changed nothing.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice
from typing import Self

_LISTED = 20  # how many known names a hint shows: enough for all policies
_COMPARED = 10_000  # how many names it compares: a million would take a minute


class DecoupledError(Exception):
    """The base class: catch it to catch every error of this package.

    >>> import decoupled as dc
    >>> try:
    ...     dc.FTPL(alpha=1.0)
    ... except dc.DecoupledError as error:
    ...     print(error)
    alpha = 1.0: must be a finite number above 1 and below 1e+09; the default is 3
    """

    @classmethod
    def of(cls, argument: str, value: object, rule: str, remedy: str) -> Self:
        """An error that names an argument, its value, the rule that it breaks and a remedy.

        Args:
            argument: the name of the argument.
            value: what was given.
            rule: what it must be.
            remedy: what the reader of the error can do.

        >>> import decoupled as dc
        >>> str(dc.ParameterError.of("share", 2.0, "must lie in [0, 1]", "lower it"))
        'share = 2.0: must lie in [0, 1]; lower it'
        """
        return cls(Message(f"{argument} = {shown(value)}: {rule}", remedy, argument))

    def within(self, place: str) -> Self:
        """The same error, prefixed with a place such as one record of a log.

        Args:
            place: where the value was found, such as "policies[1]".
        """
        message = message_of(self)
        error = type(self).__new__(type(self))  # a subclass may have another constructor
        error.args = (Message(f"{place}: {message.problem}", message.remedy), *self.args[1:])
        error.__dict__.update(self.__dict__)
        return error


class ParameterError(DecoupledError, ValueError):
    """A parameter or argument is outside its domain.

    >>> import decoupled as dc
    >>> dc.Exp3(c=-1)
    Traceback (most recent call last):
        ...
    decoupled.errors.ParameterError: c = -1: must be a finite number above 0 and below 1e+100; ...
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
    """A loss or reward is not a number in the declared range.

    >>> import decoupled as dc
    >>> learner = dc.FTPL().start(arms=2, seed=0)
    >>> learner.observe(learner.decide(), loss=7.0)
    Traceback (most recent call last):
        ...
    decoupled.errors.LossError: loss = 7.0: must lie in [0.0, 1.0]; declare another range with ...
    """


class FeedbackError(DecoupledError, LookupError):
    """Feedback for a decision that is not pending: already observed, forgotten, or never made.

    >>> import decoupled as dc
    >>> learner = dc.FTPL().start(arms=2, seed=0)
    >>> decision = learner.decide()
    >>> learner.observe(decision, loss=0.5)
    >>> learner.observe(decision, loss=0.5)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    decoupled.errors.FeedbackError: decision '...-1': is not pending: its feedback was already ...
    """


class ReentryError(DecoupledError, RuntimeError):
    """A call inside another of the same object, by a signal handler, finalizer or callback.

    The call is refused because it would wait forever. Nothing has changed, and the other call
    continues once the handler returns.

    >>> import decoupled as dc
    >>> learner = dc.FTPL().start(arms=2, seed=0)
    >>> calls_back = lambda: meter.decide(learner)
    >>> meter = dc.Meter(dc.Budget(share=0.5), clock=calls_back)
    >>> try:
    ...     meter.decide(learner)
    ... except dc.ReentryError as error:
    ...     print(str(error)[:80])
    decide(): this thread is inside another call of the same Meter, so it would wait
    """


class StateError(DecoupledError, ValueError):
    """A saved state is damaged, or has a version that this package cannot read.

    >>> import decoupled as dc
    >>> dc.Learner.from_json("{}")
    Traceback (most recent call last):
        ...
    decoupled.errors.StateError: state: has no 'format'; give the text that Learner.to_json() wrote
    """


class StorageError(DecoupledError, OSError):
    """Results cannot be written or read, or the folder contains something else.

    >>> import decoupled as dc, tempfile
    >>> folder, easy = tempfile.mkdtemp(), dc.environments.Bernoulli([0.2, 0.7])
    >>> _ = dc.simulate(dc.FTPL(), easy, horizon=10, runs=2, seed=0, out=folder)
    >>> try:
    ...     dc.simulate(dc.FTPL(), easy, horizon=20, runs=2, seed=0, out=folder)
    ... except dc.StorageError as error:
    ...     print(str(error).removeprefix(folder))
    : holds the results of another specification, or of other code; choose another folder, ...
    """


class ContractError(DecoupledError, AssertionError):
    """A policy breaks the contract of all policies; see `decoupled.testing.check_policy`.

    >>> import decoupled as dc
    >>> try:
    ...     raise dc.ContractError("Mine: its exploration law sums to 1.02")
    ... except AssertionError as error:
    ...     print(error)
    Mine: its exploration law sums to 1.02
    """


class UnsupportedError(DecoupledError, NotImplementedError):
    """A policy does not support a call; the message says why, and what to use instead.

    >>> import decoupled as dc
    >>> dc.UCB1().start(arms=2, seed=0).exploit()
    Traceback (most recent call last):
        ...
    decoupled.errors.UnsupportedError: exploit(): UCB1 plays the standard game, where the arm ...
    """


class MissingExtraError(DecoupledError, ImportError):
    """A package is not installed; the message names the extra that installs it.

    >>> import decoupled as dc
    >>> try:
    ...     raise dc.MissingExtraError("a plot: needs the package matplotlib")
    ... except ImportError as error:
    ...     print(error)
    a plot: needs the package matplotlib
    """


class UnseenArmWarning(UserWarning):
    """Neither the replayed log nor the learner has a loss of some arms.

    The learner may exploit such an arm at once, because no loss speaks against it.

    >>> import warnings
    >>> import decoupled as dc
    >>> learner = dc.FTPL().start(arms=["a", "b", "c"], seed=0)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = learner.replay([("a", 0.5, 0.9), ("b", 0.5, 0.2)])
    >>> print(caught[0].message)  # doctest: +ELLIPSIS
    records: arm 'c' never occurs and has no loss on record, so it may be exploited at once; ...
    """


class Message(str):
    """The text of an error in two parts: the problem and the remedy, if there is one.

    An error may be read far from where it was raised: an HTTP client cannot call `start(...)`. Code
    that passes it on gives a remedy that exists there; see `reworded`.

    >>> Message("loss = 7: must lie in [0, 1]", "scale it").remedy
    'scale it'
    """

    problem: str
    remedy: str | None
    argument: str | None  # the argument at fault, if the problem begins with its name

    def __new__(
        cls, problem: str, remedy: str | None = None, argument: str | None = None
    ) -> "Message":
        """Join both parts with a semicolon."""
        message = super().__new__(cls, problem if remedy is None else f"{problem}; {remedy}")
        message.problem = problem
        message.remedy = remedy
        message.argument = argument
        return message

    def __getnewargs__(self) -> tuple[str, str | None, str | None]:  # type: ignore[override]
        return self.problem, self.remedy, self.argument  # errors are pickled between processes


def reworded(error: Exception, *, argument: str | None = None, remedy: str | None = None) -> str:
    """An error's message with another argument name or another remedy.

    A message without parts stays as it is.

    >>> error = LossError.of("loss", 7.0, "must lie in [0.0, 1.0]", "see start()")
    >>> reworded(error, remedy="see PUT /v1/experiments")
    'loss = 7.0: must lie in [0.0, 1.0]; see PUT /v1/experiments'
    """
    message = message_of(error)
    if message.remedy is None:
        return message
    problem = message.problem
    if argument is not None and message.argument is not None:
        problem = argument + problem.removeprefix(message.argument)
    return Message(problem, remedy or message.remedy, argument or message.argument)


def message_of(error: Exception) -> Message:
    """The message of an error, with its parts if it has any.

    >>> message_of(LossError.of("loss", 7.0, "must lie in [0, 1]", "scale it")).argument
    'loss'
    """
    text = error.args[0] if error.args else ""
    return text if isinstance(text, Message) else Message(str(text))


def shown(value: object) -> str:
    """A value as an error shows it: shortened if too long, and safe if its repr fails.

    >>> shown("a"), len(shown("a" * 1_000))
    ("'a'", 500)
    """
    try:
        text = repr(value)
    except ValueError:  # Python does not print integers of thousands of digits
        text = f"<{type(value).__name__}>"
    return text if len(text) <= 500 else f"{text[:497]}..."


def near_name(name: object, names: Iterable[object]) -> str:
    """A hint: the known name most like `name`, or a list of the known names.

    >>> near_name("grene", ["green", "blue"]), near_name("x", ["green", "blue"])
    ("did you mean 'green'?", "known are 'green', 'blue'")
    """
    known_names = [str(known_name) for known_name in islice(names, _COMPARED)]
    close_names = get_close_matches(str(name), known_names, n=1)
    if close_names:
        return f"did you mean {close_names[0]!r}?"
    listing = ", ".join(repr(known_name) for known_name in known_names[:_LISTED])
    ending = ", ..." if len(known_names) > _LISTED else ""
    return f"known are {listing}{ending}"

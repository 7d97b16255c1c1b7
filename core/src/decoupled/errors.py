"""Every error that this package raises on purpose, and one warning. A call that raises one of them
has changed nothing.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice
from typing import Self

_LISTED = 20  # how many known names a hint shows: enough for all policies
_COMPARED = 10_000  # how many names it compares: a million would take a minute


class DecoupledError(Exception):
    r"""The base class: catch it to catch every error of this package.

    >>> import decoupled as dc
    >>> try:
    ...     dc.FTPL(alpha=1.0)
    ... except dc.DecoupledError as error:
    ...     print(error)
    alpha = 1.0: must be a finite number above 1 and below 1e+09; the default is 3

    Most messages have two parts, which you can also read separately:

    >>> try:
    ...     dc.FTPL(alpha=1.0)
    ... except dc.DecoupledError as error:
    ...     print(error.problem, error.remedy, sep="\n")
    alpha = 1.0: must be a finite number above 1 and below 1e+09
    the default is 3
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

    @property
    def problem(self) -> str:
        """The message without its remedy."""
        return _parts(self).problem

    @property
    def remedy(self) -> str | None:
        """What to do about it; None if the message has no separate remedy."""
        return _parts(self).remedy

    def with_remedy(self, remedy: str) -> Self:
        """The same error with another remedy, for readers who cannot follow the first one.

        Args:
            remedy: what the reader of the error can do.

        >>> import decoupled as dc
        >>> str(dc.LossError("loss = 7").with_remedy("create the experiment with another loss_range"))
        'loss = 7; create the experiment with another loss_range'
        """
        return self._with_text(Message(self.problem, remedy))

    def within(self, place: str) -> Self:
        """The same error, prefixed with a place such as one record of a log.

        Args:
            place: where the value was found, such as "policies[1]".
        """
        return self._with_text(Message(f"{place}: {self.problem}", self.remedy))

    def _with_text(self, text: str) -> Self:
        error = type(self).__new__(type(self))  # a subclass may have another constructor
        error.args = (text, *self.args[1:])
        error.__dict__.update(self.__dict__)
        return error


class ParameterError(DecoupledError, ValueError):
    """A parameter or argument is outside its domain.

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
    """A loss or reward is not a number in the declared range.

    >>> import decoupled as dc
    >>> learner = dc.FTPL().start(arms=2, seed=0)
    >>> learner.observe(learner.decide(), loss=7.0)
    Traceback (most recent call last):
        ...
    decoupled.errors.LossError: loss = 7.0: must lie in [0.0, 1.0]; declare another range with start(..., loss_range=(low, high))
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
    decoupled.errors.FeedbackError: decision '...-1': is not pending: its feedback was already applied, or it was forgotten; send feedback once for each decision
    """


class ReentryError(DecoupledError, RuntimeError):
    """A signal handler, a finalizer or a callback calls an object in the middle of another call of
    it.

    It would wait forever. Nothing has changed, and the other call continues once the handler
    returns.

    >>> import decoupled as dc
    >>> learner = dc.FTPL().start(arms=2, seed=0)
    >>> meter = dc.Meter(dc.Budget(share=0.5), clock=lambda: meter.decide(learner))    # a callback that calls back
    >>> try:
    ...     meter.decide(learner)
    ... except dc.ReentryError as error:
    ...     print(error.problem[:80])
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
    : holds the results of another specification, or of other code; choose another folder, or remove this one
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
    decoupled.errors.UnsupportedError: exploit(): UCB1 plays the standard game, where the arm played is the arm seen; use decide(), or a decoupled policy such as FTPL
    """


class MissingExtraError(DecoupledError, ImportError):
    """A package is not installed; the message names the extra that installs it.

    >>> import decoupled as dc
    >>> try:
    ...     raise dc.MissingExtraError("a plot: needs the package matplotlib, which is not installed")
    ... except ImportError as error:
    ...     print(error)
    a plot: needs the package matplotlib, which is not installed
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
    >>> print(caught[0].message)
    records: arm 'c' never occurs and has no loss on record, so it may be exploited at once; start without it, replay, then bring it in with add_arms()
    """


class Message(str):
    """The text of an error in two parts: the problem and the remedy, if there is one.

    An error may be read far from where it was raised: an HTTP client cannot call `start(...)`. Code
    that passes it on replaces the remedy with one that exists there; see `reworded`.

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
        text = super().__new__(cls, problem if remedy is None else f"{problem}; {remedy}")
        text.problem, text.remedy, text.argument = problem, remedy, argument
        return text

    def __getnewargs__(self) -> tuple[str, str | None, str | None]:  # type: ignore[override]
        return self.problem, self.remedy, self.argument  # errors are pickled between processes


def reworded(error: Exception, *, argument: str | None = None, remedy: str | None = None) -> str:
    """The message of an error for other readers, with another name of the argument or another
    remedy.

    A message without parts stays as it is.

    >>> error = LossError.of("loss", 7.0, "must lie in [0.0, 1.0]", "see start()")
    >>> reworded(error, remedy="see PUT /v1/experiments")
    'loss = 7.0: must lie in [0.0, 1.0]; see PUT /v1/experiments'
    """
    message = _parts(error)
    if message.remedy is None:
        return str(error)
    problem, known = message.problem, message.argument
    if argument is not None and known is not None:
        problem = argument + problem.removeprefix(known)
    return Message(problem, remedy or message.remedy, argument or known)


def argument_of(error: Exception) -> str | None:
    """The argument that an error is about; None if its message does not say."""
    return _parts(error).argument


def _parts(error: Exception) -> Message:
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


def near_name(name: object, known: Iterable[object]) -> str:
    """A hint: the known name most like `name`, or a list of the known names.

    >>> near_name("grene", ["green", "blue"]), near_name("x", ["green", "blue"])
    ("did you mean 'green'?", "known are 'green', 'blue'")
    """
    names = [str(each) for each in islice(known, _COMPARED)]
    close = get_close_matches(str(name), names, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    listed = ", ".join(repr(each) for each in names[:_LISTED])
    return f"known are {listed}" + (", ..." if len(names) > _LISTED else "")

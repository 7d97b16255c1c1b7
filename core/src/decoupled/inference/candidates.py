"""A candidate to be judged on a log: the probability with which it would have exploited each arm in
each row.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ..base.arrays import Floats, Ints
from ..base.validation import check_number
from ..decision import Arm, ByArm
from ..errors import ParameterError, UnseenArmWarning, shown
from .log_columns import Log

# In a log with more rows, a replayed policy draws its arm, which is quicker than computing its law.
MOST_EXACT = 20_000
_KINDS = (
    "give an arm, a mapping from arms to shares, an array of laws, a function of a context or a "
    "row, or a policy"
)

# The shares of an arm, given its place: one for all rows, or one for each.
Shares: TypeAlias = Callable[[int], float | Floats]


class Startable(Protocol):
    """A policy, as it is replayed."""

    def start(self, arms: Any, seed: Any = None) -> Any:
        """A learner."""


Candidate: TypeAlias = (
    Arm
    | ByArm
    | ArrayLike
    | Callable[[Any], ArrayLike | ByArm]
    | Mapping[Any, Arm | ByArm]
    | Startable
)
"""What `evaluate` can judge: an arm, shares of arms, laws, a function from a context or a row to an
arm or a law, a mapping from segments to these, or a policy.
"""


def shares_of(candidate: Any, log: Log, segments: Any = None) -> tuple[str, Shares]:
    """The name of a candidate, and its shares; with `segments`, a mapping from the values of these
    fields.
    """
    if segments is not None:
        look_up = _by_segment(candidate, log, _fields(segments))
        return "the mapping", _shares_of_function(look_up, log)
    if hasattr(candidate, "start"):
        return repr(candidate), _of_columns(_replayed(candidate, log))
    if isinstance(candidate, (str, int)) and not isinstance(candidate, bool):
        only = log.place(candidate)
        return f"always {candidate}", lambda place: float(place == only)
    if isinstance(candidate, Mapping):
        law = _law_of_mapping(candidate, log)
        name = ", ".join(f"{100 * share:.4g} % {arm}" for arm, share in candidate.items())
        return name, lambda place: float(law[place])
    if callable(candidate):
        return "the function", _shares_of_function(candidate, log)
    return "the laws given", _shares_of_array(candidate, log)


def _shares_of_function(function: Callable[[Any], Any], log: Log) -> Shares:
    """The shares of a function of the context of a row, or of its number without contexts."""
    inputs = log.rows.tolist() if log.context is None else log.context
    laws = np.array([_law_of_call(function, value, log) for value in inputs])
    return _of_columns(_checked_laws(laws, log))


def _shares_of_array(candidate: Any, log: Log) -> Shares:
    """The shares of an array with a law for each row of the log."""
    try:
        laws = np.asarray(candidate, np.float64)
    except (TypeError, ValueError):
        raise ParameterError.of("policy", candidate, "is none that can be judged", _KINDS) from None
    arms = len(log.arms)
    if laws.shape != (log.size, arms):
        rule = (
            f"must have a row for each of {log.size} decisions and a column for each of {arms} arms"
        )
        raise ParameterError.of("policy", laws.shape, rule, _KINDS)
    return _of_columns(_checked_laws(laws[log.rows], log))


def _of_columns(laws: Floats) -> Shares:
    """The shares that laws give, one a row."""
    return lambda place: laws[:, place]


def _law_of_call(function: Callable[[Any], Any], value: Any, log: Log) -> Any:
    """The law that a function of the caller returns for one row: an arm, a mapping, or a law."""
    answer = function(value)
    if isinstance(answer, (str, int, np.integer)):
        return np.arange(len(log.arms)) == log.place(answer)
    if isinstance(answer, Mapping):
        return _law_of_mapping(answer, log)
    try:
        law = np.asarray(answer, np.float64)
    except (TypeError, ValueError, OverflowError):
        law = np.empty(0)
    if law.shape != (len(log.arms),):
        rule = f"is no arm, and no {len(log.arms)} probabilities, for {shown(value)}"
        remedy = "return an arm or a law for every decision"
        raise ParameterError.of("policy(...)", answer, rule, remedy)
    return law


def _fields(segments: Any) -> tuple[str, ...]:
    """The names of the fields that tell segments apart."""
    names = (segments,) if isinstance(segments, str) else segments
    is_list = isinstance(names, Sequence) and len(names) > 0
    if not is_list or not all(isinstance(name, str) for name in names):
        rule = "must be names of fields of the context"
        raise ParameterError.of("segments", segments, rule, "for example ('subject',)")
    return tuple(names)


def _by_segment(
    candidate: Any, log: Log, fields: tuple[str, ...]
) -> Callable[[Mapping[str, Any]], Any]:
    """The function that looks a context up in a mapping; the key of one field is its value, with or
    without a tuple.
    """
    if not isinstance(candidate, Mapping):
        rule = "must be a mapping from the values of the fields in `segments` to an arm or a law"
        raise ParameterError.of("policy", candidate, rule, "leave `segments` out for others")
    if log.context is None:
        remedy = "log a column `context`, or leave `segments` out"
        raise ParameterError.of("segments", fields, "need a context, and the log has none", remedy)

    def rule_of(context: Mapping[str, Any]) -> Any:
        segment: Any = tuple(context.get(name) for name in fields)
        if len(segment) == 1 and segment not in candidate:
            segment = segment[0]
        try:
            return candidate[segment]
        except KeyError:
            rule = "is a segment of the log that the mapping lacks"
            remedy = "add it, or give a collections.defaultdict"
            raise ParameterError.of("policy", segment, rule, remedy) from None

    return rule_of


def _law_of_mapping(shares: Mapping[Arm, float], log: Log) -> Floats:
    """The law over the arms of the log that a mapping from arms to shares describes."""
    law = np.zeros(len(log.arms))
    for arm, share in shares.items():
        law[log.place(arm)] = check_number(
            f"policy[{arm!r}]", share, "shares add up to 1", at_least=0.0, at_most=1.0
        )
    _checked_laws(law[None, :], log)
    return law


def _checked_laws(laws: Floats, log: Log) -> Floats:
    """The laws, one a row, if each has probabilities that add up to 1."""
    sums = laws.sum(axis=1) if laws.ndim == 2 and laws.shape[1] == len(log.arms) else np.zeros(1)
    wrong_rows = np.flatnonzero(~(np.abs(sums - 1.0) < 1e-6))
    if len(wrong_rows) > 0 or laws.min(initial=0.0) < 0.0:
        rule = f"must be {len(log.arms)} probabilities that add up to 1, in the order of arms"
        row = laws[wrong_rows[0] if len(wrong_rows) else int(np.argmin(laws.min(axis=1)))]
        raise ParameterError.of("policy", row.tolist(), rule, _KINDS)
    return laws


def _replayed(policy: Startable, log: Log) -> Floats:
    """A policy's law of exploitation in each row, from the losses that were known before its
    decision.
    """
    learner = policy.start(list(log.arms), seed=0)
    is_exact = len(log) <= MOST_EXACT or learner.policy.coupled
    place_of = {arm: place for place, arm in enumerate(log.arms)}
    laws = np.zeros((len(log), len(log.arms)))
    arrivals = np.argsort(log.settled_at, kind="stable")
    decisions = np.argsort(log.made_at, kind="stable")
    contexts: list[dict[str, Any]] = [{}] * len(log)
    if learner.policy.contextual and log.context:
        contexts = [{"context": context} for context in log.context]
    records = _records(log, arrivals, contexts)
    arrived_counts = np.searchsorted(log.settled_at[arrivals], log.made_at[decisions], side="left")
    replayed_count = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnseenArmWarning)  # arms that were not seen yet come later
        for row, arrived_count in zip(decisions.tolist(), arrived_counts.tolist(), strict=True):
            if arrived_count > replayed_count:
                learner.replay(records[replayed_count:arrived_count])
                replayed_count = arrived_count
            if is_exact:
                laws[row] = learner.exploitation_probabilities(**contexts[row])
            else:
                laws[row, place_of[learner.exploit(**contexts[row]).exploit]] = 1.0
    return laws


def _records(log: Log, rows: Ints, contexts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What `Learner.replay` takes for these rows of a log."""
    return [
        {
            "explore": log.arms[log.explore[row]],
            "propensity": float(log.propensity[row]),
            "loss": float(log.loss[row]),
            **contexts[row],
        }
        for row in rows.tolist()
    ]

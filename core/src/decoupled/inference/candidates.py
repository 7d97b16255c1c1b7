"""A candidate to be judged on a log: the probability with which it would have exploited each arm in
each row.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ..base.arrays import Floats
from ..base.validation import share_of
from ..decision import Arm, ByArm
from ..errors import ParameterError, UnseenArmWarning, shown
from .log_columns import Log

# rows; beyond that a replayed policy draws its arm, which is quicker than computing its law
EXACT = 20_000
_KINDS = "give an arm, a mapping from arms to shares, an array of laws, a function of a context or a row, or a policy"

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
        candidate = _by_segment(candidate, log, _fields(segments))
    if hasattr(candidate, "start"):
        return repr(candidate), _of_columns(_replayed(candidate, log))
    if isinstance(candidate, (str, int)) and not isinstance(candidate, bool):
        only = log.place(candidate)
        return f"always {candidate}", lambda place: float(place == only)
    if isinstance(candidate, Mapping):
        law = _mapped(candidate, log)
        name = ", ".join(f"{100 * share:.4g} % {arm}" for arm, share in candidate.items())
        return name, lambda place: float(law[place])
    if callable(candidate):
        given = log.rows.tolist() if log.context is None else log.context
        name = "the function" if segments is None else "the mapping"
        return name, _of_columns(
            _checked(np.array([_called(candidate, each, log) for each in given]), log)
        )
    try:
        laws = np.asarray(candidate, np.float64)
    except (TypeError, ValueError):
        raise ParameterError.of("policy", candidate, "is none that can be judged", _KINDS) from None
    if laws.shape != (log.size, len(log.arms)):
        rule = f"must have a row for each of {log.size} decisions and a column for each of {len(log.arms)} arms"
        raise ParameterError.of("policy", laws.shape, rule, _KINDS)
    return "the laws given", _of_columns(_checked(laws[log.rows], log))


def _of_columns(laws: Floats) -> Shares:
    return lambda place: laws[:, place]


def _called(candidate: Callable[[Any], Any], given: Any, log: Log) -> Any:
    found = candidate(given)
    if isinstance(found, (str, int, np.integer)):
        return np.arange(len(log.arms)) == log.place(found)
    if isinstance(found, Mapping):
        return _mapped(found, log)
    try:
        law = np.asarray(found, np.float64)
    except (TypeError, ValueError, OverflowError):
        law = np.empty(0)
    if law.shape != (len(log.arms),):
        rule = f"is no arm, and no {len(log.arms)} probabilities, for {shown(given)}"
        raise ParameterError.of(
            "policy(...)", found, rule, "return an arm or a law for every decision"
        )
    return law


def _fields(segments: Any) -> tuple[str, ...]:
    names = (segments,) if isinstance(segments, str) else segments
    if (
        not isinstance(names, Sequence)
        or not names
        or not all(isinstance(name, str) for name in names)
    ):
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
        key = tuple(context.get(name) for name in fields)
        plain = key[0] if len(key) == 1 and key not in candidate else key
        try:
            return candidate[plain]
        except KeyError:
            rule = "is a segment of the log that the mapping lacks"
            remedy = "add it, or give a collections.defaultdict"
            raise ParameterError.of("policy", plain, rule, remedy) from None

    return rule_of


def _mapped(shares: Mapping[Arm, float], log: Log) -> Floats:
    law = np.zeros(len(log.arms))
    for arm, share in shares.items():
        law[log.place(arm)] = share_of(f"policy[{arm!r}]", share, "shares add up to 1")
    _checked(law[None, :], log)
    return law


def _checked(laws: Floats, log: Log) -> Floats:
    sums = laws.sum(axis=1) if laws.ndim == 2 and laws.shape[1] == len(log.arms) else np.zeros(1)
    wrong = np.flatnonzero(~(np.abs(sums - 1.0) < 1e-6))
    if len(wrong) > 0 or laws.min(initial=0.0) < 0.0:
        rule = f"must be {len(log.arms)} probabilities that add up to 1, in the order of arms"
        row = laws[wrong[0] if len(wrong) else int(np.argmin(laws.min(axis=1)))]
        raise ParameterError.of("policy", row.tolist(), rule, _KINDS)
    return laws


def _replayed(policy: Startable, log: Log) -> Floats:
    """A policy's law of exploitation in each row, from the losses that were known before its
    decision.
    """
    learner = policy.start(list(log.arms), seed=0)
    exact = len(log) <= EXACT or learner.policy.coupled
    numbers = {arm: place for place, arm in enumerate(log.arms)}
    laws = np.zeros((len(log), len(log.arms)))
    arrivals, decisions = (
        np.argsort(log.settled, kind="stable"),
        np.argsort(log.made, kind="stable"),
    )
    names = [log.arms[place] for place in log.explore[arrivals].tolist()]
    told = [{"context": each} for each in log.context or ()] if learner.policy.contextual else None
    numbers_of = log.propensity[arrivals].tolist(), log.loss[arrivals].tolist()
    records: list[Any] = list(zip(names, *numbers_of, strict=True))
    if told:
        columns = ("explore", "propensity", "loss")
        records = [
            dict(zip(columns, record, strict=True)) | told[row]
            for record, row in zip(records, arrivals.tolist(), strict=True)
        ]
    known = np.searchsorted(log.settled[arrivals], log.made[decisions], side="left").tolist()
    done = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnseenArmWarning)  # arms that were not seen yet come later
        for row, count in zip(decisions.tolist(), known, strict=True):
            if count > done:
                learner.replay(records[done:count])
                done = count
            context = told[row] if told else {}
            if exact:
                laws[row] = learner.exploitation_probabilities(**context)
            else:
                laws[row, numbers[learner.exploit(**context).exploit]] = 1.0
    return laws

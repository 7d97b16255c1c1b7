"""Check the records of a log: explored arms, their propensities and their losses."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..base.validation import LEAST_PROPENSITY, as_float, is_missing, kind_of
from ..errors import ArmError, LossError, Message, ParameterError, UnseenArmWarning, shown
from .arms import ArmNames
from .context import Context, Contexts
from .losses import LossRange
from .policy_state import PolicyState

RecordLike: TypeAlias = Sequence[Any] | Mapping[Any, Any]
"""A row of a log: (explored arm, propensity, loss), or a mapping with the keys "explore",
"propensity" and "loss".
"""

CALLER = 5  # the frames from `warnings.warn` to whoever called `Learner.replay`
_NAMED = 10  # how many arms a warning names
_KEYS = {"explore", "propensity", "loss"}


class Record(NamedTuple):
    """A record of a log: the place of an arm, its weight, and its loss on a scale from 0 to 1.

    If it was judged, the loss is the label, None if there is none, and `rho` the probability with
    which there was to be one.
    """

    arm: int
    weight: float
    loss: float | None
    context: Context | None = None
    judged: float | None = None
    rho: float = 1.0


class LogToReplay(NamedTuple):
    """The records of a log as a user gave them, and whether propensities of 1 alone are refused."""

    records: list[Any]
    must_be_randomised: bool


def listed_records(records: Iterable[Any]) -> list[Any]:
    """The records as a list."""
    if isinstance(records, (str, bytes)) or not isinstance(records, Iterable):
        rule = "must be a list of records"
        remedy = "each is (explored arm, propensity, loss)"
        raise ParameterError.of("records", records, rule, remedy)
    # Iterating over a mapping or a table gives its keys.
    if isinstance(records, Mapping) or hasattr(records, "columns"):
        problem = f"records: is {kind_of(records)}, not a list of records"
        remedy = (
            "give a list of (explored arm, propensity, loss); for a DataFrame, to_dict('records')"
        )
        raise ParameterError(Message(problem, remedy))
    return list(records)


def check_randomised(records: list[Record], arms: ArmNames, policy_state: PolicyState) -> None:
    """Raise an error if all propensities are 1 and the policy learns from weights."""
    if not records or any(record.weight != 1.0 for record in records):
        return
    if not policy_state.learns_from_weights():
        return
    what = (
        "the only propensity is 1"
        if len(records) == 1
        else f"all {len(records)} propensities are 1"
    )
    problem = (
        f"records: {what}, with {len(arms)} arms: nothing was left to chance, so the estimate of "
        "an arm would show how seldom it was tried, and an arm never tried would seem the best"
    )
    remedy = (
        "give the probability with which each arm was explored; if there was none, start without "
        "this log (docs: In operation, A log without propensities); if every arm was seen in every "
        "round, pass unrandomised=True"
    )
    raise ParameterError(Message(problem, remedy))


def warn_of_unseen(records: list[Record], arms: ArmNames, policy_state: PolicyState) -> None:
    """Warn if neither the log nor the learner has a loss of some arms."""
    if len(records) < 2:  # a single record is an observation, and these arrive one by one
        return
    unseen = policy_state.form.unknown(policy_state.state)
    unseen[[record.arm for record in records]] = False
    if unseen.any():
        names = [arms.names[place] for place in np.flatnonzero(unseen).tolist()]
        listed = ", ".join(repr(name) for name in names[:_NAMED])
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        one = len(names) == 1
        never = f"arm {listed} never occurs" if one else f"arms {listed}{more} never occur"
        has, may, it = ("has", "it may", "it") if one else ("have", "they may", "them")
        problem = f"records: {never} and {has} no loss on record, so {may} be exploited at once"
        remedy = f"start without {it}, replay, then bring {it} in with add_arms()"
        warnings.warn(Message(problem, remedy), UnseenArmWarning, stacklevel=CALLER)


def checked_record(
    place: int,
    record: Any,
    arms: ArmNames,
    losses: LossRange,
    contexts: Contexts | None,
    *,
    labelled: bool,
) -> Record:
    """Check a record.

    A learner with labels takes one that was judged, and a contextual policy its context.
    """
    fields: Mapping[Any, Any] = record if isinstance(record, Mapping) else {}
    judged = fields.get("judged") if labelled else None
    if judged is not None:
        record = {"loss": None, **fields}
    arm, propensity, loss = _parts(place, record)
    context = fields.get("context")
    if is_missing(propensity):
        raise _no_propensity(f"records[{place}].propensity = {shown(propensity)}: is missing")
    chance = as_float(propensity)
    if chance is None or not LEAST_PROPENSITY <= chance <= 1.0:
        rule = f"must be a probability of at least {LEAST_PROPENSITY:g}"
        remedy = "log the probability with which the arm was explored"
        raise ParameterError.of(f"records[{place}].propensity", propensity, rule, remedy)
    try:
        place_of_arm = arms.place(arm)
        weight = 1.0 / chance
        if contexts is not None:
            contexts.encoder.encode(context, new=False)
        if judged is None:
            missing = "leave out records without a loss"
            return Record(place_of_arm, weight, losses.scaled_as("loss", loss, missing), context)
        said = losses.scaled_as("judged", judged)
        label = None if loss is None else losses.scaled_as("loss", loss)
        return Record(place_of_arm, weight, label, context, said, _label_probability(fields))
    except (ArmError, LossError, ParameterError) as error:
        raise error.within(f"records[{place}]") from None


def _label_probability(record: Mapping[Any, Any]) -> float:
    """The probability with which a record was to have a label; an error if it cannot be."""
    rho = as_float(record.get("label_probability"))
    if rho is None or not 0.0 < rho <= 1.0:
        rule = "must be the probability with which the record was to have a label, above 0"
        remedy = (
            "log decision.label_request.rho with each decision, also with those without a label"
        )
        raise ParameterError.of("label_probability", record.get("label_probability"), rule, remedy)
    if rho == 1.0 and record.get("loss") is None:
        rule = "says that the record was to have a label, and there is no loss"
        remedy = "give the value of Labels.missing as its loss"
        raise ParameterError.of("label_probability", rho, rule, remedy)
    return rho


def _parts(place: int, record: Any) -> tuple[Any, Any, Any]:
    """The arm, the propensity and the loss of a record of either form."""
    if isinstance(record, Mapping) and _KEYS - record.keys() == {"propensity"}:
        raise _no_propensity(f"records[{place}] = {shown(record)}: has no 'propensity'")
    try:
        if isinstance(record, Mapping):
            return record["explore"], record["propensity"], record["loss"]
        arm, propensity, loss = record
    except (TypeError, ValueError, KeyError):
        keys = "'explore', 'propensity' and 'loss'"
        rule = f"must be (arm, propensity, loss), or a mapping with the keys {keys}"
        raise ParameterError.of(f"records[{place}]", record, rule, "correct that record") from None
    return arm, propensity, loss


def _no_propensity(problem: str) -> ParameterError:
    where = "docs: In operation, A log without propensities"
    why = f"a log without propensities cannot be replayed ({where})"
    return ParameterError(
        Message(problem, f"log the probability with which the arm was explored; {why}")
    )

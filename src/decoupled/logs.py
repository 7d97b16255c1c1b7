"""Records of a log, checked: what another policy explored, with what probability, and what it cost."""

from collections.abc import Iterable, Mapping
from typing import Any

from .arms import ArmNames
from .checks import as_float
from .errors import ArmError, LossError, ParameterError, complaint, shown
from .loss_range import LossRange


def listed_records(records: Iterable[Any]) -> list[Any]:
    """The records as a list."""
    if isinstance(records, (str, bytes)) or not isinstance(records, Iterable):
        rule, remedy = "must be a list of records", "each is (explored arm, propensity, loss)"
        raise ParameterError(complaint("records", records, rule, remedy))
    return list(records)


def checked_records(
    records: list[Any], arms: ArmNames, losses: LossRange
) -> list[tuple[int, float, float]]:
    """The place, the weight and the scaled loss of every record."""
    return [_checked(i, record, arms, losses) for i, record in enumerate(records)]


def _checked(place: int, record: Any, arms: ArmNames, losses: LossRange) -> tuple[int, float, float]:
    try:
        if isinstance(record, Mapping):
            arm, propensity, loss = record["explore"], record["propensity"], record["loss"]
        else:
            arm, propensity, loss = record
    except (TypeError, ValueError, KeyError):
        raise ParameterError(
            f"records[{place}] = {shown(record)}: must be (arm, propensity, loss), or a mapping with the "
            "keys 'explore', 'propensity' and 'loss'; mend that record"
        ) from None
    chance = as_float(propensity)
    # Far below any real propensity, and far enough from overflow that no sum of estimates reaches it.
    if chance is None or not 1e-200 <= chance <= 1.0:
        rule = "must be a probability of at least 1e-200"
        remedy = "log the probability with which the arm was explored"
        raise ParameterError(complaint(f"records[{place}].propensity", propensity, rule, remedy))
    try:
        return arms.place(arm), 1.0 / chance, losses.scaled(loss)
    except (ArmError, LossError) as error:
        raise type(error)(f"records[{place}]: {error}") from None

"""A user's predictions of each arm's next loss: checked baselines for a decision."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np

from ..base.arrays import Floats, Ints
from ..decision import ByArm
from ..errors import ParameterError
from .arms import ArmNames
from .loss_range import LossRange

Predictions: TypeAlias = ByArm | Iterable[float]
"""Losses that you expect: of some arms by name, or of all arms in order."""

MISSING = "give a mapping that leaves out the arms without a prediction"


def listed_predictions(given: Predictions) -> dict[Any, Any] | list[Any] | Floats:
    """A user's predictions as a dictionary, a list, or an array of numbers. An iterator is consumed once."""
    if isinstance(given, Mapping):
        return dict(given)
    if isinstance(given, np.ndarray) and given.ndim == 1 and given.dtype.kind in "fiu":
        return given.astype(np.float64)
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable) or getattr(given, "ndim", 1) != 1:
        rule = "must be a mapping from arms to losses, or a list of losses in the order of arms"
        raise ParameterError.of("baseline", given, rule, "for example {'a': 0.3}")
    return list(given)


def scaled_predictions(
    given: dict[Any, Any] | list[Any] | Floats, arms: ArmNames, losses: LossRange
) -> tuple[Ints, Floats]:
    """The places that have a prediction, and the predictions on a scale from 0 to 1."""
    if isinstance(given, dict):
        places = np.array([arms.place(name) for name in given], np.int64)
        values = [losses.scaled_as(f"baseline[{name!r}]", value, MISSING) for name, value in given.items()]
        return places, np.array(values, np.float64)
    if len(given) != len(arms):
        rule = f"must have one loss for each of {len(arms)} arms, and has {len(given)}"
        raise ParameterError.of("baseline", given, rule, "give a mapping if only some have one")
    if isinstance(given, np.ndarray):
        outside = np.flatnonzero(~((given >= losses.low) & (given <= losses.high)))
        if len(outside) > 0:  # this raises the error for the first of them
            losses.scaled_as(f"baseline[{outside[0]}]", float(given[outside[0]]), MISSING)
        return np.arange(len(given)), (given - losses.low) / (losses.high - losses.low)
    each = [losses.scaled_as(f"baseline[{i}]", value, MISSING) for i, value in enumerate(given)]
    return np.arange(len(given)), np.array(each, np.float64)

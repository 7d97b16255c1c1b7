"""Learners as they are saved: what a saved state says, and learners from a state that was changed."""

from typing import Any, NamedTuple

import numpy as np

import decoupled as dc
from decoupled.base import seal, unseal
from decoupled.base.arrays import Floats
from decoupled.base.packed import unpack_floats
from decoupled.learner.saving import FORMAT, VERSION, WRITER


def content_of(learner: dc.Learner) -> dict[str, Any]:
    """Everything that is saved of a learner, as plain values."""
    return unseal(learner.to_json(), FORMAT, VERSION, WRITER)


def from_content(content: dict[str, Any]) -> dc.Learner:
    return dc.Learner.from_json(seal(FORMAT, VERSION, content))


def with_learned(learner: dc.Learner, learned: dict[str, Any], **changed: Any) -> dc.Learner:
    """A copy of a learner with other learned rows, by name, and other values of its saved state."""
    content = content_of(learner)
    if "round" in changed:
        changed = {"remembered_round": float(changed["round"]), **changed}
    rows = {name: np.asarray(row, float).tolist() for name, row in learned.items()}
    return from_content({**content, **changed, "learned": {**content["learned"], **rows}})


def learned_by(learner: dc.Learner) -> dict[str, Floats]:
    """The learned rows of a learner, by name."""
    rows = content_of(learner)["learned"]
    return {
        name: unpack_floats(row) if isinstance(row, str) else np.array(row)
        for name, row in rows.items()
    }


class Kept(NamedTuple):
    """What a pending decision keeps for its feedback: numbers by arm, whether they are its law, and other numbers."""

    by_arm: dict[int, float]
    is_law: bool
    numbers: list[float] | None


def kept_by(learner: dc.Learner) -> dict[str, Kept]:
    """What each pending decision keeps, by its id; arms are numbered in order of arrival."""
    content = content_of(learner)
    found = {}
    for record in content["pending"]:
        identifier, explored, baseline = record[0], record[6], record[8:]
        if not baseline:
            found[identifier] = Kept({}, is_law=False, numbers=None)
            continue
        serials, values, kind, *numbers = content["baselines"][baseline[0]]
        by_id = dict(*numbers)
        found[identifier] = Kept(
            by_arm=dict(zip(serials, values, strict=True)),
            is_law=kind == "law",
            numbers=by_id.get(identifier, by_id.get(explored)),
        )
    return found

"""Worlds of public data that is not part of the package, where a folder has it."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ..base.arrays import Floats
from ..environments import ContextTable, Environment, LossTable
from ..errors import ParameterError

PRICE = 0.1  # of the dear model's answer
# The tables that the suite means: a file of the same name with other losses is refused.
RECORDED = {
    "chicago-forecast": "ee00a90025d737368ba8d8803a140876165d7233cbe5826fc881b98bf107f1fe",
    "digits-01-x3": "4a76a720435f6dffd6914af759597a58155b5ac1abe3998234165ed6a47aa08a",
    "flights-carrier": "9fdf69b14c2993b87a9c2dc0cbd61115cda03274b6155f0baad8c657ab55a172",
    "phishing-01": "1f2db6d23ffd0996c262f3082ae71fd42f2201bafaeb0378ece1c332d56313d3",
}
MMLU = "34ed9959b9a4379e971ea951a628bf8ccdc3efd09afbac8a7d01ac91cb216a12"


def recorded(folder: Path) -> Iterator[tuple[str, Environment, int]]:
    """The recorded tables in `folder`/real, in their order, and their rounds."""
    for name, digest in RECORDED.items():
        file = folder / "real" / f"{name}.npz"
        if file.is_file():
            with np.load(file) as kept:
                losses = np.asarray(kept["losses"], np.float64)
            _check(file, digest, losses)
            yield name, LossTable(losses, noise="none"), len(losses)


def mmlu(folder: Path) -> ContextTable | None:
    """Questions to a cheap and a dear model, with their subject and length: `folder`/context/mmlu.npz."""
    file = folder / "context" / "mmlu.npz"
    if not file.is_file():
        return None
    with np.load(file) as kept:
        wrong = np.asarray(kept["wrong"], np.float64)
        subject, length = kept["names"][kept["segment"]], kept["length"]
    _check(file, MMLU, wrong)
    bands = np.searchsorted(np.quantile(length, (1 / 3, 2 / 3)), length).tolist()
    columns = {"segment": subject.tolist(), "band": [f"b{each}" for each in bands], "x": length.tolist()}
    losses = (wrong + np.array([0.0, PRICE])) / (1.0 + PRICE)
    return ContextTable(losses, columns, ["segment"], order="shuffled")


def _check(file: Path, digest: str, losses: Floats) -> None:
    if hashlib.sha256(losses.tobytes()).hexdigest() != digest:
        raise ParameterError(
            f"{file}: holds other losses than the suite's, so entries could not be compared; leave out the folder, or "
            "take the suite's file"
        )

"""Worlds of public data that is not part of the package, where a folder has it."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from decoupled.environments import ContextTable, Environment, LossTable
from decoupled.errors import ParameterError

PRICE = 0.1  # of the dear model's answer
# The tables that the suite means: a file of the same name with other values is refused.
RECORDED = {
    "chicago-forecast": "4da9dad5c2654ab27a6606ab1e42a7fa10e66a317e619841bc630afa05d121eb",
    "digits-01-x3": "de3d0e75ad39d27b9ce66584c6905294dbc9573dc974d5a6454da8a70755c0ab",
    "flights-carrier": "05287ff65e0e250f9ea7645840c12ad3ec1900b33dc0b8e408978ba3073d2d16",
    "phishing-01": "163fc40cb02c70898b0e92d2b183ea2fd6cfa7ca8ac055d23cc3a7e24c87834b",
}
MMLU = "ffa322279dab22917a77d2259bb15436a6dc71edb49b9496b3153d3ac720bed2"
# Arms and rounds, by which an entry is known to have played them.
SHAPES = {
    "chicago-forecast": (13, 5_298),
    "digits-01-x3": (16, 4_791),
    "flights-carrier": (9, 5_840),
    "phishing-01": (16, 1_150),
    "mmlu": (2, 6_000),
}


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
        subject, length = kept["names"][kept["segment"]], np.asarray(kept["length"], np.int64)
    _check(file, MMLU, wrong, subject, length)
    bands = np.searchsorted(np.quantile(length, (1 / 3, 2 / 3)), length).tolist()
    columns = {"segment": subject.tolist(), "band": [f"b{each}" for each in bands], "x": length.tolist()}
    losses = (wrong + np.array([0.0, PRICE])) / (1.0 + PRICE)
    return ContextTable(losses, columns, ["segment"], order="shuffled")


def _check(file: Path, digest: str, *columns: np.ndarray[Any, Any]) -> None:
    found = hashlib.sha256(json.dumps([each.tolist() for each in columns]).encode())
    if found.hexdigest() != digest:
        raise ParameterError(
            f"{file}: holds other values than the suite's, so entries could not be compared; leave out the folder, or "
            "take the suite's file"
        )

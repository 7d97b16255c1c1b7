"""What the log is made of: one row for each thing that happened to an experiment, numbered 1, 2, 3, ..."""

from typing import NamedTuple, TypeAlias


class Decided(NamedTuple):
    """A decision was drawn. Arms are places in the list of all arms the experiment ever had.

    `available` is a JSON list of places, None for all; `stream` is the random stream before the draw;
    `version` is the last row that the learned state contained.
    """

    seq: int
    mode: str
    available: str | None
    exploit: int | None
    explore: int | None
    propensity: float | None
    weight: float | None
    round: int
    version: int
    stream: bytes
    made_at: float
    expires_at: float | None


class Settled(NamedTuple):
    """A decision's wait ended: its loss was "observed", or it "expired" (a loss is applied, or None)."""

    seq: int
    decision: int
    kind: str
    loss: float | None
    at: float


class Changed(NamedTuple):
    """The experiment itself changed: arms "added" or "retired", or it was "archived"."""

    seq: int
    kind: str
    content: str
    at: float


Row: TypeAlias = Decided | Settled | Changed


class ExperimentRow(NamedTuple):
    """An experiment as it is stored. `head` is its last row, `version` the last that changed what is learned."""

    id: int
    tenant: str
    name: str
    tag: str
    settings: str
    seed: str
    created_at: float
    archived_at: float | None
    arms: str
    retired: str
    head: int
    version: int
    late: int


class KeyRow(NamedTuple):
    """What an idempotency key once asked for, and the decisions it made: `size` rows from `first`."""

    experiment: int
    key: str
    request: str
    first: int
    size: int
    at: float

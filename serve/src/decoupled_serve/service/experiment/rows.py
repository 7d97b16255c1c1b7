"""The rows of the log: one for each event in an experiment, numbered 1, 2, 3, ..."""

from typing import NamedTuple, TypeAlias

from decoupled.decision import Mode


class Decided(NamedTuple):
    """A decision was drawn. An arm is given by its place in the list of all arms the experiment ever had.

    `available` is a JSON list of places, None for all arms; `stream` is the random stream before the draw;
    `version` is the last row that was part of the learned state. `drawn` is what the policy drew if a guardrail, `guard`,
    chose `exploit`. `limited_by` is the part of the budget that turned it into mode "exploit". `tags` and `baseline` are
    what the caller attached, and so are `context` and `advice`: see `annotations` and `context`. `key` is what is logged
    of the key that drew `exploit`, None without one: see `sticky`.
    """

    seq: int
    mode: Mode
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
    drawn: int | None = None
    guard: str | None = None
    limited_by: str | None = None
    tags: str | None = None
    baseline: str | None = None
    context: str | None = None
    advice: str | None = None
    key: str | None = None


class Settled(NamedTuple):
    """A pending decision was settled: "observed" with its loss, or "expired" (with a loss, or None)."""

    seq: int
    decision: int
    kind: str
    loss: float | None
    at: float


class Changed(NamedTuple):
    """The experiment itself changed: arms "added" or "retired", its "guardrails" or "budget", it was "archived", or it
    learned a slice of another log, which was "replayed".
    """

    seq: int
    kind: str
    content: str
    at: float


Row: TypeAlias = Decided | Settled | Changed


class ExperimentRow(NamedTuple):
    """A stored experiment. `head` is its last row, `version` the last row that changed what is learned.

    `guardrails` and `budget` are JSON, None if there are none. A deleted experiment has a `deleted_at` and no name of its
    own any more. No pending decision expires before `next_expiry`; None if none expires. `key_secret` is what keys are
    hashed with.
    """

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
    key_secret: str
    guardrails: str | None = None
    budget: str | None = None
    deleted_at: float | None = None
    next_expiry: float | None = None


class KeyRow(NamedTuple):
    """The request that used an idempotency key, and the decisions it made: `size` rows from `first`."""

    experiment: int
    key: str
    request: str
    first: int
    size: int
    at: float

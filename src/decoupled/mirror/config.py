"""The configuration of a mirror, checked. `reading.py` makes it from a file."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..service.http.log_format import LogFormat
from .headers import CREDENTIALS
from .repeatable import Repeatable, Rule

MIB = 2**20
SAFE = ("GET /*", "HEAD /*", "OPTIONS /*")  # methods that promise to change nothing (RFC 9110, 9.2.1)


@dataclass(frozen=True)
class ArmConfig:
    """One upstream.

    Attributes:
        name: the name of the arm.
        url: where it is; a path in it comes before the path of each request.
        headers: headers to add to each request; `${NAME}` is the environment variable NAME.
        pass_credentials: the credentials of clients that are meant for this arm: names of headers.
        preserve_host: send the `Host` of the client, not that of `url`.
        cost: the cost of a call, for the loss.
        timeout: seconds without a byte of the answer after which a call has failed.
        health: a path that answers with 2xx while the arm is well; without it, an arm that cannot be connected to
            counts as down until it can.
    """

    name: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    pass_credentials: tuple[str, ...] = ()
    preserve_host: bool = False
    cost: float = 0.0
    timeout: float = 60.0
    health: str | None = None


@dataclass(frozen=True)
class ExperimentConfig:
    """The experiment that learns; see the settings of an experiment of the service.

    Attributes:
        name: the name of the experiment.
        policy: the policy; `Ladder` by default.
        deadline_seconds: how long the loss of a copy may take; later ones count as nothing.
        seed: the seed of the draws, for tests.
        keep_days: how long the embedded store keeps the log; 0 for ever.
    """

    name: str = "mirror"
    policy: dict[str, Any] = field(default_factory=lambda: {"name": "Ladder"})
    deadline_seconds: float = 3600.0
    seed: int | None = None
    keep_days: float = 30.0


@dataclass(frozen=True)
class CopyConfig:
    """What is mirrored, and how much of it is held.

    Attributes:
        share: the share of the repeatable requests that are mirrored.
        repeat: requests that are safe to send twice, such as "POST /v1/search"; `*` stands for anything.
        skip: exceptions to `repeat`, in any case and with or without a slash at the end.
        dry_run_header: a request with this header may be sent twice, whatever its method, unless it says 0, false, no,
            off or nothing.
        headers: headers to add to the copies, such as one that marks a dry run.
        credentials: further headers that are credentials.
        body_limit: bytes of a request; a longer one is served and not mirrored.
        answer_limit: bytes kept of an answer; the copy of a longer one is cut there.
        queue: how many copies may be waiting for their answer or their judge.
        queue_bytes: how many bytes they may hold together.
        concurrency: how many copies may be on their way to one arm.
        timeout: seconds that a copy may take in all.
    """

    share: float = 0.05
    repeat: tuple[str, ...] = SAFE
    skip: tuple[str, ...] = ()
    dry_run_header: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    credentials: tuple[str, ...] = ()
    body_limit: int = MIB
    answer_limit: int = MIB
    queue: int = 1_000
    queue_bytes: int = 64 * MIB
    concurrency: int = 16
    timeout: float = 30.0

    def rules(self) -> Repeatable:
        """The rules about what may be sent twice."""
        repeat = tuple(Rule.parse("mirror.repeat", each) for each in self.repeat)
        skip = tuple(Rule.parse("mirror.skip", each, loosely=True) for each in self.skip)
        mark = self.dry_run_header
        return Repeatable(repeat, skip, None if mark is None else mark.lower().encode())

    def all_credentials(self) -> frozenset[str]:
        """The names of all headers that are credentials."""
        return frozenset((*CREDENTIALS, *(name.lower() for name in self.credentials)))


@dataclass(frozen=True)
class TermConfig:
    """A part of the loss that grows from 0 at `low` to 1 at `high`."""

    weight: float
    low: float
    high: float

    def at(self, value: float) -> float:
        """The part at a value.

        >>> TermConfig(1.0, 0.1, 2.1).at(1.1), TermConfig(1.0, 0.1, 2.1).at(9.0)
        (0.5, 1.0)
        """
        return min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)


@dataclass(frozen=True)
class JudgeConfig:
    """Who compares the two answers: a function in Python, or an address.

    Attributes:
        python: "module:function"; the module may be beside the configuration.
        url: an address that takes both answers by POST.
        headers: headers to add to that POST; `${NAME}` is the environment variable NAME.
        weight: the weight in the loss.
        timeout: seconds for one attempt.
        attempts: how often to try, with growing waits in between.
        concurrency: how many verdicts may be awaited at a time.
        otherwise: the loss if there is no verdict in the end; by default the copy counts as nothing.
    """

    python: str | None = None
    url: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    weight: float = 1.0
    timeout: float = 30.0
    attempts: int = 3
    concurrency: int = 8
    otherwise: float | None = None


@dataclass(frozen=True)
class LossConfig:
    """The loss of an answer: the weighted mean of its parts, each in [0, 1].

    Attributes:
        status: the weight of 1 for a bad status, 0 for others.
        bad_status: the lowest status that is bad.
        good_status: those above it that are not bad.
        latency: seconds to the first byte of the answer.
        duration: seconds to its last byte.
        bytes: the size of the answer.
        cost: the cost of a call to the arm.
        judge: who compares the two answers.
    """

    status: float = 0.0
    bad_status: int = 400
    good_status: tuple[int, ...] = (404, 429)
    latency: TermConfig | None = None
    duration: TermConfig | None = None
    bytes: TermConfig | None = None
    cost: TermConfig | None = None
    judge: JudgeConfig | None = None


@dataclass(frozen=True)
class WebhookConfig:
    """Who is told when it is decided which arm is best, and when the incumbent is released.

    Attributes:
        url: an address that takes a POST with JSON.
        headers: headers to add; `${NAME}` is the environment variable NAME.
        timeout: seconds for one attempt.
        attempts: how often to try, with growing waits in between.
    """

    url: str
    headers: tuple[tuple[str, str], ...] = ()
    timeout: float = 10.0
    attempts: int = 10


@dataclass(frozen=True)
class MirrorConfig:
    """A whole configuration.

    Attributes:
        arms: the upstreams, two or more.
        loss: what is learned.
        mirror: what is mirrored.
        experiment: the experiment that learns.
        listen: the address of the proxy; port 0 for a free one.
        console: the address of the console, the metrics and the decision service; it must be loopback.
        store: the store of the embedded decision service.
        service: the address of a decision service elsewhere, instead of a store.
        key: the key of that service; `DECOUPLED_KEY` if it is None.
        state_folder: the folder to write to, and that a relative path of the store starts from; `folder` if it is None.
        clients: how many requests are served at a time; others are answered with 503.
        client_timeout: seconds that a client may send nothing of its request, or read nothing of its answer.
        drain: seconds to finish open requests and queued copies at shutdown.
        log_format: "text", or "json": one object a line.
        webhook: who is told when something is decided; None for nobody.
        budget: the budget for exploring, by the fields of `decoupled.Budget`.
        guardrails: the guardrails, by the fields of `decoupled.Guardrails`.
        folder: the folder of the file, which paths are relative to.
    """

    arms: tuple[ArmConfig, ...]
    loss: LossConfig = LossConfig(status=1.0)
    mirror: CopyConfig = CopyConfig()
    experiment: ExperimentConfig = field(default_factory=ExperimentConfig)
    listen: tuple[str, int] = ("127.0.0.1", 8080)
    console: tuple[str, int] | None = ("127.0.0.1", 8081)
    store: str = "mirror.db"
    service: str | None = None
    key: str | None = field(default=None, repr=False)
    state_folder: Path | None = None
    clients: int = 1_000
    client_timeout: float = 60.0
    drain: int = 30
    log_format: LogFormat = "text"
    webhook: WebhookConfig | None = None
    budget: dict[str, Any] = field(default_factory=dict)
    guardrails: dict[str, Any] = field(default_factory=dict)
    folder: Path = Path()

    @property
    def writable(self) -> Path:
        """The folder to write to."""
        return self.state_folder or self.folder

    def file(self, kind: str) -> Path:
        """A file that this mirror writes."""
        return self.writable / f"{self.experiment.name}-{kind}.jsonl"

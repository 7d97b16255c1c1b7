"""Models of the tables that a mirror's TOML file may have. `config_file.py` reads such a file."""

import os
import re
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeAlias
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    StrictBool,
    ValidationError,
    model_validator,
)

from decoupled.base import read_secret
from decoupled.errors import ParameterError
from decoupled.learner import Budget, Labels
from decoupled.policies import Policy

from ..options import kinds
from ..service.experiment.context import checked_fields, with_fields_of
from ..service.experiment.records import FieldType
from ..service.http.observe.log_format import LogFormat
from .headers import CREDENTIALS
from .repeatable import Repeatable, Rule

MIB = 2**20
SAFE = (
    "GET /*",
    "HEAD /*",
    "OPTIONS /*",
)  # methods that promise to change nothing (RFC 9110, 9.2.1)
NOT_ITS_OWN = "models prefer their own answers: name another, or set self_judging = true"
_PLACEHOLDER = re.compile(r"\$\{(file:[^}]+|\w+)\}")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")


def _header_value(value: str) -> str:
    """A text in which `${NAME}` is an environment variable and `${file:PATH}` a file."""
    filled = _PLACEHOLDER.sub(lambda match: _secret(match[1]), value).strip()
    if not _HEADER_VALUE.fullmatch(
        filled
    ):  # the value may be a secret, so the error does not show it
        raise ValueError("must be one line of Latin-1 characters; check it")
    return filled


def _secret(source: str) -> str:
    path = source.removeprefix("file:")
    if path != source:
        if not os.path.isabs(path):
            example = "${file:/run/secrets/key}"
            raise ValueError(f"${{{source}}} must have an absolute path; for example {example}")
        return read_secret("file", path)
    value = os.environ.get(source)
    if not value:
        raise ValueError(
            f"the environment variable {source} is not set; set it before the mirror starts"
        )
    return value


def _variable(name: str) -> str:
    """The name of an environment variable that can be the value of a header."""
    _header_value(f"${{{name}}}")
    return name


def _policy(value: Any) -> Any:
    """A table of a policy; a text is its name."""
    table = {"name": value} if isinstance(value, str) else value
    policy = Policy.from_dict(table)
    if policy.coupled:
        rule = "plays the standard game, where the arm that serves is the arm that is seen"
        raise ParameterError.of(
            "name", type(policy).__name__, rule, "use a decoupled policy such as FTPL"
        )
    return table


Text: TypeAlias = Annotated[str, Field(min_length=1)]
# The name of a header or a cookie.
Token: TypeAlias = Annotated[str, Field(pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")]
Dotted: TypeAlias = Annotated[str, Field(pattern=r"^[^.]+(\.[^.]+)*$")]  # such as "user.id"
Url: TypeAlias = Annotated[str, AfterValidator(partial(kinds.url, "url"))]
Amount: TypeAlias = Annotated[float, Field(ge=0.0, strict=True, allow_inf_nan=False)]
Share: TypeAlias = Annotated[Amount, Field(le=1.0)]
Seconds: TypeAlias = Annotated[Amount, Field(gt=0.0)]
Natural: TypeAlias = Annotated[int, Field(ge=0, le=2**62, strict=True)]
Count: TypeAlias = Annotated[Natural, Field(ge=1)]
Status: TypeAlias = Annotated[Natural, Field(ge=100, le=599)]
Headers: TypeAlias = dict[Token, Annotated[Text, AfterValidator(_header_value)]]


class TableConfig(BaseModel):
    """A table of the file. A key that it does not have is refused. The comments of keys are their rows in docs/settings.md."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def first_problem(error: ValidationError, place: str = "") -> str:
    """The first thing that is wrong, with its place. Values may be secrets, so Pydantic does not show them."""
    found = error.errors(include_url=False, include_input=False)[0]
    place += "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in found["loc"])
    return f"{place}: {found['msg'].removeprefix('Value error, ')}".lstrip(".: ")


class ArmConfig(TableConfig):
    """One upstream."""

    name: Text  # the name of the arm
    url: Url  # its address; a path in it is put before the path of each request
    headers: Headers = {}  # headers to add to each request; `${NAME}` is the environment variable NAME
    # names of headers with clients' credentials that this arm may get
    pass_credentials: tuple[Token, ...] = ()
    preserve_host: StrictBool = False  # send the `Host` of the client, not that of `url`
    # fields to set in JSON bodies, `json` in the file, so that arms may share an upstream
    fields: dict[str, JsonValue] = Field(default={}, alias="json")
    cost: Amount = 0.0  # the cost of a call, if its answers state none
    cost_header: Token | None = None  # the header of an answer that states its cost
    # the price of a million of each field of an answer's `usage`, such as "completion_tokens"
    prices: dict[Text, Amount] = {}
    # the most that a call costs, which a budget sets aside for a copy until its price is known, and which counts if an answer
    # should state its price and does not; `cost` by default, and never less
    ceiling: Amount | None = None
    timeout: Seconds = 60.0  # seconds without a byte of the answer after which a call has failed
    # a path that answers with 2xx while the arm is well; without it, the arm is down while the mirror cannot connect to it
    health: Annotated[str, Field(pattern="^/[!-~]*$")] | None = None

    @property
    def dearest(self) -> float:
        """The most that a call costs, as declared."""
        return max(self.cost, self.ceiling or 0.0)

    @property
    def unstated(self) -> float:
        """The cost of a call whose answer states none: the declared one, or the most if answers should state theirs.

        >>> ArmConfig(name="a", url="http://a", cost=0.01, ceiling=0.05).unstated
        0.01
        >>> ArmConfig(name="a", url="http://a", cost=0.01, ceiling=0.05, cost_header="X-Cost").unstated
        0.05
        """
        is_declared = self.cost > 0.0 and not self.states_cost
        return self.cost if is_declared else self.dearest

    @property
    def states_cost(self) -> bool:
        """Whether its answers state what they cost."""
        return self.cost_header is not None or bool(self.prices)


class ExperimentConfig(TableConfig):
    """The experiment that learns; see the settings of an experiment of the service."""

    name: Text = "mirror"  # the name of the experiment
    # the policy; `Ladder` by default
    policy: Annotated[dict[str, Any], BeforeValidator(_policy)] = {"name": "Ladder"}
    # seconds within which the loss of a copy must arrive; later ones are left out
    deadline_seconds: Annotated[Seconds, Field(le=1e9)] = 3600.0
    seed: Natural | None = None  # the seed of the draws, for tests
    keep_days: Amount = 30.0  # days for which the embedded store keeps the log; 0 keeps it forever


class CopyConfig(TableConfig):
    """What is mirrored, and how much of it is held."""

    share: Share = 0.05  # the share of the repeatable requests that are mirrored
    # requests that are safe to send twice, such as "POST /v1/search"; `*` stands for anything
    repeat: tuple[Text, ...] = SAFE
    skip: tuple[Text, ...] = ()  # exceptions to `repeat`; case and a trailing slash do not matter
    # a request with this header may be sent twice, whatever its method, unless its value is 0, false, no, off or empty
    dry_run_header: Token | None = None
    headers: Headers = {}  # headers to add to the copies, such as one that marks a dry run
    # a header of served answers that names their arm, such as "X-Decoupled-Arm"; none by default
    arm_header: Annotated[Token, Field(pattern="^[Xx]-")] | None = None
    credentials: tuple[Token, ...] = ()  # more headers to treat as credentials
    body_limit: Natural = MIB  # bytes of a request; a longer one is served and not mirrored
    answer_limit: Natural = MIB  # bytes kept of an answer; longer ones are cut for judges
    queue: Count = 1_000  # how many copies may be waiting for their answer or their judge
    queue_bytes: Count = 64 * MIB  # how many bytes they may hold together
    concurrency: Count = 16  # how many copies may be in flight, over all arms
    timeout: Seconds = 30.0  # seconds that a copy may take

    @model_validator(mode="after")
    def _can_be_read(self) -> Self:
        self.rules()
        return self

    def rules(self) -> Repeatable:
        """The rules about what may be sent twice."""
        repeat = tuple(Rule.parse("repeat", each) for each in self.repeat)
        skip = tuple(Rule.parse("skip", each, loosely=True) for each in self.skip)
        mark = self.dry_run_header
        return Repeatable(repeat, skip, None if mark is None else mark.lower().encode())

    @property
    def newer(self) -> int:
        """How many copies may begin after one that waits. Verdicts wait for it, and must not have to leave it out."""
        return min(8 * self.queue, 8_000)

    def all_credentials(self) -> frozenset[str]:
        """The names of all headers that are credentials."""
        return frozenset((*CREDENTIALS, *(name.lower() for name in self.credentials)))


class StickyConfig(TableConfig):
    """Where the key of a request is, by which it is served by the same arm again. Exactly one place is given."""

    header: Token | None = None  # the name of a header
    cookie: Token | None = None  # the name of a cookie
    # a field of a JSON body, `json` in the file, such as "user.id". Bodies longer than `mirror.body_limit` are not looked at.
    body: Dotted | None = Field(default=None, alias="json")

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        _check_place(
            (self.header, self.cookie, self.body), "header, cookie and json", "X-Session-Id"
        )
        return self


def _check_place(places: tuple[object, ...], names: str, example: str) -> None:
    if sum(place is not None for place in places) != 1:
        raise ParameterError(f'must have exactly one of {names}; for example header = "{example}"')


class FieldConfig(TableConfig):
    """Where a field of the context of a request is. Exactly one place is given."""

    header: Token | None = None  # the name of a header
    # a field of a JSON body, `json` in the file, such as "model.name". Bodies longer than `mirror.body_limit` are not looked
    # at.
    body: Dotted | None = Field(default=None, alias="json")
    path: Natural | None = None  # a part of the path, 1 for the first; 0 for all of it
    method: StrictBool = False  # true for the method
    # "module:function", a function of the request that returns the value; the module may be beside the configuration
    python: Text | None = None
    # seconds that a request waits for the function; after that the field is missing
    timeout: Seconds = 0.05
    # "text", "number", "boolean", or "vector": a text or an embedding, by a policy with `vectors`
    type: FieldType = "text"

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        places = (self.header, self.body, self.path, self.method or None, self.python)
        _check_place(places, "header, json, path, method and python", "X-Subject")
        return self


class TermConfig(TableConfig):
    """A part of the loss that grows from 0 at `low` to 1 at `high`."""

    weight: Amount = 1.0
    low: Amount = 0.0
    high: Seconds

    @model_validator(mode="after")
    def _grows(self) -> Self:
        if self.high <= self.low:
            rule = f"must be above low = {self.low:g}"
            raise ParameterError.of("high", self.high, rule, "raise it, or lower low")
        return self

    def at(self, value: float) -> float:
        """The part at a value.

        >>> term = TermConfig(low=0.1, high=2.1)
        >>> term.at(1.1), term.at(9.0)
        (0.5, 1.0)
        """
        return min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)


class JudgeConfig(TableConfig):
    """Who judges the answer to a copy: a function in Python, an address, or a model."""

    python: Text | None = None  # "module:function"; the module may be beside the configuration
    # the address to which both answers are posted; for a model, the base URL of its OpenAI-style API
    url: Url | None = None
    model: Text | None = (
        None  # the model that compares both answers; it is not told which arms gave them
    )
    rubric: Text | None = None  # what makes a good answer, for the model
    rubric_file: Text | None = None  # a file with the rubric
    # "random" for one call with the answers in random order; "both" for two calls with the order swapped
    order: Literal["random", "both"] = "random"
    repeats: Annotated[Count, Field(le=100)] = (
        1  # how often the model is asked; the loss is the mean
    )
    # the environment variable with the key of the model's API
    key_env: Annotated[Text, AfterValidator(_variable)] | None = None
    # more fields of the call to the model, `json` in the file, such as "temperature"
    fields: dict[str, JsonValue] = Field(default={}, alias="json")
    shown: Count = 20_000  # how many characters of the request, and of each answer, the model sees
    # the price of a million of each field of the `usage` that the model states
    prices: dict[Text, Amount] = {}
    cost_header: Token | None = None  # the header with the cost of a call to the model
    cost: Amount = 0.0  # the cost of a call that states none
    # the most that a call costs, which a budget sets aside until its price is known, and which counts if a call fails or should
    # state its price and does not; `cost` by default, and never less
    ceiling: Amount | None = None
    self_judging: StrictBool = False  # whether a model may judge its own answers as an arm
    # a file with a request and two answers for `--check`, as a judge over HTTP gets them; a chat by default
    sample: Text | None = None
    alone: StrictBool = False  # whether it only sees the answer to the copy, not the served one
    headers: Headers = {}  # headers to add to the POST; `${NAME}` is the environment variable NAME
    weight: Amount = 1.0  # the weight in the loss
    timeout: Seconds = 30.0  # seconds for one attempt
    attempts: Count = 3  # how often to try, with growing waits in between
    concurrency: Count = 8  # how many verdicts may be awaited at a time
    # the loss if the judge gives none after all attempts; by default the copy is left out
    otherwise: Share | None = None

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if (self.python is None) == (self.url is None):
            remedy = (
                'for example python = "judge:compare", or url = "http://127.0.0.1:9100/compare"'
            )
            raise ParameterError(f"must have either python or url; {remedy}")
        if self.model is None:
            for name in _OF_MODELS & self.model_fields_set:
                key = "json" if name == "fields" else name
                raise ParameterError(
                    f"{key}: is for a model alone; leave it out, or name the model"
                )
        elif self.url is None or self.alone:
            remedy = 'for example url = "https://api.openai.com/v1", without alone'
            raise ParameterError.of(
                "model", self.model, "needs a url, and compares two answers", remedy
            )
        if self.rubric is not None and self.rubric_file is not None:
            raise ParameterError("rubric, rubric_file: both are given; keep one")
        return self

    @property
    def calls(self) -> int:
        """How often it is asked about a copy, if it does not fail."""
        return self.repeats * (2 if self.order == "both" else 1)

    @property
    def dearest(self) -> float:
        """The most that judging a copy costs, as declared, if no call fails. Another attempt costs that of a call more."""
        return self.calls * self.dearest_call

    @property
    def dearest_call(self) -> float:
        """The most that a call costs, as declared."""
        return max(self.cost, self.ceiling or 0.0)

    @property
    def unstated(self) -> float:
        """The cost of a call that states none: the declared one, or the most if the model should state its own."""
        should_state = self.cost_header is not None or bool(self.prices)
        is_declared = self.cost > 0.0 and not should_state
        return self.cost if is_declared else self.dearest_call

    def is_at(self, url: str, model: object) -> bool:
        """Whether this judge is a model that is served at an address, if that has a single one or one of this name.

        >>> judge = JudgeConfig(model="m", url="http://Host:80/v1")
        >>> judge.is_at("http://host", "m"), judge.is_at("http://host", None), judge.is_at("http://host", "n")
        (True, True, False)
        """
        same = self.url is not None and _origin(self.url) == _origin(url)
        return self.model is not None and same and model in (None, self.model)


_OF_MODELS = {"rubric", "rubric_file", "order", "repeats", "key_env", "fields", "shown", "prices", "cost_header", "self_judging"}  # fmt: skip


def _origin(url: str) -> tuple[object, ...]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)


class LossConfig(TableConfig):
    """The loss of an answer: the weighted mean of its parts, each in [0, 1]."""

    status: Amount = 0.0  # the weight of 1 for a bad status, 0 for others
    bad_status: Status = 400  # the lowest status that is bad
    good_status: tuple[Status, ...] = (404, 429)  # statuses above it that are not bad
    latency: TermConfig | None = None  # seconds to the first byte of the answer
    duration: TermConfig | None = None  # seconds to its last byte
    bytes: TermConfig | None = None  # the size of the answer
    cost: TermConfig | None = None  # the cost of a call to the arm
    judge: JudgeConfig | None = None  # who judges the answer

    @model_validator(mode="after")
    def _has_weight(self) -> Self:
        parts = (self.latency, self.duration, self.bytes, self.cost, self.judge)
        if self.status + sum(part.weight for part in parts if part is not None) <= 0.0:
            raise ParameterError("every weight is 0; give at least one part of the loss a weight")
        return self


class LabelsConfig(TableConfig):
    """Some answers are labelled by somebody who knows, so that what is learned is true for any judge that is never silent. See `decoupled.Labels`."""

    share: Share = Labels.share  # the probability with which a decision asks for a label
    first: Natural = Labels.first  # this many decisions want one at the start
    deadline: Count = Labels.deadline  # after this many newer decisions a label no longer counts
    missing: Share = Labels.missing  # the loss that a label counts as if it never comes
    # who labels: "console" for people, an address that takes both answers by POST as a judge does, or "module:function"
    to: Annotated[str, Field(pattern=r"^(console|https?://.+|[\w.]+:[\w.]+)$")] = "console"
    # what removes private data before answers are kept or sent: "module:function", a function of a text that returns a text, or
    # a list of patterns
    redact: Text | Annotated[tuple[Text, ...], Field(min_length=1)] | None = None
    # for how many days answers are kept for people
    keep_days: Annotated[Amount, Field(gt=0.0, le=365.0)] = 7.0
    headers: Headers = {}  # headers to add to the POST; `${NAME}` is the environment variable NAME
    timeout: Seconds = 30.0  # seconds for one call

    @model_validator(mode="after")
    def _holds(self) -> Self:
        self.rules()
        for each in () if self.redact is None or isinstance(self.redact, str) else self.redact:
            try:
                re.compile(each)
            except re.error as error:
                rule = f"is not a pattern ({error})"
                raise ParameterError.of("redact", each, rule, "correct it") from None
        return self

    def rules(self) -> Labels:
        """How many decisions ask for a label."""
        return Labels(self.share, self.first, self.deadline, self.missing)


class WebhookConfig(TableConfig):
    """Who is told when it is decided which arm is best, and when the incumbent is released."""

    url: Url  # an address that takes a POST with JSON
    headers: Headers = {}  # headers to add; `${NAME}` is the environment variable NAME
    timeout: Seconds = 10.0  # seconds for one attempt
    attempts: Count = 10  # how often to try, with growing waits in between


def _named_fields(fields: dict[str, FieldConfig]) -> dict[str, FieldConfig]:
    checked_fields({name: field.type for name, field in fields.items()})
    return fields


class MirrorConfig(TableConfig):
    """A whole configuration."""

    arms: tuple[ArmConfig, ...] = Field(alias="arm", min_length=2)  # the upstreams, two or more
    loss: LossConfig = LossConfig(status=1.0)  # what is learned
    mirror: CopyConfig = CopyConfig()  # what is mirrored
    experiment: ExperimentConfig = ExperimentConfig()  # the experiment that learns
    listen: tuple[str, int] = ("127.0.0.1", 8080)  # the address of the proxy; port 0 for a free one
    sink: bool = False  # whether to take copies that another proxy makes, and to serve nobody
    # the address of the console, the metrics and the decision service; it must be loopback
    console: tuple[str, int] | None = ("127.0.0.1", 8081)
    store: str = "mirror.db"  # the store of the embedded decision service
    service: str | None = None  # the address of a decision service elsewhere, instead of a store
    # the key of that service; `DECOUPLED_KEY` if it is None
    key: str | None = Field(default=None, repr=False)
    # the folder to write to, and that a relative path of the store starts from; `folder` if it is None
    state_folder: Path | None = None
    clients: int = 1_000  # how many requests are served at a time; others are answered with 503
    client_timeout: float = (
        60.0  # seconds for which a client may send or read less than 4 KiB a second
    )
    drain: int = 30  # seconds to finish open requests and queued copies at shutdown
    log_format: LogFormat = "text"  # "text", or "json": one object a line
    webhook: WebhookConfig | None = None  # who is told when something is decided; None for nobody
    labels: LabelsConfig | None = None  # who labels some of the answers; nobody by default
    # where the key of a request is, by which it is served by the same arm again; None for nowhere
    sticky: StickyConfig | None = None
    # where the fields of a request's context are, by their names
    context: Annotated[dict[str, FieldConfig], AfterValidator(_named_fields)] = {}
    # the budget for exploring, by the fields of `decoupled.Budget`. Without `cost`, its money is that of the answers to copies,
    # which this mirror keeps in a file of its own.
    budget: dict[str, Any] = {}
    guardrails: dict[str, Any] = {}  # the guardrails, by the fields of `decoupled.Guardrails`
    folder: Path = Path()  # the folder of the file, which paths are relative to

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        [(name, times)] = Counter(arm.name for arm in self.arms).most_common(1)
        if times > 1:
            raise ParameterError.of(
                "arm.name", name, "is there twice", "give each arm its own name"
            )
        known = self.mirror.all_credentials()
        for place, arm in enumerate(self.arms):
            for name in arm.pass_credentials:
                if name.lower() not in known:  # the setting would have no effect
                    known_ones = f"those are {', '.join(CREDENTIALS)}, and mirror.credentials"
                    rule = f"is not a credential: {known_ones}"
                    remedy = "all other headers are passed on anyway; leave it out, or add it there"
                    raise ParameterError.of(f"arm[{place}].pass_credentials", name, rule, remedy)
        size, limit = self.loss.bytes, self.mirror.answer_limit
        if size is not None and size.high > limit:
            rule = f"must not exceed mirror.answer_limit = {limit}, where answers are cut"
            raise ParameterError.of(
                "loss.bytes.high", size.high, rule, "lower it, or raise the limit"
            )
        if any(field.type == "vector" for field in self.context.values()):
            types = {name: field.type for name, field in self.context.items()}
            with_fields_of(types, Policy.from_dict(self.experiment.policy))
        self._has_costs_for_its_budget()
        self._has_no_arm_that_judges()
        if self.sink:
            self._fits_a_sink()
        return self

    def _has_costs_for_its_budget(self) -> None:
        if self.spending_limits:
            judge, lacking = (
                self.loss.judge,
                [f"arm {arm.name!r}" for arm in self.arms if not arm.dearest],
            )
            if judge is not None and judge.model is not None and not judge.dearest:
                lacking.append("judge")
            for each in lacking:
                rule = f"needs the most that a copy and its judgement cost, and the {each} has neither ceiling nor cost"
                remedy = "give it ceiling, beside its prices or cost_header, or cost"
                [(name, value), *_] = self.spending_limits.items()
                raise ParameterError.of(f"budget.{name}", value, rule, remedy)
            try:
                Budget(cost=0.0, **self.spending_limits)
            except ParameterError as error:
                raise ParameterError(f"budget.{error}") from None

    def _has_no_arm_that_judges(self) -> None:
        judge = self.loss.judge
        if judge is None or judge.self_judging:
            return
        for arm in self.arms:
            if judge.is_at(arm.url, arm.fields.get("model")):
                rule = f"is the arm {arm.name!r}, too"
                raise ParameterError.of("loss.judge.model", judge.model, rule, NOT_ITS_OWN)

    def _fits_a_sink(self) -> None:
        """Refuse what needs the served answer, or serves."""
        judge = self.loss.judge
        if judge is not None and not judge.alone:
            kind = next(
                name for name in ("model", "python", "url") if getattr(judge, name) is not None
            )
            rule = "compares with the served answer, which a sink does not see"
            remedy = "judge the answer to the copy alone, and say so with alone = true"
            raise ParameterError.of(f"loss.judge.{kind}", getattr(judge, kind), rule, remedy)
        if self.labels is not None and self.labels.to == "console":
            rule = "a person compares with the served answer, which a sink does not see"
            raise ParameterError.of(
                "labels.to", self.labels.to, rule, "give an address or a function"
            )
        for name, value in {
            "mirror.arm_header": self.mirror.arm_header,
            "sticky": self.sticky,
        }.items():
            if value is not None:
                raise ParameterError(f"{name}: a sink serves nobody; leave it out")

    @property
    def spending_limits(self) -> dict[str, Any]:
        """The part of the budget that limits what the answers to copies cost; the decision service has the rest."""
        if "cost" in self.budget:
            return {}
        return {name: self.budget[name] for name in ("total", "allowance") if name in self.budget}

    @property
    def decision_budget(self) -> dict[str, Any]:
        """The part of the budget that the decision service keeps."""
        return {
            name: value for name, value in self.budget.items() if name not in self.spending_limits
        }

    @property
    def writable(self) -> Path:
        """The folder to write to."""
        return self.state_folder or self.folder

    def file(self, kind: str) -> Path:
        """A file that this mirror writes."""
        return self.writable / f"{self.experiment.name}-{kind}.jsonl"

"""What clients send: the fields of requests, and an operation for each."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, Union, Unpack
from urllib.parse import quote

from ..base.spec import Description
from ..decision import Arm, ByArm, Mode
from ..errors import ParameterError
from ..learner.guardrails import GuardrailChanges as GuardrailChanges
from ..learner.seeds import Key, key_text
from .errors import TEMPORARY, ServiceError, Undelivered, UndeliveredFeedback, identified
from .exchange import ApiRequest, Endpoint, Exchange, create, send, send_for_json
from .feedback import NOT_DELIVERED, Outbox, checked_item, deliver
from .results import FilePath, Flushed, RemoteDecision, format_of

if TYPE_CHECKING:
    from ..learner.labels import Labels
    from ..learner.learner import Learner
    from ..policies import Policy


class BudgetLimits(TypedDict, total=False):
    """The limits of a budget for exploring; what is left out has none.

    Attributes:
        share: the probability with which a decision may explore, by a seeded coin.
        rate: (n, seconds): at most n decisions explore in any window of that many seconds.
        cost: the most that exploring and judging an arm costs, one number or one by arm; set aside
            until the real one is known.
        total: at most this much is spent in all.
        allowance: (amount, seconds): at most this amount is spent in each period of that many
            seconds.
        decided_share: replaces `share` once the verdict is decided, until an alarm.
        alarm_every: the mean number of explored decisions until a false alarm, at least; 100,000 if
            it is left out.

    >>> limits: BudgetLimits = {"rate": (100, 60), "cost": {"large": 2.0}, "total": 500}
    >>> client.set_budget("models", **limits)["budget"]["rate"]
    [100, 60.0]
    """

    share: float | None
    rate: Sequence[float] | None
    cost: float | ByArm | None
    total: float | None
    allowance: Sequence[float] | None
    decided_share: float | None
    alarm_every: float | None


def as_json(values: Mapping[str, Any]) -> dict[str, Any]:
    """Guardrails or limits as JSON takes them: lists and objects, whose names are texts."""
    return {name: _plain(value) for name, value in values.items()}


def _plain(value: Any) -> Any:
    """A value as JSON takes it."""
    if isinstance(value, Mapping):
        return {str(arm): number for arm, number in value.items()}
    return value if value is None or isinstance(value, (str, int, float)) else list(value)


PolicyLike: TypeAlias = Union["Policy", Mapping[str, Any], str]
"""A policy, what its `to_dict()` returns, or its name."""
Json: TypeAlias = dict[str, Any]


class ExperimentSettings(TypedDict, total=False):
    """Settings of a new experiment. The service has a default for each.

    Attributes:
        policy: a policy, its `to_dict()`, or its name. The default is `dc.Ladder()`.
        loss_range: the lowest and the highest possible loss; (0, 1) by default.
        deadline_seconds: how long feedback may take; by default there is no deadline.
        expired_loss: the loss that a decision counts as after its deadline; by default it does not
            count.
        seed: the seed of the draws, for tests; fresh randomness by default.
        demo: whether the console may send made-up losses to it; False by default.
        feedback: "loss" (the default), or "preference" for feedback that says which of the two arms
            did better.
        guardrails: the guardrails that it starts with: see `GuardrailChanges`.
        budget: the budget for exploring that it starts with: see `BudgetLimits`.
        risk: the probability that its intervals or its verdict ever fail; 0.05 by default.
        drift: whether losses may drift; True by default.
        patience: how many newer decisions wait, in its intervals and its verdict, for one without
            feedback; 1,000 by default, or the deadline of labels. After that it counts as
            `expired_loss` there, or is left out and counted.
        labels: how many decisions ask for a label, if losses come from a judge:
            `dc.Labels(share=0.1)`, or its fields.
        log_keys: what the log holds of the keys of decisions: "hashed" (the default), "plain" or
            "off".
        context: the fields of the contexts of decisions, each with its type: "text", "number",
            "boolean" or "vector". Those that a contextual policy learns from need not be declared.
        unknown_context: what happens to a decision whose context has other fields: "refuse" (the
            default) or "ignore".
        log_context: what the log holds of texts in contexts: "plain" (the default) or "hashed".
        learner: a learner to start from, or the text that its `to_json()` wrote, in place of
            `arms`, `policy`, `loss_range` and `seed`. The experiment continues from there, bit for
            bit, without its pending decisions.

    >>> import decoupled as dc
    >>> settings: ExperimentSettings = {"policy": dc.FTPL(alpha=2.5), "deadline_seconds": 60}
    >>> client.create("timed", arms=["a", "b"], **settings)["deadline_seconds"]
    60.0
    """

    policy: PolicyLike | None
    loss_range: Sequence[float] | None
    deadline_seconds: float | None
    expired_loss: float | None
    seed: int | None
    demo: bool
    feedback: Literal["loss", "preference"]
    guardrails: GuardrailChanges | None
    budget: BudgetLimits | None
    risk: float | None
    drift: bool
    patience: int | None
    labels: Union["Labels", Mapping[str, float], None]
    log_keys: Literal["hashed", "plain", "off"]
    context: Mapping[str, Literal["text", "number", "boolean", "vector"]] | None
    unknown_context: Literal["refuse", "ignore"]
    log_context: Literal["plain", "hashed"]
    learner: Union["Learner", str, None]


class DecideOptions(TypedDict, total=False):
    """Options of a decision.

    Attributes:
        mode: "both" (the default) names an arm to exploit and one to explore, "exploit" and
            "explore" only one.
        available: the arms to choose from; all by default.
        key: a session, a user or anything else that should be served the same arm again; a fresh
            draw by default.
        idempotency_key: the Idempotency-Key; a new one by default. The same one gives the same
            decision again.
        tags: strings that are stored with the decision, to find and filter it by.
        baseline: the losses that you expect, by arm, for evaluations. They change nothing that is
            drawn or learned.
        context: what is known of the request, by declared field; it is stored, and a contextual
            policy learns from it.
        advice: what the advisers that the policy names would exploit: an arm, or probabilities by
            arm.
        why: whether to say why a contextual policy drew `exploit`.

    >>> options: DecideOptions = {"available": ["small", "medium"], "idempotency_key": "4711"}
    >>> client.decide("models", **options) == client.decide("models", **options)
    True
    >>> len({client.decide("models", key="session-17").exploit for _ in range(20)})
    1
    """

    mode: Mode
    available: Sequence[Arm] | None
    key: Key | None
    idempotency_key: str | None
    tags: Mapping[str, str] | None
    baseline: ByArm | None
    context: Mapping[str, str | float | bool | Sequence[float] | None] | None
    advice: Mapping[str, Arm | Mapping[Any, float]] | None
    why: bool


class ExperimentFilters(TypedDict, total=False):
    """Which experiments to list, and in which order.

    Attributes:
        sort: "name" (the default), "-name", "created_at", or "-created_at" for the newest first.
        status: "active" or "archived"; both by default.
        policy: the name of their policy, such as "Ladder".
        prefix: what their names begin with.

    >>> filters: ExperimentFilters = {"sort": "-created_at", "policy": "Ladder"}
    >>> [each["name"] for each in client.iter_experiments(**filters)]
    ['models']
    """

    sort: Literal["name", "-name", "created_at", "-created_at"]
    status: Literal["active", "archived"]
    policy: str
    prefix: str


class DecisionFilters(TypedDict, total=False):
    """Which decisions to list, and in which order.

    Attributes:
        sort: "-made_at" (the default, the newest first) or "made_at".
        status: "pending", "applied", "expired" or "unobserved".
        mode: "both", "exploit" or "explore".
        tags: the tags that they must all have.

    >>> made = client.decide("models", tags={"country": "de"})
    >>> filters: DecisionFilters = {"tags": {"country": "de"}, "status": "pending"}
    >>> [each.id for each in client.iter_decisions("models", **filters)] == [made.id]
    True
    """

    sort: Literal["made_at", "-made_at"]
    status: Literal["pending", "applied", "expired", "unobserved"]
    mode: Mode
    tags: Mapping[str, str]


class Operations:
    """The operations, each as an exchange that either client can run."""

    def __init__(self, endpoint: Endpoint, outbox: Outbox | None) -> None:
        self._endpoint = endpoint
        self._outbox = outbox

    def json(self, request: ApiRequest) -> Exchange[Any]:
        """A request whose answer is JSON."""
        return send_for_json(request, self._endpoint)

    # Experiments

    def create(
        self, name: str, *, arms: Sequence[Arm] | int | None, **settings: Unpack[ExperimentSettings]
    ) -> Exchange[Json]:
        body = _body({"arms": arms}, settings, ExperimentSettings.__optional_keys__)
        return create(name, ApiRequest("PUT", experiment_path(name), body), self._endpoint)

    def learner(self, name: str) -> Exchange[str]:
        response = yield from send(
            ApiRequest("GET", f"{experiment_path(name)}/learner"), self._endpoint
        )
        return response.text

    def log(
        self, name: str, file: FilePath, format: str | None, tags: Mapping[str, str] | None
    ) -> Exchange[bytes]:
        params = {"format": format_of(file, format), **tag_params(tags)}
        response = yield from send(
            ApiRequest("GET", f"{experiment_path(name)}/log", params=params), self._endpoint
        )
        return response.content

    # Decisions

    def decide(
        self, name: str, count: int | None, **options: Unpack[DecideOptions]
    ) -> Exchange[RemoteDecision | list[RemoteDecision]]:
        body = _body({"count": count}, options, DecideOptions.__optional_keys__)
        # Every attempt carries the same one, so a lost answer does not draw a second decision.
        headers = {"Idempotency-Key": body.pop("idempotency_key", None) or str(uuid.uuid4())}
        request = ApiRequest("POST", f"{experiment_path(name)}/decisions", body, headers=headers)
        content = yield from self.json(request)
        if count is None:
            return RemoteDecision.of(content)
        return [RemoteDecision.of(decision) for decision in content["decisions"]]

    def decision(self, id: str) -> Exchange[RemoteDecision]:
        return RemoteDecision.of((yield from self.json(ApiRequest("GET", decision_path(id)))))

    def feedback(self, item: Undelivered) -> Exchange[RemoteDecision | None]:
        item = checked_item(item)
        # With an outbox there is no need to wait until a policy is compiled.
        endpoint = self._endpoint if self._outbox is None else self._endpoint.without_compile_wait()
        try:
            return RemoteDecision.of((yield from send_for_json(_put(item, "feedback"), endpoint)))
        except NOT_DELIVERED as error:
            if self._outbox is None:
                rule = f"decision {item.decision!r}: its feedback was not delivered: {error}"
                failure = UndeliveredFeedback(f"{rule}; {endpoint.remedies.undelivered}", [item])
                raise identified(failure, error.request_id) from error
            self._outbox.add(item)
            return None

    def label(self, item: Undelivered) -> Exchange[RemoteDecision]:
        request = _put(checked_item(item), "label")
        return RemoteDecision.of((yield from send_for_json(request, self._endpoint)))

    def feedback_many(
        self, items: Sequence[Undelivered]
    ) -> Exchange[list[RemoteDecision | ServiceError]]:
        return deliver([checked_item(item) for item in items], self._endpoint)

    # The outbox

    def flush(self) -> Exchange[Flushed]:
        if self._outbox is None:
            remedy = "pass one to the client, as in Client(url, outbox='outbox')"
            raise ParameterError(f"outbox: this client has none; {remedy}")
        items = self._outbox.items()
        results = yield from deliver(items, self._endpoint.without_compile_wait())
        delivered: list[RemoteDecision] = []
        refused: list[tuple[Undelivered, ServiceError]] = []
        for item, result in zip(items, results, strict=True):
            if isinstance(result, RemoteDecision):
                delivered.append(result)
            elif result.status not in TEMPORARY:
                refused.append((item, result))
        self._outbox.remove([decision.id for decision in delivered])
        self._outbox.remove([item.decision for item, _ in refused])
        return Flushed(delivered, refused, len(self._outbox))

    def close(self) -> Exchange[None]:
        if self._outbox is None or not len(self._outbox):
            return
        yield from self.flush()
        items = self._outbox.items()
        if items and self._outbox.path is None:
            rule = f"outbox: {len(items)} losses were not delivered, and no folder keeps them"
            raise UndeliveredFeedback(f"{rule}; they are in `items` of this error", items)


def _by_text(by_arm: Mapping[Any, float]) -> dict[str, float]:
    """Numbers by the texts of their arms, as JSON has names."""
    return {str(arm): value for arm, value in by_arm.items()}


def _body(fields: Json, options: Mapping[str, Any], option_names: frozenset[str]) -> Json:
    """These fields and options as JSON, without those that are None: the service has defaults."""
    for name in options:
        if name not in option_names:
            raise TypeError(
                f"unexpected keyword argument {name!r}; known are {', '.join(sorted(option_names))}"
            )
    body = {}
    for name, value in {**fields, **options}.items():
        if value is not None:
            body[name] = _AS_JSON[name](value) if name in _AS_JSON else value
    return body


def tag_params(tags: Mapping[str, str] | None) -> dict[str, Any]:
    """The query parameters that ask for decisions with these tags."""
    return {"tag": [f"{name}:{value}" for name, value in tags.items()]} if tags else {}


PAGE = 100  # experiments or decisions in a page


def decision_params(filters: Mapping[str, Any]) -> dict[str, Any]:
    """The query parameters that list decisions as `DecisionFilters` says."""
    plain = {name: value for name, value in filters.items() if name != "tags"}
    return {"limit": PAGE, **plain, **tag_params(filters.get("tags"))}


def experiment_path(name: str) -> str:
    """The path of an experiment in the API, for `Client.request`.

    Args:
        name: the name of the experiment.

    >>> experiment_path("prompts v2")
    '/v1/experiments/prompts%20v2'
    """
    return f"/v1/experiments/{_segment('name', name)}"


def id_of(decision: RemoteDecision | str) -> str:
    """The id of a decision, given that or the decision."""
    return decision if isinstance(decision, str) else decision.id


def decision_path(decision: str) -> str:
    """The path of a decision, given its id."""
    return f"/v1/decisions/{_segment('decision', decision)}"


def _put(item: Undelivered, what: str) -> ApiRequest:
    body = item.to_json()
    return ApiRequest("PUT", f"{decision_path(body.pop('decision'))}/{what}", body)


def _segment(argument: str, name: str) -> str:
    """A name as one segment of a path; with a slash in it, the path would lead somewhere else."""
    if not name or "/" in name or set(name) == {"."}:
        raise ParameterError.of(
            argument, name, "must be one segment of a path, without '/'", "check it"
        )
    return quote(name, safe="")


def _described(policy: object) -> Json:
    if isinstance(policy, Description):
        return policy.to_dict()
    if isinstance(policy, str):
        return {"name": policy}
    if isinstance(policy, Mapping):
        return dict(policy)
    rule = "must be a policy, a policy's to_dict(), or its name"
    raise ParameterError.of("policy", policy, rule, "for example dc.Ladder()")


# The settings and options that JSON does not take as they are.
_AS_JSON: dict[str, Callable[[Any], Any]] = {
    "policy": _described,
    "arms": lambda arms: arms if isinstance(arms, int) else list(arms),
    "loss_range": list,
    "guardrails": as_json,
    "budget": as_json,
    "labels": lambda labels: labels.to_dict() if hasattr(labels, "to_dict") else dict(labels),
    "learner": lambda learner: learner if isinstance(learner, str) else learner.to_json(),
    "available": list,
    "key": key_text,
    "tags": dict,
    "baseline": _by_text,
    "context": dict,
    "advice": lambda advice: {
        name: _by_text(value) if isinstance(value, Mapping) else value
        for name, value in advice.items()
    },
}

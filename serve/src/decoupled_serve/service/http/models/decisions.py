"""Decisions and feedback as JSON: the models of their bodies."""

import math
from contextlib import suppress
from itertools import chain
from operator import attrgetter
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr, model_validator
from pydantic.config import JsonDict

from decoupled.client import wrong_feedback
from decoupled.decision import Mode
from decoupled.learner import Preference

from ...experiment.records import MOST_DECISIONS, DecisionRecord, Feedback, Status, moment
from ..admission import MOST_FEEDBACK
from .fields import (
    Advice,
    Arm,
    ContextValue,
    Loss,
    Model,
    Number,
    Problem,
    StickyKey,
    Tags,
    Whole,
    left_out,
    one_rule,
    told,
)

LONGEST_ID = 200
ScoreKind: TypeAlias = Literal["reward", "loss", "judged"]
EXPLORED = "The observed loss of the *explored* arm, in the experiment's loss range. Never that of the exploited arm."


class DecideIn(Model):
    """What to decide; an empty body asks for one decision with both arms."""

    mode: Mode = left_out(
        "both: an arm to use and an arm to try. exploit: only an arm to use, which takes no "
        "feedback. explore: only an arm to try.",
        default="both",
    )
    count: Annotated[StrictInt, Field(ge=1, le=MOST_DECISIONS), Whole] | None = left_out(
        "The number of decisions, returned in a list; if left out: one decision, by itself.", 10
    )
    available: Annotated[list[Arm], Field(min_length=1)] | None = left_out(
        "The arms that are available now; if left out: all.", ["a", "b"]
    )
    key: StickyKey | None = left_out(
        "A session or a user that should be served the same arm again; if left out: a fresh draw. It draws "
        "`exploit` and nothing else. A string of 1 to 1,024 bytes in UTF-8, or a whole number, which is the same key as its "
        "digits. The setting `log_keys` of the experiment says how it is logged.",
        "session-17",
    )
    tags: Tags | None = left_out(
        "Stored with the decision, to filter by. They do not affect decisions.", {"country": "de"}
    )
    baseline: Annotated[dict[str, Number], Field(min_length=1)] | None = left_out(
        "The losses that you expect of the arms in this decision, by arm, in the experiment's loss range. "
        "They are stored with it and make evaluations less noisy; they change nothing that is drawn or learned.",
        {"a": 0.3, "b": 0.5},
    )
    context: dict[str, ContextValue] | None = left_out(
        "What is known of the request before it is decided, by the fields that the experiment declares. It is "
        "stored with the decision, and a contextual policy learns from it. A vector is a text of any length or a list of numbers; "
        "what is stored of it is its projection, `prompt.0` and so on.",
        {"subject": "law", "tokens": 312},
    )
    advice: dict[str, Advice] | None = left_out(
        "What the advisers that the policy names would exploit: an arm, or probabilities by arm.",
        {"router-v2": "a"},
    )
    why: StrictBool = left_out("Also answer why a contextual policy drew `exploit`.", default=False)


class WhyOut(BaseModel):
    """Why a contextual policy drew the arm that it exploits."""

    rung: str = told("The rung that drew it.", "segments")
    segment: list[str | None] = told(
        "The values that tell the segment apart, in the order of the policy's `segments`; null for what is not "
        "known. Texts are hashed if the experiment's `log_context` says so."
    )
    weights: dict[str, float] = told("The probability with which each rung was drawn.")


class SendFeedback(BaseModel):
    """What to send back, and where."""

    loss_of: Arm = told("The explored arm: send the loss of this arm, and of no other.")
    to: str = told("PUT it here.", "/v1/decisions/1f2e/feedback")


class DecisionOut(BaseModel):
    """A decision: use `exploit`, try `explore`, and send back the loss of `explore`."""

    id: str
    experiment: str
    mode: Mode
    exploit: Arm | None = told("The arm to use. You suffer its loss, and never send it back.")
    explore: Arm | None = told("The arm to try. *Its* loss is the feedback.")
    send_feedback: SendFeedback | None = told(
        "Null if the decision takes no feedback (mode exploit)."
    )
    propensity: float | None = told(
        "The probability with which `explore` was drawn; null if only `weight` is known."
    )
    weight: float | None = told("An unbiased estimate of 1 / propensity, which learning uses.")
    policy: str
    state_version: int = told(
        "The last row of the log that was part of the state it was drawn from."
    )
    made_at: str
    expires_at: str | None
    status: Status
    loss: float | None = told(
        "The loss of the explored arm that was applied; with labels, the label, null if none was asked for."
    )
    settled_at: str | None
    drawn: Arm | None = told(
        "The arm that the policy drew to exploit; another than `exploit` if a guardrail replaced it."
    )
    guard: str | None = told(
        "The guardrail that chose `exploit`: pinned, holdout, floor, incumbent, cheapest or frozen; null if the policy did."
    )
    limited_by: str | None = told(
        "The part of the budget that kept this decision from exploring, so that its mode is exploit: share, "
        "rate, total or allowance; null if none did."
    )
    tags: dict[str, str] = told("The tags that the caller attached.", {"country": "de"})
    baseline: dict[str, float] | None = told(
        "The losses that the caller predicted, by arm; null for none.", {"a": 0.3}
    )
    key: str | None = told(
        "The key that drew `exploit`, as logged: its keyed hash, or its text if the experiment's "
        "`log_keys` says so; null without a key, or if keys are not logged."
    )
    context: dict[str, str | float | bool] | None = told(
        "What was known of the request, by field; texts are hashed if the experiment's `log_context` says so; "
        "null if nothing was.",
        {"subject": "law", "tokens": 312.0},
    )
    advice: dict[str, Arm | dict[str, float]] | None = told(
        "What advisers said: an arm, or probabilities by arm; null for none.", {"router-v2": "a"}
    )
    label: bool = told("Whether it asks for a label, the true loss.")
    label_probability: float | None = told(
        "The probability with which it did; null without labels."
    )
    judged: float | None = told(
        "The judge's loss; null if nobody judged it. If it asks for a label, it is pending until "
        "the label arrives, whatever its `expires_at` says."
    )
    position: float | None = told(
        "How much the judge preferred what it saw first, from -1 to 1; null if that is not known."
    )
    why: WhyOut | None = left_out(
        "Only where a request asks for it, in mode both: why a contextual policy drew `exploit`. It is not "
        "stored: null if the request is repeated after the feedback, or after a restart."
    )


class DecisionList(BaseModel):
    """The decisions of a request with `count`."""

    decisions: list[DecisionOut]


class DecisionPageOut(BaseModel):
    """A page of decisions. With filters it may be short, or empty, and not be the last."""

    decisions: list[DecisionOut]
    next: str | None = told("Pass it as `after` for the next page; null on the last.")


_ONE: list[JsonDict] = [{"required": [name]} for name in ("loss", "reward", "preference")]
_ONLY_JUDGED: JsonDict = {"required": ["judged"], "not": {"anyOf": [*_ONE]}}


class LabelIn(Model):
    """The true loss of the *explored* arm, or its reward, or a preference between both arms: exactly one of them."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [*_ONE]})

    loss: Loss = left_out(EXPLORED, 0.25)
    reward: Loss = left_out("Instead of a loss: its mirror image in the loss range.", 0.75)
    preference: Preference = left_out(
        "Instead of a loss: which of the two arms did better, or tie. Only for experiments that "
        "were created with feedback preference.",
        "explore",
    )

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        loss, reward = self.loss is not None, self.reward is not None
        preference = self.preference is not None
        enough = getattr(self, "judged", None) is not None
        if not 1 - enough <= loss + reward + preference <= 1:
            wrong = wrong_feedback(has_loss=loss, has_reward=reward, has_preference=preference)
            raise ValueError("; ".join(wrong or ()))
        return self


class FeedbackIn(LabelIn):
    """The loss of the *explored* arm, or its reward, or a preference between both arms: exactly one of them.

    In an experiment with labels: what a judge said, `judged`, and the label as one of them if it is known already.
    """

    model_config = ConfigDict(json_schema_extra={"oneOf": [*_ONE, _ONLY_JUDGED]})

    arm: Arm | None = left_out(
        "The arm whose loss it is, as a safeguard: any but the explored arm is refused (422).", "a"
    )
    judged: Annotated[
        Loss | Preference,
        one_rule("must be a number, or the preference 'explore', 'tie' or 'exploit'"),
    ] = left_out(
        "The judge's loss of the explored arm, or its preference if these are the feedback. Only "
        "for experiments with labels.",
        0.75,
    )
    position: Annotated[Number, Field(ge=-1.0, le=1.0)] = left_out(
        "How much the judge preferred what it saw first: 1 if that won, -1 if the second did, 0 for a tie.",
        1,
    )
    cost: Annotated[Number, Field(ge=0.0)] = left_out(
        "The real cost of exploring and judging. It replaces what the budget set aside.", 0.02
    )


class FeedbackItem(FeedbackIn):
    """Feedback for one decision of a batch."""

    decision: StrictStr = told("The decision's id.", "1f2e-7", min_length=1, max_length=LONGEST_ID)


class FeedbackBatchIn(Model):
    """Feedback for many decisions; if one is refused, the others are still applied."""

    items: list[FeedbackItem] = Field(
        min_length=1, max_length=MOST_FEEDBACK, examples=[[{"decision": "1f2e-7", "loss": 0.25}]]
    )

    def given(self) -> list[Feedback]:
        """The items as the service takes them."""
        return [
            Feedback(each.decision, **each.model_dump(exclude={"decision"})) for each in self.items
        ]


class LabelQueueOut(BaseModel):
    """The decisions that were judged and await a label, and the labels so far."""

    experiment: str
    used: int = told("How many labels were learned from.")
    missing: int = told("How many did not arrive in time, and count as the experiment declares.")
    awaiting: int = told("How many decisions were judged and await their label.")
    lam: float = told("How much the judge counts in the next decision, from 0 to 1.")
    decisions: list[DecisionOut] = told("The decisions that await a label, oldest first.")


class FeedbackResult(BaseModel):
    """The result for one item: 200 and the decision, or another status and the problem."""

    id: str
    status: int
    decision: DecisionOut | None = None
    problem: Problem | None = None


class FeedbackBatchOut(BaseModel):
    """A result for each item, in their order."""

    results: list[FeedbackResult]


_SHOWN = tuple(name for name in DecisionOut.model_fields if name != "why")
_values = attrgetter(*_SHOWN)
_TIMES = ("made_at", "expires_at", "settled_at")


def decision_out(record: DecisionRecord, *, why: bool = False) -> dict[str, Any]:
    """A decision as JSON; with why it was drawn, if the request asks for it."""
    found = dict(zip(_SHOWN, _values(record), strict=True))
    for name in _TIMES:
        if (at := found[name]) is not None:
            found[name] = moment(at)
    if why:
        found["why"] = None if record.why is None else record.why._asdict()
    return found


# Evaluations, as OpenTelemetry sends them: OTLP's JSON for logs, of which these fields count
EVALUATION = "gen_ai.evaluation.result"
SCORE = "gen_ai.evaluation.score.value"


class LogAttribute(BaseModel):
    """An attribute of a log record."""

    key: StrictStr
    value: dict[str, Any] = left_out("Its value, by its type.", {"doubleValue": 0.75}, default={})

    @property
    def plain(self) -> Any:
        """The value; OTLP writes whole numbers as texts."""
        number = self.value.get("doubleValue", self.value.get("intValue"))
        with suppress(TypeError, ValueError, OverflowError):
            return float(number)  # type: ignore[arg-type]
        return self.value.get("stringValue")


class LogRecord(BaseModel):
    """A log record; those that are no evaluation are ignored."""

    eventName: StrictStr = Field(default="", examples=[EVALUATION])  # noqa: N815
    attributes: list[LogAttribute] = left_out(
        f"`{SCORE}`, and the decision: `decoupled.decision`, or `gen_ai.response.id` if your program gave the "
        "completion the id of its decision.",
        [{"key": "decoupled.decision", "value": {"stringValue": "1f2e-7"}}],
        default=[],
    )


class LogScope(BaseModel):
    """Who wrote the records of a scope."""

    name: StrictStr = ""


class ScopeLogs(BaseModel):
    """Log records of one scope."""

    scope: LogScope = left_out("What `decoupled` itself wrote is ignored.", default=LogScope())
    logRecords: list[LogRecord] = []  # noqa: N815


class ResourceLogs(BaseModel):
    """Log records of one program."""

    scopeLogs: list[ScopeLogs] = []  # noqa: N815


class LogsIn(BaseModel):
    """Log records as OTLP over HTTP sends them, in JSON. Other fields are ignored."""

    resourceLogs: list[ResourceLogs] = []  # noqa: N815

    def given(self, evaluation: str | None, kind: ScoreKind) -> tuple[list[Feedback], list[str]]:
        """The feedback that the evaluations are, and what is wrong with the others."""
        given, wrong = list[Feedback](), list[str]()
        scopes = (scope for each in self.resourceLogs for scope in each.scopeLogs)
        others = (scope.logRecords for scope in scopes if scope.scope.name != "decoupled")
        for record in chain.from_iterable(others):
            found = {each.key: each.plain for each in record.attributes}
            if EVALUATION not in (record.eventName, found.get("event.name")):
                continue
            if evaluation not in (None, found.get("gen_ai.evaluation.name")):
                continue
            decision, score = found.get("decoupled.decision"), found.get(SCORE)
            decision = decision or found.get("gen_ai.response.id")
            if not isinstance(decision, str) or not 1 <= len(decision) <= LONGEST_ID:
                remedy = "set it, or gen_ai.response.id, to the id of the decision"
                wrong.append(f"decoupled.decision: is missing; {remedy}")
            elif not isinstance(score, float) or not math.isfinite(score):
                wrong.append(
                    f"decision {decision}: {SCORE} is not a number; have the evaluator send one"
                )
            else:
                given.append(Feedback(decision, **{kind: score}))  # type: ignore[arg-type]
        return given, wrong


class PartialSuccess(BaseModel):
    """What was not taken."""

    rejectedLogRecords: str = left_out("How many, as text.", "1", default="0")  # noqa: N815
    errorMessage: str = left_out("Why, for the first of them.", default="")  # noqa: N815


class LogsOut(BaseModel):
    """OTLP's response: what was not taken must not be sent again."""

    partialSuccess: PartialSuccess  # noqa: N815

"""Records as JSON, and the models that describe that JSON in the OpenAPI document.

The hot routes write their JSON by hand; the models are what they promise, and the tests hold them to it.
"""

import json
import math
from functools import lru_cache
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
    model_validator,
)

from ...errors import DecoupledError
from ...policies import Policy
from ..errors import neither_or_both
from ..experiment.records import (
    LONGEST_DEADLINE,
    MOST_DECISIONS,
    DecisionRecord,
    Experiment,
    ExperimentStatus,
    Mode,
    State,
    Status,
)
from ..experiment.settings import default_policy
from ..experiment.times import moment
from .rate_limit import LONGEST_NAME, MOST_ARMS, MOST_FEEDBACK
from .strict_json import whole
from .validation import broken, one_rule

Whole = BeforeValidator(whole)
Arm = Annotated[
    Annotated[StrictStr, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
    | Annotated[StrictInt, Field(ge=-(2**53), le=2**53), Whole],
    one_rule("must be a string of 1 to 200 characters without control characters, or a whole number"),
]
Number = Annotated[float, Field(allow_inf_nan=False, strict=True)]


def _truth(value: Any) -> Any:
    return float(value) if isinstance(value, bool) else value


# A loss that is true or false, as of a click, counts as 1 or 0.
Loss = Annotated[Number, BeforeValidator(_truth, json_schema_input_type=Number | bool)]
NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
NAMED = one_rule(
    f"must be 1 to {LONGEST_NAME} letters, digits, dots, dashes and underscores, a letter or a digit first"
)
EXPLORED = "The loss that was seen of the *explored* arm, in the experiment's loss range. Never that of the exploited arm."


class Model(BaseModel):
    """A body that takes no field it does not know."""

    model_config = ConfigDict(extra="forbid")


class Problem(BaseModel):
    """An error (RFC 9457): every error of the service has this shape."""

    type: str = Field(examples=["urn:decoupled:conflict"])
    title: str
    status: int
    detail: str = Field(description="What was wrong, by which rule, and what to do.")
    errors: list[dict[str, str]] = Field(
        default=[], description="Each field that is wrong, where there are several."
    )


def _ordered(ends: list[float]) -> list[float]:
    low, high = ends
    if not low < high or not math.isfinite(high - low):
        raise broken("must be two numbers, the lower first, with a finite distance")
    return ends


class ExperimentIn(Model):
    """What an experiment is. All of it is fixed when the experiment is created, but for its arms."""

    policy: dict[str, Any] = Field(
        default_factory=default_policy,
        description="A policy by name and parameters; parameters left out take their defaults. An "
        "experiment that names no policy runs FTPL.recommended().",
        examples=[{"name": "FTPL.recommended"}, {"name": "FTPL", "alpha": 3.0}],
        json_schema_extra={"default": default_policy()},
    )
    arms: Annotated[list[Arm], Field(min_length=2, max_length=MOST_ARMS, examples=[["a", "b", "c"]])]
    loss_range: Annotated[list[Number], Field(min_length=2, max_length=2), AfterValidator(_ordered)] = (
        Field(
            default=[0.0, 1.0],
            description="The lowest and the highest loss there can be.",
            examples=[[0, 250]],
        )
    )
    deadline_seconds: Annotated[Number, Field(gt=0.0, le=LONGEST_DEADLINE)] | None = Field(
        default=None,
        description="Feedback later than this after its decision is refused (410). None: never.",
        examples=[3600],
    )
    expired_loss: Number | None = Field(
        default=None,
        description="The loss that an expired decision counts as. None: it counts as nothing.",
        examples=[1],
    )
    seed: Annotated[StrictInt, Field(ge=0, lt=2**63), Whole] | None = Field(
        default=None,
        description="Seed of the draws, for tests. None: fresh randomness. It is never shown again.",
        examples=[7],
    )
    demo: StrictBool = Field(
        default=False,
        description="Whether it is only for test traffic. The console sends made-up losses to such "
        "experiments and to no others.",
    )


class ExperimentOut(BaseModel):
    """An experiment as it stands."""

    name: str
    policy: dict[str, Any]
    policy_label: str = Field(description="The policy in a few words.", examples=["FTPL recommended"])
    arms: list[Arm] = Field(description="The arms that can be chosen now.")
    retired: list[Arm]
    loss_range: Annotated[list[float], Field(min_length=2, max_length=2)]
    deadline_seconds: float | None
    expired_loss: float | None
    created_at: str
    archived_at: str | None
    demo: bool = Field(description="Whether it was created for test traffic.")
    state_version: int
    status: ExperimentStatus = Field(
        description="compiling: its policy is new to this machine, decisions are refused with 503 until it is ready; "
        "failed: the policy does not compile here, and `problem` says why."
    )
    problem: str | None


class ExperimentList(BaseModel):
    """A page of experiments, by name."""

    experiments: list[ExperimentOut]
    next: str | None = Field(description="Give it as `after` for the next page; null on the last.")


def _each_once(arms: list[str | int]) -> list[str | int]:
    if len(set(arms)) < len(arms):
        raise broken("names an arm twice", "name each once")
    return arms


class ArmsIn(Model):
    """Arms to add or to retire."""

    arms: Annotated[
        list[Arm],
        Field(min_length=1, max_length=MOST_ARMS, examples=[["d"]]),
        AfterValidator(_each_once),
    ]


class DecideIn(Model):
    """What to decide; an empty body asks for one decision with both arms."""

    mode: Mode = Field(
        default="both",
        description="both: an arm to use and an arm to try. exploit: only an arm to use, which awaits no "
        "feedback. explore: only an arm to try.",
    )
    count: Annotated[StrictInt, Field(ge=1, le=MOST_DECISIONS), Whole] | None = Field(
        default=None, description="So many decisions, in a list; left out: one decision, by itself."
    )
    available: Annotated[list[Arm], Field(min_length=1)] | None = Field(
        default=None, description="The arms that can be had now; left out: all."
    )


class SendFeedback(BaseModel):
    """What to send back and where."""

    loss_of: Arm = Field(
        description="The explored arm: it is this arm's loss, and no other's, that is awaited."
    )
    to: str = Field(description="PUT it here.", examples=["/v1/decisions/1f2e/feedback"])


class DecisionOut(BaseModel):
    """A decision: use `exploit`, try `explore`, and send back the loss of `explore`."""

    id: str
    experiment: str
    mode: Mode
    exploit: Arm | None = Field(
        description="The arm to use. Its loss is suffered, and is nobody's feedback."
    )
    explore: Arm | None = Field(description="The arm to try. *Its* loss is the feedback.")
    send_feedback: SendFeedback | None = Field(
        description="Null where no feedback is awaited (mode exploit)."
    )
    propensity: float | None = Field(
        description="The probability with which `explore` was drawn; null where only `weight` is known."
    )
    weight: float | None = Field(description="An unbiased estimate of 1 / propensity, which learning uses.")
    policy: str
    state_version: int = Field(
        description="The last row of the log that the state it was drawn from contains."
    )
    made_at: str
    expires_at: str | None
    status: Status
    loss: float | None = Field(description="The loss of the explored arm that was applied.")
    settled_at: str | None


class DecisionList(BaseModel):
    """The decisions of a request with `count`."""

    decisions: list[DecisionOut]


class FeedbackIn(Model):
    """The loss of the *explored* arm, or its reward: one of them."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": ["loss"]}, {"required": ["reward"]}]}
    )

    loss: Loss = Field(default=None, description=EXPLORED, examples=[0.25])  # type: ignore[assignment]
    reward: Loss = Field(  # type: ignore[assignment]
        default=None,
        description="In place of a loss: its mirror image in the loss range.",
        examples=[0.75],
    )
    arm: Arm | None = Field(
        default=None,
        description="The arm whose loss it is, as a safeguard: any but the explored arm is refused (422).",
        examples=["a"],
    )

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        wrong = neither_or_both(self.loss is not None, self.reward is not None)
        if wrong is not None:
            raise broken(*wrong)
        return self


class FeedbackItem(FeedbackIn):
    """Feedback for one decision of a batch."""

    decision: Annotated[
        StrictStr,
        Field(min_length=1, max_length=200, description="The decision's id.", examples=["1f2e-7"]),
    ]


class FeedbackBatchIn(Model):
    """Feedback for many decisions, each on its own: one that is refused does not stop the others."""

    items: Annotated[
        list[FeedbackItem],
        Field(min_length=1, max_length=MOST_FEEDBACK, examples=[[{"decision": "1f2e-7", "loss": 0.25}]]),
    ]


class FeedbackResult(BaseModel):
    """What became of one item: 200 and the decision, or another status and the problem."""

    id: str
    status: int
    decision: DecisionOut | None = None
    problem: Problem | None = None


class FeedbackBatchOut(BaseModel):
    """A result for each item, in their order."""

    results: list[FeedbackResult]


AT_THIS_MOMENT = (
    "The interval holds at this moment, with a probability of 95 %. It does not hold at all moments together: who "
    "looks again and again, and stops when it looks good, is wrong more often."
)


class IntervalOut(BaseModel):
    """An estimate with the ends of its 95 % interval, at this moment."""

    estimate: float
    low: float = Field(description=f"The lower end of the interval. {AT_THIS_MOMENT}")
    high: float = Field(description=f"The upper end of the interval. {AT_THIS_MOMENT}")


class StateOut(BaseModel):
    """What an experiment has learned; lists are in the order of `arms`."""

    experiment: str
    state_version: int
    round: int
    arms: list[Arm]
    exploitation: list[float] = Field(description="The exact probability of exploiting each arm next.")
    exploration: list[float] = Field(description="The exact probability of exploring each arm next.")
    estimates: list[float]
    plays_exploit: list[int]
    plays_explore: list[int]
    decisions: int
    pending: int
    applied: int
    expired: int
    late: int = Field(description="Feedback refused because it came after the deadline.")
    regret: IntervalOut | None = Field(
        description="Of what was exploited against the best single arm, with its interval at this moment; null "
        "where the log cannot tell."
    )


MOMENT = "must be a string with a date, a time and its offset from UTC (RFC 3339)"


def _text(value: object) -> object:
    if not isinstance(value, str):  # the framework would take a number for seconds since 1970
        raise broken(MOMENT)
    return value


class ArmValueOut(BaseModel):
    """The mean loss of one arm over the decisions observed."""

    arm: Arm
    observed: int
    value: IntervalOut | None = Field(
        description="The mean loss with its interval at this moment; null where the log cannot tell."
    )


class EvaluationOut(BaseModel):
    """What the log says of each arm and of what was exploited, in losses of the experiment's own scale."""

    experiment: str
    method: str
    level: float = Field(description="The level of every interval, at this moment.")
    decisions: int
    observed: int
    arms: list[ArmValueOut]
    exploited: IntervalOut | None = Field(
        description="The mean loss of what was exploited, with its interval at this moment."
    )
    remark: str | None


class RetentionIn(Model):
    """Which part of a log to drop."""

    before: Annotated[AwareDatetime, BeforeValidator(_text), one_rule(MOMENT)] = Field(
        description="Rows before this moment go.", examples=["2026-01-31T00:00:00Z"]
    )


class RetentionOut(BaseModel):
    """How many rows were dropped."""

    dropped: int


def experiment_out(experiment: Experiment) -> dict[str, Any]:
    """An experiment as JSON; neither its tenant nor its seed is told."""
    settings = experiment.settings
    return {
        "name": experiment.name,
        "policy": settings.policy,
        "policy_label": _label(json.dumps(settings.policy)),
        "arms": list(experiment.arms),
        "retired": list(experiment.retired),
        "loss_range": list(settings.loss_range),
        "deadline_seconds": settings.deadline,
        "expired_loss": settings.expired_loss,
        "created_at": moment(experiment.created_at),
        "archived_at": moment(experiment.archived_at),
        "demo": settings.demo,
        "state_version": experiment.state_version,
        "status": experiment.status,
        "problem": experiment.problem,
    }


@lru_cache(1024)
def _label(policy: str) -> str:
    try:
        return Policy.from_json(policy).label
    except (
        DecoupledError
    ):  # stored by a process that knew this policy; an experiment is listed all the same
        return str(json.loads(policy)["name"])


def decision_out(record: DecisionRecord) -> dict[str, Any]:
    """A decision as JSON."""
    explore = record.explore
    return {
        "id": record.id,
        "experiment": record.experiment,
        "mode": record.mode,
        "exploit": record.exploit,
        "explore": explore,
        "send_feedback": None
        if explore is None
        else {"loss_of": explore, "to": f"/v1/decisions/{record.id}/feedback"},
        "propensity": record.propensity,
        "weight": record.weight,
        "policy": record.policy,
        "state_version": record.state_version,
        "made_at": moment(record.made_at),
        "expires_at": moment(record.expires_at),
        "status": record.status,
        "loss": record.loss,
        "settled_at": moment(record.settled_at),
    }


def state_out(state: State) -> dict[str, Any]:
    """A state as JSON."""
    names = [name for name in StateOut.model_fields if name != "regret"]
    regret = state.regret
    told = None if regret is None else {"estimate": regret.estimate, "low": regret.low, "high": regret.high}
    return {**{name: getattr(state, name) for name in names}, "regret": told}

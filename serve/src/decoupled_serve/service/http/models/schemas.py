"""The models of experiments, guardrails and budgets, with their JSON."""

import json
import math
from functools import lru_cache
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
    Tag,
    model_validator,
)

from decoupled.base import NAME_SHAPE, short_labels
from decoupled.client import Invalid
from decoupled.errors import DecoupledError
from decoupled.inference import MOST_PATIENCE, PATIENCE_OF_LOGS
from decoupled.learner import LEAST_SHARE, MOST_IN_A_WINDOW, Labels
from decoupled.policies import Ladder, Policy

from ...experiment.context import MOST_FIELDS
from ...experiment.records import (
    LONGEST_DEADLINE,
    MOST_ARMS,
    RISK,
    ContextLog,
    Experiment,
    ExperimentState,
    ExperimentStatus,
    FeedbackKind,
    FieldType,
    KeyLog,
    UnknownFields,
)
from ...experiment.snapshots import checked_learner
from .fields import CHOICES, Arm, Model, Number, Whole, json_of, left_out, one_rule, told

Share = Annotated[Number, Field(ge=0.0, le=1.0)]
Amount = Annotated[Number, Field(ge=0.0)]
Seconds = Annotated[Number, Field(gt=0.0)]
Cost = Annotated[
    Amount | dict[str, Amount],
    one_rule("must be a number from 0 on, or an object with such a number by arm"),
]
Rate = tuple[Annotated[StrictInt, Field(ge=0, le=MOST_IN_A_WINDOW), Whole], Seconds]
Allowance = tuple[Amount, Seconds]


class GuardrailsIn(Model):
    """Guardrails to set. Those that are left out stay as they are; null removes a rule."""

    pinned: Arm | None = left_out("The arm that every decision exploits: the kill switch.", "a")
    floors: dict[str, Share] | None = left_out(
        "The least probability of exploiting each of these arms. They replace all floors.",
        {"a": 0.05},
    )
    holdout: Share | None = left_out("The share of decisions that exploit `control`.", 0.05)
    control: Arm | None = left_out(
        "The arm of the hold-out; null draws an available arm evenly.", "a"
    )
    incumbent: Arm | None = left_out(
        "The arm to exploit until the observed losses show that another is better.", "a"
    )
    risk: Annotated[Number, Field(gt=0.0, lt=1.0)] | None = left_out(
        "The largest probability that the incumbent is ever left while no other arm is better, "
        "and that `cheapest_within` ever serves an arm that is worse by more than its margin.",
        0.05,
    )
    drift: StrictBool | None = left_out(
        "Whether losses may drift. If no arm's mean loss ever changes, false may find a better arm sooner.",
        True,
    )
    down: Annotated[list[Arm], Field(max_length=MOST_ARMS)] | None = left_out(
        "Arms that are unavailable while they are on this list.", ["c"]
    )
    cheapest_within: Amount | None = left_out(
        "Exploit the cheapest arm whose loss is known to be within this of every other arm's. `prices` must "
        "have the price of every arm.",
        0.02,
    )
    prices: dict[str, Amount] | None = left_out(
        "The price of each arm, in any unit. They replace all prices.", {"a": 3.0, "b": 0.2}
    )
    switch_margin: Amount | None = left_out(
        "Keys draw from a law that stays, until an arm's estimated mean loss is lower than that of the law by "
        "more than this.",
        0.02,
    )

    def changes(self) -> dict[str, Any]:
        """What to change, by the names of `Guardrails`; null means its default."""
        return {name: getattr(self, name) for name in self.model_fields_set}


class GuardrailsOut(BaseModel):
    """The guardrails of an experiment."""

    pinned: Arm | None
    floors: dict[str, float]
    holdout: float
    control: Arm | None
    incumbent: Arm | None
    risk: float
    drift: bool
    down: list[Arm]
    cheapest_within: float | None
    prices: dict[str, float]
    switch_margin: float | None


class DownIn(Model):
    """The arms that are down, such as those that fail a health check; all others are up."""

    arms: Annotated[list[Arm], Field(max_length=MOST_ARMS, examples=[["c"]])]


class BudgetIn(Model):
    """A budget for exploring. What is left out has no limit."""

    share: Share | None = left_out(
        "The probability with which a decision may explore, by a seeded coin.", 0.01
    )
    rate: Rate | None = left_out(
        "A number and seconds: at most so many decisions explore in any window of that length.",
        [100, 60],
    )
    cost: Cost | None = left_out(
        "The most that exploring an arm costs, its judgement included: one number, or a number "
        "for each arm. An arm that is left out costs as much as the most expensive. The amount is "
        "set aside until feedback has the real `cost`.",
        {"a": 0.2, "b": 3.0},
    )
    total: Amount | None = left_out("At most this much is spent in all.", 500)
    allowance: Allowance | None = left_out(
        "An amount and seconds: at most this much is spent in each period of that length since 1970 (UTC).",
        [50, 86400],
    )
    decided_share: Annotated[Number, Field(gt=0.0, le=1.0)] | None = left_out(
        "The probability with which a decision may explore once the verdict is decided, until an alarm.",
        0.01,
    )
    alarm_every: Annotated[Number, Field(gt=1.0)] | None = left_out(
        "The mean number of explored decisions until a false alarm, at least; 100,000 if it is left out.",
        100_000,
    )

    def limits(self) -> dict[str, Any]:
        """The limits, by the names of `Budget`."""
        return {
            name: value
            for name in BudgetIn.model_fields
            if (value := getattr(self, name)) is not None
        }


class BudgetOut(BaseModel):
    """The budget of an experiment; null where there is no limit."""

    share: float | None
    rate: tuple[int, float] | None
    cost: float | dict[str, float] | None
    total: float | None
    allowance: tuple[float, float] | None
    decided_share: float | None
    alarm_every: float | None


class LabelsIn(Model):
    """How many decisions ask for a label: the true loss of the explored arm."""

    share: Annotated[Number, Field(ge=LEAST_SHARE, le=1.0)] = left_out(
        "The probability that a decision asks for a label.", 0.1, default=Labels.share
    )
    first: Annotated[StrictInt, Field(ge=0, le=2**53), Whole] = left_out(
        "This many decisions ask for one at the start.", default=Labels.first
    )
    deadline: Annotated[StrictInt, Field(ge=1, le=MOST_PATIENCE), Whole] = left_out(
        "After this many newer decisions a label no longer counts.", default=Labels.deadline
    )
    missing: Share = left_out(
        "What a missing label counts as: from 0, the lowest loss, to 1, the highest.",
        default=Labels.missing,
    )


NAME = f"^{NAME_SHAPE}$"
AT_EVERY_MOMENT = (
    "The interval holds at every moment at once, with probability 1 - `risk` of the experiment: you may look as often as "
    "you like, and stop when you like."
)


def _ordered(ends: list[float]) -> list[float]:
    low, high = ends
    if not low < high or not math.isfinite(high - low):
        raise ValueError("must be two numbers, the lower first, with a finite distance")
    return ends


def _arms_or_learner(schema: dict[str, Any]) -> None:
    """In the document: arms are required, unless a learner brings them."""
    schema.pop("required", None)
    schema["anyOf"] = [{"required": ["arms"]}, {"required": ["learner"]}]


class ExperimentIn(Model):
    """The settings of an experiment. All but the arms, the guardrails and the budget are fixed when it is created."""

    model_config = ConfigDict(json_schema_extra=_arms_or_learner)

    policy: dict[str, Any] = Field(
        default_factory=Ladder().to_dict,
        description="A policy by name and parameters; parameters left out take their defaults. An "
        "experiment that names no policy runs Ladder().",
        examples=[{"name": "Ladder"}, {"name": "FTPL", "alpha": 3.0}],
        json_schema_extra={"default": Ladder().to_dict()},
    )
    arms: Annotated[
        Annotated[list[Arm], Field(min_length=2, max_length=MOST_ARMS), Tag(CHOICES[0])]
        | Annotated[StrictInt, Field(ge=2, le=MOST_ARMS), Whole, Tag(CHOICES[1])],
        Discriminator(
            lambda given: CHOICES[isinstance(given, (int, float)) and not isinstance(given, bool)]
        ),
    ] = told(
        "The names of the arms, or their number: then they are called 0, 1, 2, ...", ["a", "b", "c"]
    )
    loss_range: Annotated[
        list[Number], Field(min_length=2, max_length=2), AfterValidator(_ordered)
    ] = left_out("The lowest and the highest possible loss.", [0, 250], default=[0.0, 1.0])
    deadline_seconds: Annotated[Number, Field(gt=0.0, le=LONGEST_DEADLINE)] | None = left_out(
        "Feedback that arrives later than this after its decision is refused (410). None: never, and verdicts "
        "wait an hour for it.",
        3600,
    )
    expired_loss: Number | None = left_out(
        "The loss of an expired decision. None: it is left out.", 1
    )
    seed: Annotated[StrictInt, Field(ge=0, lt=2**63), Whole] | None = left_out(
        "Seed of the draws, for tests. None: fresh randomness. It is never shown.", 7
    )
    demo: StrictBool = left_out(
        "Whether it is only for test traffic. The console sends made-up losses only to such experiments.",
        default=False,
    )
    feedback: FeedbackKind = left_out(
        "What is sent back: the loss (or reward) of the explored arm, or a preference between "
        "the two arms of a decision.",
        default="loss",
    )
    guardrails: GuardrailsIn | None = left_out(
        "The guardrails that it starts with.", {"pinned": "a"}
    )
    budget: BudgetIn | None = left_out(
        "The budget for exploring that it starts with.", {"share": 0.01}
    )
    risk: Annotated[Number, Field(gt=0.0, lt=1.0)] = left_out(
        "The probability that its intervals or its verdict are ever wrong.", 0.01, default=RISK
    )
    drift: StrictBool = left_out(
        "Whether losses may drift. False needs a policy without contexts and feedback without preferences. It "
        "narrows the intervals, and is right only if no arm's mean loss "
        "ever changes.",
        default=True,
    )
    patience: Annotated[StrictInt, Field(ge=1, le=MOST_PATIENCE), Whole] | None = left_out(
        "How many newer decisions wait, in its intervals and its verdict, for one without feedback. After that "
        f"it counts as `expired_loss` there, or is left out and counted. None: {PATIENCE_OF_LOGS:,}, or the deadline of labels.",
        1000,
    )
    labels: LabelsIn | None = left_out(
        "How many decisions ask for a label, if losses come from a judge. What is learned, and "
        "every verdict, is then about the labels, for any judge that judges every decision. None: losses are true.",
        {"share": 0.1},
    )

    log_keys: KeyLog = left_out(
        "How the log stores keys. hashed: a hash with a secret of the experiment, never the text. "
        "plain: the text. off: not at all. The arm of a key does not depend on it.",
        default="hashed",
    )
    context: Annotated[dict[str, FieldType], Field(max_length=MOST_FIELDS)] = left_out(
        "The fields of the contexts of decisions, and their types: text (also for whole numbers), number, "
        "boolean or vector. Fields that a contextual policy learns from need not be declared: they are text, number and vector.",
        {"subject": "text", "tokens": "number"},
        default={},
    )
    unknown_context: UnknownFields = left_out(
        "What to do if a context has other fields. refuse: 422. ignore: they are dropped.",
        default="refuse",
    )
    log_context: ContextLog = left_out(
        "How texts of contexts are logged, and learned by a contextual policy. plain: the text. "
        "hashed: a hash with a secret of the experiment.",
        default="plain",
    )
    learner: StrictStr | None = left_out(
        "A saved learner that the experiment starts from, as the text that `Learner.to_json` wrote. Policy, "
        "arms, loss range and random stream come with it, and so do guardrails, risk and drift unless they are given.",
        '{"format":"decoupled-learner", ...}',
    )

    @model_validator(mode="before")
    @classmethod
    def _with_what_the_learner_has(cls, content: Any) -> Any:
        if not isinstance(content, dict) or not isinstance(content.get("learner"), str):
            return content
        text = content["learner"].strip()
        saved = checked_learner(text)
        for name in ("policy", "arms", "loss_range", "seed", "labels"):
            if content.get(name) is not None:
                raise Invalid(
                    f"{name}: comes with the learner; leave it out, or leave out the learner"
                )
        if saved.risk is not None:
            content = {"risk": saved.risk, "drift": saved.drift, **content}
        ends = list(saved.loss_range)
        content = {**content, "learner": text, "policy": saved.policy, "labels": saved.labels}
        return {**content, "arms": saved.arms, "loss_range": ends}


class LabelsOut(BaseModel):
    """How many decisions ask for a label."""

    share: float
    first: int
    deadline: int
    missing: float


class ExperimentOut(BaseModel):
    """An experiment as it is now."""

    name: str
    policy: dict[str, Any]
    policy_label: str = told("The policy in a few words.", "Ladder")
    arms: list[Arm] = told("The arms that can be chosen now.")
    retired: list[Arm]
    loss_range: Annotated[list[float], Field(min_length=2, max_length=2)]
    deadline_seconds: float | None
    expired_loss: float | None
    created_at: str
    archived_at: str | None
    demo: bool = told("Whether it was created for test traffic.")
    feedback: FeedbackKind
    risk: float = told("The probability that its intervals or its verdict are ever wrong.")
    drift: bool = told("Whether its intervals allow for losses that drift.")
    patience: int = told("How many newer decisions wait for one without feedback.")
    labels: LabelsOut | None = told("How many decisions ask for a label; null if losses are true.")
    guardrails: GuardrailsOut = told("The guardrails in effect.")
    budget: BudgetOut = told("The budget in effect.")
    state_version: int
    status: ExperimentStatus = told(
        "compiling: its policy is new to this machine, and decisions are refused with 503 until it is "
        "ready; failed: the policy does not compile here, and `problem` says why."
    )
    problem: str | None
    log_keys: KeyLog
    context: dict[str, FieldType] = told("The fields of contexts, and their types.")
    unknown_context: UnknownFields
    log_context: ContextLog
    imported: str | None = told(
        "The SHA-256 digest of the saved learner that it started from; null if it started anew."
    )


class DeletedOut(BaseModel):
    """An experiment that is gone."""

    name: str
    deleted_at: str


class ExperimentList(BaseModel):
    """A page of experiments."""

    experiments: list[ExperimentOut]
    next: str | None = told("Pass it as `after` for the next page; null on the last.")


def _each_once(arms: list[str | int]) -> list[str | int]:
    if len(set(arms)) < len(arms):
        raise ValueError("names an arm twice; name each once")
    return arms


class ArmsIn(Model):
    """Arms to add or to retire."""

    arms: Annotated[
        list[Arm],
        Field(min_length=1, max_length=MOST_ARMS, examples=[["d"]]),
        AfterValidator(_each_once),
    ]


class IntervalOut(BaseModel):
    """An estimate with the ends of its interval, a confidence sequence."""

    estimate: float
    low: float = told(f"The lower end of the interval. {AT_EVERY_MOMENT}")
    high: float = told(f"The upper end of the interval. {AT_EVERY_MOMENT}")


class StateOut(BaseModel):
    """What an experiment has learned; lists are in the order of `arms`."""

    experiment: str
    state_version: int
    round: int
    arms: list[Arm]
    exploitation: list[float] = told(
        "The exact probability of exploiting each arm next; with a contextual policy, in the "
        "given `context`, or for a request of which nothing is known."
    )
    exploration: list[float] = told("The exact probability of exploring each arm next, likewise.")
    estimates: list[float] = told(
        "The policy's estimate for each arm, from losses scaled to [0, 1]."
    )
    plays_exploit: list[int]
    plays_explore: list[int]
    decisions: int
    pending: int
    applied: int
    expired: int
    late: int = told("Feedback refused because it came after the deadline.")
    regret: IntervalOut | None = told(
        "The total regret of the exploited arms against the arm that looks best now; null if "
        "nothing can be compared."
    )
    budget_used: dict[str, float] = told(
        "What counts against each limit of the budget now: the share of decisions that explored, those in "
        "the window of the rate, the money spent in all, and in this period, what is set aside included. `above` counts "
        "looks that cost more than was declared. With a `decided_share`, `decided` is 1 while it holds, and `alarms` counts "
        "those that ended it.",
        {"rate": 12},
    )
    incumbent_released: bool | None = told(
        "Whether another arm was found to be better than the incumbent, so that the policy chooses; null if "
        "the guardrails name no incumbent."
    )


def _text(value: object) -> object:
    if not isinstance(value, str):  # Pydantic would take a number as seconds since 1970
        raise ValueError("must be a string with a date, a time and its offset from UTC (RFC 3339)")
    return value


class ArmValueOut(BaseModel):
    """The mean loss of one arm over the observed decisions."""

    arm: Arm
    observed: int
    value: IntervalOut | None = told(
        "The mean loss with its interval; null if the log cannot tell."
    )


class EvaluationOut(BaseModel):
    """The value of each arm and of the exploited arms, from the log, on the experiment's own scale of losses."""

    experiment: str
    method: str
    level: float = told("The probability with which all intervals hold, at every moment at once.")
    decisions: int
    observed: int
    arms: list[ArmValueOut]
    exploited: IntervalOut | None = told("The mean loss of the exploited arms, with its interval.")
    remark: str | None
    drawn: IntervalOut | None = told(
        "The mean loss of the arms that the policy drew to exploit, with its interval: what it would have "
        "been without guardrails."
    )


class RetentionIn(Model):
    """Which part of a log to drop."""

    before: Annotated[AwareDatetime, BeforeValidator(_text)] = told(
        "Rows before this moment are dropped.", "2026-01-31T00:00:00Z"
    )


class RetentionOut(BaseModel):
    """How many rows were dropped."""

    dropped: int


def experiment_out(experiment: Experiment) -> dict[str, Any]:
    """An experiment as JSON, without its tenant and its seed."""
    settings = experiment.settings
    now = {
        "guardrails": json_of(experiment.guardrails, GuardrailsOut),
        "budget": json_of(experiment.budget, BudgetOut),
        "policy_label": _label(json.dumps(settings.policy)),
        "deadline_seconds": settings.deadline,
    }
    return json_of(settings, ExperimentOut, **now) | json_of(experiment, ExperimentOut, **now)


@lru_cache(1024)
def _label(policy: str) -> str:
    try:
        return short_labels([Policy.from_json(policy)])[0]
    except (
        DecoupledError
    ):  # this process does not know the policy, and lists its experiment all the same
        return str(json.loads(policy)["name"])


def state_out(state: ExperimentState) -> dict[str, Any]:
    """A state as JSON."""
    return json_of(state, StateOut, budget_used=dict(state.budget_used))

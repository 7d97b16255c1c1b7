"""The values that go into the desk and come out of it."""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from ...decision import Arm

Mode: TypeAlias = Literal["both", "exploit", "explore"]
MODES: tuple[Mode, ...] = get_args(Mode)
Status: TypeAlias = Literal["pending", "applied", "expired", "unobserved"]
ExperimentStatus: TypeAlias = Literal["compiling", "ready", "failed", "archived"]

MOST_DECISIONS = 1_000  # of one call, over HTTP or not
LONGEST_DEADLINE = 1e9  # seconds


@dataclass(frozen=True, slots=True)
class Settings:
    """What an experiment is: fixed when it is created.

    Attributes:
        policy: the policy as `policy.to_dict()` writes it; parameters left out take their defaults.
        arms: the names of the arms, two or more.
        loss_range: the lowest and highest loss there can be.
        deadline: the seconds after which a decision expires, None for never.
        expired_loss: the loss that an expired decision counts as, None for nothing.
        demo: whether it was created for test traffic, so that made-up losses may be sent to it.

    >>> Settings({"name": "FTPL"}, ("a", "b"), deadline=3600.0).expired_loss is None
    True
    """

    policy: dict[str, Any]
    arms: tuple[Arm, ...]
    loss_range: tuple[float, float] = (0.0, 1.0)
    deadline: float | None = None
    expired_loss: float | None = None
    demo: bool = False


class Feedback(NamedTuple):
    """The loss, or the reward, of the arm that a decision *explored*.

    `arm` names that arm, as a safeguard: any other is refused.

    >>> Feedback("1f2e-7", loss=0.25).arm is None
    True
    """

    decision: str
    loss: float | None = None
    reward: float | None = None
    arm: Arm | None = None


@dataclass(frozen=True, slots=True)
class Experiment:
    """An experiment as it stands: `arms` are those that can be chosen now.

    Attributes:
        status: "compiling" until its policy's machine code is there, then "ready"; "failed" where the policy
            does not compile, and `problem` says why; "archived".
    """

    tenant: str
    name: str
    settings: Settings
    arms: tuple[Arm, ...]
    retired: tuple[Arm, ...]
    created_at: float
    archived_at: float | None
    state_version: int
    seed: int
    status: ExperimentStatus
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """One decision and what became of it. The loss to send back is that of `explore`, never of `exploit`.

    Attributes:
        id: names the decision in the whole service.
        mode: "both", or "exploit" (awaits no feedback), or "explore" (serves nothing).
        propensity: the probability with which `explore` was drawn; None where the policy knows only an
            unbiased estimate of its inverse, which is the weight.
        state_version: the last row of the log that the state it was drawn from contains.
        status: "pending"; "applied"; "expired"; "unobserved" for mode "exploit".
        loss: the loss applied, on the experiment's own scale.
    """

    id: str
    experiment: str
    mode: Mode
    exploit: Arm | None
    explore: Arm | None
    propensity: float | None
    weight: float | None
    policy: str
    state_version: int
    made_at: float
    expires_at: float | None
    status: Status
    loss: float | None = None
    settled_at: float | None = None


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and the ends of its interval, which holds at this moment: see `decoupled.service.experiment.intervals`."""

    estimate: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class State:
    """What an experiment has learned; lists are in the order of `arms`.

    Attributes:
        exploitation, exploration: the exact probabilities of the next decision.
        estimates: what is learned about each arm, on losses scaled to [0, 1].
        late: decisions whose feedback came after their deadline.
        regret: of what was exploited against the best single arm, in losses of the experiment's own
            scale, over the decisions observed since the arms last changed; None where the log cannot tell.
    """

    experiment: str
    state_version: int
    round: int
    arms: tuple[Arm, ...]
    exploitation: tuple[float, ...]
    exploration: tuple[float, ...]
    estimates: tuple[float, ...]
    plays_exploit: tuple[int, ...]
    plays_explore: tuple[int, ...]
    decisions: int
    pending: int
    applied: int
    expired: int
    late: int
    regret: Interval | None

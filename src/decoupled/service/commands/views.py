"""How experiments and decisions look to clients."""

from collections.abc import Sequence

from ...decision import Arm
from ...errors import shown
from ..errors import NotFound
from ..experiment.live import Running
from ..experiment.records import DecisionRecord, Experiment, State
from ..experiment.rows import Decided, Settled


def decision_id(running: Running, seq: int) -> str:
    """How clients name a decision."""
    return f"{running.tag}-{seq}"


def record(running: Running, row: Decided, settled: Settled | None = None) -> DecisionRecord:
    """A decision as clients see it."""
    names = running.names
    return DecisionRecord(
        f"{running.tag}-{row.seq}",
        running.name,
        row.mode,  # type: ignore[arg-type]
        None if row.exploit is None else names[row.exploit],
        None if row.explore is None else names[row.explore],
        row.propensity,
        row.weight,
        running.policy,
        row.version,
        row.made_at,
        row.expires_at,
        "unobserved"
        if row.explore is None
        else "pending"
        if settled is None
        else "applied"
        if settled.kind == "observed"
        else "expired",
        None if settled is None else settled.loss,
        None if settled is None else settled.at,
    )


def experiment(running: Running) -> Experiment:
    """The experiment as clients see it."""
    return Experiment(
        running.tenant,
        running.name,
        running.settings,
        running.learner.arms,
        gone_names(running.names, running.retired),
        running.created_at,
        running.archived_at,
        running.version,
        running.seed,
        "ready" if running.archived_at is None else "archived",
    )


def state(running: Running) -> State:
    """What it has learned and counted."""
    learner, tallies = running.learner, running.tallies
    at = [running.places[name] for name in learner.arms]
    return State(
        running.name,
        running.version,
        learner.round,
        learner.arms,
        tuple(learner.exploitation_probabilities().tolist()),
        tuple(learner.exploration_probabilities().tolist()),
        tuple(learner.estimates().tolist()),
        tuple(tallies.exploit[place] for place in at),
        tuple(tallies.explore[place] for place in at),
        tallies.decisions,
        len(running.pending),
        tallies.applied,
        tallies.expired,
        running.late,
        tallies.regret(at, running.losses.high - running.losses.low),
    )


def gone_names(names: Sequence[Arm], retired: Sequence[int]) -> tuple[Arm, ...]:
    """The names of arms that were retired and have not come back."""
    gone = set(retired)
    here = {name for place, name in enumerate(names) if place not in gone}
    return tuple(dict.fromkeys(names[place] for place in retired if names[place] not in here))


def place_of(decision: str) -> tuple[str, int]:
    """The tag and the row that a decision's id names."""
    tag, _, number = decision.rpartition("-")
    if tag and number.isascii() and number.isdecimal() and len(number) < 19 and not number.startswith("0"):
        return tag, int(number)
    raise unknown_decision(decision)


def unknown_decision(decision: object) -> NotFound:
    """The error for an id that names no decision of this tenant."""
    return NotFound(f"decision {shown(decision)}: is not known; give the id that a decision carried")

"""Creating, listing and ending experiments."""

import json
import secrets
from collections.abc import Collection, Iterable
from dataclasses import replace

from ...decision import Arm
from ...errors import DecoupledError, invalid_value, near_name, reworded, shown
from ...learner.arms import ArmNames
from ...learner.seeds import randomness
from ...policies import Policy
from ..compiler import Compiler
from ..errors import Compiling, Conflict, Invalid, NotCompiled, NotFound, ServiceError
from ..experiment.live import Running
from ..experiment.records import Experiment, Settings
from ..experiment.rows import ExperimentRow
from ..experiment.settings import agree, as_settings, as_text, checked, plain_text
from ..session import Reference, Room
from .views import experiment, gone_names


def prepare(tenant: str, name: str, settings: Settings, seed: int | None) -> Settings:
    """Check settings: all that a learner would refuse, without compiling one."""
    plain_text("tenant", tenant)
    plain_text("name", name)
    try:
        return _prepared(settings, seed)
    except ServiceError:
        raise
    except DecoupledError as error:
        raise Invalid(str(error)) from None


def _prepared(settings: Settings, seed: int | None) -> Settings:
    ready = checked(settings)
    policy = Policy.from_dict(ready.policy)
    arms = len(ArmNames.checked(ready.arms))
    form = policy.at(arms)
    form.layout.new_state(arms)
    form.register()
    if seed is not None:
        randomness(seed)
    return ready


def put(
    room: Room, tenant: str, name: str, settings: Settings, seed: int | None
) -> tuple[Experiment, bool]:
    """Create an experiment, or find that it is there with the same settings."""
    text = as_text(settings)
    sown = secrets.randbits(128) if seed is None else seed
    row = ExperimentRow(
        0, tenant, name, secrets.token_hex(8), text, str(sown), room.clock(), None,
        json.dumps(list(settings.arms)), "[]", 0, 0, 0,
    )  # fmt: skip
    created = room.store.create(row)
    found = room.store.named(tenant, name)
    if found is None:
        raise NotFound(f"experiment {name!r}: vanished while it was created; try again")
    if not agree(found.settings, settings) or (seed is not None and found.seed != str(seed)):
        raise Conflict(
            f"experiment {name!r}: exists with other settings; settings are fixed, choose another name"
        )
    return as_experiment(found), created


def show(room: Room, about: Reference) -> Experiment:
    """An experiment, also while its policy is being compiled."""
    try:
        return experiment(room.get(about))
    except (Compiling, NotCompiled):
        row = room.store.named(about[1], about[2])
        assert row is not None  # it was found, or another error was raised
        return with_status(room.compiler, as_experiment(row))


def listing(room: Room, tenant: str, after: str, limit: int) -> list[Experiment]:
    """Experiments by name."""
    rows = room.store.experiments(tenant, after, limit)
    return [with_status(room.compiler, as_experiment(row)) for row in rows]


def archive(room: Room, about: Reference) -> Experiment:
    """End an experiment; once is enough."""
    running = room.get(about)
    if running.archived_at is None:
        row = running.change("archived", "", running.now(room.clock()))
        room.append(running, row)
        room.store.update(running.id, archived_at=row.at)
    return experiment(running)


def change_arms(room: Room, about: Reference, kind: str, arms: Iterable[Arm]) -> Experiment:
    """Add arms, or retire them. Those that are there already, or gone already, are passed over."""
    running = room.get(about)
    if isinstance(arms, (str, bytes)) or not isinstance(arms, Iterable):
        raise Invalid(invalid_value("arms", arms, "must be a list of arms", "put the names in a list"))
    known = running.places if kind == "added" else set(gone_names(running.names, running.retired))
    new = [arm for arm in arms if not _among(arm, known)]
    if len({repr(arm) for arm in new}) < len(new):  # repr, since what is no name may not be hashable
        raise Invalid(invalid_value("arms", new, "names an arm twice", "name each once"))
    if kind == "retired":
        _check_known(running, new)
    if new:
        later = len(running.places) + (len(new) if kind == "added" else -len(new))
        # With so many more, the policy may take another form.
        room.compiler.require(running.name, running.settings.policy, [max(later, 2)])
        try:
            row = running.change(kind, json.dumps(new), running.now(room.clock()))
        except DecoupledError as error:  # the learner calls them names
            raise Invalid(reworded(error, argument="arms")) from None
        room.append(running, row)
        room.store.update(running.id, arms=json.dumps(running.names), retired=json.dumps(running.retired))
    return experiment(running)


def _check_known(running: Running, arms: Iterable[object]) -> None:
    for arm in arms:
        if not _among(arm, running.places):
            raise Invalid(
                f"arms: {shown(arm)} is not an arm of {running.name!r}; {near_name(arm, running.places)}"
            )


def _among(arm: object, known: Collection[Arm]) -> bool:
    return type(arm) in (str, int) and arm in known


def as_experiment(row: ExperimentRow) -> Experiment:
    """A stored experiment as clients see it."""
    names, retired = json.loads(row.arms), json.loads(row.retired)
    gone = set(retired)
    arms = tuple(name for place, name in enumerate(names) if place not in gone)
    return Experiment(
        row.tenant, row.name, as_settings(json.loads(row.settings)), arms, gone_names(names, retired),
        row.created_at, row.archived_at, row.version, int(row.seed),
        "ready" if row.archived_at is None else "archived",
    )  # fmt: skip


def with_status(compiler: Compiler, experiment: Experiment) -> Experiment:
    """An experiment that says whether its policy is compiled."""
    if experiment.status == "archived":
        return experiment
    try:
        require_compiled(compiler, experiment)
    except Compiling:
        return replace(experiment, status="compiling")
    except NotCompiled as error:
        return replace(experiment, status="failed", problem=str(error))
    return experiment


def require_compiled(compiler: Compiler, experiment: Experiment) -> None:
    """Go on only if an experiment can decide."""
    now, began = len(experiment.arms), len(experiment.settings.arms)
    arms = {began, now, now + len(experiment.retired)}
    compiler.require(experiment.name, experiment.settings.policy, arms)

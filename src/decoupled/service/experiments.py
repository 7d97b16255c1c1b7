"""Creating, listing and ending experiments."""

import json
import secrets

from ..errors import DecoupledError
from ..learner import Learner
from ..policies import Policy
from .problems import Conflict, Invalid, NotFound, ServiceError
from .records import Experiment, Settings
from .room import Reference, Room
from .rows import ExperimentRow
from .settings import as_settings, as_text, checked, plain_text
from .store import Store


def prepare(tenant: str, name: str, settings: Settings, seed: int | None) -> Settings:
    """Check settings by starting a learner, and have its policy compiled."""
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
    learner: Learner = policy.start(ready.arms, seed or 0, loss_range=ready.loss_range)
    learner.observe(learner.decide(), ready.loss_range[0])
    learner.observe(learner.decide(available=learner.arms[:2]), ready.loss_range[0])
    if seed is not None:
        policy.start(2, seed)
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
    if found.settings != text or (seed is not None and found.seed != str(seed)):
        raise Conflict(
            f"experiment {name!r}: exists with other settings; settings are fixed, choose another name"
        )
    return as_experiment(found), created


def listing(store: Store, tenant: str, after: str, limit: int) -> list[Experiment]:
    """Experiments by name."""
    return [as_experiment(row) for row in store.experiments(tenant, after, limit)]


def archive(room: Room, about: Reference) -> Experiment:
    """End an experiment; once is enough."""
    running = room.get(about)
    if running.archived_at is None:
        row = running.change("archived", "", running.now(room.clock()))
        room.append(running, row)
        room.store.update(running.id, archived_at=row.at)
    return running.experiment()


def as_experiment(row: ExperimentRow) -> Experiment:
    """A stored experiment as clients see it."""
    retired = json.loads(row.retired)
    gone = set(retired)
    arms = tuple(name for name in json.loads(row.arms) if name not in gone)
    return Experiment(
        row.tenant, row.name, as_settings(json.loads(row.settings)), arms, tuple(retired),
        row.created_at, row.archived_at, row.version, int(row.seed),
    )  # fmt: skip

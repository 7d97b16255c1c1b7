"""Experiments: creating, showing, archiving and deleting them, and changing their arms, guardrails and budgets."""

import json
import logging
import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from threading import Event
from typing import Any, TypeAlias

from decoupled.base import is_name, name_rule
from decoupled.client import (
    Compiling,
    Conflict,
    Invalid,
    Loading,
    NotCompiled,
    NotFound,
    ServiceError,
)
from decoupled.decision import Arm
from decoupled.errors import DecoupledError, near_name, reworded, shown
from decoupled.learner import DEFAULT_PENDING, Budget, Guardrails, without_pending

from ..commits.background import Background, in_background
from ..commits.loop import CommitLoop, as_service_error
from ..commits.replies import Reply, deliver
from ..experiment.context import Annotations, new_secret, stored_context
from ..experiment.live import LiveExperiment, places_of
from ..experiment.records import (
    MOST_ARMS,
    Experiment,
    ExperimentRow,
    ExperimentState,
    Settings,
    moment,
)
from ..experiment.settings import (
    as_settings,
    as_text,
    changed_guardrails,
    checked,
    checked_budget,
    differences,
    plain_text,
)
from ..experiment.snapshots import adopted, digest_of, first_snapshot
from ..memory.compiler import Compiler
from ..memory.session import Reference, Session
from .decisions import sweep
from .pairs import Pairs

Rules: TypeAlias = Budget | Guardrails


def _change_guardrails(
    session: Session, *, about: Reference, changes: Mapping[str, Any]
) -> Experiment:
    running = session.get(about)
    now = running.learner.guardrails
    kind = running.coupled, running.losses, running.contextual
    rules = changed_guardrails(
        now,
        changes,
        running.arms,
        *kind,
        labelled=running.settings.labels is not None,
        takes_preferences=running.settings.feedback == "preference",
    )
    if rules != now:
        _log(session, running, "guardrails.change", now, rules)
    return _shown(running)


def _set_budget(session: Session, *, about: Reference, values: Mapping[str, Any]) -> Experiment:
    running = session.get(about)
    budget = checked_budget(values, running.arms, running.coupled, running.contextual)
    now = Budget() if running.meter is None else running.meter.budget
    if budget != now:
        _log(session, running, "budget.set", now, budget)
    return _shown(running)


def _log(session: Session, running: LiveExperiment, action: str, old: Rules, new: Rules) -> None:
    kind, content = (
        action.partition(".")[0],
        json.dumps(new.to_dict(), sort_keys=True, allow_nan=False),
    )
    session.store.append(running.id, running.change(kind, content, running.now(session.clock())))
    session.store.update(running.id, **{kind: content})
    session.record(action, running.tenant, running.name, old=old.to_dict(), new=new.to_dict())


Created: TypeAlias = tuple[Experiment, bool]
_MOST_ARMS_AUDITED = 1_000


class Experiments:
    """Create, show and archive experiments, and change their arms, guardrails and budgets."""

    def __init__(self, commits: CommitLoop, background: Background) -> None:
        self._commits, self._background = commits, background
        self._compiler = commits.session.compiler

    def put(
        self,
        tenant: str,
        name: str,
        settings: Settings,
        seed: int | None = None,
        learner: str | None = None,
    ) -> Reply[Created]:
        """Create an experiment; True if it is new. The same settings again: False; other settings: `Conflict`.

        It is on disk before its policy is compiled. The reply waits for the compiler no longer than the service's
        patience; the status of the experiment says whether it is compiled.

        With `learner`, the text of a saved learner, the experiment goes on from there, bit for bit. Its policy has to be
        compiled first. Decisions that were pending stay with the saved learner.
        """
        reply: Reply[Created] = Reply()
        about = Reference("name", tenant, name)
        if learner is not None:
            settings = replace(settings, imported=digest_of(learner))

        def put() -> None:
            try:
                plain_text("tenant", tenant)
                if not is_name(name):
                    raise Invalid.of("name", name, name_rule(), "choose another name")
                ready, state = checked(settings, seed), None
                if learner is not None:
                    self._compiler.require(name, ready.policy, {len(ready.arms)})
                    state = adopted(learner)
                asked = {"settings": ready, "seed": seed, "learner": state}
                made, created = self._commits.run(_put, about, alone=True, **asked).result()
                self._answer_when_compiled(reply, made, created)
            except Compiling as error:
                again = partial(self._background.start, put, tenant)
                give_up = partial(deliver, [(reply, None, error)])
                self._compiler.wait(error.job, again, give_up, self._commits.patience)
            except Exception as error:
                deliver([(reply, None, as_service_error(error))])

        self._background.start(put, tenant)
        return reply

    def _answer_when_compiled(self, reply: Reply[Created], made: Experiment, created: bool) -> None:
        def answer() -> None:
            deliver([(reply, (with_status(self._compiler, made), created), None)])

        try:
            if made.status != "archived":
                _require_compiled(self._compiler, made)
        except Compiling as error:
            again = partial(self._answer_when_compiled, reply, made, created)
            self._compiler.wait(error.job, again, answer, self._commits.patience)
            return
        except NotCompiled:
            pass
        answer()

    def get(self, tenant: str, name: str) -> Reply[Experiment]:
        """An experiment as it is now."""
        return self._commits.run(_get, Reference("name", tenant, name))

    def archive(self, tenant: str, name: str) -> Reply[Experiment]:
        """End an experiment: it makes no more decisions, and still takes feedback."""
        return self._commits.run(_archive, Reference("name", tenant, name))

    def add_arms(self, tenant: str, name: str, arms: Iterable[Arm]) -> Reply[Experiment]:
        """Add arms; arms that the experiment already has stay as they are."""
        about = Reference("name", tenant, name)
        return self._commits.run(_change_arms, about, alone=True, kind="added", arms=arms)

    def retire_arms(self, tenant: str, name: str, arms: Iterable[Arm]) -> Reply[Experiment]:
        """Retire arms; decisions that explored them still take feedback."""
        about = Reference("name", tenant, name)
        return self._commits.run(_change_arms, about, alone=True, kind="retired", arms=arms)

    def change_guardrails(
        self, tenant: str, name: str, changes: Mapping[str, Any]
    ) -> Reply[Experiment]:
        """Change some guardrails of an experiment, by the names that `Guardrails` has; the others stay."""
        return self._commits.run(
            _change_guardrails, Reference("name", tenant, name), changes=changes
        )

    def set_budget(self, tenant: str, name: str, values: Mapping[str, Any]) -> Reply[Experiment]:
        """Set the budget for exploring, by the names that `Budget` has; an empty one sets no limit."""
        return self._commits.run(_set_budget, Reference("name", tenant, name), values=values)

    @in_background()
    def learner(self, tenant: str, name: str) -> str:
        """What an experiment has learned and its random stream, as a saved learner without pending decisions."""
        text = self._commits.run(_saved, Reference("name", tenant, name)).result()
        return without_pending(text, DEFAULT_PENDING)

    def state(
        self, tenant: str, name: str, context: Mapping[str, Any] | None = None
    ) -> Reply[ExperimentState]:
        """What an experiment has learned, with the probabilities of a decision in this context."""
        return self._commits.run(_state, Reference("name", tenant, name), context=context)


def _put(
    session: Session,
    *,
    about: Reference,
    settings: Settings,
    seed: int | None,
    learner: str | None = None,
) -> Created:
    _, tenant, name = about
    drawn = secrets.randbits(128) if seed is None else seed
    row = ExperimentRow(
        0, tenant, name, secrets.token_hex(8), as_text(settings), str(drawn), session.clock(), None,
        json.dumps(settings.arms), "[]", 0, 0, 0, new_secret(),
        _stored(settings.guardrails), _stored(settings.budget),
    )  # fmt: skip
    created = session.store.create(row)
    found = session.store.named(tenant, name)
    if found is None:
        raise NotFound(f"experiment {name!r}: vanished while it was created; try again")
    others = differences(found.settings, settings)
    if seed is not None and found.seed != str(
        seed
    ):  # not shown: who knows it knows the draws to come
        others.append("seed is another one")
    if others:
        rule = f"exists with other settings ({'; '.join(others)})"
        raise Conflict(f"experiment {name!r}: {rule}; settings are fixed, choose another name")
    if created:
        new = json.loads(found.settings)
        if len(settings.arms) > _MOST_ARMS_AUDITED:
            new["arms"] = len(settings.arms)
        if learner is not None:
            new["learner"] = "saved"
        session.record("experiment.create", tenant, name, new=new)
    if created and learner is not None:
        text = first_snapshot(found, learner)
        session.store.add_snapshot(found.id, 0, text, found.created_at, base=True)
    return as_experiment(found), created


def _stored(given: Rules) -> str | None:
    return json.dumps(given.to_dict(), sort_keys=True) if given else None


def _get(session: Session, *, about: Reference) -> Experiment:
    try:
        return _shown(session.get(about))
    except (Compiling, Loading, NotCompiled):
        row = session.store.named(about.tenant, about.text)
        assert row is not None  # it was found, or another error was raised
        return with_status(session.compiler, as_experiment(row))


def _saved(session: Session, *, about: Reference) -> str:
    running = session.get(about)
    sweep(session, running)
    return running.learner.to_json()


def _archive(session: Session, *, about: Reference) -> Experiment:
    running = session.get(about)
    if running.archived_at is None:
        row = running.change("archived", "", running.now(session.clock()))
        session.store.append(running.id, row)
        session.store.update(running.id, archived_at=row.at)
        session.record("experiment.archive", running.tenant, running.name)
    return _shown(running)


def _change_arms(
    session: Session, *, about: Reference, kind: str, arms: Iterable[Arm]
) -> Experiment:
    """Add arms, or retire them. Skips those that are already there, or already retired."""
    running = session.get(about)
    if isinstance(arms, (str, bytes)) or not isinstance(arms, Iterable):
        raise Invalid.of("arms", arms, "must be a list of arms", "put the names in a list")
    known = running.places if kind == "added" else set(_gone(running.names, running.retired))
    new = [arm for arm in arms if not _among(arm, known)]
    if len({repr(arm) for arm in new}) < len(
        new
    ):  # repr, because what is not a name may not be hashable
        raise Invalid.of("arms", new, "names an arm twice", "name each once")
    for arm in new if kind == "retired" else ():
        if not _among(arm, running.places):
            hint = near_name(arm, running.places)
            raise Invalid(f"arms: {shown(arm)} is not an arm of {running.name!r}; {hint}")
    if new:
        later = len(running.places) + (len(new) if kind == "added" else -len(new))
        if later > MOST_ARMS:
            rule = f"would be {later:,}; must not exceed {MOST_ARMS:,}"
            raise Invalid(f"arms: {rule}; use several experiments")
        # With another number of arms, the policy may take another form.
        session.compiler.require(running.name, running.settings.policy, [max(later, 2)])
        try:
            row = running.change(kind, json.dumps(new), running.now(session.clock()))
        except DecoupledError as error:  # the learner calls them names
            raise Invalid(reworded(error, argument="arms")) from None
        session.store.append(running.id, row)
        names, retired = json.dumps(running.names), json.dumps(running.retired)
        rules = _stored(running.learner.guardrails)  # a retired arm is no longer down
        session.store.update(running.id, arms=names, retired=retired, guardrails=rules)
        listed = new if len(new) <= _MOST_ARMS_AUDITED else len(new)
        if kind == "added":
            session.record("arms.add", running.tenant, running.name, new=listed)
        else:
            session.record("arms.retire", running.tenant, running.name, old=listed)
    return _shown(running)


def _among(arm: object, known: Collection[Arm]) -> bool:
    return type(arm) in (str, int) and arm in known


def _state(
    session: Session, *, about: Reference, context: Mapping[str, Any] | None
) -> ExperimentState:
    running = session.get(about)
    known = None if context is None else stored_context(context, running.declared)
    told, _ = running.told(Annotations(context=known))
    sweep(session, running)
    learner, tallies, meter = running.learner, running.tallies, running.meter
    at, estimates = [running.places[name] for name in learner.arms], learner.estimates()
    exploitation = tuple(learner.exploitation_probabilities(context=told).tolist())
    exploration = tuple(learner.exploration_probabilities(context=told).tolist())
    exploit, explore = (
        [plays[place] for place in at] for plays in (tallies.exploit, tallies.explore)
    )
    return ExperimentState(
        running.name, running.version, learner.round, tuple(running.names[place] for place in at),
        exploitation, exploration, tuple(estimates.tolist()), tuple(exploit), tuple(explore),
        tallies.decisions, len(running.pending), tallies.applied, tallies.expired, running.late,
        learner.inference.regret(),
        () if meter is None else tuple(meter.used(running.now(session.clock()), learner).items()),
        running.incumbent_released,
    )  # fmt: skip


# Experiments as clients see them
def _shown(running: LiveExperiment) -> Experiment:
    return Experiment(
        running.tenant, running.name, running.settings, running.arms,
        _gone(running.names, running.retired), running.created_at, running.archived_at, running.version,
        running.seed, "ready" if running.archived_at is None else "archived", None,
        running.learner.guardrails, Budget() if running.meter is None else running.meter.budget,
    )  # fmt: skip


def as_experiment(row: ExperimentRow) -> Experiment:
    """A stored experiment as clients see it."""
    names, retired = json.loads(row.arms), json.loads(row.retired)
    arms = tuple(places_of(names, retired))
    return Experiment(
        row.tenant, row.name, as_settings(json.loads(row.settings)), arms, _gone(names, retired),
        row.created_at, row.archived_at, row.version, int(row.seed),
        "ready" if row.archived_at is None else "archived", None,
        Guardrails.from_dict(json.loads(row.guardrails or "{}")), Budget.from_dict(json.loads(row.budget or "{}")),
    )  # fmt: skip


def _gone(names: Sequence[Arm], retired: Sequence[int]) -> tuple[Arm, ...]:
    """The names of arms that were retired and not added again."""
    if not retired:
        return ()
    gone = set(retired)
    here = {name for place, name in enumerate(names) if place not in gone}
    return tuple(dict.fromkeys(names[place] for place in retired if names[place] not in here))


def with_status(compiler: Compiler, experiment: Experiment) -> Experiment:
    """The experiment with a status that says whether its policy is compiled."""
    if experiment.status == "archived":
        return experiment
    try:
        _require_compiled(compiler, experiment)
    except Compiling:
        return replace(experiment, status="compiling")
    except NotCompiled as error:
        return replace(experiment, status="failed", problem=str(error))
    return experiment


def _require_compiled(compiler: Compiler, experiment: Experiment) -> None:
    """Raise `Compiling` or `NotCompiled` unless the experiment can decide."""
    now, began = len(experiment.arms), len(experiment.settings.arms)
    arms = {began, now, now + len(experiment.retired)}
    compiler.require(experiment.name, experiment.settings.policy, arms)


# Deleting archived experiments. One disappears at once, and its rows are removed in slices in the background.
DAY = 86_400.0
DELETE_AFTER = 30 * DAY
AT_ONCE = 5_000  # rows of each table removed in one transaction, so that nobody waits long

_deletions = logging.getLogger(__name__)


class Deletion:
    """Delete experiments that were archived at least `after` seconds ago, and their pairs.

    Calls run in `checks`, because they must not wait until the rows of another experiment are removed, in `background`.
    """

    def __init__(
        self,
        commits: CommitLoop,
        checks: Background,
        background: Background,
        after: float,
        pairs: Pairs,
    ) -> None:
        self._commits, self._checks, self._background, self._after = (
            commits,
            checks,
            background,
            after,
        )
        self._pairs = pairs
        self._stop = Event()

    @in_background("_checks")
    def delete(self, tenant: str, name: str) -> float:
        """Delete an archived experiment and return the time; `Conflict` if it is not archived, or not long enough.

        From then on its name is free, and its decisions are `Gone`. A crash does not bring it back.
        """
        about = Reference("name", tenant, name)
        at, with_pairs = self._commits.run(_mark, about, alone=True, after=self._after).result()
        if with_pairs:
            self._pairs.sweep()
        self.resume()
        return at

    def resume(self) -> None:
        """Go on removing the rows of deleted experiments that an earlier process left."""
        self._background.start(self._erase_all)

    def close(self) -> None:
        """Stop after the slice that is being removed; the rest stays for `resume`."""
        self._stop.set()
        self._background.close()

    # In the background

    def _erase_all(self) -> None:
        try:
            while not self._stop.is_set():
                if self._commits.submit(_erase, alone=True).result() == 0:
                    return
        except ServiceError as error:
            _deletions.warning("rows of deleted experiments are left for the next start: %s", error)


def _mark(session: Session, *, about: Reference, after: float) -> tuple[float, bool]:
    """Take the experiment out of everybody's sight; also returns whether there may be pairs of it."""
    running = session.get(about)
    now = session.clock()
    if running.archived_at is None:
        rule = "is not archived, and only archived ones can be deleted"
        raise Conflict(f"experiment {running.name!r}: {rule}; archive it first")
    if now < running.archived_at + after:
        rule = f"was archived at {moment(running.archived_at)} and is kept for {after / DAY:g} days"
        remedy = f"delete it after {moment(running.archived_at + after)}, or change --delete-after"
        raise Conflict(f"experiment {running.name!r}: {rule}; {remedy}")
    session.store.mark_deleted(running.id, now)
    session.record("experiment.delete", running.tenant, running.name)
    session.drop(running)
    return now, session.store.has_pairs()


def _erase(session: Session) -> int:
    """Remove a slice of the rows of a deleted experiment; returns how many deleted experiments still have some."""
    left = session.store.unerased(2)
    if left and session.store.erase(left[0], AT_ONCE) == 0:
        session.store.mark_erased(left[0])
        return len(left) - 1
    return len(left)

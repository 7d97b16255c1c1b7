"""Verdicts and gates: what the confidence sequences of an experiment say now."""

from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TypeAlias

from decoupled.client import StoreError

from ..commits.background import Background, in_background
from ..commits.loop import CommitLoop
from ..experiment.request_context import ITSELF, coming_from
from ..experiment.watched import Gate, Judged, WatchedExperiment, gate_of
from ..memory.cache import keep
from ..memory.session import Reference, Session
from .decisions import sweep

_KEPT = 256  # verdicts, the last one of each experiment
_State: TypeAlias = tuple[object, ...]  # what a verdict depends on


class Verdicts:
    """Give verdicts. They are computed in a thread of their own, and again only after something was learned."""

    def __init__(self, commits: CommitLoop, background: Background) -> None:
        self._commits, self._background = commits, background
        self._last: OrderedDict[int, tuple[_State, Judged]] = OrderedDict()
        # What else a verdict says, by tenant and experiment: how often the judge of a mirror failed.
        self.remarks: dict[tuple[str, str], Callable[[], str | None]] = {}

    def warned(self) -> set[int]:
        """The experiments whose last verdict, as far as one was asked for, warned of their judge."""
        return {each for each, (_, found) in list(self._last.items()) if found.verdict.warning}

    @in_background()
    def gate(
        self, tenant: str, name: str, arm: str, against: str | None = None, margin: float = 0.0
    ) -> Gate:
        """Whether an arm is shown to be no worse than another, or than every other, by more than a margin."""
        copied = self._commits.run(_copied, Reference("name", tenant, name)).result()
        return gate_of(copied, arm, against, margin)

    @in_background()
    def get(self, tenant: str, name: str) -> Judged:
        """Which arm is best, as far as that is decided, with the mean loss of each arm and the regret."""
        found = self._judged(Reference("name", tenant, name))
        more = self.remarks.get((tenant, name), lambda: None)()
        if more is None:
            return found
        remark = more if found.verdict.remark is None else f"{found.verdict.remark}; {more}"
        return replace(found, verdict=replace(found.verdict, remark=remark))

    def _judged(self, about: Reference) -> Judged:
        found = self._commits.run(_look, about, last=self._last).result()
        if isinstance(found, Judged):
            return found
        experiment, state, watched = found
        judged = watched.judged()
        known = self._last.get(experiment)
        if judged.decided and (known is None or known[1].decided != judged.decided):
            with suppress(StoreError):  # the verdict holds even if it cannot be written
                self._commits.run(_record, about, judged=judged).result()
        keep(self._last, experiment, (state, judged), _KEPT)
        return judged


def _copied(session: Session, *, about: Reference) -> WatchedExperiment:
    running = session.get(about)
    sweep(session, running)
    return WatchedExperiment.of(running)


def _look(
    session: Session, *, about: Reference, last: OrderedDict[int, tuple[_State, Judged]]
) -> Judged | tuple[int, _State, WatchedExperiment]:
    """The last verdict if nothing has changed since, or what a new one is made of."""
    running = session.get(about)
    sweep(session, running)
    learner, known = running.learner, last.get(running.id)
    counts = learner._asked(
        lambda it, _: (it.sequences.observed, it.sequences.left_out, it.waiting, it.awaited)
    )
    incumbent = learner.guardrails.incumbent, running.incumbent_released
    state = running.version, *incumbent, learner.labels, *counts
    if known is not None and known[0] == state:
        return known[1]
    return running.id, state, WatchedExperiment.of(running)


def _record(session: Session, *, about: Reference, judged: Judged) -> None:
    """Record a decision that is not in the audit trail yet; one of an earlier experiment of that name does not count."""
    running = session.get(about)
    where = {"tenant": running.tenant, "subject": running.name, "action": "verdict.decide"}
    known = session.store.audit(where, None, 1)
    if not known or known[0].at < running.created_at or known[0].new["decided"] != judged.decided:
        verdict = judged.verdict
        new = {"decided": judged.decided, "sure": verdict.sure, "observed": judged.observed}
        new |= {"decided_at": verdict.decided_at, "left_out": verdict.left_out}
        with coming_from(ITSELF):
            session.record("verdict.decide", running.tenant, running.name, new=new)

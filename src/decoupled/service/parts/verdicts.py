"""Verdicts: what the confidence sequences of an experiment say now."""

from collections import OrderedDict
from functools import partial
from typing import NamedTuple

from ...decision import Arm
from ..background import Background
from ..commit_loop import CommitLoop
from ..experiment.live import Running
from ..experiment.watched import Judged, Watched
from ..replies import Reply
from ..session import Reference, Session
from .deadlines import sweep

_KEPT = 256  # verdicts, the last one of each experiment


class _State(NamedTuple):
    """What a verdict depends on."""

    version: int
    incumbent: Arm | None
    released: bool | None

    @classmethod
    def of(cls, running: Running) -> "_State":
        learner = running.learner
        return cls(running.version, learner.guardrails.incumbent, learner.incumbent_released)


class Verdicts:
    """Give verdicts. They are computed in a thread of their own, and again only after something was learned."""

    def __init__(self, commits: CommitLoop, background: Background) -> None:
        self._commits, self._background = commits, background
        self._last: OrderedDict[int, tuple[_State, Judged]] = OrderedDict()

    def get(self, tenant: str, name: str) -> Reply[Judged]:
        """Which arm is best, as far as that is decided, with the mean loss of each arm and the regret."""
        return self._background.submit(partial(self._get, Reference("name", tenant, name)))

    def _get(self, about: Reference) -> Judged:
        found = self._commits.submit(partial(_look, about=about, last=self._last), about).result()
        if isinstance(found, Judged):
            return found
        experiment, state, watched = found
        judged = watched.judged()
        self._last[experiment] = state, judged
        self._last.move_to_end(experiment)
        while len(self._last) > _KEPT:
            self._last.popitem(last=False)
        return judged


def _look(
    session: Session, *, about: Reference, last: OrderedDict[int, tuple[_State, Judged]]
) -> Judged | tuple[int, _State, Watched]:
    """The last verdict if nothing has changed since, or what a new one is made of."""
    running = session.get(about)
    sweep(session, running)
    state, known = _State.of(running), last.get(running.id)
    return known[1] if known is not None and known[0] == state else (running.id, state, Watched.of(running))

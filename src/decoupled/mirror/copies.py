"""Sends copies of requests to an arm, has them judged, and passes the losses on; a bounded number at a time."""

import asyncio
import json
import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Protocol, Self

from ..base.files import replacing
from ..service.client.exchange import Retries
from ..service.errors import ServiceError
from .config import CopyConfig
from .counts import MirrorCounts
from .exchange import Answer, Request
from .judges import JudgeFailed, Later
from .loss import CopyLoss
from .spending import Aside, Spending

_RETRIES = Retries(first=0.5, most=30.0)  # to hand over a loss
_log = logging.getLogger("decoupled.mirror")


@dataclass(slots=True)
class Copy:
    """A copy and how far it has come.

    Attributes:
        decision: the decision whose explored arm gets the copy.
        arm: that arm.
        request: the request as that arm gets it.
        shown: the request as a judge sees it, without credentials.
        served: what the client got; None in a sink, which does not see it.
        mirrored: what the arm answered; None as long as it has not.
        sent: whether the arm was asked.
        aside: what is set aside for it; None if there is no budget, or its price is known.
    """

    decision: str
    arm: str
    request: Request
    shown: Request
    served: Answer | None
    mirrored: Answer | None = None
    sent: bool = False
    aside: Aside | None = None

    @property
    def size(self) -> int:
        """The bytes that it holds."""
        answers = (self.served, self.mirrored)
        return len(self.request.body) + sum(len(each.body) for each in answers if each is not None)

    @property
    def can_be_kept(self) -> bool:
        """Whether another run can finish it: not if it is on its way, or still needs credentials."""
        needs_secrets = len(self.request.headers) > len(self.shown.headers)
        return self.mirrored is not None or not (self.sent or needs_secrets)

    def to_dict(self) -> dict[str, Any]:
        """The copy as JSON, without credentials."""
        return {
            "decision": self.decision,
            "arm": self.arm,
            "request": self.shown.to_dict(),
            "served": self.served and self.served.to_dict(),
            "mirrored": self.mirrored and self.mirrored.to_dict(),
        }

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Self:
        """The copy that `to_dict` wrote."""
        request = Request.from_dict(content["request"])
        served, mirrored = (
            each and Answer.from_dict(each) for each in (content["served"], content["mirrored"])
        )
        return cls(content["decision"], content["arm"], request, request, served, mirrored)


class Target(Protocol):
    """What copies are sent to."""

    async def copy(self, request: Request) -> Answer:
        """The answer to a copy."""


class Learning(Protocol):
    """What learns the losses."""

    async def learn(self, decision: str, arm: str, loss: float) -> str:
        """Learn the loss of the explored arm; returns "applied", "late" or "kept" (for a later attempt)."""


class Copies:
    """Sends copies, has them judged, and hands their losses to the learner.

    A place is reserved *before* the learner is asked for a decision. So a full queue keeps requests from being
    mirrored whichever arm they would have explored, and cannot favour an arm.
    """

    def __init__(
        self,
        arms: Mapping[str, Target],
        config: CopyConfig,
        loss: CopyLoss,
        backend: Learning,
        counts: MirrorCounts,
        otherwise: float | None = None,
        spending: Spending | None = None,
    ) -> None:
        self._arms, self._config, self._loss, self._backend = arms, config, loss, backend
        self._counts, self._otherwise, self._spending = counts, otherwise, spending
        self._slots = {name: asyncio.Semaphore(config.concurrency) for name in arms}
        self._running: dict[asyncio.Task[None], Copy] = {}
        self._reserved: list[Aside | None] = []  # what is set aside for each place
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._reserved) + len(self._running)

    def reserve(self) -> str | None:
        """Reserve a place for a copy, and return None; or why there is none."""
        if len(self) >= self._config.queue or self.bytes >= self._config.queue_bytes:
            return "queue_full"
        if self._spending is not None and not self._spending.allows(self._arms):
            return "budget"
        self._reserved.append(self._set_aside(self._arms))
        return None

    def release(self) -> None:
        """Give a reserved place back."""
        self._pay(self._reserved.pop())

    def give_up(self, reason: str) -> None:
        """Give a reserved place back, and count why its decision gets no loss."""
        self.release()
        self._counts.dropped[reason] += 1

    def start(self, copy: Copy) -> None:
        """Use a reserved place."""
        copy.aside = self._reserved.pop()
        self.resume(copy)

    def resume(self, copy: Copy) -> None:
        """Start a copy that is not counted yet, such as one of an earlier run."""
        if copy.mirrored is None and copy.aside is None:
            copy.aside = self._set_aside([copy.arm])
        self.bytes += copy.size
        task = asyncio.create_task(self._run(copy))
        self._running[task] = copy
        task.add_done_callback(self._ended)

    async def drain(self, seconds: float) -> list[Copy]:
        """Wait for the copies, and return those that are not done in time."""
        if self._running:
            await asyncio.wait(list(self._running), timeout=seconds)
        left = dict(self._running)
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(list(left))
        return list(left.values())

    def _ended(self, task: "asyncio.Task[None]") -> None:
        copy = self._running.pop(task)
        self.bytes -= copy.size
        self._pay(copy.aside)
        if not task.cancelled() and task.exception() is not None:
            self._counts.dropped["refused"] += 1
            _log.error("decision %s: its copy failed", copy.decision, exc_info=task.exception())

    def _set_aside(self, arms: Iterable[str]) -> Aside | None:
        return None if self._spending is None else self._spending.begin(arms)

    def _pay(self, aside: Aside | None, arm: str | None = None, cost: float = 0.0) -> None:
        if self._spending is not None and aside is not None:
            self._spending.end(aside, arm, cost)

    async def _run(self, copy: Copy) -> None:
        if copy.mirrored is None:
            async with self._slots[copy.arm]:
                copy.sent = True
                mirrored = await self._arms[copy.arm].copy(copy.request)
            self._counts.copied[copy.arm] += 1
            self._counts.spent[copy.arm] += mirrored.cost
            self._pay(copy.aside, copy.arm, mirrored.cost)
            copy.mirrored = mirrored
            self.bytes += len(mirrored.body)
        else:
            self._pay(copy.aside)  # nothing is sent
        copy.aside = None
        loss = await self._judged(copy, copy.mirrored)
        if loss is not None:
            await self._learn(copy, loss)

    async def _judged(self, copy: Copy, mirrored: Answer) -> float | None:
        try:
            loss = await self._loss.of(copy.decision, copy.shown, copy.served, mirrored)
        except Later:
            self._counts.learned["left_to_judge"] += 1
            return None
        except JudgeFailed as error:
            _log.warning("decision %s: %s", copy.decision, error)
            if self._otherwise is None:
                self._counts.dropped["judge_failed"] += 1
                return None
            return self._loss.with_verdict(mirrored, self._otherwise)
        if loss is None:
            self._counts.dropped["no_opinion"] += 1
        return loss

    async def _learn(self, copy: Copy, loss: float) -> None:
        for attempt in count(1):
            try:
                outcome = await self._backend.learn(copy.decision, copy.arm, loss)
            except ServiceError as error:
                if error.status < 500:
                    self._counts.dropped["refused"] += 1
                    _log.error("decision %s: its loss was refused: %s", copy.decision, error)
                    return
                _log.warning("decision %s: its loss waits: %s", copy.decision, error)
                await asyncio.sleep(_RETRIES.pause(attempt))
            else:
                self._counts.learned[outcome] += 1
                return


def keep_copies(path: Path, copies: Iterable[Copy]) -> int:
    """Write copies for the next start; returns how many.

    A copy that is on its way is left out, because it must not arrive twice, and so is one that still needs credentials:
    they never reach the disk. Only the user who runs the mirror can read the file.
    """
    kept = [copy for copy in copies if copy.can_be_kept]
    if kept:
        with replacing(path) as temporary:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(descriptor, "w", encoding="utf-8") as file:
                file.writelines(json.dumps(copy.to_dict()) + "\n" for copy in kept)
    return len(kept)


def take_copies(path: Path) -> list[Copy]:
    """The copies of an earlier run; the file is removed. Lines that cannot be read are left out."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    found = []
    for line in lines:
        try:
            found.append(Copy.from_dict(json.loads(line)))
        except (ValueError, KeyError, TypeError) as error:
            _log.warning("%s: a copy cannot be read and is left out: %s", path.name, error)
    path.unlink()
    return found

"""Sends copies of requests to an arm, has them judged, and passes the losses on; a bounded number at a time."""

import asyncio
import json
import logging
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, Protocol, Self

from decoupled.base import replacing
from decoupled.client import Retries, ServiceError
from decoupled.learner import Aside

from .config import CopyConfig
from .counts import MirrorCounts
from .exchange import Answer, Request, Served, Unreadable
from .judges import CopyLoss, Judged, JudgeFailed, Later
from .labels import Labeller
from .spending import Spending

_RETRIES = Retries(first=0.5, most=30.0)  # to hand over a loss
_log = logging.getLogger("decoupled.mirror")


@dataclass(slots=True)
class Copy:
    """A copy and how far it has come."""

    decision: str  # the decision whose explored arm gets the copy
    arm: str  # that arm
    request: Request  # the request as that arm gets it
    shown: Request  # the request as a judge sees it, without credentials
    served: Served  # what the client got; None in a sink, which does not see it
    mirrored: Answer | None = None  # what the arm answered; None as long as it has not
    sent: bool = False  # whether the arm was asked, and not by an earlier run
    # what its answer cost, 0 if nothing was sent; None as long as that is not known
    cost: float | None = None
    # what is set aside for it and its judge; None if there is no budget, or the price is known
    aside: Aside | None = None
    number: int = 0  # how many copies began before it
    label: bool = False  # whether its decision asks for a label, which the judge is not told
    judging: bool = False  # whether a judge was asked about it, which may cost something

    @property
    def size(self) -> int:
        """The bytes that it holds."""
        answers = (self.served, self.mirrored)
        return len(self.request.body) + sum(len(each.body) for each in answers if each is not None)

    def to_dict(self) -> dict[str, Any]:
        """The copy as JSON, without credentials."""
        return {
            "decision": self.decision,
            "arm": self.arm,
            "label": self.label,
            "request": self.shown.to_dict(),
            "served": self.served and self.served.to_dict(),
            "mirrored": self.mirrored and self.mirrored.to_dict(),
        }

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Self:
        """The copy that `to_dict` wrote."""
        request, decision, arm = (
            Request.from_dict(content["request"]),
            content["decision"],
            content["arm"],
        )
        given = (content["served"], content["mirrored"])
        served, mirrored = (each and Answer.from_dict(each) for each in given)
        label = content.get("label", False)
        return cls(decision, arm, request, request, served, mirrored, label=label)


class Target(Protocol):
    """What copies are sent to."""

    async def copy(self, request: Request) -> Answer:
        """The answer to a copy."""


class Learning(Protocol):
    """What learns the losses."""

    async def learn(
        self,
        decision: str,
        arm: str,
        loss: float,
        position: float | None = None,
        cost: float | None = None,
    ) -> str:
        """Learn the loss of the explored arm; returns "applied", "late" or "kept" (for a later attempt).

        `position` is how its judge preferred what it saw first, `cost` what the copy and its judge cost; None if nobody knows.
        """

    def forget(self, decision: str) -> None:
        """Wait no longer for a decision that gets no loss."""


class Copies:
    """Sends copies, has them judged, and hands their losses to the learner.

    A place is reserved, and the price of the dearest arm set aside, *before* the learner is asked for a decision. All arms
    share the places and the slots in which copies are sent, in turn. So what is not copied does not depend on the arm, and
    a copy that was sent has a loss: 1 without an answer, or with one that cannot be read. `read`, called in a thread, sets
    what an answer cost; an answer for which it raises an error cannot be read.
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
        read: Callable[[Answer], Answer] | None = None,
        labeller: Labeller | None = None,
    ) -> None:
        self._arms, self._config, self._loss, self._backend = arms, config, loss, backend
        self._counts, self._otherwise, self._spending = counts, otherwise, spending
        self._slots = asyncio.Semaphore(config.concurrency)
        self._read = read
        self._reading = asyncio.Lock()
        self._labeller = labeller
        self._running: dict[asyncio.Task[None], Copy] = {}
        self._judging: dict[str, Copy] = {}
        if spending is not None:
            loss.ask_before_retries(self._may_spend)
        self._reserved: list[Aside | None] = []  # what is set aside for each place
        self.bytes = self._begun = 0

    def __len__(self) -> int:
        return len(self._reserved) + len(self._running)

    def reserve(self) -> str | None:
        """Reserve a place for a copy, and return None; or why there is none."""
        oldest = next(iter(self._running.values())).number if self._running else self._begun
        full = len(self) >= self._config.queue or self.bytes >= self._config.queue_bytes
        if full or self._begun - oldest >= self._config.newer:
            return "queue_full"
        aside = None if self._spending is None else self._spending.reserve(self._arms)
        if aside is None and self._spending is not None:
            return "budget"
        self._reserved.append(aside)
        return None

    def release(self) -> None:
        """Give a reserved place back."""
        self._pay(self._reserved.pop())

    def give_up(self, reason: str, decision: str | None = None) -> None:
        """Give a reserved place back, and count why its decision gets no loss, if it has one."""
        self.release()
        self.drop(reason, decision)

    def drop(self, reason: str, decision: str | None) -> None:
        """Count why a decision gets no loss, and wait for it no longer."""
        self._counts.dropped[reason] += 1
        if decision is not None:
            self._backend.forget(decision)

    def start(self, copy: Copy) -> None:
        """Use a reserved place."""
        copy.aside = self._reserved.pop()
        self._begin(copy)

    def resume(self, copy: Copy) -> None:
        """Start a copy of an earlier run, whose answer is paid and whose judge is not."""
        copy.aside = None if self._spending is None else self._spending.resume(copy.arm)
        self._begin(copy)

    def _begin(self, copy: Copy) -> None:
        self.bytes += copy.size
        copy.number, self._begun = self._begun, self._begun + 1
        task = asyncio.create_task(self._run(copy))
        self._running[task] = copy
        task.add_done_callback(self._ended)

    async def drain(self, seconds: float) -> list[Copy]:
        """Send nothing more, wait for the answers, and return the copies that another run can finish.

        One that was sent and has no answer by then has none: its arm must not gain by being slow.
        """
        unsent = {
            task for task, copy in self._running.items() if not copy.sent and copy.mirrored is None
        }
        for task in unsent:
            self.drop("shutdown", self._running[task].decision)
            task.cancel()
        if sent := self._running.keys() - unsent:
            await asyncio.wait(sent, timeout=seconds)
        left = {task: copy for task, copy in self._running.items() if task not in unsent}
        for task, copy in left.items():
            task.cancel()
            copy.mirrored = copy.mirrored or Answer(
                copy.arm, None, problem="the mirror ended first"
            )
        if self._running:
            await asyncio.wait(list(self._running))
        return list(left.values())

    def _ended(self, task: "asyncio.Task[None]") -> None:
        copy = self._running.pop(task)
        self.bytes -= copy.size
        self._judging.pop(copy.decision, None)
        if (
            not copy.sent and not copy.judging
        ):  # else what was asked may have to be paid, and counts as the dearest
            self._pay(copy.aside)
        if not task.cancelled() and task.exception() is not None:
            self.drop("refused", copy.decision)
            _log.error("decision %s: its copy failed", copy.decision, exc_info=task.exception())

    def _pay(self, aside: Aside | None, arm: str | None = None, cost: float = 0.0) -> None:
        if self._spending is not None and aside is not None:
            self._counts.above_ceiling += self._spending.end(aside, arm, cost)

    async def _is_secured(self) -> bool:
        """Whether what is set aside is on disk, so that something may be sent."""
        if self._spending is None:
            return True
        try:
            await self._spending.secured()
        except OSError as error:
            _log.error("copies are given up: what they may cost cannot be saved: %s", error)
            return False
        return True

    async def _may_spend(self, decision: str, amount: float) -> bool:
        """Whether the judge of a copy may spend more than was set aside, which then is set aside as well."""
        copy = self._judging.get(decision)
        if copy is None or copy.aside is None or self._spending is None:
            return True
        extended = self._spending.extend(copy.aside, amount)
        if extended is None:
            return False
        copy.aside = extended
        return await self._is_secured()

    async def _run(self, copy: Copy) -> None:
        """From the request to the loss. Whatever an arm answers ends as a loss: 1 if it cannot be read."""
        if not await self._is_secured():
            self.drop("unsaved", copy.decision)
            return
        if copy.mirrored is None:
            async with self._slots:
                copy.sent = True
                copy.mirrored = await self._answered(copy)
            self._counts.copied[copy.arm] += 1
            self.bytes += len(copy.mirrored.body)
        await self._price(copy)
        mirrored = copy.mirrored
        copy.cost = self._cost_of(copy, mirrored)
        if copy.sent:
            self._counts.spent[copy.arm] += copy.cost
        copy.judging = self._loss.judges(mirrored)
        self._judging[copy.decision] = copy
        judged = await self._judged(copy, mirrored)
        self._pay(copy.aside, copy.arm, copy.cost + judged.cost)
        copy.aside = None
        if judged.loss is not None:
            is_known = copy.sent and mirrored.cost is not None
            cost = copy.cost + judged.cost if is_known else None
            learned = await self._learn(copy, judged.loss, judged.position, cost)
            if learned and copy.label and self._labeller is not None:
                self._labeller.begin(copy.decision, copy.shown, copy.served, copy.mirrored)

    async def _answered(self, copy: Copy) -> Answer:
        try:
            return await self._arms[copy.arm].copy(copy.request)
        except Exception as error:
            return self.unreadable(Answer(copy.arm, None), error)

    async def _price(self, copy: Copy) -> None:
        """Set what both answers cost. One that cannot be read has failed from here on."""
        if self._read is None or copy.mirrored is None:
            return
        async with self._reading:  # reading JSON keeps the event loop waiting, also in a thread
            is_reused = copy.served is copy.mirrored
            copy.mirrored = await self._readable(self._read, copy.mirrored)
            if is_reused:
                copy.served = copy.mirrored
            elif copy.served is not None:
                copy.served = await self._readable(self._read, copy.served)

    async def _readable(self, read: Callable[[Answer], Answer], answer: Answer) -> Answer:
        try:
            return await asyncio.to_thread(read, answer)
        except Exception as error:
            return self.unreadable(answer, error)

    def unreadable(self, answer: Answer, error: Exception) -> Answer:
        """The answer as a failed one, because reading it raised this error. The reason is counted."""
        found = Unreadable.of(error)
        cost = answer.cost if found.cost is None else found.cost
        if answer.problem is not None:  # it has failed already, and still costs something
            return replace(answer, cost=cost)
        self._counts.unreadable[found.reason] += 1
        if self._counts.unreadable[found.reason] == 1:
            told = "arm %r: an answer cannot be read and counts as failed: %s; /mirror counts the next ones"
            _log.warning(told, answer.arm, found.problem)
        return replace(answer, problem=found.problem, cost=cost)

    def _cost_of(self, copy: Copy, mirrored: Answer) -> float:
        """What the answer of an arm cost; the most that it may if nobody knows, and nothing if the arm was not asked."""
        if not copy.sent:
            return 0.0
        if mirrored.cost is not None:
            return mirrored.cost
        return 0.0 if self._spending is None else self._spending.most(copy.arm)

    async def _judged(self, copy: Copy, mirrored: Answer) -> Judged:
        """What the judge says; without a loss if the copy counts as nothing."""
        judge = self._counts.judge
        try:
            found = await self._loss.of(copy.decision, copy.shown, copy.served, mirrored)
        except Later:
            self._counts.learned["left_to_judge"] += 1
            return Judged(None, cost=0.0 if self._spending is None else self._spending.judge)
        except JudgeFailed as error:
            loud, again = judge.failed(error.why, error.cost), judge.failures.total() > 1
            if loud and again:
                _log.warning("%s", judge.problem)
            elif loud:
                _log.warning("decision %s: %s\n%s", copy.decision, error, error.details)
            if self._otherwise is None:
                self.drop("judge_failed", copy.decision)
                return Judged(None, cost=error.cost)
            return Judged(self._loss.with_verdict(mirrored, self._otherwise), cost=error.cost)
        except Exception as error:  # while it was read, and not the judge's
            copy.mirrored = self.unreadable(mirrored, error)
            return Judged(self._loss.with_verdict(copy.mirrored, 1.0))
        if self._loss.judges(mirrored):
            judge.said(found.position, found.cost)
        if found.loss is None:
            self.drop("no_opinion", copy.decision)
        return found

    async def _learn(
        self, copy: Copy, loss: float, position: float | None, cost: float | None
    ) -> bool:
        """Hand a loss over; returns whether it was applied."""
        for attempt in count(1):
            try:
                outcome = await self._backend.learn(copy.decision, copy.arm, loss, position, cost)
            except ServiceError as error:
                if error.status < 500:
                    self._counts.dropped["refused"] += 1
                    _log.error("decision %s: its loss was refused: %s", copy.decision, error)
                    return False
                _log.warning("decision %s: its loss waits: %s", copy.decision, error)
                await asyncio.sleep(_RETRIES.pause(attempt))
            else:
                self._counts.learned[outcome] += 1
                return outcome == "applied"
        raise AssertionError  # there is always another attempt


def keep_copies(path: Path, copies: Iterable[Copy]) -> None:
    """Write copies for the next start, without credentials. Only the user who runs the mirror can read the file."""
    with replacing(path) as temporary:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(copy.to_dict()) + "\n" for copy in copies)


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

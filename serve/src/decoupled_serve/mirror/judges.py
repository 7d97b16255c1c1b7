"""Computes the loss of a copy: asks a judge, a function in Python or an HTTP address, and measures the answer."""

import asyncio
import json
import os
import pickle
import signal
import subprocess
import sys
import traceback
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import httpx

from decoupled.base import as_loss
from decoupled.client import Retries
from decoupled.errors import DecoupledError, ParameterError
from decoupled.learner import PREFERENCES, preference_loss

from .capped import Reply, TooLarge, post
from .config import MIB, JudgeConfig, LossConfig
from .exchange import Answer, Request, Served, Unreadable, expanded
from .spending import amount_of

START_SECONDS = 300.0  # for the module of a judge to be loaded, which may load a model
_REMEDY = 'answer {"loss": 0.25} or {"preference": "explore"}'
_RETRIES = Retries(first=0.5, most=30.0)
NOT_SENT = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
)  # what failed so costs nothing
T = TypeVar("T")


class Judged(NamedTuple):
    """What a judge says."""

    loss: (
        float | None
    )  # the loss of the mirrored answer, from 0 to 1; None if the judge has no opinion
    # how it preferred what it saw first: 1 if that won, -1 if the other did, 0 for a tie, and the mean over several calls; None
    # if nobody knows
    position: float | None = None
    cost: float = 0.0  # what judging cost


class BadVerdict(DecoupledError):  # noqa: N818
    """A judge answered something that is neither a loss nor a preference.

    >>> loss_of({"loss": 7})
    Traceback (most recent call last):
        ...
    decoupled_serve.mirror.judges.BadVerdict: loss = 7: must be a number in [0, 1]; answer {"loss": 0.25} or {"preference": "explore"}
    """


class Trouble(DecoupledError):  # noqa: N818
    """A judge raised an error, or its address answered with one.

    >>> raise Trouble("KeyError: 'text'", transient=False)
    Traceback (most recent call last):
        ...
    decoupled_serve.mirror.judges.Trouble: KeyError: 'text'
    """

    def __init__(
        self, problem: str, *, transient: bool, details: str = "", cost: float | None = None
    ) -> None:  # without a cost, that is not known
        super().__init__(problem)
        self.transient, self.details, self.cost = transient, details, cost

    @classmethod
    def of_status(cls, status: int, told: str) -> "Trouble":
        """That of a bad status. It may pass if there were too many requests, or the server failed."""
        return cls(f"status {status}: {told}", transient=status in (408, 429) or status >= 500)


def judged_of(verdict: object, unstated: float = 0.0) -> Judged:
    """What a verdict means, with what it says that it cost; `unstated` if it does not say.

    >>> judged_of({"preference": "explore", "cost": 0.02}), judged_of("tie", unstated=0.1)
    (Judged(loss=0.0, position=None, cost=0.02), Judged(loss=0.5, position=None, cost=0.1))
    """
    given = verdict.get("cost") if isinstance(verdict, Mapping) else None
    cost = unstated if given is None else amount_of(given)
    if cost is None:
        rule, remedy = "must be a finite number from 0", "leave it out if you do not know it"
        raise BadVerdict.of("cost", given, rule, remedy)
    return Judged(loss_of(verdict), cost=cost)


def loss_of(verdict: object) -> float | None:
    """The loss of the copy that a verdict means; None for no verdict.

    >>> loss_of(0.25), loss_of(True), loss_of("tie"), loss_of({"preference": "explore"}), loss_of(None)
    (0.25, 1.0, 0.5, 0.0, None)
    """
    if verdict is None:
        return None
    preferred = isinstance(verdict, str)
    if isinstance(verdict, Mapping):
        named = [name for name in ("loss", "preference") if verdict.get(name) is not None]
        if len(named) != 1:
            rule = "must have either a loss or a preference"
            raise BadVerdict.of("verdict", dict(verdict), rule, _REMEDY)
        verdict = verdict[named[0]]
        preferred = named == ["preference"] or isinstance(verdict, str)
    if preferred and verdict in PREFERENCES:
        return preference_loss(verdict)
    if preferred:
        raise BadVerdict.of("preference", verdict, f"must be one of {PREFERENCES}", _REMEDY)
    loss = as_loss(verdict)
    if loss is None or not 0.0 <= loss <= 1.0:
        raise BadVerdict.of("loss", verdict, "must be a number in [0, 1]", _REMEDY)
    return loss


class JudgeFailed(DecoupledError):  # noqa: N818
    """A judge gave no verdict, in all attempts.

    >>> raise JudgeFailed("judge: no verdict in 3 attempts (ReadTimeout)")
    Traceback (most recent call last):
        ...
    decoupled_serve.mirror.judges.JudgeFailed: judge: no verdict in 3 attempts (ReadTimeout)
    """

    def __init__(self, message: str, why: str = "", details: str = "", cost: float = 0.0) -> None:
        super().__init__(message)
        self.why, self.details, self.cost = why, details, cost


class Later(Exception):  # noqa: N818
    """The judge sends the loss to the decision service itself, when it has one."""


class Judge:
    """Compares two answers, or judges one alone, of which it sees `limit` bytes; a few at a time, and again after a failure."""

    def __init__(self, config: JudgeConfig, limit: int = MIB) -> None:
        self._config, self._limit = config, limit
        self._slots = asyncio.Semaphore(config.concurrency)
        # Whether the judge of a decision may spend this much more, on another attempt.
        self.may_spend: Callable[[str, float], Awaitable[bool]] | None = None

    async def start(self) -> None:
        """Get ready; raises the error if it cannot."""

    async def close(self) -> None:
        """Release what it holds."""

    async def judge(
        self, decision: str, request: Request, served: Served, mirrored: Answer
    ) -> Judged:
        """What it says about the mirrored answer, in the first attempt that succeeds.

        `JudgeFailed` if none does. What will fail again, such as an error in a function, is not tried again.
        """
        # Not in an attempt: what cannot be read is the fault of an arm, and not of the judge.
        seen = None if self._config.alone else served
        seen = seen and await asyncio.to_thread(expanded, seen, self._limit)
        judged = await asyncio.to_thread(expanded, mirrored, self._limit)
        return await self._tried(partial(self._asked, decision, request, seen, judged), decision)

    async def _tried(self, asked: Callable[[], Awaitable[Judged]], decision: str) -> Judged:
        cost, attempt, more = 0.0, 0, True
        why = details = ""
        while more:
            if attempt:
                await asyncio.sleep(_RETRIES.pause(attempt))
            attempt += 1
            before = cost
            try:
                async with self._slots:
                    found = await asked()
                return found._replace(cost=cost + found.cost)
            except Later:
                raise
            except Trouble as error:
                cost += self._config.dearest_call if error.cost is None else error.cost
                more = error.transient
                why, details = str(error), error.details
            except Exception as error:  # a judge is someone else's code
                cost += 0.0 if isinstance(error, NOT_SENT) else self._config.dearest_call
                why = f"{type(error).__name__}: {error}".rstrip(": ")
                details = traceback.format_exc()
            more = more and attempt < self._config.attempts
            if more and cost > before and self.may_spend is not None:
                # What was set aside is spent on the attempt that failed.
                more = await self.may_spend(decision, cost - before)
        times = "1 attempt" if attempt == 1 else f"{attempt} attempts"
        raise JudgeFailed(f"judge: no verdict in {times} ({why})", why, details, cost)

    async def _asked(
        self, decision: str, request: Request, served: Served, mirrored: Answer
    ) -> Judged:
        """What it says in one attempt; `served` is None if the judge does not see it."""
        raise NotImplementedError


class _Worker:
    """A process that judges one call at a time. Its methods block, and `kill` ends them from another thread."""

    def __init__(self, name: str, folder: Path, kind: str) -> None:
        module = "decoupled_serve.mirror.judge_worker"
        command = [sys.executable, "-P", "-m", module, name, str(folder), kind]
        # In a session of its own, so that Ctrl-C ends the mirror, which then finishes what it began.
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )

    def receive(self) -> dict[str, Any]:
        """The next answer."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            status = self._process.wait()
            raise BadVerdict(f"judge: its process ended with the status {status}; see the log")
        found: dict[str, Any] = json.loads(line)
        return found

    def ask(self, question: bytes) -> dict[str, Any]:
        """The answer to a question."""
        assert self._process.stdin is not None
        self._process.stdin.write(question)
        self._process.stdin.flush()
        return self.receive()

    def kill(self) -> None:
        """End it and what it has started, whatever they are doing."""
        if self._process.poll() is None:
            if hasattr(os, "killpg"):
                with suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()

    def close(self) -> None:
        """Release what it holds, once it has ended."""
        with self._process:
            pass


class PythonJudge(Judge):
    """Calls a function in processes of their own, one for each call at a time. One that takes too long is ended."""

    def __init__(
        self, config: JudgeConfig, limit: int, folder: Path, kind: str | None = None
    ) -> None:
        super().__init__(config, limit)
        self._folder, self._kind = folder, kind or ("alone" if config.alone else "both")
        self._idle: list[_Worker] = []
        self._all: set[_Worker] = set()
        # One for each call, and those that wait for a process to end.
        self._threads = ThreadPoolExecutor(2 * config.concurrency, "decoupled-judge")

    async def start(self) -> None:
        """Start the first process; `ParameterError` if there is no such function."""
        self._idle.append(await self._started())

    async def _asked(
        self, decision: str, request: Request, served: Served, mirrored: Answer
    ) -> Judged:
        alone = self._config.alone
        verdict = await self._answer(request, *(() if alone else (served,)), mirrored)
        return judged_of(verdict, self._config.unstated)

    async def _answer(self, *question: Any) -> Any:
        """What the function returns."""
        worker = self._idle.pop() if self._idle else await self._started()
        try:
            async with asyncio.timeout(self._config.timeout):
                answer = await self._run(worker.ask, pickle.dumps(question))
        except BaseException:
            self._end(worker)
            raise
        self._idle.append(worker)
        if "problem" in answer:
            raise Trouble(
                answer["problem"], transient=answer["transient"], details=answer["traceback"]
            )
        return answer["verdict"]

    async def close(self) -> None:
        """End all processes."""
        for worker in list(self._all):
            self._end(worker)
        await asyncio.to_thread(self._threads.shutdown)

    async def _started(self) -> _Worker:
        worker = _Worker(str(self._config.python), self._folder, self._kind)
        self._all.add(worker)
        try:
            async with asyncio.timeout(START_SECONDS):
                answer = await self._run(worker.receive)
        except BaseException:
            self._end(worker)
            raise
        if "problem" in answer:
            self._end(worker)
            raise ParameterError(answer["problem"])
        return worker

    def _end(self, worker: _Worker) -> None:
        worker.kill()
        self._all.discard(worker)
        self._threads.submit(worker.close)

    async def _run(self, function: Callable[..., T], *args: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, function, *args)


class HttpJudge(Judge):
    """Sends the answers to an address by POST, as JSON; without the served one if it judges alone.

    It answers 200 with a verdict, 204 for no opinion, or 202 if it will send the loss to the decision service itself.
    """

    def __init__(self, config: JudgeConfig, limit: int) -> None:
        super().__init__(config, limit)
        self._url = str(config.url)
        limits = httpx.Limits(max_connections=config.concurrency)
        self._http = httpx.AsyncClient(
            headers=config.headers, timeout=config.timeout, limits=limits
        )

    async def _asked(
        self, decision: str, request: Request, served: Served, mirrored: Answer
    ) -> Judged:
        content = {
            "decision": decision,
            "request": request.to_dict(),
            "mirrored": mirrored.to_dict(),
        }
        if served is not None:
            content["served"] = served.to_dict()
        reply = await self._posted(content)
        if reply.status == 202:
            raise Later
        if reply.status == 204:
            return Judged(None, cost=self._config.unstated)
        if not reply.is_success:
            raise Trouble.of_status(reply.status, f"from {self._url}; it must be 200, 202 or 204")
        try:
            verdict = json.loads(reply.body)
        except (ValueError, RecursionError):
            raise BadVerdict(
                f'judge {self._url}: did not answer JSON; answer {{"loss": 0.25}}'
            ) from None
        return judged_of(verdict, self._config.unstated)

    async def _posted(self, content: Mapping[str, Any]) -> Reply:
        """What the address answers; `Trouble` if that must not or cannot be read. What it cost nobody knows then."""
        try:
            async with asyncio.timeout(self._config.timeout):
                return await post(self._http, self._url, content)
        except (TooLarge, Unreadable) as error:
            remedy = 'answer {"loss": 0.25}, without Content-Encoding'
            told = f"{type(error).__name__}: {error}; {remedy}"
            raise Trouble(told, transient=False) from None

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()


class CopyLoss:
    """Computes losses in [0, 1]. That of an answer which did not come, or broke off, is 1: an arm must not gain by failing."""

    def __init__(self, config: LossConfig, judge: Judge | None = None) -> None:
        self._config, self._judge = config, judge
        terms = (config.latency, config.duration, config.bytes, config.cost, config.judge)
        self._total = config.status + sum(term.weight for term in terms if term is not None)

    def ask_before_retries(self, may_spend: Callable[[str, float], Awaitable[bool]]) -> None:
        """Have the judge ask whether it may spend more on a decision, before it tries again."""
        if self._judge is not None:
            self._judge.may_spend = may_spend

    def judges(self, mirrored: Answer) -> bool:
        """Whether a judge is asked about this answer."""
        return self._judge is not None and not failed(mirrored)

    async def of(self, decision: str, request: Request, served: Served, mirrored: Answer) -> Judged:
        """What a judge says about the mirrored answer, with the loss of all parts together."""
        if not self.judges(mirrored) or self._judge is None:
            return Judged(self.with_verdict(mirrored, 0.0))
        found = await self._judge.judge(decision, request, served, mirrored)
        return (
            found
            if found.loss is None
            else found._replace(loss=self.with_verdict(mirrored, found.loss))
        )

    def with_verdict(self, mirrored: Answer, verdict: float) -> float:
        """The loss if the judge's part has this value.

        >>> from decoupled_serve.mirror.config import JudgeConfig
        >>> loss = CopyLoss(LossConfig(status=1.0, judge=JudgeConfig(python="a:b", weight=3.0)))
        >>> loss.with_verdict(Answer("a", 200), 1.0)
        0.75
        """
        judge = self._config.judge
        weight = 0.0 if judge is None else judge.weight
        parts = self.measured(mirrored) + weight * verdict
        return 1.0 if failed(mirrored) else min(max(parts / self._total, 0.0), 1.0)

    def labelled(self, mirrored: Answer, verdict: float) -> float:
        """The true loss if this is the true verdict: it stands for that of the judge, or for the whole loss if there is none."""
        return verdict if self._config.judge is None else self.with_verdict(mirrored, verdict)

    def measured(self, answer: Answer) -> float:
        """The weighted sum of the parts that need no judge.

        >>> from decoupled_serve.mirror.config import TermConfig
        >>> half = LossConfig(status=1.0, latency=TermConfig(high=2.0))
        >>> CopyLoss(half).measured(Answer("a", 503, latency=1.0))
        1.5
        """
        config, total, status = self._config, 0.0, answer.status
        if status is None or (status >= config.bad_status and status not in config.good_status):
            total += config.status
        terms = (config.latency, config.duration, config.bytes, config.cost)
        values = (answer.latency, answer.duration, float(answer.size), answer.cost)
        for term, value in zip(terms, values, strict=True):
            if term is not None:
                total += term.weight * (1.0 if value is None else term.at(value))
        return total


def failed(answer: Answer) -> bool:
    """Whether an answer did not come, or broke off. One that was cut at the limit did come.

    >>> failed(Answer("a", None, problem="cannot be connected to")), failed(Answer("a", 500))
    (True, False)
    """
    return answer.status is None or answer.problem is not None

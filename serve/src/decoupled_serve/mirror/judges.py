"""Asks a judge about an answer: a function in Python, or an HTTP address."""

import asyncio
import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, TypeVar

import httpx

from decoupled.client import Retries
from decoupled.errors import DecoupledError, ParameterError

from .config import MIB, JudgeConfig
from .exchange import Answer, Request
from .expanding import expanded
from .verdict import BadVerdict, loss_of

START_SECONDS = 300.0  # for the module of a judge to be loaded, which may load a model
T = TypeVar("T")
_RETRIES = Retries(first=0.5, most=30.0)


class JudgeFailed(DecoupledError):  # noqa: N818
    """A judge gave no verdict, in all attempts.

    >>> raise JudgeFailed("judge: no verdict in 3 attempts (ReadTimeout)")
    Traceback (most recent call last):
        ...
    decoupled_serve.mirror.judges.JudgeFailed: judge: no verdict in 3 attempts (ReadTimeout)
    """


class Later(Exception):  # noqa: N818
    """The judge sends the loss to the decision service itself, when it has one."""


class Judge(Protocol):
    """Compares two answers, or judges one alone."""

    async def start(self) -> None:
        """Get ready; raises the error if it cannot."""

    async def loss(
        self, decision: str, request: Request, served: Answer | None, mirrored: Answer
    ) -> float | None:
        """The loss of the mirrored answer; None if the judge has no opinion."""

    async def close(self) -> None:
        """Release what it holds."""


def judge_of(config: JudgeConfig, folder: Path, limit: int = MIB) -> Judge:
    """The judge that a configuration names, which sees so many bytes of an answer."""
    judge: Judge
    if config.python is not None:
        judge = PythonJudge(config.python, folder, config)
    else:
        assert config.url is not None
        judge = HttpJudge(config.url, config)
    return Retrying(judge, config, limit)


class _Worker:
    """A process that judges one call at a time. Its methods block, and `kill` ends them from another thread."""

    def __init__(self, name: str, folder: Path, *, alone: bool) -> None:
        kind = "alone" if alone else "both"
        command = [
            sys.executable,
            "-P",
            "-m",
            "decoupled_serve.mirror.judge_worker",
            name,
            str(folder),
            kind,
        ]
        # In a session of its own, so that Ctrl-C ends the mirror, which then finishes what it began.
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )

    def receive(self) -> dict[str, Any]:
        """The next answer."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise BadVerdict(
                f"judge: its process ended with the status {self._process.wait()}; see the log"
            )
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


class PythonJudge:
    """Calls a function in processes of their own, one for each call at a time. One that takes too long is ended."""

    def __init__(self, name: str, folder: Path, config: JudgeConfig) -> None:
        self._name, self._folder, self._alone, self._seconds = name, folder, config.alone, config.timeout
        self._idle: list[_Worker] = []
        self._all: set[_Worker] = set()
        # One for each call, and those that wait for a process to end.
        self._threads = ThreadPoolExecutor(2 * config.concurrency, "decoupled-judge")

    async def start(self) -> None:
        """Start the first process; `ParameterError` if there is no such function."""
        self._idle.append(await self._started())

    async def loss(
        self, decision: str, request: Request, served: Answer | None, mirrored: Answer
    ) -> float | None:
        """The loss that the function returns, or that its preference means."""
        worker = self._idle.pop() if self._idle else await self._started()
        question = pickle.dumps((request, mirrored) if self._alone else (request, served, mirrored))
        try:
            async with asyncio.timeout(self._seconds):
                answer = await self._run(worker.ask, question)
        except BaseException:
            self._end(worker)
            raise
        self._idle.append(worker)
        if "problem" in answer:
            raise BadVerdict(f"judge: {answer['problem']}")
        return loss_of(answer["verdict"])

    async def close(self) -> None:
        """End all processes."""
        for worker in list(self._all):
            self._end(worker)
        await asyncio.to_thread(self._threads.shutdown)

    async def _started(self) -> _Worker:
        worker = _Worker(self._name, self._folder, alone=self._alone)
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


class HttpJudge:
    """Sends the answers to an address by POST, as JSON; without the served one if it judges alone.

    It answers 200 with a verdict, 204 for no opinion, or 202 if it will send the loss to the decision service itself.
    """

    def __init__(self, url: str, config: JudgeConfig) -> None:
        self._url, self._alone = url, config.alone
        limits = httpx.Limits(max_connections=config.concurrency)
        self._http = httpx.AsyncClient(headers=config.headers, timeout=config.timeout, limits=limits)
        self._seconds = config.timeout

    async def start(self) -> None:
        """Nothing: it is asked when it is needed."""

    async def loss(
        self, decision: str, request: Request, served: Answer | None, mirrored: Answer
    ) -> float | None:
        """The loss that the address answers, or that its preference means."""
        content = {
            "decision": decision,
            "request": request.to_dict(),
            "mirrored": mirrored.to_dict(),
        }
        if served is not None and not self._alone:
            content["served"] = served.to_dict()
        async with asyncio.timeout(self._seconds):
            answer = await self._http.post(self._url, json=content)
        if answer.status_code == 202:
            raise Later
        if answer.status_code == 204:
            return None
        if not answer.is_success:
            raise BadVerdict(
                f"judge {self._url}: answered with {answer.status_code}; it must be 200, 202 or 204"
            )
        try:
            return loss_of(answer.json())
        except (json.JSONDecodeError, UnicodeDecodeError):
            raise BadVerdict(f'judge {self._url}: did not answer JSON; answer {{"loss": 0.25}}') from None

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()


class Retrying:
    """A judge that is asked again after a failure, a few verdicts at a time. Only their answers are expanded, in threads."""

    def __init__(self, judge: Judge, config: JudgeConfig, limit: int) -> None:
        self._judge, self._config, self._limit = judge, config, limit
        self._slots = asyncio.Semaphore(config.concurrency)

    async def start(self) -> None:
        """Get the judge ready."""
        await self._judge.start()

    async def loss(
        self, decision: str, request: Request, served: Answer | None, mirrored: Answer
    ) -> float | None:
        """The verdict of the first attempt that succeeds; `JudgeFailed` if none does."""
        problem = ""
        for attempt in range(self._config.attempts):
            if attempt:
                await asyncio.sleep(_RETRIES.pause(attempt))
            try:
                async with self._slots:
                    seen = served and await asyncio.to_thread(expanded, served, self._limit)
                    found = await asyncio.to_thread(expanded, mirrored, self._limit)
                    return await self._judge.loss(decision, request, seen, found)
            except Later:
                raise
            except Exception as error:  # a judge is someone else's code
                problem = f"{type(error).__name__}: {error}"
        raise JudgeFailed(f"judge: no verdict in {self._config.attempts} attempts ({problem})")

    async def close(self) -> None:
        """Close the judge."""
        await self._judge.close()

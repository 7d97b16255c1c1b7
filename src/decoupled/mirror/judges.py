"""Judges: a function in Python, or an address that takes both answers."""

import asyncio
import importlib
import inspect
import json
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

import httpx

from ..errors import DecoupledError, ParameterError, invalid_value
from .config import JudgeConfig
from .exchange import Answer, Request
from .verdict import BadVerdict, loss_of

_FIRST_WAIT, _LONGEST_WAIT = 0.5, 30.0  # seconds between attempts; they double
_A_JUDGE = 'for example "judge:compare", with def compare(request, served, mirrored) in judge.py'


class JudgeFailed(DecoupledError):  # noqa: N818
    """A judge gave no verdict, in all attempts.

    >>> raise JudgeFailed("judge: no verdict in 3 attempts (ReadTimeout)")
    Traceback (most recent call last):
        ...
    decoupled.mirror.judges.JudgeFailed: judge: no verdict in 3 attempts (ReadTimeout)
    """


class Later(Exception):  # noqa: N818
    """The judge sends the loss to the decision service itself, when it has one."""


class Judge(Protocol):
    """Compares two answers."""

    async def loss(self, decision: str, request: Request, served: Answer, mirrored: Answer) -> float | None:
        """The loss of the mirrored answer; None if the judge has no opinion."""

    async def close(self) -> None:
        """Release what it holds."""


def judge_of(config: JudgeConfig, folder: Path) -> Judge:
    """The judge that a configuration names."""
    judge: Judge
    if config.python is not None:
        judge = PythonJudge(function_named(config.python, folder), config)
    else:
        assert config.url is not None
        judge = HttpJudge(config.url, config)
    return Retrying(judge, config)


def function_named(name: str, folder: Path) -> Callable[..., Any]:
    """The function that "module:function" names; the module may be in `folder`.

    >>> function_named("math:hypot", Path()).__name__
    'hypot'
    >>> function_named("math:hypotenuse", Path())
    Traceback (most recent call last):
        ...
    decoupled.errors.ParameterError: loss.judge.python = 'math:hypotenuse': the module math has no function hypotenuse; for example "judge:compare", with def compare(request, served, mirrored) in judge.py
    """
    place = "loss.judge.python"
    module, colon, attribute = name.partition(":")
    if not colon or not module or not attribute:
        raise ParameterError(invalid_value(place, name, "must be a module and a function", _A_JUDGE))
    if str(folder.resolve()) not in sys.path:
        sys.path.insert(0, str(folder.resolve()))
    try:
        found = getattr(importlib.import_module(module), attribute, None)
    except ModuleNotFoundError as error:
        rule = f"the module {error.name} is not found, here or in {folder.resolve()}"
        raise ParameterError(invalid_value(place, name, rule, _A_JUDGE)) from None
    if not callable(found):
        rule = f"the module {module} has no function {attribute}"
        raise ParameterError(invalid_value(place, name, rule, _A_JUDGE))
    return found  # type: ignore[no-any-return]


class PythonJudge:
    """Calls a function: on the event loop if it is `async def`, else in a thread."""

    def __init__(self, function: Callable[..., Any], config: JudgeConfig) -> None:
        self._function, self._waits = function, inspect.iscoroutinefunction(function)
        self._threads = ThreadPoolExecutor(config.concurrency, "decoupled-judge")

    async def loss(self, decision: str, request: Request, served: Answer, mirrored: Answer) -> float | None:
        """The loss that the function returns, or that its preference means."""
        if self._waits:
            return loss_of(await self._function(request, served, mirrored))
        loop = asyncio.get_running_loop()
        return loss_of(await loop.run_in_executor(self._threads, self._function, request, served, mirrored))

    async def close(self) -> None:
        """Leave the threads; one that never returns must not hold up the end of the program."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class HttpJudge:
    """Sends both answers to an address by POST, as JSON.

    It answers 200 with a verdict, 204 for no opinion, or 202 if it will send the loss to the decision service itself.
    """

    def __init__(self, url: str, config: JudgeConfig) -> None:
        self._url = url
        limits = httpx.Limits(max_connections=config.concurrency)
        self._http = httpx.AsyncClient(headers=dict(config.headers), timeout=config.timeout, limits=limits)

    async def loss(self, decision: str, request: Request, served: Answer, mirrored: Answer) -> float | None:
        """The loss that the address answers, or that its preference means."""
        content = {
            "decision": decision,
            "request": request.to_dict(),
            "served": served.decompressed().to_dict(),
            "mirrored": mirrored.decompressed().to_dict(),
        }
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
    """A judge that is asked again after a failure, a few verdicts at a time."""

    def __init__(self, judge: Judge, config: JudgeConfig) -> None:
        self._judge, self._config = judge, config
        self._slots = asyncio.Semaphore(config.concurrency)

    async def loss(self, decision: str, request: Request, served: Answer, mirrored: Answer) -> float | None:
        """The verdict of the first attempt that succeeds; `JudgeFailed` if none does."""
        problem, wait = "", _FIRST_WAIT
        for attempt in range(self._config.attempts):
            if attempt:
                await asyncio.sleep(wait)
                wait = min(2.0 * wait, _LONGEST_WAIT)
            try:
                async with self._slots, asyncio.timeout(self._config.timeout):
                    return await self._judge.loss(decision, request, served, mirrored)
            except Later:
                raise
            except Exception as error:  # a judge is someone else's code
                problem = f"{type(error).__name__}: {error}"
        raise JudgeFailed(f"judge: no verdict in {self._config.attempts} attempts ({problem})")

    async def close(self) -> None:
        """Close the judge."""
        await self._judge.close()

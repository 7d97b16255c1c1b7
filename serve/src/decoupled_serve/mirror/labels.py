"""Has some answers labelled: by people in the console, or by whoever knows the true loss."""

import asyncio
import logging
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from decoupled.client import Retries, ServiceError

from ..service.api.pairs import LONGEST_TEXT, Pair
from .backend import ServiceCalls
from .chat import conversation, said
from .config import MIB, JudgeConfig, LabelsConfig
from .exchange import Answer, Request, Served, expanded
from .judges import CopyLoss, HttpJudge, Judge, JudgeFailed, Later, PythonJudge, failed

MOST = 1_000  # answers that are on their way to who labels them
_RETRIES = Retries(first=0.5, most=30.0)
_ATTEMPTS = 6  # to hand something to the decision service
_log = logging.getLogger("decoupled.mirror")


def without(text: str, patterns: Sequence[str] = ()) -> str:
    r"""A text without what matches one of the patterns.

    >>> without("Call 0171 555, ann@example.com", [r"\d[\d ]+\d", r"\S+@\S+"])
    'Call [removed], [removed]'
    """
    for pattern in patterns:
        text = re.sub(pattern, "[removed]", text)
    return text


class RedactFailed(Exception):  # noqa: N818
    """What is private could not be removed. Why must not be shown: it may have the text."""


class Redactor(PythonJudge):
    """Calls a function of a text that returns it without what is private, or removes patterns."""

    def __init__(self, redact: str | Sequence[str], folder: Path) -> None:
        self._more = () if isinstance(redact, str) else (tuple(redact),)
        name = redact if isinstance(redact, str) else f"{__name__}:{without.__name__}"
        super().__init__(JudgeConfig(python=name, concurrency=2), MIB, folder, kind="text")

    async def redacted(self, text: str) -> str:
        """The text without what is private; `RedactFailed` if that fails."""
        try:
            async with self._slots:
                found = await self._answer(text, *self._more)
        except Exception:
            raise RedactFailed from None
        if not isinstance(found, str):
            raise RedactFailed
        return found


class Labeller:
    """Passes on answers whose decisions ask for a label, and no others: nobody who labels can tell which those are.

    What is private is removed first. If that fails, nothing is kept or sent. The arms' names, headers, times and prices stay here.
    """

    def __init__(
        self, config: LabelsConfig, loss: CopyLoss, backend: ServiceCalls, counts: Counter[str], folder: Path,
        limit: int,
    ) -> None:  # fmt: skip
        self._config, self._loss, self._backend, self._counts = config, loss, backend, counts
        self._limit = limit
        self._redactor = None if config.redact is None else Redactor(config.redact, folder)
        self._judge: Judge | None = None
        who, way = (
            config.to,
            JudgeConfig(url="http://-", headers=config.headers, timeout=config.timeout),
        )
        if who.startswith(("http://", "https://")):
            self._judge = HttpJudge(way.model_copy(update={"url": who}), limit)
        elif who != "console":
            self._judge = PythonJudge(way.model_copy(update={"python": who}), limit, folder)
        self._running: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Start the processes; raises the error if they cannot."""
        for each in (self._judge, self._redactor):
            if each is not None:
                await each.start()

    async def close(self) -> None:
        """Give up what is on its way: its label counts as missing."""
        for task in list(self._running):
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        for each in (self._judge, self._redactor):
            if each is not None:
                await each.close()

    def begin(self, decision: str, request: Request, served: Served, mirrored: Answer) -> None:
        """Have an answer labelled, in the background."""
        if len(self._running) >= MOST:
            self._counts["full"] += 1
            return
        task = asyncio.create_task(self._label(decision, request, served, mirrored))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _label(
        self, decision: str, request: Request, served: Served, mirrored: Answer
    ) -> None:
        try:
            outcome = await self._outcome(decision, request, served, mirrored)
        except ServiceError as error:
            outcome = "refused"
            _log.warning("decision %s: its label was refused: %s", decision, error)
        except asyncio.CancelledError:
            outcome = "shutdown"
        except RedactFailed:
            outcome = "redact_failed"
            if self._counts[outcome] == 0:
                _log.warning("labels.redact fails, so nothing is kept or sent; try it by itself")
        except Exception as error:  # whose text may be private
            outcome = "error"
            if self._counts[outcome] == 0:
                told = "decision %s: gets no label (%s); /mirror counts the next ones"
                _log.warning(told, decision, type(error).__name__)
        self._counts[outcome] += 1

    async def _outcome(
        self, decision: str, request: Request, served: Served, mirrored: Answer
    ) -> str:
        if failed(mirrored):  # whoever knows knows that
            return await self._known(decision, 1.0)
        same = served and (served.status, served.body) == (mirrored.status, mirrored.body)
        if self._judge is None and same:
            return await self._known(decision, self._loss.labelled(mirrored, 0.5))  # a tie
        request = await self._request(request)
        seen = None if served is None else await self._answer(served)
        shown = await self._answer(mirrored)
        if self._judge is not None:
            try:
                found = await self._judge.judge(decision, request, seen, shown)
            except Later:
                return "later"
            except JudgeFailed:
                return "failed"
            if found.loss is None:
                return "no_opinion"
            return await self._known(decision, self._loss.labelled(mirrored, found.loss))
        assert seen is not None
        low, high = (self._loss.labelled(mirrored, verdict) for verdict in (0.0, 1.0))
        title = f"{request.method} {request.target}"
        title, *texts = (
            each[:LONGEST_TEXT] for each in (title, request.text, seen.text, shown.text)
        )
        pair = Pair(title, texts[0], texts[1], texts[2], low, high)
        await self._handed(decision, pair)
        return "kept"

    async def _known(self, decision: str, loss: float) -> str:
        await self._handed(decision, loss)
        return "labelled"

    async def _handed(self, decision: str, what: float | Pair) -> None:
        """Hand something to the decision service, which may not be there for a moment."""
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                if isinstance(what, Pair):
                    await self._backend.keep(decision, what, self._config.keep_days)
                else:
                    await self._backend.label(decision, what)
                return
            except ServiceError as error:
                if error.status < 500 or attempt == _ATTEMPTS:
                    raise
            await asyncio.sleep(_RETRIES.pause(attempt))

    # What is shown

    async def _request(self, request: Request) -> Request:
        text = await asyncio.to_thread(_asked, request)
        target = await self._redacted(request.target)
        redacted = await self._redacted(text)
        return Request(request.method, target, (), redacted.encode(errors="replace"))

    async def _answer(self, answer: Answer) -> Answer:
        text = await asyncio.to_thread(self._said, answer)
        shown = await self._redacted(text)
        if answer.status is None or answer.status >= 400:
            title = "no answer" if answer.status is None else f"status {answer.status}"
            shown = f"[{title}]\n{shown}"
        return Answer("", answer.status, (), shown.encode(errors="replace"), len(shown))

    def _said(self, answer: Answer) -> str:
        return said(expanded(answer, self._limit).body)

    async def _redacted(self, text: str) -> str:
        return text if self._redactor is None else await self._redactor.redacted(text)


def _asked(request: Request) -> str:
    """What a request asks for, a chat with the roles of its messages."""
    messages = conversation(request.body)
    chat = "\n\n".join(f"{role}: {text}" for role, text in messages)
    return chat or request.text

"""Tells the log, a file and a webhook when more is known about the arms."""

import asyncio
import json
import logging
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from decoupled.client import Retries

from ..service.experiment.records import moment
from .capped import post_unread
from .config import WebhookConfig
from .counts import MirrorCounts

_RETRIES = Retries(first=1.0, most=300.0)
_log = logging.getLogger("decoupled.mirror")


class Known(NamedTuple):
    """What a verdict says."""

    text: str  # the verdict as a sentence
    # the best arm and then the others, once that is decided; empty until then
    decided: tuple[str, ...] = ()
    # the arm that is served until another is known to be better; None if there is none
    incumbent: str | None = None
    released: bool = False  # whether another is
    # that the judge alone would decide for another arm than labels do; None if it does not
    warning: str | None = None


class News:
    """Tells everybody once. What was told is in a file, so another start does not tell it again."""

    def __init__(
        self, name: str, file: Path, webhook: WebhookConfig | None, counts: MirrorCounts
    ) -> None:
        self._name, self._file, self._webhook, self._counts = name, file, webhook, counts
        self._told = _last_told(file)
        self._sending: set[asyncio.Task[None]] = set()
        self.known = Known("nothing was observed yet")

    def learn(self, known: Known, now: float) -> None:
        """Note what is known now, and tell what is new. Returns at once: a webhook is called in the background."""
        self.known = known
        if known.decided:
            self._tell("decided", list(known.decided), known.decided[0], known.text, now)
        else:
            self._told.pop("decided", None)  # other arms, so it will be news again
        if known.warning is None:
            self._told.pop("judge", None)
        else:
            self._tell("judge", list(known.decided), known.decided[0], known.warning, now)
        if known.incumbent is None or not known.released:
            self._told.pop("released", None)
        else:
            text = f"{known.incumbent} was the incumbent; another arm was found to be better, and the policy chooses now"
            self._tell("released", [known.incumbent], known.incumbent, text, now)

    async def stop(self) -> None:
        """Give up what is not delivered yet; the next start tells it again."""
        for task in list(self._sending):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def _tell(self, event: str, arms: list[str], arm: str, text: str, now: float) -> None:
        if self._told.get(event) == arms:
            return
        self._told[event] = arms
        _log.info("experiment %r: %s: %s", self._name, event, text)
        about = {"event": event, "experiment": self._name, "arm": arm, "arms": arms}
        content = {**about, "text": text, "at": moment(now)}
        if self._webhook is None:
            self._keep(content)
        else:
            task = asyncio.create_task(self._deliver(self._webhook, content))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def _deliver(self, webhook: WebhookConfig, content: dict[str, Any]) -> None:
        problem = ""
        # Loading certificates takes a while, and clients must not wait for it.
        secure = webhook.url.startswith("https:")
        trust = await asyncio.to_thread(httpx.create_ssl_context) if secure else False
        headers = dict(webhook.headers)
        async with httpx.AsyncClient(
            headers=headers, timeout=webhook.timeout, verify=trust
        ) as http:
            for attempt in range(webhook.attempts):
                if attempt:
                    await asyncio.sleep(_RETRIES.pause(attempt))
                try:
                    async with asyncio.timeout(webhook.timeout):
                        status = await post_unread(http, webhook.url, content)
                    if 200 <= status < 300:
                        self._counts.webhook["delivered"] += 1
                        self._keep(content)
                        return
                    problem = f"the status {status}"
                except (httpx.HTTPError, TimeoutError) as error:
                    problem = type(error).__name__
        self._counts.webhook["failed"] += 1
        told = "webhook: %s was not delivered in %d attempts (%s); the next start tries again"
        _log.error(told, content["event"], webhook.attempts, problem)

    def _keep(self, content: dict[str, Any]) -> None:
        try:
            with self._file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(content) + "\n")
        except OSError as error:
            told = "%s: cannot be written (%s); the next start tells it again"
            _log.warning(told, self._file.name, error)


def _last_told(file: Path) -> dict[str, list[str]]:
    """The arms that each event was last told about."""
    found: dict[str, list[str]] = {}
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return found
    for line in lines:
        try:
            content = json.loads(line)
            found[content["event"]] = content["arms"]
        except (ValueError, KeyError, TypeError):
            _log.warning("%s: a line cannot be read and is left out", file.name)
    return found

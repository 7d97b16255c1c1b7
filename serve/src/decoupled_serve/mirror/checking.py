"""Asks each arm once, for `decoupled mirror --check`: whether it is there, and whether its answer can be read."""

import asyncio
from dataclasses import dataclass

from .config import ArmConfig, MirrorConfig
from .exchange import Answer, Request, Unreadable
from .headers import as_bytes, as_text
from .judging import sample, sample_chat
from .upstream import Upstream, trust_of

CHAT = "/chat/completions"


@dataclass(frozen=True, slots=True)
class ArmCheck:
    """What came of asking an arm once."""

    arm: str
    request: Request
    answer: Answer
    is_well: bool
    note: str = ""  # what else there is to say

    def __str__(self) -> str:
        asked = f"asked arm {self.arm!r}: {self.request.method} {self.request.target}"
        status = self.answer.status
        if status is None:
            return f"{asked}: no answer, {self.answer.problem}"
        parts = [f"status {status} after {1000 * self.answer.duration:.0f} ms"]
        if self.answer.problem is not None:
            parts.append(f"unreadable: {self.answer.problem}")
        if self.answer.cost:
            parts.append(f"cost {self.answer.cost:g}")
        if self.note:
            parts.append(self.note)
        return f"{asked}: {', '.join(parts)}"


async def checked_arms(config: MirrorConfig) -> list[ArmCheck]:
    """Ask every arm once, all at a time, with a request that the configuration lets the mirror repeat.

    It costs what one call of each arm costs, and counts in no budget.
    """
    trust = trust_of(config.arms)
    arms = [Upstream(arm, config.mirror, trust) for arm in config.arms]
    try:
        return list(await asyncio.gather(*(_checked(config, arm) for arm in arms)))
    finally:
        for arm in arms:
            await arm.close()


async def _checked(config: MirrorConfig, arm: Upstream) -> ArmCheck:
    request, is_declared = request_for(config, arm.config)
    passed = arm.headers(as_bytes(request.headers), None, "http", copy=True)
    sent = Request(request.method, request.target, as_text(passed), request.body)
    answer = await arm.copy(sent)
    is_seen = config.loss.judge is not None or config.labels is not None
    if answer.problem is None:
        try:
            answer = await asyncio.to_thread(arm.read, answer, is_seen=is_seen)
        except Unreadable as error:
            unread = Answer(
                arm.name, answer.status, duration=answer.duration, problem=error.problem
            )
            return ArmCheck(arm.name, request, unread, is_well=False)
    status = answer.status
    if status is None or answer.problem is not None:
        return ArmCheck(arm.name, request, answer, is_well=False)
    if status in (401, 403) and arm.config.pass_credentials:
        note = "which may be because the check has no credentials of clients"
        return ArmCheck(arm.name, request, answer, is_well=True, note=note)
    if 400 <= status < 500 and not is_declared:
        note = "which may be because the check made its request up"
        return ArmCheck(arm.name, request, answer, is_well=True, note=note)
    return ArmCheck(arm.name, request, answer, is_well=status < 400)


def request_for(config: MirrorConfig, arm: ArmConfig) -> tuple[Request, bool]:
    """What an arm is asked, and whether it has to answer that well, because the file says that it can.

    That is the request of the judge's sample if the mirror may repeat it; else a short chat if chats are what the mirror
    repeats; else a GET of the health path, or of `/`.

    >>> arms = [{"name": "a", "url": "http://a", "health": "/up"}, {"name": "b", "url": "http://b", "json": {"model": "m"}}]
    >>> config = MirrorConfig.model_validate({"arm": arms, "mirror": {"repeat": ["POST /v1/chat/completions"]}})
    >>> for arm in config.arms:
    ...     request, is_declared = request_for(config, arm)
    ...     print(request.method, request.target, request.text, is_declared)
    POST /v1/chat/completions 12 * 34 False
    POST /v1/chat/completions 12 * 34 True
    """
    rules = config.mirror.rules()
    judge = config.loss.judge
    if judge is not None and judge.sample is not None:
        request, _, _ = sample(judge, config.folder)
        path = request.target.partition("?")[0]
        if rules.allows(request.method, path.encode("latin-1"), as_bytes(request.headers)):
            return request, True
    for rule in config.mirror.repeat:
        method, _, path = rule.partition(" ")
        path = path.strip()
        is_chat = method.upper() == "POST" and path.endswith(CHAT) and "*" not in path
        if is_chat and rules.allows("POST", path.encode("latin-1"), []):
            chat, _, _ = sample_chat()
            request = Request("POST", path, chat.headers, chat.body)
            return request, "model" in arm.fields
    return Request("GET", arm.health or "/"), arm.health is not None

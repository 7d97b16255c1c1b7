"""Makes the judge that a configuration names, and has it judge a sample pair or the pairs that were kept for people."""

import asyncio
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from decoupled.errors import ParameterError

from ..service.api.pairs import Kept
from .config import MIB, JudgeConfig, MirrorConfig
from .exchange import Answer, Request
from .judges import HttpJudge, Judge, Judged, JudgeFailed, Later, PythonJudge
from .model_judge import ModelJudge

_JSON = (("content-type", "application/json"),)


def judge_of(config: JudgeConfig, folder: Path, limit: int = MIB) -> Judge:
    """The judge that a configuration names, which sees so many bytes of an answer."""
    if config.model is not None:
        return ModelJudge(config, limit, folder)
    return HttpJudge(config, limit) if config.python is None else PythonJudge(config, limit, folder)


async def judged_sample(config: JudgeConfig, folder: Path) -> Judged | None:
    """What the judge says about a sample pair; None if it says so later. `ParameterError` if it fails."""
    request, served, mirrored = sample(config, folder)
    judge = judge_of(config.model_copy(update={"attempts": 1}), folder)
    try:
        await judge.start()
        return await judge.judge("d-sample", request, served, mirrored)
    except Later:
        return None
    except JudgeFailed as error:
        last = error.details.strip().splitlines()[-8:]
        told = [f"loss.judge: it fails on a sample pair: {error.why}", *last]
        raise ParameterError("\n".join(told)) from None
    finally:
        await judge.close()


def sample(config: JudgeConfig, folder: Path) -> tuple[Request, Answer, Answer]:
    """A request and two answers: those of the file that the configuration names, or a chat.

    >>> request, served, mirrored = sample(JudgeConfig(python="judge:compare"), Path())
    >>> request.text, served.json()["choices"][0]["message"]["content"]
    ('12 * 34', '408')
    """
    if config.sample is not None:
        try:
            content = json.loads((folder / config.sample).read_bytes())
            answers = [Answer.from_dict(content[name]) for name in ("served", "mirrored")]
            return Request.from_dict(content["request"]), answers[0], answers[1]
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            rule = f"cannot be read ({type(error).__name__}: {error})"
            remedy = "give it request, served and mirrored, as a judge over HTTP gets them"
            raise ParameterError.of("loss.judge.sample", config.sample, rule, remedy) from None
    return sample_chat()


def sample_chat() -> tuple[Request, Answer, Answer]:
    """A short chat and two answers to it, of which the first is right."""
    body = json.dumps(
        {"model": "sample", "messages": [{"role": "user", "content": "12 * 34"}]}
    ).encode()
    request = Request("POST", "/v1/chat/completions", _JSON, body)
    return request, _answer("408"), _answer("418")


def _answer(text: str) -> Answer:
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6}
    content = {"model": "sample", "choices": [{"index": 0, "message": message}], "usage": usage}
    body = json.dumps(content).encode()
    return Answer("sample", 200, _JSON, body, len(body), latency=0.1, duration=0.2)


# Another judge looks at the pairs that were kept for people: how often does it agree with them?
Preferred: TypeAlias = str | None  # "explore", "exploit" or "tie"; None if the judge said nothing
_CHAT = "/chat/completions"


class Agreement(NamedTuple):
    """How often a judge preferred what others did: a share with its 95 % interval, and of how many pairs."""

    of: int
    share: float
    low: float
    high: float

    def __str__(self) -> str:
        found = f"{self.share:.2f} ({self.low:.2f} to {self.high:.2f}) of {self.of}"
        return found if self.of else "no pairs"


def agreement(ones: Sequence[Preferred], others: Sequence[Preferred]) -> Agreement:
    """How often two agree where both have said something, with Wilson's interval.

    >>> print(agreement(["explore", "tie", None, "exploit"], ["explore", "exploit", "tie", "exploit"]))
    0.67 (0.21 to 0.94) of 3
    """
    same = [one == other for one, other in zip(ones, others, strict=True) if one and other]
    n, z = len(same), 1.959964
    if n == 0:
        return Agreement(0, math.nan, math.nan, math.nan)
    share, square = sum(same) / n, z * z
    middle = (share + square / (2 * n)) / (1 + square / n)
    half = z * math.sqrt(share * (1 - share) / n + square / (4 * n * n)) / (1 + square / n)
    return Agreement(n, share, max(middle - half, 0.0), min(middle + half, 1.0))


def preferred(verdict: float) -> str:
    """What a verdict, from 0 to 1, prefers.

    >>> preferred(0.2), preferred(0.5), preferred(0.9)
    ('explore', 'tie', 'exploit')
    """
    return "tie" if abs(verdict - 0.5) < 1e-9 else "explore" if verdict < 0.5 else "exploit"


async def rejudged(
    config: MirrorConfig, judge: JudgeConfig, kept: Sequence[Kept]
) -> list[Preferred]:
    """What a judge says about pairs, which it sees as people do: as text, without headers, times or arms."""
    asked = judge_of(judge, config.folder, config.mirror.answer_limit)

    async def said(number: int, each: Kept) -> Preferred:
        method, _, target = each.pair.title.partition(" ")
        texts = (each.pair.request, each.pair.exploit, each.pair.explore)
        shown = [text.encode() for text in texts]
        if target.partition("?")[0].endswith(_CHAT):  # as a judge of chats expects it
            message = [{"role": "assistant", "content": text} for text in texts[1:]]
            bodies: list[object] = [{"messages": [{"role": "user", "content": texts[0]}]}]
            bodies += [{"choices": [{"index": 0, "message": one}]} for one in message]
            shown = [json.dumps(one).encode() for one in bodies]
        request = Request(method or "GET", target or "/", (), shown[0])
        answers = (Answer("", 200, (), body, len(body)) for body in shown[1:])
        try:
            found = await asked.judge(f"rejudged-{number}", request, *answers)
        except (JudgeFailed, Later):
            return None
        return None if found.loss is None else preferred(found.loss)

    try:
        await asked.start()
        return list(await asyncio.gather(*(said(number, each) for number, each in enumerate(kept))))
    finally:
        await asked.close()

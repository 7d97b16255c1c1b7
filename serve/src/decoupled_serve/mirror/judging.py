"""Makes the judge that a configuration names, and has it judge a sample pair for `decoupled mirror --check`."""

import json
from pathlib import Path

from decoupled.errors import ParameterError

from .config import MIB, JudgeConfig
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
        raise ParameterError(
            "\n".join([f"loss.judge: it fails on a sample pair: {error.why}", *last])
        ) from None
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
    body = json.dumps({"model": "sample", "messages": [{"role": "user", "content": "12 * 34"}]}).encode()
    request = Request("POST", "/v1/chat/completions", _JSON, body)
    return request, _answer("408"), _answer("418")


def _answer(text: str) -> Answer:
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6}
    content = {"model": "sample", "choices": [{"index": 0, "message": message}], "usage": usage}
    body = json.dumps(content).encode()
    return Answer("sample", 200, _JSON, body, len(body), latency=0.1, duration=0.2)

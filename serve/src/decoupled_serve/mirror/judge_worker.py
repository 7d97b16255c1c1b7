"""Runs a judge in Python in a process of its own: `python -m decoupled_serve.mirror.judge_worker MODULE:FUNCTION FOLDER both|alone|text`.

Questions come on standard input as pickles, answers go to standard output as lines of JSON. The mirror ends the process of
a call that takes too long. So nothing that a judge does, also `sys.exit` or a loop without end, can stop the mirror.
"""

import asyncio
import importlib
import inspect
import json
import os
import pickle
import queue
import re
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from decoupled.errors import ParameterError

# Names of errors of a judge that calls something else, in any library, such as `httpx.ConnectTimeout`.
_TRANSIENT = re.compile("Timeout|Connect|RateLimit|ServerError")
_FRAMES = 12
_A_JUDGE = 'for example "judge:compare", with def compare(request, served, mirrored) in judge.py'


def function_named(
    name: str, folder: Path, *, alone: bool = False, redacts: bool = False, field: str | None = None
) -> Callable[..., Any]:
    """The function that "module:function" names, of the arguments of a judge; the module may be in `folder`.

    With `redacts` it is one of a text, with `field` one of a request, which finds that field of a context.

    >>> function_named("math:hypot", Path()).__name__
    'hypot'
    >>> function_named("math:hypotenuse", Path())
    Traceback (most recent call last):
        ...
    decoupled.errors.ParameterError: loss.judge.python = 'math:hypotenuse': the module math has no function hypotenuse; for example "judge:compare", with def compare(request, served, mirrored) in judge.py
    """
    place = "loss.judge.python"
    takes = ["request", "mirrored"] if alone else ["request", "served", "mirrored"]
    remedy = "loss.judge.alone says whether it sees the served answer"
    if redacts:
        place, takes, remedy = (
            "labels.redact",
            ["text"],
            "give a function of a text that returns a text",
        )
    elif field is not None:
        place, takes = f"context.{field}.python", ["request"]
        remedy = "give a function of a request that returns the value of the field"
    module, colon, attribute = name.partition(":")
    if not colon or not module or not attribute:
        raise ParameterError.of(place, name, "must be a module and a function", _A_JUDGE)
    if str(folder.resolve()) not in sys.path:
        sys.path.insert(0, str(folder.resolve()))
    try:
        found = getattr(importlib.import_module(module), attribute, None)
    except ModuleNotFoundError as error:
        rule = f"the module {error.name} is not found, here or in {folder.resolve()}"
        raise ParameterError.of(place, name, rule, _A_JUDGE) from None
    except (Exception, SystemExit) as error:  # a module is someone else's code
        rule = f"the module {module} cannot be loaded ({type(error).__name__}: {error})"
        raise ParameterError.of(place, name, rule, "run it by itself, and fix it") from error
    if not callable(found):
        rule = f"the module {module} has no function {attribute}"
        raise ParameterError.of(place, name, rule, _A_JUDGE)
    try:
        inspect.signature(found).bind(*takes)
    except TypeError:
        rule = f"cannot be called with ({', '.join(takes)})"
        raise ParameterError.of(place, name, rule, remedy) from None
    except ValueError:  # of a function in C, whose arguments nobody knows
        pass
    return found  # type: ignore[no-any-return]


def plain(verdict: object) -> object:
    """A verdict as JSON can carry it: objects that are like numbers as numbers, what JSON has no word for as text.

    >>> plain({"loss": True}), plain(0.25), plain([1])
    ({'loss': True}, 0.25, '[1]')
    """
    if verdict is None or isinstance(verdict, (bool, int, float, str)):
        return verdict
    if isinstance(verdict, Mapping):
        return {str(name): plain(value) for name, value in verdict.items()}
    return float(verdict) if hasattr(verdict, "__float__") else repr(verdict)


def main(name: str, folder: str, kind: str) -> None:
    """Answer questions until there are no more, or the mirror is gone."""
    asked, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)  # what the judge prints is not an answer
    questions: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def answer(**content: object) -> None:
        answers.write(json.dumps(content) + "\n")
        answers.flush()

    def read() -> None:
        try:
            while True:
                questions.put(pickle.load(asked))
        except BaseException:
            os._exit(0)  # the mirror is gone, and a judge that hangs must not outlive it

    try:
        function = function_named(name, Path(folder), alone=kind == "alone", redacts=kind == "text")
    except ParameterError as error:
        answer(problem=str(error))
        return
    answer(ready=True)
    threading.Thread(target=read, daemon=True).start()
    with asyncio.Runner() as runner:
        while True:
            try:
                verdict = function(*questions.get())
                answer(
                    verdict=plain(runner.run(verdict) if inspect.iscoroutine(verdict) else verdict)
                )
            except BaseException as error:  # also SystemExit
                kinds = " ".join(each.__name__ for each in type(error).__mro__)
                answer(
                    problem=f"{type(error).__name__}: {error}".rstrip(": ")[:1000],
                    transient=_TRANSIENT.search(kinds) is not None,
                    traceback="".join(traceback.format_exception(error)[-_FRAMES:])[-4000:],
                )


if __name__ == "__main__":
    main(*sys.argv[1:])

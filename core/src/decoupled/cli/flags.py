"""Gives commands parameters that they share."""

import inspect
from collections.abc import Callable, Sequence


def with_parameters_of(
    command: Callable[..., None], run: Callable[..., None], filled: str, added: Sequence[inspect.Parameter]
) -> Callable[..., None]:
    """Let `run` look like `command` without the parameter that it fills in itself, and with those that are added."""
    own = [each for each in inspect.signature(command).parameters.values() if each.name != filled]
    parameters = [*(each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own), *added]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run


def flag(name: str, annotation: object, default: object) -> inspect.Parameter:
    """A parameter of a command that is a flag."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)

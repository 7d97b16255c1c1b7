"""The parameters of compiled code: a named tuple, and the same numbers as one array.

The annotations of the tuple's fields say what they are. A bool is a flag, an int a whole number,
and a tuple of a fixed length a vector. A named tuple may hold another one, and everything else is a
float.

Simulations pass the tuple. A learner calls machine code with every decision and passes the array,
because a named tuple would take a microsecond a call.
"""

from collections.abc import Callable, Iterator
from functools import cache
from itertools import count
from typing import Annotated, Any, cast, get_args, get_origin, get_type_hints

import numpy as np

from ..base.arrays import Floats
from ..native.calls import flattened
from .lazy_numba import overload


def kinds_of(params_type: Any) -> dict[str, Any]:
    """What the fields of a type of parameters are, by name.

    Each is float, bool or int, a type of named tuples, or a tuple of these for a vector.

    >>> from typing import NamedTuple
    >>> class Params(NamedTuple):
    ...     c: float
    ...     is_sorting: bool
    ...     rates: tuple[float, float]
    ...     counts: Annotated[tuple[int, ...], 3]
    >>> list(kinds_of(Params).values()) == [float, bool, (float, float), (int, int, int)]
    True
    """
    hints = get_type_hints(params_type, include_extras=True)
    return {name: _kind_of(hints.get(name, float)) for name in params_type._fields}


def _kind_of(hint: Any) -> Any:
    """What a field with this annotation is: see `kinds_of`."""
    length = 1
    if get_origin(hint) is Annotated:
        hint, length = get_args(hint)[:2]
    if get_origin(hint) is tuple:
        arguments = get_args(hint)
        if arguments[-1] is Ellipsis:
            arguments = arguments[:1] * length
        return tuple(_kind_of(argument) for argument in arguments)
    is_known = hint in (bool, int) or is_named_tuple(hint)
    return hint if is_known else float


def is_named_tuple(kind: Any) -> bool:
    """Whether this is a type of named tuples."""
    return isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")


def nested_in(params_type: Any) -> Iterator[Any]:
    """The types of the named tuples that a type of parameters holds."""
    for kind in kinds_of(params_type).values():
        if is_named_tuple(kind):
            yield from nested_in(kind)
            yield kind


def params_of(kind: Any, owner: object) -> Any:
    """The parameters of a policy or an adversary: its attributes with the names of the fields.

    Raises:
        AttributeError, TypeError, ValueError: one is missing, or is not what the field takes.
    """
    kinds = kinds_of(kind)
    return kind(*(_converted(kinds[name], getattr(owner, name)) for name in kinds))


def _converted(kind: Any, value: Any) -> Any:
    """A value as what a field takes."""
    if isinstance(kind, tuple):
        return tuple(_converted(part, item) for part, item in zip(kind, value, strict=True))
    if is_named_tuple(kind):
        return kind(*_converted(tuple(kinds_of(kind).values()), value))
    if kind is bool and not isinstance(value, (bool, np.bool_)):
        raise TypeError
    return kind(value)


def values_of(params: Any) -> Floats:
    """The parameters as an array, in order: flags are 0 or 1, and vectors are spread.

    >>> values_of((0.5, True, (8.0, 9.0))).tolist()
    [0.5, 1.0, 8.0, 9.0]
    """
    return np.array(list(flattened(params)), np.float64)


def params_from(params_type: Any, values: Floats) -> Any:
    """The parameters of this type whose numbers `values_of` put into an array.

    >>> from typing import NamedTuple
    >>> class Params(NamedTuple):
    ...     is_sorting: bool
    ...     rates: tuple[float, float]
    >>> params_from(Params, [1.0, 8.0, 9.0])
    Params(is_sorting=True, rates=(8.0, 9.0))
    """
    return _reader_of(params_type)(params_type, values)


@overload(params_from)
def _params_from(params_type: Any, values: Any) -> Any:
    return _reader_of(params_type.instance_class)


@cache
def _reader_of(params_type: Any) -> Callable[[Any, Floats], Any]:
    """The function that reads parameters from an array.

    Numba needs a call with one argument for each field, so the source is generated.
    """
    scope: dict[str, Any] = {"Any": Any}
    source = _source_of(params_type, count(), scope)
    exec(f"def read(params_type: Any, values: Any) -> Any:\n    return {source}\n", scope)
    return cast(Callable[[Any, Floats], Any], scope["read"])


def _source_of(kind: Any, places: Iterator[int], scope: dict[str, Any]) -> str:
    """The source text of a parameter of this kind, read from the next places of `values`."""
    if isinstance(kind, tuple):
        items = [_source_of(part, places, scope) for part in kind]
        return f"({', '.join(items)},)"
    if is_named_tuple(kind):
        name = f"kind_{len(scope)}"
        scope[name] = kind
        fields = [_source_of(field, places, scope) for field in kinds_of(kind).values()]
        return f"{name}({', '.join(fields)})"
    value = f"values[{next(places)}]"
    if kind is bool:
        return f"{value} != 0.0"
    return f"int({value})" if kind is int else value

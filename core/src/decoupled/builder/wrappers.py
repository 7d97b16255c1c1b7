"""Wrap a compiled function for the library: it takes a block of words and returns a status. See `decoupled.native.calls`."""

from collections.abc import Callable
from typing import Any, NamedTuple

from ..native.calls import ARRAYS, words_of
from .inner_numba import cgutils, intrinsic, ir, populate_array, typeof, types

WORD = 8  # bytes
KINDS = {types.float64: "float", types.int64: "int", types.boolean: "bool"}
LETTERS = {types.float64: "f", types.int64: "i", types.uint64: "u"}
_word: Any = ir.IntType(64)


class Wrapper(NamedTuple):
    """A wrapper and its signature; `returns` is filled in during compilation."""

    function: Callable[[int], None]
    takes: tuple[str, ...]
    returns: list[str]


def wrap(function: Any, arguments: tuple[Any, ...]) -> Wrapper:
    """Make a function of a block's address from a compiled function and its argument types."""
    takes: list[str] = []
    scope: dict[str, Any] = {"function": function, "Any": Any}
    given = ", ".join(_given(kind, takes, scope) for kind in arguments)
    returns: list[str] = []
    scope["put"] = _writer(returns, WORD * sum(map(words_of, takes)))
    exec(f"def wrapper(block: Any) -> Any:\n    put(block, function({given}))\n", scope)
    return Wrapper(scope["wrapper"], tuple(takes), returns)


def _given(kind: Any, takes: list[str], scope: dict[str, Any]) -> str:
    """The source text of an argument, read from the words that follow those of `takes`."""
    if isinstance(kind, types.BaseNamedTuple):
        name = f"kind{len(scope)}"
        scope[name] = kind.instance_class
        return f"{name}({', '.join(_given(part, takes, scope) for part in kind.types)})"
    name, at = f"read{len(scope)}", WORD * sum(map(words_of, takes))
    takes.append(kind_of(kind))
    scope[name] = _reader(kind, at)
    return f"{name}(block)"


def kind_of(kind: Any) -> str:
    """The manifest's name for a Numba type."""
    if isinstance(kind, types.Array):
        name = f"{LETTERS[kind.dtype]}{kind.ndim}"
        assert name in ARRAYS
        assert kind.layout == "C"
        return name
    return KINDS[kind]


def _pointer(builder: Any, block: Any, at: int, kind: Any) -> Any:
    place = builder.add(block, ir.Constant(_word, at))
    return builder.inttoptr(place, kind.as_pointer())


def _reader(kind: Any, at: int) -> Any:
    """An intrinsic that reads an argument from a block at byte `at`."""

    @intrinsic  # type: ignore[untyped-decorator]
    def read(typing: Any, block: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            if isinstance(kind, types.Array):
                return _array(context, builder, arguments[0], kind, at)
            if kind == types.float64:
                return builder.load(_pointer(builder, arguments[0], at, ir.DoubleType()))
            value = builder.load(_pointer(builder, arguments[0], at, _word))
            return context.cast(builder, value, types.int64, kind)

        return kind(types.int64), generate

    return read


def _array(context: Any, builder: Any, block: Any, kind: Any, at: int) -> Any:
    """An array that the caller owns, without reference counting."""
    words = [
        builder.load(_pointer(builder, block, at + WORD * number, _word)) for number in range(1 + kind.ndim)
    ]
    array = context.make_array(kind)(context, builder)
    data = builder.inttoptr(words[0], context.get_data_type(kind.dtype).as_pointer())
    size = ir.Constant(_word, WORD)
    strides = [size]
    for length in reversed(words[2:]):
        strides.insert(0, builder.mul(strides[0], length))
    populate_array(array, data=data, shape=words[1:], strides=strides, itemsize=size, meminfo=None)
    return array._getvalue()


def _writer(returns: list[str], at: int) -> Any:
    """An intrinsic that writes a result to a block at byte `at`, and records its kinds in `returns`."""

    @intrinsic  # type: ignore[untyped-decorator]
    def put(typing: Any, block: Any, result: Any) -> Any:
        parts = (
            ()
            if result == types.none
            else tuple(result)
            if isinstance(result, types.BaseTuple)
            else (result,)
        )
        returns[:] = [_returned(part) for part in parts]

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            block, value = arguments
            single = not isinstance(result, types.BaseTuple)
            values = [value] if single else cgutils.unpack_tuple(builder, value, len(parts))
            for number, (part, each) in enumerate(zip(parts, values, strict=False)):
                place, kind = at + WORD * number, _returned(part)
                whole = types.float64 if kind == "float" else types.int64
                target = ir.DoubleType() if kind == "float" else _word
                builder.store(
                    context.cast(builder, each, part, whole), _pointer(builder, block, place, target)
                )
            return context.get_dummy_value()

        return types.none(types.int64, result), generate

    return put


def _returned(part: Any) -> str:
    if isinstance(part, types.Boolean):
        return "bool"
    return "float" if isinstance(part, types.Float) else "int"


def types_of(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """The Numba types of these arguments."""
    return tuple(typeof(each) for each in arguments)

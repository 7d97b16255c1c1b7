"""Turn a compiled function into an object file for every target.

A wrapper takes a block of words and returns a status: see `decoupled.native.calls`.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple
from unittest.mock import patch

from ..native.calls import ARRAYS, words_of

cgutils: Any = import_module("numba.core.cgutils")
codegen: Any = import_module("numba.core.codegen")
compiler: Any = import_module("numba.core.compiler")
cpu_target: Any = import_module("numba.core.registry").cpu_target
CPUCallConv: Any = import_module("numba.core.callconv").CPUCallConv
CPUContext: Any = import_module("numba.core.cpu").CPUContext
global_compiler_lock: Any = import_module("numba.core.compiler_lock").global_compiler_lock
intrinsic: Any = import_module("numba.extending").intrinsic
ir: Any = import_module("llvmlite.ir")
llvm: Any = import_module("llvmlite.binding")
Lower: Any = import_module("numba.core.lowering").Lower
populate_array: Any = import_module("numba.np.arrayobj").populate_array
typeof: Any = import_module("numba").typeof
types: Any = import_module("numba.core.types")


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
    sources = ", ".join(_source_of(kind, takes, scope) for kind in arguments)
    returns: list[str] = []
    scope["put"] = _writer(returns, WORD * sum(map(words_of, takes)))
    exec(f"def wrapper(block: Any) -> Any:\n    put(block, function({sources}))\n", scope)
    return Wrapper(scope["wrapper"], tuple(takes), returns)


def _source_of(kind: Any, takes: list[str], scope: dict[str, Any]) -> str:
    """The source text of an argument, read from the words that follow those of `takes`."""
    if isinstance(kind, types.BaseNamedTuple):
        name = f"kind{len(scope)}"
        scope[name] = kind.instance_class
        return f"{name}({', '.join(_source_of(field, takes, scope) for field in kind.types)})"
    name = f"read{len(scope)}"
    scope[name] = _reader(kind, WORD * sum(map(words_of, takes)))
    takes.append(kind_of(kind))
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
        builder.load(_pointer(builder, block, at + WORD * number, _word))
        for number in range(1 + kind.ndim)
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
    """An intrinsic that writes a result to a block at byte `at`, and that records the kinds of the
    result in `returns`.
    """

    @intrinsic  # type: ignore[untyped-decorator]
    def put(typing: Any, block: Any, result: Any) -> Any:
        is_tuple = isinstance(result, types.BaseTuple)
        kinds: tuple[Any, ...] = tuple(result) if is_tuple else (result,)
        if result == types.none:
            kinds = ()
        returns[:] = [_name_of_result(kind) for kind in kinds]

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            block, value = arguments
            values = cgutils.unpack_tuple(builder, value, len(kinds)) if is_tuple else [value]
            for number, (kind, element) in enumerate(zip(kinds, values, strict=False)):
                is_float = _name_of_result(kind) == "float"
                word_type = types.float64 if is_float else types.int64
                target = ir.DoubleType() if is_float else _word
                builder.store(
                    context.cast(builder, element, kind, word_type),
                    _pointer(builder, block, at + WORD * number, target),
                )
            return context.get_dummy_value()

        return types.none(types.int64, result), generate

    return put


def _name_of_result(kind: Any) -> str:
    """The manifest's name for the Numba type of a result."""
    if isinstance(kind, types.Boolean):
        return "bool"
    return "float" if isinstance(kind, types.Float) else "int"


def types_of(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """The Numba types of these arguments."""
    return tuple(typeof(argument) for argument in arguments)


# The functions of the C library that the machine code may call. Anything else would belong to the
# runtime of Numba or Python, which is not loaded.
_NAMES = """
acos acosh asin asinh atan atan2 atanh cbrt ceil cos cosh erf erfc exp exp2 expm1 fabs floor fmod
frexp hypot ldexp lgamma log log10 log1p log2 memcmp memcpy memmove memset nearbyint pow rint round
sin sincos sinh sqrt tan tanh tgamma trunc
"""
ALLOWED = frozenset(_NAMES.split())

# A function compiled by Numba returns a status, and takes pointers for its result and an exception.
ENTRY = """
define i32 @{symbol}(i64 %block) {{
  %result = alloca ptr
  %problem = alloca ptr
  %status = call i32 @{name}(ptr %result, ptr %problem, i64 %block)
  ret i32 %status
}}
"""

# The only C helper of Numba that compiled functions call, for `reshape`. This version is for
# contiguous arrays, as all arrays of a block are, and does not check the new lengths, which always
# fit.
RESHAPE = """
define internal i32 @numba_attempt_nocopy_reshape(i64 %nd, ptr %dims, ptr %strides, i64 %new_nd,
    ptr %new_dims, ptr %new_strides, i64 %size, i32 %fortran) alwaysinline {
entry:
  br label %loop
loop:
  %left = phi i64 [ %new_nd, %entry ], [ %place, %step ]
  %stride = phi i64 [ %size, %entry ], [ %next, %step ]
  %more = icmp sgt i64 %left, 0
  br i1 %more, label %step, label %done
step:
  %place = sub i64 %left, 1
  %to = getelementptr i64, ptr %new_strides, i64 %place
  store i64 %stride, ptr %to
  %from = getelementptr i64, ptr %new_dims, i64 %place
  %length = load i64, ptr %from
  %next = mul i64 %stride, %length
  br label %loop
done:
  ret i32 1
}
"""


class UnsuitableError(Exception):
    """A function that cannot be shipped."""


class Shared(NamedTuple):
    """A compiled function that one object holds for others, which call it under this name."""

    step: str  # init, decide or update
    function: Any
    symbol: str


class Objects(NamedTuple):
    """The object code of one function for each kind of processor."""

    code: dict[str, bytes]
    takes: tuple[str, ...]
    returns: tuple[str, ...]


def objects_of(
    wrapper: Wrapper,
    symbol: str,
    targets: tuple[str, ...],
    held: Shared | None = None,
    elsewhere: Sequence[Shared] = (),
    triple: str | None = None,
) -> Objects:
    """Compile a wrapper, and return its machine code under its own name.

    A function that is `held` is not copied into its caller, so that other objects can call it too.
    Of the functions `elsewhere`, which other objects hold, only the calls remain. With `triple`,
    such as aarch64-unknown-linux-gnu, the code is for another kind of machine with 64 bits.
    """
    flags: Any = compiler.Flags()
    # The options of kernels.jit, so that results have the same bits as with code compiled just in
    # time.
    flags.error_model = "numpy"
    flags.release_gil = True
    flags.nrt = False
    flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
    with global_compiler_lock, _unoptimised():
        compiled: Any = compiler.compile_extra(
            cpu_target.typing_context,
            cpu_target.target_context,
            wrapper.function,
            (types.int64,),
            types.none,
            flags,
            {},
        )
        compiled.library._ensure_finalized()
    text = str(compiled.library._final_module)
    for other in elsewhere:
        text = _without(text, other)
    shown = {symbol}
    if held is not None:
        text = _apart(text, held)
        shown.add(held.symbol)
    module = _linked_module(text, compiled.fndesc.llvm_func_name, symbol, shown)
    triple = triple or llvm.get_process_triple()
    module.triple = triple
    module.data_layout = str(_machine(targets[0], triple).target_data)
    # Optimised once, for the best target. The result is correct for the others too, which run
    # seldom.
    _optimise(module, _machine(targets[0], triple))
    _check_calls(module, ALLOWED.union(other.symbol for other in elsewhere))
    code = {target: _machine(target, triple).emit_object(module.clone()) for target in targets}
    return Objects(code, wrapper.takes, tuple(wrapper.returns))


@contextmanager
def _unoptimised() -> Iterator[None]:
    """Keep the compiled code, and do not make it callable in this process.

    Numba optimises every function by itself, and again within whatever it is copied into, and makes
    two wrappers for it, which Python and C would call. Here only the whole is wanted, once for each
    kind of processor.
    """
    with (
        patch.object(codegen.CPUCodeLibrary, "_optimize_final_module", lambda library: None),
        patch.object(codegen.JITCodeLibrary, "_finalize_specific", lambda library: None),
        # Never called. Numba identifies functions by these, and they must be built-in functions.
        patch.object(CPUContext, "get_executable", lambda *_: [].append),
        patch.object(Lower, "create_cpython_wrapper", lambda *_: None),
        patch.object(Lower, "create_cfunc_wrapper", lambda *_: None),
        # Where an exception comes from is of no use without Python, and would name folders of this
        # machine.
        patch.object(
            CPUCallConv,
            "build_excinfo_struct",
            lambda _, kind, values, *where: (kind, values, None),
        ),
    ):
        yield


@cache
def _machine(target: str, triple: str) -> Any:
    if triple != llvm.get_process_triple():
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple(triple).create_target_machine(
        cpu=target, features="", opt=3, reloc="pic", codemodel="default"
    )


def _definition(text: str, function: Any) -> "re.Match[str] | None":
    """The definition of a function in the text of a module.

    Its groups are the type, the name, the arguments and the body.
    """
    overloads = function.dispatcher.overloads.values()
    names = [overload.fndesc.llvm_func_name for overload in overloads]
    if len(names) != 1:
        return None
    start = rf"^define linkonce_odr ([^@\n]*)@({re.escape(names[0])})(\([^\n]*\))[^)\n]*{{$"
    return re.search(rf"{start}(.*?)^}}$", text, re.MULTILINE | re.DOTALL)


def _apart(text: str, held: Shared) -> str:
    """A module in which a function is called by its shared name."""
    definition = _definition(text, held.function)
    if definition is None:
        raise UnsuitableError(f"does not call {held.function!r} of its own")
    kind, name, arguments, body = definition.groups()
    shared = f"define hidden {kind}@{name}{arguments} noinline {{{body}}}"
    changed = text[: definition.start()] + shared + text[definition.end() :]
    return changed.replace(name, held.symbol)


def _without(text: str, other: Shared) -> str:
    """A module in which a function is called but not defined."""
    definition = _definition(text, other.function)
    if definition is None:  # not called here
        return text
    kind, name, arguments, _ = definition.groups()
    declared = f"declare hidden {kind}@{name}{arguments}"
    changed = text[: definition.start()] + declared + text[definition.end() :]
    return changed.replace(name, other.symbol)


def _linked_module(text: str, name: str, symbol: str, shown: set[str]) -> Any:
    """A module with a function and everything that it calls.

    Only functions that are `shown` can be called from outside.
    """
    helper = "declare i32 @numba_attempt_nocopy_reshape("
    if helper in text:
        lines = (line for line in text.splitlines() if not line.startswith(helper))
        text = "\n".join([*lines, RESHAPE])
    module = llvm.parse_assembly(text + ENTRY.format(symbol=symbol, name=name))
    for value in (*module.functions, *module.global_variables):
        if not value.is_declaration and value.name not in shown:
            value.linkage = "internal"
    return module


def _check_calls(module: Any, allowed: frozenset[str]) -> None:
    """Raise an error if a module calls functions other than these and those of LLVM."""
    foreign = sorted(
        function.name
        for function in module.functions
        if function.is_declaration
        and not function.name.startswith("llvm.")
        and function.name not in allowed
    )
    if foreign:
        raise UnsuitableError(f"calls {', '.join(foreign)}")


def _optimise(module: Any, machine: Any) -> None:
    """Optimise as Numba does: inline first, then optimise the whole module."""
    for level in (0, 3):
        options = llvm.create_pipeline_tuning_options(speed_level=level)
        options.loop_vectorization = level > 0
        options.slp_vectorization = False
        builder = llvm.create_pass_builder(machine, options)
        passes = builder.getModulePassManager()
        if level == 0:
            passes.add_loop_rotate_pass()
            passes.add_instruction_combine_pass()
            passes.add_jump_threading_pass()
        passes.run(module, builder)
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, builder)

"""Load the library that ships with the package, if it was built from these sources for this kind of
machine.

Loading needs only NumPy and ctypes. If anything is wrong with the library, it is ignored: the
functions are compiled just in time, and `unavailable_reason` says why. Digests tell whether the
sources are the same.
"""

import ast
import ctypes
import hashlib
import json
import os
import platform
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from .calls import FORMAT, NativeFunction, Signature

# The flags in /proc/cpuinfo that define the levels of x86-64, best first.
_V2 = frozenset({"cx16", "lahf_lm", "popcnt", "ssse3", "sse4_1", "sse4_2"})
_V3 = _V2 | {"abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "xsave"}
LEVELS = {"x86-64-v3": _V3, "x86-64-v2": _V2}

CPUINFO = Path("/proc/cpuinfo")


def machine() -> str:
    """The kind of machine that a library is for.

    Examples are Linux-x86_64, Linux-aarch64 and Darwin-arm64.
    """
    return f"{platform.system()}-{platform.machine()}"


def targets() -> tuple[str, ...]:
    """The processors for which libraries are built on this kind of machine, by their LLVM names."""
    return tuple(LEVELS) if platform.machine() in ("x86_64", "AMD64") else ("generic",)


def runnable(cpuinfo: Path = CPUINFO) -> tuple[str, ...]:
    """The targets that this processor can run, best first."""
    if targets() == ("generic",):
        return ("generic",)
    flags = _flags(cpuinfo)
    return tuple(level for level, needed in LEVELS.items() if needed <= flags)


def _flags(cpuinfo: Path) -> frozenset[str]:
    """What the processor can do, by the names that Linux gives it; nothing if that is not known."""
    if sys.platform == "darwin":  # true for every Mac whose system is less than ten years old
        return _V2
    try:
        with cpuinfo.open(encoding="utf-8") as file:
            for line in file:
                if line.startswith("flags"):
                    return frozenset(line.partition(":")[2].split())
    except OSError:
        pass
    return frozenset()


ROOT = Path(__file__).resolve().parents[1]
# The folders whose machine code other folders use.
COMPILED = ("kernels", "policies", "environments")


@cache
def source_digest(*folders: str) -> str:
    """A digest of the source files in these folders of the package, or in the whole package."""
    digest = hashlib.sha256()
    for path in sorted(
        path for folder in folders or (".",) for path in (ROOT / folder).rglob("*.py")
    ):
        digest.update(str(path.relative_to(ROOT)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


@cache
def code_digest(*folders: str) -> str:
    """The digest of the sources without docstrings, comments and line numbers, none of which is
    compiled.

    Every file is parsed, which takes a moment: ask only if `source_digest` differs. The digest
    depends on the version of Python as well.
    """
    digest = hashlib.sha256()
    for path in sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py")):
        code = without_docstrings(path.read_text("utf-8"))
        digest.update(f"{path.relative_to(ROOT)} {code}".encode())
    return digest.hexdigest()[:16]


def without_docstrings(source: str) -> str:
    """The syntax tree of a file as text, without its docstrings."""
    return ast.dump(_Undocumented().visit(ast.parse(source)))


class _Undocumented(ast.NodeTransformer):
    """Drops every statement that is a string alone: it does nothing."""

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        value = node.value
        return None if isinstance(value, ast.Constant) and isinstance(value.value, str) else node


FOLDER = ROOT / "native" / "lib"
MANIFEST = "manifest.json"
# If "off", shipped machine code is neither built nor used; "here": see the builder.
SWITCH = "DECOUPLED_NATIVE"


class UnusableError(Exception):
    """The library cannot be used; the message says why."""


class Library(NamedTuple):
    """The shared library, and what the manifest says of its functions.

    Attributes:
        handle: the library.
        holding_lock: the same library, whose calls do not release the interpreter lock.
        functions: the manifest's description of each function.
        built_from: the functions of each type of parameters.
        bases: the names of the functions that have code for some type of parameters.
    """

    handle: Any
    holding_lock: Any
    functions: dict[str, dict[str, Any]]
    built_from: dict[str, list[str]]
    bases: frozenset[str]


_loading = Lock()
_functions: dict[str, NativeFunction | None] = {}  # those that were looked up so far
_names: dict[type, str] = {}  # the types for which shipped code is allowed
_key_fields: dict[type, tuple[str, ...]] = {}  # of named tuples that hold such types


def switched_off() -> bool:
    """Whether an environment variable turns shipped machine code off."""
    return os.environ.get(SWITCH, "").lower() in ("off", "0", "no", "false")


def function(name: str, *kinds: type) -> NativeFunction | None:
    """The machine code of a function for these parameter types, or None if none ships."""
    key = full_name(name, *map(name_of, kinds))
    if key not in _functions:
        with _loading:
            _functions[key] = _prepare(key)
    return _functions[key]


def full_name(name: str, *kinds: str) -> str:
    """The name of a function in the manifest."""
    return f"{name}({', '.join(kinds)})" if kinds else name


def name_of(thing: Any) -> str:
    """The full name of a function or type."""
    return f"{thing.__module__}.{thing.__qualname__}"


def ships(name: str) -> bool:
    """Whether the library has this function, for any parameter types."""
    library = _library_or_reason()
    return isinstance(library, Library) and name in library.bases


def allow_shipped(kind: type, functions: Iterable[Any]) -> bool:
    """Allow shipped code for parameters of this type, if it was built from these functions."""
    library = _library_or_reason()
    names = [name_of(function) for function in functions]
    if isinstance(library, str) or library.built_from.get(name_of(kind)) != names:
        return False
    _names[kind] = name_of(kind)
    return True


def tell_apart_by(kind: type, *fields: str) -> None:
    """Tell machine code that takes such a named tuple apart by the types of these fields.

    The parameters come first.
    """
    _key_fields[kind] = fields


def shipped_types(arguments: tuple[Any, ...]) -> tuple[type, ...]:
    """The types of the arguments for which code ships, and those that tell machine code apart."""
    kinds: list[type] = []
    for argument in arguments:
        kind = type(argument)
        if kind in _names:
            kinds.append(kind)
        elif kind in _key_fields:
            params, *others = (type(getattr(argument, field)) for field in _key_fields[kind])
            # Without its parameters, no code ships under the name.
            if params in _names:
                kinds.append(params)
            kinds.extend(others)
    return tuple(kinds)


def unavailable_reason() -> str | None:
    """The reason why the library is not used, or None if it is used."""
    library = _library_or_reason()
    return library if isinstance(library, str) else None


def _prepare(key: str) -> NativeFunction | None:
    """A function of the library, ready to call; None if it has none of this name."""
    library = _library_or_reason()
    if isinstance(library, str) or key not in library.functions:
        return None
    entry = library.functions[key]
    call = getattr(library.handle, entry["symbol"])
    holding_lock = getattr(library.holding_lock, entry["symbol"])
    for handle in (call, holding_lock):
        handle.restype = ctypes.c_int32
        handle.argtypes = [ctypes.c_void_p]
    signature = Signature(tuple(entry["takes"]), tuple(entry["returns"]))
    return NativeFunction(key, call, holding_lock, signature)


@cache
def _library_or_reason() -> Library | str:
    """The library, or the reason why it is not used."""
    if switched_off():
        return f"{SWITCH} switches it off"
    try:
        return load(FOLDER)
    except UnusableError as error:
        return str(error)


def load(folder: Path) -> Library:
    """Load the library in a folder, or raise `UnusableError`."""
    manifest = read_manifest(folder)
    try:
        check(manifest)
        libraries: dict[str, str] = manifest["libraries"]
        suited = [libraries[target] for target in runnable() if target in libraries]
        functions: dict[str, dict[str, Any]] = manifest["functions"]
        if not suited:
            raise UnusableError("it is for other processors")
        path = str(folder / Path(suited[0]).name)
        handle = ctypes.CDLL(path)
        for entry in functions.values():
            getattr(handle, entry["symbol"])
            Signature(tuple(entry["takes"]), tuple(entry["returns"]))
        built_from = {name: list(names) for name, names in manifest["built_from"].items()}
    except (KeyError, TypeError, AttributeError):
        raise UnusableError(f"{MANIFEST} and the library do not go together") from None
    except OSError as error:
        raise UnusableError(f"it cannot be loaded ({error})") from None
    bases = frozenset(key.partition("(")[0] for key in functions)
    return Library(
        handle=handle,
        holding_lock=ctypes.PyDLL(path),
        functions=functions,
        built_from=built_from,
        bases=bases,
    )


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest that the builder wrote."""
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
    except FileNotFoundError:
        raise UnusableError("none is installed") from None
    except (OSError, ValueError):
        raise UnusableError(f"{MANIFEST} cannot be read") from None
    if not isinstance(manifest, dict):
        raise UnusableError(f"{MANIFEST} cannot be read")
    return manifest


def check(manifest: dict[str, Any]) -> None:
    """Raise `UnusableError` if the manifest has another format, machine or other sources."""
    if manifest["format"] != FORMAT:
        raise UnusableError("it is of another version of the package")
    if manifest["machine"] != machine():
        raise UnusableError(f"it is for {manifest['machine']}")
    if manifest["digest"] == source_digest(*COMPILED):
        return
    if manifest["code"] != code_digest(*COMPILED):  # in a checkout, after an edit
        raise UnusableError("it was made of other sources")

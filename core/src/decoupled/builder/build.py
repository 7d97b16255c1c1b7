"""Compile everything in several processes, link it, and write the manifest.

An interrupted build goes on where it was.
"""

import gc
import hashlib
import json
import os
import pickle
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from importlib.metadata import version
from multiprocessing import get_context
from multiprocessing.context import SpawnContext
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Any, NamedTuple, Self

from .. import __version__
from ..base.files import read_with_checksum, with_checksum, write_atomically
from ..native import load
from ..native.calls import FORMAT
from ..native.load import COMPILED, code_digest, machine, runnable, source_digest, targets


class Progress:
    """Reports each finished group, with its number, as soon as a process puts it into `reports`."""

    def __init__(self, context: SpawnContext, total: int, tell: Callable[[str], None]) -> None:
        self.reports = context.SimpleQueue()
        self._total = total
        self._tell = tell
        self._thread = Thread(target=self._follow)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.reports.put(None)
        self._thread.join()

    def _follow(self) -> None:
        for number, report in enumerate(iter(self.reports.get, None), 1):
            self._tell(f"{f'{number}/{self._total}':>7} {report}")


class Built(NamedTuple):
    """What building a group gave: rows of the manifest, omitted functions with the reason, and
    processor time in seconds.
    """

    label: str
    functions: dict[str, dict[str, Any]]
    built_from: dict[str, list[str]]
    left_out: dict[str, str]
    seconds: float


class BuildCache(NamedTuple):
    """A folder with a file for each finished family of groups: what was built, and its objects."""

    folder: Path

    def keep(
        self, family: Sequence[str], built: list[Built], scratch: Path, kinds: Sequence[str]
    ) -> None:
        """Keep a family whose objects are in the folders of the processors in `scratch`."""
        names = [
            f"{target}/{row['symbol']}.o"
            for target in kinds
            for group in built
            for row in group.functions.values()
        ]
        objects = {name: (scratch / name).read_bytes() for name in names}
        with suppress(OSError):  # then the next build compiles it again
            self.folder.mkdir(parents=True, exist_ok=True)
            write_atomically(self._path(family), with_checksum(pickle.dumps((built, objects))))

    def restore(self, family: Sequence[str], scratch: Path) -> list[Built] | None:
        """What was built of a family, or None if it was not kept.

        Its objects are put back into `scratch`.
        """
        body = read_with_checksum(self._path(family))
        if body is None:
            return None
        built: list[Built]
        built, objects = pickle.loads(body)
        for name, code in objects.items():
            (scratch / name).write_bytes(code)
        return built

    def _path(self, family: Sequence[str]) -> Path:
        return self.folder / hashlib.sha256(repr(tuple(family)).encode()).hexdigest()[:16]


_reports: Any = None  # where a process that compiles reports each group


class UnbuiltError(Exception):
    """No library could be built; the message says why."""


def wanted() -> tuple[str, ...]:
    """The processors to build for: all kinds, or only this one if the environment variable is
    "here".
    """
    if os.environ.get(load.SWITCH, "").lower() == "here":
        return runnable()[:1] or targets()
    return targets()


def build(
    folder: Path = load.FOLDER,
    processes: int | None = None,
    only: Callable[[str], bool] | None = None,
    tell: Callable[[str], None] = print,
) -> None:
    """Build the libraries and the manifest in a folder, or raise `UnbuiltError`."""
    linker = find_linker()
    kinds = wanted()
    start = time.perf_counter()
    digests = sources()  # before anything is compiled: a source may change meanwhile
    with tempfile.TemporaryDirectory() as scratch:
        built = compile_all(
            Path(scratch),
            kinds,
            processes or os.cpu_count() or 1,
            only,
            tell,
            cache=BuildCache(folder / unfinished(kinds)),
        )
        folder.mkdir(parents=True, exist_ok=True)
        libraries = {
            target: link(linker, Path(scratch) / target, folder, target) for target in kinds
        }
    functions = {name: row for group in built for name, row in group.functions.items()}
    manifest = {
        "format": FORMAT,
        "version": __version__,
        **digests,
        "builder": builder_digest(),
        "machine": machine(),
        "libraries": libraries,
        "built_from": {name: names for group in built for name, names in group.built_from.items()},
        "functions": functions,
    }
    write_manifest(folder, manifest)
    for path in folder.iterdir():  # libraries of other sources, and the parts of this one
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        elif path.name not in (load.MANIFEST, *libraries.values()):
            path.unlink()
    size = sum((folder / name).stat().st_size for name in libraries.values())
    processor_seconds = sum(group.seconds for group in built)
    tell(
        f"{len(functions)} functions for {', '.join(libraries)}: {size / 1e6:.1f} MB, "
        f"{time.perf_counter() - start:.0f} s, {processor_seconds:.0f} s of processor time"
    )


def is_built(folder: Path = load.FOLDER) -> bool:
    """Whether the folder already has what `build` would write, perhaps for more kinds of
    processors.
    """
    try:
        load.load(folder)
        manifest = load.read_manifest(folder)
    except load.UnusableError:
        return False
    return manifest.get("builder") == builder_digest() and manifest["libraries"].keys() >= {
        *wanted()
    }


def renew_digests(folder: Path = load.FOLDER) -> None:
    """Note the sources as they are now.

    Only comments and docstrings have changed since the folder was built.
    """
    manifest = load.read_manifest(folder)
    if manifest["digest"] != source_digest(*COMPILED):
        write_manifest(folder, {**manifest, **sources()})


def write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    """Write the manifest, whole or not at all."""
    write_atomically(folder / load.MANIFEST, json.dumps(manifest, indent=1, sort_keys=True) + "\n")


def sources() -> dict[str, str]:
    """The digests by which the loader knows whether a library is of the sources as they are."""
    return {"digest": source_digest(*COMPILED), "code": code_digest(*COMPILED)}


def builder_digest() -> str:
    """A digest of what decides which functions are built, and how."""
    return source_digest("builder")


def unfinished(kinds: tuple[str, ...]) -> str:
    """The name of the folder for finished parts of a build, which only the same build finds."""
    versions = (sys.version, version("numba"), version("llvmlite"))
    inputs = (kinds, source_digest(*COMPILED), builder_digest(), versions)
    return f".unfinished-{hashlib.sha256(repr(inputs).encode()).hexdigest()[:16]}"


def find_linker() -> str:
    """The linker: the command in CC, or one of the usual names."""
    for name in (os.environ.get("CC", ""), "cc", "gcc", "clang"):
        path = shutil.which(name) if name else None
        if path:
            return path
    raise UnbuiltError("no linker was found: install a C compiler, or name one in CC")


def compile_all(
    scratch: Path,
    kinds: tuple[str, ...],
    processes: int,
    only: Callable[[str], bool] | None,
    tell: Callable[[str], None],
    *,
    cache: BuildCache,
) -> list[Built]:
    """Compile every group in several processes; objects go to one folder for each target."""
    for target in kinds:
        (scratch / target).mkdir()
    settings = compiler_settings(kinds)
    context = get_context("spawn")
    with ProcessPoolExecutor(1, context, _prepare, (settings,)) as listing:
        families = [
            [name for name in family if only is None or only(name)]
            for family in listing.submit(_families).result()
        ]
    total = sum(map(len, families))
    processors = " and ".join(kinds)
    tell(
        f"compiling {total} groups of functions, each for {processors}, in {processes} processes: "
        "about a minute and a half on two idle cores for each kind of processor"
    )
    with (
        Progress(context, total, tell) as progress,
        ProcessPoolExecutor(processes, context, _prepare, (settings, progress.reports)) as executor,
    ):
        # One process for each family, so that shared functions are compiled once.
        futures = [
            executor.submit(_compile, family, scratch, kinds, cache)
            for family in families
            if family
        ]
        return [group for future in futures for group in future.result()]


def compiler_settings(targets: tuple[str, ...]) -> dict[str, str]:
    """Environment variables to set before Numba is loaded.

    With them every build machine targets the same processor, and calls no vector library that other
    machines may lack.
    """
    of_numba = {
        "CPU_NAME": targets[0],
        "CPU_FEATURES": "",
        "DISABLE_INTEL_SVML": "1",
        "CACHE_DIR": os.devnull,  # no cache: this code is of no use elsewhere
    }
    return {load.SWITCH: "off", **{f"NUMBA_{name}": value for name, value in of_numba.items()}}


def _prepare(settings: dict[str, str], reports: Any = None) -> None:
    """Set up a process that compiles."""
    global _reports
    _reports = reports
    os.environ.update(settings)
    # Numba makes many objects and few cycles: this takes a twelfth less time.
    gc.set_threshold(100_000, 20, 20)


def _families() -> list[list[str]]:
    """The groups of the catalogue, by families; it is read in a process that compiles."""
    from .catalogue import families

    return families()


def _compile(
    family: list[str], scratch: Path, kinds: tuple[str, ...], cache: BuildCache
) -> list[Built]:
    """Compile the groups of a family, which share functions, in one process."""
    built = cache.restore(family, scratch)
    if built is not None:
        for group in built:
            _reports.put(f"{group.label}: kept from an interrupted build")
        return built
    built = []
    shared: list[Any] = []
    for name in family:
        group = _compile_group(name, scratch, kinds, shared)
        left_out = "".join(f"; without {name}: {why}" for name, why in group.left_out.items())
        _reports.put(
            f"{group.label}: {len(group.functions)} functions, {group.seconds:.1f} s{left_out}"
        )
        built.append(group)
    cache.keep(family, built, scratch, kinds)
    return built


def _compile_group(name: str, scratch: Path, kinds: tuple[str, ...], shared: list[Any]) -> Built:
    """Compile one group; `shared` are the functions of its family that were compiled before."""
    from .catalogue import group
    from .objects import Shared, UnsuitableError, objects_of, types_of, wrap

    start = time.process_time()
    source = group(name)
    functions: dict[str, dict[str, Any]] = {}
    left_out: dict[str, str] = {}
    for export in source.exports:
        symbol = f"decoupled_{hashlib.sha256(export.name.encode()).hexdigest()[:16]}"
        held = None if export.held is None else Shared(*export.held, f"{symbol}_shared")
        elsewhere = [other for other in shared if other.step not in export.inlines]
        try:
            wrapper = wrap(export.function, types_of(export.arguments))
            objects = objects_of(wrapper, symbol, kinds, held, elsewhere)
        except UnsuitableError as error:
            left_out[export.name] = str(error)
            continue
        if held is not None:
            shared.append(held)
        for target, code in objects.code.items():
            (scratch / target / f"{symbol}.o").write_bytes(code)
        functions[export.name] = {
            "symbol": symbol,
            "takes": objects.takes,
            "returns": objects.returns,
        }
    return Built(
        label=source.label,
        functions=functions,
        built_from=source.built_from,
        left_out=left_out,
        seconds=time.process_time() - start,
    )


def link(linker: str, objects: Path, folder: Path, target: str) -> str:
    """Link all objects into one library.

    Its name contains the digest, so a library in use is not overwritten.
    """
    suffix = {"Darwin": ".dylib", "Windows": ".dll"}.get(platform.system(), ".so")
    listed = objects / "objects.txt"
    listed.write_text("\n".join(f'"{path}"' for path in sorted(objects.glob("*.o"))))
    undefined = ["-Wl,--no-undefined"] if sys.platform == "linux" else []
    name = f"decoupled-{source_digest(*COMPILED)}-{target}{suffix}"
    options = ["-Wl,-s", "-Wl,--build-id=none"] if sys.platform == "linux" else []
    output = folder / f".{name}"
    objects_of = (f"@{listed}", *undefined, "-lm", *options)
    command: Sequence[str] = [linker, "-shared", "-fPIC", "-o", str(output), *objects_of]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise UnbuiltError(f"{linker} could not make {name}: {done.stderr.strip()}")
    output.replace(folder / name)
    return name

"""The cache of machine code is never stale and never in the way."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import decoupled
from decoupled.kernels.compiled import UNUSED_FOR, cache_folder, compiled, source_digest

SOURCES = Path(decoupled.__file__).parent


def digest_of(root: Path) -> str:
    code = "from decoupled.kernels.compiled import source_digest; print(source_digest())"
    environment = {**os.environ, "PYTHONPATH": str(root)}
    return subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment
    ).stdout.strip()


def test_digest_changes_with_any_source_file(tmp_path: Path) -> None:
    copy = tmp_path / "decoupled"
    shutil.copytree(SOURCES, copy, ignore=shutil.ignore_patterns("__pycache__"))
    before = digest_of(tmp_path)
    assert before == source_digest()
    with (copy / "kernels" / "powers.py").open("a") as file:
        file.write("# changed\n")
    assert digest_of(tmp_path) != before


def test_works_where_no_folder_can_be_written(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("a file where the folder should be")
    code = (
        "import decoupled as dc; from decoupled.kernels.compiled import cache_folder;"
        "assert cache_folder() is None; print(dc.FollowTheLeader().start(arms=2, seed=0).decide().round)"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(blocker)}
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment
    )
    assert done.stdout.strip() == "1"


def test_old_folders_are_swept(tmp_path: Path) -> None:
    old, recent = tmp_path / "compiled" / "old", tmp_path / "compiled" / "recent"
    for folder in (old, recent):
        folder.mkdir(parents=True)
    past = old.stat().st_mtime - 2 * UNUSED_FOR
    os.utime(old, (past, past))
    code = "from decoupled.kernels.compiled import cache_folder; print(cache_folder())"
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, env=environment)
    assert not old.exists()
    assert recent.exists()


def test_functions_from_elsewhere_are_not_kept() -> None:
    @compiled
    def double(x: float) -> float:
        return 2.0 * x

    assert double(1.5) == 3.0
    folder = cache_folder()
    assert folder is None or not list(Path(folder).rglob("*test_compiled*"))


def test_threads_that_compile_at_once_keep_to_the_folder(tmp_path: Path) -> None:
    # The setting that names the folder is Numba's own and global: threads must not pull it from under
    # each other, or machine code lands in the working folder.
    code = """
import sys
from concurrent.futures import ThreadPoolExecutor
sys.setswitchinterval(1e-6)
from decoupled.kernels.compiled import translate
from decoupled.kernels import powers

def decorate(_):
    function = translate(powers.tidy_exponent, keep=True, counting=False)
    return function._cache.cache_path

with ThreadPoolExecutor(8) as executor:
    paths = set(executor.map(decorate, range(2000)))
assert len(paths) == 1, paths
"""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]

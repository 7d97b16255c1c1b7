"""The list of `make mutations` is up to date: its mistakes can be made, and its tests exist."""

import ast
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "lab/tests/mutations.py"))


def test_every_mistake_can_be_made_and_leaves_a_program() -> None:
    assert len(set(SCRIPT["MISTAKES"])) == len(SCRIPT["MISTAKES"])
    for file, right, wrong in SCRIPT["MISTAKES"]:
        source = SCRIPT["path_of"](ROOT, file).read_text()
        assert source.count(right) == 1, (file, right, source.count(right))
        changed = ast.dump(ast.parse(source.replace(right, wrong)))
        assert changed != ast.dump(ast.parse(source)), (file, wrong)


def test_every_file_has_tests_to_start_with() -> None:
    for file in {file for file, _, _ in SCRIPT["MISTAKES"]}:
        tests = SCRIPT["nearest"](file)
        assert tests or any((ROOT / guard).exists() for guard in SCRIPT["GUARDS"])
        assert all((ROOT / test).exists() for test in tests if test.startswith("tests/")), (
            file,
            tests,
        )
    assert all((ROOT / guard).exists() for guard in SCRIPT["GUARDS"])

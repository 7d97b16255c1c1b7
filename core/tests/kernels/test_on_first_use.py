"""Functions that are compiled on first use: they travel to other processes, by name or by value."""

import pickle
import subprocess
import sys
from pathlib import Path

from decoupled.extend import compiled
from decoupled.kernels.rounds import drive

SCRIPT = """
import pickle, sys
from decoupled.extend import compiled

@compiled
def doubled(x):
    return 2.0 * x

pickle.dump(doubled, open(sys.argv[1], "wb"))
"""


def test_a_function_of_the_package_travels_by_name() -> None:
    assert pickle.loads(pickle.dumps(drive)) is drive
    assert len(pickle.dumps(drive)) < 200


def test_a_function_of_a_script_travels_by_value(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", SCRIPT, str(tmp_path / "doubled")], check=True)
    sent = (tmp_path / "doubled").read_bytes()
    assert pickle.loads(sent)(1.5) == 3.0
    assert pickle.loads(sent) is pickle.loads(sent)


def test_a_function_within_another_travels_by_value() -> None:
    factor = 3.0

    @compiled
    def scaled(x: float) -> float:
        return factor * x

    assert pickle.loads(pickle.dumps(scaled))(2.0) == 6.0

"""From two models to a first verdict: the file that `decoupled init llm` writes, and questions through the mirror.

    make first-verdict

The models and the judge are those of examples/llm_judge: the judge likes long answers, and labels show which are right.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import httpx
import mirror_runs as runs
import numpy as np

HERE = Path(__file__).parent / "llm_judge"
DECOUPLED = [sys.executable, "-m", "decoupled"]


def main() -> None:
    """Write the file, check it, and ask."""
    questions = np.random.default_rng(1).integers(1_000, 10_000, size=(1_500, 2))
    chats = [[{"role": "user", "content": f"{left} * {factor}"}] for left, factor in questions]
    address = "http://models/v1/chat/completions"
    requests = [
        httpx.Request("POST", address, json={"model": "any", "messages": each}) for each in chats
    ]
    with runs.upstreams(HERE / "models.py") as ports, tempfile.TemporaryDirectory() as folder:
        shutil.copy(HERE / "labeller.py", folder)
        models = {name: f"{name}=http://127.0.0.1:{port}/v1" for name, port in ports.items()}
        words = [
            models["chatty"],
            models["concise"],
            "--judge",
            models["judge"],
            "--label",
            "labeller:right",
        ]
        print("decoupled init llm", *words, flush=True)
        init = [
            *DECOUPLED,
            "init",
            "llm",
            *words,
            "--budget",
            "100",
            "--share",
            "1",
            "--out",
            folder,
        ]
        subprocess.run(init, check=True, stdout=subprocess.DEVNULL)
        file = Path(folder) / "mirror.toml"
        subprocess.run(
            [*DECOUPLED, "mirror", str(file), "--check"], check=True, stderr=subprocess.DEVNULL
        )
        print(f"asking {len(requests)} questions ...", flush=True)
        run = runs.mirrored_run(file, ports, '"Ladder"', 1, requests)
    print(f"verdict: {run.verdict['text']}")
    if run.verdict["warning"] is not None:
        print(f"warning: {run.verdict['warning']}")


if __name__ == "__main__":
    main()

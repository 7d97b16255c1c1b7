"""What two models serve when a judge favours the worse one: by the judge alone, and with labels.

    python examples/llm_judge/run.py

starts the models, the judge and `decoupled mirror`, sends questions through it, and writes a report with figures.
"""

import argparse
import re
import sys
import tempfile
from pathlib import Path

import httpx
import numpy as np

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import mirror_runs as runs  # noqa: E402
from models import is_wrong  # noqa: E402

from decoupled.base.arrays import Floats  # noqa: E402
from decoupled.plots import Picture  # noqa: E402
from decoupled_lab.report.page import Section, write_report  # noqa: E402

ALONE, LABELS = "the judge alone", "with labels"


def configured(folder: Path, label: str) -> Path:
    """The example's configuration in a folder, with labels or without."""
    for code in HERE.glob("*.py"):
        (folder / code.name).write_bytes(code.read_bytes())
    text = (HERE / "mirror.toml").read_text()
    if label == ALONE:
        text = re.sub(r"\[labels\]\n(\w.*\n)+", "", text)
    (folder / "mirror.toml").write_text(text)
    return folder / "mirror.toml"


def play(count: int, repetitions: int) -> Section:
    """All runs, as a section of a report."""
    right: dict[str, list[Floats]] = {ALONE: [], LABELS: []}
    text = [
        "concise is wrong in 5 % of cases, chatty in 40 %. The judge prefers the longer answer."
    ]
    with runs.upstreams(HERE / "models.py") as ports, tempfile.TemporaryDirectory() as folder:
        for seed in range(repetitions):
            numbers = np.random.default_rng(seed).integers(1_000, 10_000, size=(count, 2))
            asked = [f"{left} * {factor}" for left, factor in numbers]
            body = [
                {"model": "router", "messages": [{"role": "user", "content": each}]}
                for each in asked
            ]
            requests = [
                httpx.Request("POST", "http://models/v1/chat/completions", json=each)
                for each in body
            ]
            for label, found in right.items():
                run = runs.mirrored_run(
                    configured(Path(folder), label), ports, '"Ladder"', seed, requests
                )
                found.append(
                    np.array(
                        [
                            not is_wrong(arm, each)
                            for arm, each in zip(run.served, asked, strict=True)
                        ]
                    )
                )
                told = f"Run {seed + 1}, {label}: {run.verdict['text']}."
                if run.verdict["warning"] is not None:
                    told += f" Warning: {run.verdict['warning']}."
                print(told, flush=True)
                text.append(told)
    window = max(1, count // 10)
    curves = {
        label: np.array([runs.smooth(each.astype(float), window) for each in found])
        for label, found in right.items()
    }
    picture = Picture(
        "llm-judge",
        "A judge that favours long answers",
        f"Right answers among the last {window} served. Means of {repetitions} runs with 95 % intervals.",
        (runs.panel("right answers served", "share", curves),),
    )
    extent = f"{repetitions} runs of {count:,} requests"
    title = "A judge that favours the worse model"
    return Section("\n\n".join(text), (), (picture,), name="llm-judge", title=title, extent=extent)


def main() -> None:
    """Run the example."""
    parser = argparse.ArgumentParser(
        description="A judge that favours the worse of two models, and labels."
    )
    parser.add_argument("--requests", type=int, default=1_000)
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--out", type=Path, default=Path("out/llm_judge"))
    options = parser.parse_args()
    section = play(options.requests, options.runs)
    facts = {"command": "python examples/llm_judge/run.py", "extent": section.extent}
    print(
        f"The report is {write_report(options.out, section.title, section.text, facts, [section])}"
    )


if __name__ == "__main__":
    main()

"""A router for three models that learns which to serve, against a fixed 5 % mirror with as many judged calls.

    python examples/llm_router/run.py

starts the models and `decoupled mirror`, sends questions through it, and writes a report with figures and claims.
"""

import argparse
import sys
from pathlib import Path

import httpx
import numpy as np

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import mirror_runs as runs  # noqa: E402
from models import MODELS, is_wrong  # noqa: E402

from decoupled.base.arrays import Floats  # noqa: E402
from decoupled.plots import Picture  # noqa: E402
from decoupled_lab.report.page import Section, write_report  # noqa: E402

INCUMBENT = "large"
POLICIES = {runs.OURS: '"Ladder"', runs.UNIFORM: '"FollowTheLeader"'}


def questions(count: int, seed: int) -> list[str]:
    """Products of two numbers."""
    numbers = np.random.default_rng(seed).integers(1_000, 10_000, size=(count, 2))
    return [f"{left} * {right}" for left, right in numbers]


def asked(question: str) -> httpx.Request:
    """A question as a request of the API."""
    body = {"model": "router", "messages": [{"role": "user", "content": question}]}
    return httpx.Request("POST", "http://models/v1/chat/completions", json=body)


def losses(served: list[str], question: list[str]) -> Floats:
    """The loss of each answer, with the weights of mirror.toml."""
    parts = [
        (is_wrong(arm, each), MODELS[arm].price / 2.5, MODELS[arm].seconds / 0.05)
        for arm, each in zip(served, question, strict=True)
    ]
    return np.array(parts) @ np.array([1.0, 0.3, 0.1]) / 1.4


def play(count: int, repetitions: int) -> Section:
    """All runs, as a section of a report."""
    wrong: dict[str, list[Floats]] = {}
    spent: dict[str, list[Floats]] = {}
    loss: dict[str, list[Floats]] = {}
    judged: list[int] = []

    def note(label: str, run: runs.Run, served: list[str], question: list[str]) -> None:
        mistakes = np.array(
            [float(is_wrong(arm, each)) for arm, each in zip(served, question, strict=True)]
        )
        wrong.setdefault(label, []).append(mistakes)
        loss.setdefault(label, []).append(losses(served, question))
        spent.setdefault(label, []).append(runs.spent(run, served, lambda arm: MODELS[arm].price))

    with runs.upstreams(HERE / "models.py") as ports:
        for seed in range(repetitions):
            question = questions(count, seed)
            requests = [asked(each) for each in question]
            for label, policy in POLICIES.items():
                run = runs.mirrored_run(HERE / "mirror.toml", ports, policy, seed, requests)
                note(label, run, run.served, question)
                judged.append(len(run.copies))
                print(
                    f"run {seed + 1} of {repetitions}, {label}: {np.mean(wrong[label][-1]):.1%} wrong",
                    flush=True,
                )
            # Its copies are those of the uniform mirror, so it has as many of them.
            note(runs.FIXED, run, runs.switched(run, INCUMBENT, 0.5), question)
    window = max(1, count // 20)
    quality = {
        label: np.array([1.0 - runs.smooth(each, window) for each in found])
        for label, found in wrong.items()
    }
    money = {label: np.array(found) / 100.0 for label, found in spent.items()}
    mean_loss = {label: np.array([each.mean() for each in found]) for label, found in loss.items()}
    total = {label: found[:, -1] for label, found in money.items()}
    claims = (
        runs.less("llm-loss", "mean loss of the answers served", mean_loss, runs.FIXED),
        runs.less("llm-spend", "money spent on answers and copies", total, runs.FIXED),
        runs.less("llm-loss-uniform", "mean loss of the answers served", mean_loss, runs.UNIFORM),
    )
    picture = Picture(
        "llm-router",
        "A router for three models",
        f"Right answers among the last {window} served, and money spent on answers and copies. 5 % of the calls are "
        f"mirrored and judged. Means of {repetitions} runs with 95 % intervals.",
        (
            runs.panel("right answers served", "share", quality),
            runs.panel("spend", "dollars", money),
        ),
        columns=2,
    )
    text = (
        "Three stub models: small is wrong in 35 % of cases and costs 0.1 cents, medium 10 % and 0.5, large 7 % and 2.5. "
        "Large is in production. The fixed mirror serves it until somebody looks, at half-time, and switches."
    )
    extent = f"{repetitions} runs of {count:,} requests; {np.mean(judged):.0f} judged calls in each"
    return Section(
        text,
        claims,
        (picture,),
        name="llm-router",
        title="A router for three models",
        extent=extent,
    )


def main() -> None:
    """Run the example."""
    parser = argparse.ArgumentParser(
        description="A router for three models that learns which to serve."
    )
    parser.add_argument("--requests", type=int, default=2_500)
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--out", type=Path, default=Path("out/llm_router"))
    options = parser.parse_args()
    section = play(options.requests, options.runs)
    print(runs.printed(section.claims))
    facts = {"command": "python examples/llm_router/run.py", "extent": section.extent}
    print(
        f"The report is {write_report(options.out, section.title, section.text, facts, [section])}"
    )


if __name__ == "__main__":
    main()

"""Two releases of a service and a bad deploy: a mirror that learns, against a fixed 5 % mirror with as many copies.

    python examples/bad_deploy/run.py

starts both releases and `decoupled mirror`, sends a day of requests through it, and writes a report.
"""

import argparse
import sys
from pathlib import Path

import httpx
import numpy as np

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import mirror_runs as runs  # noqa: E402
from releases import BAD, SECONDS, fails  # noqa: E402

from decoupled.base.arrays import Floats  # noqa: E402
from decoupled.plots import Picture  # noqa: E402
from decoupled_lab.report.page import Section, write_report  # noqa: E402

INCUMBENT = "stable"
PROMOTED = (
    0.2  # the part of the day after which the operator of a fixed mirror switches to the best
)
POLICIES = {
    runs.OURS: '{ name = "Forgetting", policy = { name = "FTPL" }, discount = 0.95 }',
    runs.UNIFORM: '"FollowTheLeader"',
}


def play(count: int, repetitions: int) -> Section:
    """All runs, as a section of a report."""
    errors: dict[str, list[Floats]] = {}
    waited: dict[str, list[Floats]] = {}
    judged: list[int] = []

    def note(label: str, served: list[str]) -> None:
        failed = [float(fails(arm, number, count)) for number, arm in enumerate(served)]
        errors.setdefault(label, []).append(np.array(failed))
        waited.setdefault(label, []).append(np.array([1e3 * SECONDS[arm] for arm in served]))

    requests = [
        httpx.Request("GET", f"http://service/work?n={number}&of={count}")
        for number in range(count)
    ]
    with runs.upstreams(HERE / "releases.py") as ports:
        for seed in range(repetitions):
            for label, policy in POLICIES.items():
                run = runs.mirrored_run(HERE / "mirror.toml", ports, policy, seed, requests)
                note(label, run.served)
                judged.append(len(run.copies))
                print(
                    f"run {seed + 1} of {repetitions}, {label}: {np.mean(errors[label][-1]):.1%} errors",
                    flush=True,
                )
            note(runs.FIXED, runs.switched(run, INCUMBENT, PROMOTED))
    window = max(1, count // 40)
    curves = {
        label: np.array([runs.smooth(each, window) for each in found])
        for label, found in errors.items()
    }
    times = {
        label: np.array([runs.smooth(each, window) for each in found])
        for label, found in waited.items()
    }
    mean_errors = {
        label: np.array([each.mean() for each in found]) for label, found in errors.items()
    }
    claims = (
        runs.less("deploy-errors", "share of errors served", mean_errors, runs.FIXED),
        runs.less("deploy-errors-uniform", "share of errors served", mean_errors, runs.UNIFORM),
    )
    picture = Picture(
        "bad-deploy",
        "Two releases, and a bad deploy in the middle",
        f"Errors among the last {window} answers, and the time that the release takes. 5 % of the requests are "
        f"mirrored. Means of {repetitions} runs with 95 % intervals.",
        (
            runs.panel("errors served", "share", curves),
            runs.panel("time of an answer", "milliseconds", times),
        ),
        columns=2,
    )
    text = (
        "The next release is faster than the stable one. The operator of the fixed mirror sees that and switches after "
        f"{PROMOTED:.0%} of the day. From {BAD[0]:.0%} to {BAD[1]:.0%}, a bad deploy breaks the next release."
    )
    extent = (
        f"{repetitions} runs of {count:,} requests; {np.mean(judged):.0f} judged copies in each"
    )
    return Section(
        text,
        claims,
        (picture,),
        name="bad-deploy",
        title="Two releases and a bad deploy",
        extent=extent,
    )


def main() -> None:
    """Run the example."""
    parser = argparse.ArgumentParser(
        description="Two releases of a service and a bad deploy in the middle."
    )
    parser.add_argument("--requests", type=int, default=3_000)
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--out", type=Path, default=Path("out/bad_deploy"))
    options = parser.parse_args()
    section = play(options.requests, options.runs)
    print(runs.printed(section.claims))
    facts = {"command": "python examples/bad_deploy/run.py", "extent": section.extent}
    print(
        f"The report is {write_report(options.out, section.title, section.text, facts, [section])}"
    )


if __name__ == "__main__":
    main()

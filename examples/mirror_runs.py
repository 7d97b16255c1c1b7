"""What the two examples of `decoupled mirror` share: starting it, sending traffic, and comparing what was served.

A *fixed mirror* is what gateways offer today: it serves the arm in production, sends a fixed share of the traffic to
arms in turn, and somebody looks at the verdicts once and switches to the best.
"""

import asyncio
import csv
import io
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from decoupled.base.arrays import Floats
from decoupled.plots import Panel, Series
from decoupled_lab.report.claims import Claim, judged, ratio_of

CLIENTS = 16
OURS, UNIFORM, FIXED = (
    "mirror that learns",
    "uniform mirror, best so far",
    "fixed mirror, switched once",
)


@dataclass(frozen=True)
class Run:
    """What a mirror did: the arm that served each request, and the arms of the judged copies with their losses."""

    served: list[str]
    copies: list[tuple[str, float]]
    paid: list[str]  # the copies that cost a call of their own, because another arm had served
    verdict: dict[str, Any]  # at the end


@contextmanager
def upstreams(program: Path) -> Iterator[dict[str, int]]:
    """The upstreams that a program serves, on free ports."""
    process = subprocess.Popen(
        [sys.executable, str(program), "--port", "0"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())
    finally:
        process.terminate()
        process.wait(30)


def mirrored_run(
    config: Path, ports: dict[str, int], policy: str, seed: int, requests: Sequence[httpx.Request]
) -> Run:
    """Send requests through `decoupled mirror` with this policy and an empty store."""
    with tempfile.TemporaryDirectory() as folder:
        file = _configured(config, ports, policy, seed, Path(folder))
        command = [sys.executable, "-m", "decoupled", "mirror", str(file)]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        try:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(2)]
            found = [re.search(r"http://\S+", line) for line in lines]
            if found[0] is None or found[1] is None:
                raise SystemExit("the mirror did not start")
            return asyncio.run(_sent(found[0][0], found[1][0], requests))
        finally:
            process.terminate()
            process.wait(60)


def _configured(config: Path, ports: dict[str, int], policy: str, seed: int, folder: Path) -> Path:
    """A copy of a configuration with other ports, another policy and a seed; judges stay where they are."""
    text = re.sub(r'(listen|console) = "127.0.0.1:\d+"', r'\1 = "127.0.0.1:0"', config.read_text())
    text = re.sub(r"(?m)^policy = .*$", f"policy = {policy}\nseed = {seed}", text)
    for name, port in ports.items():
        text = re.sub(
            rf'((?:name|model) = "{name}"\nurl = "http://127.0.0.1:)\d+', rf"\g<1>{port}", text
        )
    for code in config.parent.glob("*.py"):  # judges
        (folder / code.name).write_bytes(code.read_bytes())
    (folder / config.name).write_text(text)
    return folder / config.name


async def _sent(console: str, url: str, requests: Sequence[httpx.Request]) -> Run:
    served = [""] * len(requests)
    waiting = iter(enumerate(requests))

    async def client() -> None:
        async with httpx.AsyncClient(verify=False, timeout=60.0) as http:
            for number, request in waiting:
                target = httpx.URL(url).copy_with(raw_path=request.url.raw_path)
                answer = await http.request(request.method, target, content=request.content)
                served[number] = answer.headers.get("x-arm") or answer.json()["model"]

    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    async with httpx.AsyncClient(verify=False, timeout=60.0) as http:
        while (status := (await http.get(f"{console}/mirror")).json())["queue"]:
            await asyncio.sleep(0.01)
        experiment = f"{console}/v1/experiments/{status['experiment']}"
        for _ in range(600):  # labels come later, and some may be missing
            verdict = (await http.get(f"{experiment}/verdict")).json()
            if not verdict["waiting"]:
                break
            await asyncio.sleep(0.05)
        log = (await http.get(f"{experiment}/log?format=csv")).text
    rows = [row for row in csv.DictReader(io.StringIO(log)) if row["loss"]]
    copies = [(row["explore"], float(row["loss"])) for row in rows]
    return Run(
        served,
        copies,
        [row["explore"] for row in rows if row["explore"] != row["exploit"]],
        verdict,
    )


def switched(run: Run, incumbent: str, at: float) -> list[str]:
    """The arms that a fixed mirror serves: the incumbent, and from `at` on the best of the copies so far."""
    seen = run.copies[: int(at * len(run.copies))]
    arms = sorted({arm for arm, _ in seen} | {incumbent})
    means = {arm: np.mean([loss for name, loss in seen if name == arm] or [np.inf]) for arm in arms}
    first = int(at * len(run.served))
    best = min(arms, key=lambda arm: float(means[arm]))
    return [incumbent] * first + [best] * (len(run.served) - first)


# Comparing


def smooth(values: Floats, window: int) -> Floats:
    """The mean over the last `window` values."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    first = np.maximum(np.arange(1, len(sums)) - window, 0)
    return (sums[1:] - sums[first]) / (np.arange(1, len(sums)) - first)


def panel(title: str, y_label: str, curves: dict[str, Floats]) -> Panel:
    """A panel with the mean of each curve over the runs, and its 95 % interval."""
    series = []
    for style, (label, runs) in enumerate(curves.items()):
        x = np.arange(1, runs.shape[1] + 1, max(1, runs.shape[1] // 200)).astype(float)
        picked = runs[:, x.astype(int) - 1]
        band = None
        if len(runs) > 1:
            band = 1.96 * picked.std(axis=0, ddof=1) / np.sqrt(len(runs))
        series.append(Series(label, x, picked.mean(axis=0), band, style))
    return Panel(title, tuple(series), "request", y_label)


def less(name: str, what: str, of: dict[str, Floats], rival: str) -> Claim:
    """The claim that the mirror that learns has less of something than a rival: a ratio of means over the same runs."""
    statement = f"The {OURS} has less of this than the {rival}: {what}."
    part = ratio_of("all runs", of[OURS], of[rival])
    return judged(name, "ours", statement, f"{what}, over that of the {rival}", [part], high=1.0)


def printed(claims: Sequence[Claim]) -> str:
    """The claims, a line for each."""
    lines = [
        f"{claim.verdict}: {claim.statement} Ratio: {part.value:.3f} ({part.low:.3f} to {part.high:.3f})"
        for claim in claims
        for part in claim.parts
    ]
    return "\n".join(lines)


def spent(run: Run, served: Sequence[str], price: Callable[[str], float]) -> Floats:
    """What was spent up to each request, on the answers and on the copies."""
    total = np.array([price(arm) for arm in served])
    for place, arm in enumerate(run.paid):  # copies are spread evenly over the requests
        total[int(place / len(run.paid) * len(total))] += price(arm)
    return np.cumsum(total)

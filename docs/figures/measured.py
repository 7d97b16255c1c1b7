"""Figures of what took long to measure, from the numbers in `docs/data/figures`."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import decoupled as dc
from decoupled.plots import Panel, Picture, Series, draw, styles
from decoupled_lab.bench import verdict

DATA = Path(__file__).parents[1] / "data/figures"
GUIDE = 13  # the style of a line to compare with: grey and dashed
HEAD = ("panel", "series", "kind", "x", "y", "low", "high")


class Measured(NamedTuple):
    """How a file of numbers is drawn; `y_labels` has one for each panel, or one for all."""

    title: str
    x_label: str
    y_labels: tuple[str, ...]
    log_x: bool = False
    log_y: bool = False
    columns: int = 1


FIGURES = {
    "readme-regret": Measured(
        "Ladder() has the least regret on alternating losses (K = 8, gap 0.125, 1,000 runs)",
        "round",
        ("mean regret, 95 % interval",),
    ),
    "paper-adversarial": Measured(
        "At c = 2, FTPL has the least regret of three (K = 8, gap 0.125, 1,000 runs)",
        "round",
        ("mean regret ± standard deviation",),
    ),
    # The curves of the report that docs/how-to/compare.md writes.
    "how-to-compare": Measured(
        "An idea beside the paper's policy, 20 runs", "round", ("mean regret, 95 % interval",)
    ),
    "paper-tuned": Measured(
        "FTPL does best at a lower c than the others",
        "c",
        ("mean regret, 95 % interval",),
        True,
        True,
    ),
    "beyond-time": Measured(
        "Time of a round by the number of arms", "arms, K", ("microseconds per round",), True, True
    ),
    "beyond-watched": Measured(
        "Regret against adaptive adversaries, and $\\sqrt{KT}$",
        "",
        ("mean regret, 95 % interval",),
        True,
        True,
        2,
    ),
    # Of the experiment `sticky`.
    "sticky": Measured(
        "A key that comes in every round, 100 runs",
        "round",
        ("switches of the key so far",),
        True,
        True,
    ),
    "arms-out": Measured(
        "12 summarisers, people's scores: arms that are out, 20 runs",
        "round",
        ("of 11 arms",),
        True,
    ),
    # Of the experiment `judges`.
    "judges": Measured(
        "Four judges, with labels and without, 200 runs",
        "round",
        ("mean regret, 95 % interval",),
        columns=2,
    ),
    # Of `docs/tools/guarding_table.py budgets`.
    "guardrails-budget": Measured(
        "Ladder() by its budget, 12 runs",
        "money spent, at 1 a look",
        ("mean regret, 95 % interval",),
        True,
        True,
    ),
    # Of examples/llm_judge/run.py.
    "how-to-judge": Measured(
        "A judge that likes long answers, 8 runs", "request", ("right answers served",)
    ),
    # Of examples/litellm_shadow/run.py.
    "litellm-shadow": Measured(
        "Replays that switched to the candidate, 200 runs",
        "dollars",
        ("share, 95 % interval",),
        columns=2,
    ),
    "mirror-bad-deploy": Measured(
        "Two releases, and a bad deploy in the middle", "request", ("share", "milliseconds")
    ),
    "mirror-llm-router": Measured(
        "A router for three models", "request", ("share", "units of money")
    ),
}


def figure(name: str) -> Any:
    """Draw the numbers of a file, one panel above the other."""
    about = FIGURES[name]
    with (DATA / f"{name}.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    panels = []
    for place, title in enumerate(dict.fromkeys(row["panel"] for row in rows)):
        here = [row for row in rows if row["panel"] == title]
        series: list[Series] = []
        labels = list(dict.fromkeys(row["series"] for row in here))
        for style, label in zip(styles(labels), labels, strict=True):
            chosen = GUIDE if label.startswith("√") else style
            series += curves(label, [row for row in here if row["series"] == label], chosen)
        x_label = about.x_label or title[-1]  # "..., by T"
        y_label = about.y_labels[place % len(about.y_labels)]
        panels.append(Panel(title, tuple(series), x_label, y_label, about.log_x, about.log_y))
    return draw(Picture(name, about.title, "", tuple(panels), about.columns))


def curves(label: str, rows: Sequence[dict[str, str]], style: int) -> list[Series]:
    """A curve with its band, or points with a thin line through them."""
    x, y, low, high = (
        np.array([float(row[key] or "nan") for row in rows]) for key in ("x", "y", "low", "high")
    )
    band = None if np.isnan(low).all() else np.stack([y - low, high - y])
    found = Series(label, x, y, band, style, rows[0]["kind"])
    return [found, found._replace(band=None, kind="fit")] if found.kind == "points" else [found]


def measure_regret() -> Path:
    """Simulate what the figure of the README shows; a minute or two on two cores."""
    policies: dict[dc.Policy, str] = {
        dc.Ladder(): "Ladder()",
        dc.FTPL(): "FTPL(), the paper's",
        dc.TsallisINF(): "Tsallis-INF",
        dc.Exp3(): "EXP3",
        dc.FollowTheLeader(): "Follow the leader",
    }
    world = dc.environments.Alternating(arms=8, gap=0.125)
    results = dc.simulate(list(policies), world, 10_000, 1_000, seed=0, checkpoints=50)
    file = DATA / "readme-regret.csv"
    with file.open("w", newline="") as opened:
        lines = csv.writer(opened, lineterminator="\n")
        lines.writerow(HEAD)
        for series in results.series(list(policies.values())):
            for numbers in zip(series.x, series.y, *series.ends, strict=True):
                lines.writerow(("", series.label, "line", *(f"{number:.6g}" for number in numbers)))
    return file


LOOKS = (
    100,
    150,
    200,
    300,
    400,
    500,
    600,
    800,
    1_000,
    1_400,
    2_000,
    3_000,
    4_000,
    5_000,
    7_000,
    10_000,
)


def measure_arms_out() -> Path:
    """Play the summaries of `decoupled bench verdict` in DECOUPLED_DATA; a few seconds.

    The curve of the bets that version 0.2.0 replaced stays as it is, because their code is gone.
    """
    summaries = next(world for world in verdict.worlds() if world.name.startswith("summaries"))
    file = DATA / "arms-out.csv"
    with file.open(newline="") as opened:
        before = [row for row in csv.DictReader(opened) if row["series"] == "before"]
    with file.open("w", newline="") as opened:
        lines = csv.DictWriter(opened, HEAD, lineterminator="\n")
        lines.writeheader()
        for drift, label in {False: "no drift", True: "drift allowed"}.items():
            runs = [verdict.played(summaries, seed, looks=LOOKS, drift=drift) for seed in range(20)]
            means = np.mean([counts for counts, _ in runs], axis=0)
            for look, mean in zip(LOOKS, means, strict=True):
                lines.writerow({"series": label, "kind": "line", "x": look, "y": f"{mean:.3g}"})
        lines.writerows(before)
    return file

"""The time of a round by the number of arms: FTPL, sorting and improved, and Tsallis-INF by Newton's method."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from decoupled.base import Floats
from decoupled.plots import Panel, Picture, Series
from decoupled.policies import FTPL, TsallisINF

from ..bench.steps import compiled_step, textbook_step
from ..bench.textbook import TextbookFTPL, TextbookTsallis
from ..report.claims import Claim, judged_above, mean_of
from ..report.section import ReportTable, Section
from .base import Advance, Scale, Timed

ARMS = tuple(4 * x + 2 for x in range(64))
SERIES = ("FTPL (improved)", "FTPL (sorting)", "Tsallis-INF (Newton)")
KINDS = ("compiled", "textbook")

COMPILED = (FTPL(), FTPL(ranking="sorting"), TsallisINF())
TEXTBOOK: tuple[Callable[[int], TextbookFTPL | TextbookTsallis], ...] = (
    lambda arms: TextbookFTPL(arms, improved=True),
    lambda arms: TextbookFTPL(arms),
    lambda arms: TextbookTsallis(arms),
)


class Runtime(Timed):
    """Every repetition times each implementation at every K in turn, so that a slow moment affects all equally."""

    def _work(self, scale: Scale) -> tuple[tuple[int, ...], int, int, int]:
        """The numbers of arms, the repetitions, the compiled rounds and the textbook rounds."""
        return (ARMS[::9], 3, 2_000, 100) if scale.quick else (ARMS, 7, 10_000, 400)

    def units(self, scale: Scale) -> int:
        arms, repetitions, *_ = self._work(scale)
        return len(arms) * repetitions

    def code(self, scale: Scale) -> dict[object, Callable[[], object]]:
        return {("step", type(policy)): partial(compiled_step, policy, 2, 10) for policy in COMPILED}

    def record(self, scale: Scale, advance: Advance) -> dict[str, Any]:
        arms, repetitions, compiled_rounds, textbook_rounds = self._work(scale)
        for policy in COMPILED:
            compiled_step(policy, 2, 10)  # compile before the clock starts
        seconds = np.empty((len(KINDS), len(SERIES), len(arms), repetitions))
        for repetition in range(repetitions):
            for place, number in enumerate(arms):
                for which in range(len(SERIES)):
                    at = (which, place, repetition)
                    seconds[0][at] = compiled_step(COMPILED[which], number, compiled_rounds, repetition)
                    seconds[1][at] = textbook_step(TEXTBOOK[which](number), textbook_rounds, repetition)
                advance(1)
        return {"arms": list(arms), "microseconds": (seconds * 1e6).tolist(),
                "rounds": [compiled_rounds, textbook_rounds]}  # fmt: skip

    def extent(self, folder: Path) -> str:
        saved = self.saved(folder)
        repetitions, rounds = np.shape(saved["microseconds"])[-1], saved["rounds"]
        return (
            f"{repetitions} repetitions, each of {rounds[0]:,} compiled and {rounds[1]:,} textbook rounds."
        )

    def section(self, folder: Path) -> Section:
        saved = self.saved(folder)
        arms, times = np.array(saved["arms"], float), np.array(saved["microseconds"])
        slopes = fitted_slopes(arms, times)
        claims = [
            claim for at, kind in enumerate(KINDS) for claim in kind_claims(kind, times[at], slopes[at])
        ]
        rounds = saved["rounds"]
        picture = Picture(
            "runtime",
            "Microseconds per round by the number of arms",
            f"Medians of {times.shape[-1]} repetitions, with least-squares lines. Left: compiled, {rounds[0]:,} rounds. Right: a textbook NumPy step, {rounds[1]:,} rounds.",
            tuple(runtime_panel(kind, arms, times[at]) for at, kind in enumerate(KINDS)),
            columns=2,
        )
        text = (
            "Each timing covers a policy's step, the draw of both arms and the update, from the first round on, on the alternating "
            "environment with gap 0.125. The losses are drawn before the timer starts, so the environment costs one lookup per round. "
            "<i>Compiled</i> is this package. <i>Textbook</i> is the same algorithm as a reader of the paper would write it in NumPy. "
            "Every repetition times all implementations in turn, on one thread."
        )
        tables = (slope_table(slopes),)
        return Section(text, tuple(claims), (picture,), tables)


def kind_claims(kind: str, times: Floats, slopes: Floats) -> list[Claim]:
    """The paper's three claims, for one kind of implementation."""
    place = "Section 4.2, figure of the runtime"
    ending, words = ("", "compiled") if kind == KINDS[0] else (f"-{kind}", "as textbook NumPy steps")
    return [
        judged_above(
            f"runtime-slope{ending}",
            place,
            f"FTPL's time per round grows more slowly with K than that of Tsallis-INF by Newton's method ({words}).",
            "slope of Tsallis-INF minus slope of FTPL (improved), nanoseconds per arm",
            [mean_of(kind, slopes[2] - slopes[0])],
            0.0,
        ),
        judged_above(
            f"runtime-slope-sorting{ending}",
            f"{place}, 'even when compared with the sorting-based implementation'",
            f"Even with sorting, FTPL's time per round grows more slowly with K than that of Tsallis-INF ({words}).",
            "slope of Tsallis-INF minus slope of FTPL (sorting), nanoseconds per arm",
            [mean_of(kind, slopes[2] - slopes[1])],
            0.0,
        ),
        judged_above(
            f"runtime-slower{ending}",
            f"{place}, 'the runtime of FTRL is slower than that of FTPL'",
            f"A round of Tsallis-INF takes longer than a round of FTPL, improved ({words}).",
            "time of Tsallis-INF over FTPL's (improved), mean over K",
            [mean_of(kind, (times[2] / times[0]).mean(axis=0))],
            1.0,
        ),
    ]


def fitted_slopes(arms: Floats, times: Floats) -> Floats:
    """Least-squares slopes in nanoseconds per arm: kind x series x repetition."""
    pull = 1e3 * (arms - arms.mean()) / ((arms - arms.mean()) ** 2).sum()
    return np.asarray(np.einsum("ksar,a->ksr", times, pull))


def runtime_panel(kind: str, arms: Floats, times: Floats) -> Panel:
    """The points and fits of one kind of implementation."""
    series = []
    for style, name in enumerate(SERIES):
        middle = np.median(times[style], axis=-1)
        slope, level = np.polyfit(arms, middle, 1)
        series.append(Series(name, arms, middle, None, style, "points"))
        series.append(Series(name, arms, level + slope * arms, None, style, "fit"))
    return Panel(kind, tuple(series), "K", "microseconds per round")


def slope_table(slopes: Floats) -> ReportTable:
    """The slopes, with their range over repetitions."""
    rows = tuple(
        (
            f"{name}, {kind}",
            f"{np.median(slopes[at, which]):.2f}",
            f"{slopes[at, which].min():.2f} to {slopes[at, which].max():.2f}",
        )
        for at, kind in enumerate(KINDS)
        for which, name in enumerate(SERIES)
    )
    return ReportTable(
        "Slope, nanoseconds per round and arm", ("", "median", "range over repetitions"), rows
    )

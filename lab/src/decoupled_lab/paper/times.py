"""The time of a round by the number of arms, and the cost of a general conic solver."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from decoupled.base import Floats
from decoupled.environments import Alternating
from decoupled.errors import UnsupportedError
from decoupled.plots import Panel, Picture, Series
from decoupled.policies import FTPL, Policy, TsallisINF

from ..bench.steps import TextbookFTPL, TextbookTsallis, compiled_step, textbook_step
from ..report.claims import Claim, Measure, mean_of, quotient_of
from ..report.page import ReportTable, Section
from .base import HORIZON, Advance, Scale, Timed, judge, told, unmeasured

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
        return {
            ("step", type(policy)): partial(compiled_step, policy, 2, 10) for policy in COMPILED
        }

    def record(self, scale: Scale, advance: Advance) -> dict[str, Any]:
        arms, repetitions, compiled_rounds, textbook_rounds = self._work(scale)
        for policy in COMPILED:
            compiled_step(policy, 2, 10)  # compile before the clock starts
        seconds = np.empty((len(KINDS), len(SERIES), len(arms), repetitions))
        for repetition in range(repetitions):
            for place, number in enumerate(arms):
                for which in range(len(SERIES)):
                    at = (which, place, repetition)
                    seconds[0][at] = compiled_step(
                        COMPILED[which], number, compiled_rounds, repetition
                    )
                    seconds[1][at] = textbook_step(
                        TEXTBOOK[which](number), textbook_rounds, repetition
                    )
                advance(1)
        return {"arms": list(arms), "microseconds": (seconds * 1e6).tolist(),
                "rounds": [compiled_rounds, textbook_rounds]}  # fmt: skip

    def extent(self, folder: Path) -> str:
        saved = self.saved(folder)
        repetitions, rounds = np.shape(saved["microseconds"])[-1], saved["rounds"]
        told = f"{rounds[0]:,} compiled and {rounds[1]:,} textbook rounds"
        return f"{repetitions} repetitions, each of {told}."

    def section(self, folder: Path) -> Section:
        saved = self.saved(folder)
        arms, times = np.array(saved["arms"], float), np.array(saved["microseconds"])
        # Least-squares slopes in nanoseconds per arm: kind x series x repetition.
        pull = 1e3 * (arms - arms.mean()) / ((arms - arms.mean()) ** 2).sum()
        slopes = np.einsum("ksar,a->ksr", times, pull)
        claims = [
            claim for each in zip(KINDS, times, slopes, strict=True) for claim in kind_claims(*each)
        ]
        rounds = saved["rounds"]
        picture = Picture(
            "runtime",
            "Microseconds per round by the number of arms",
            f"Medians of {times.shape[-1]} repetitions, with least-squares lines. Left: compiled, {rounds[0]:,} rounds. Right: a textbook NumPy step, {rounds[1]:,} rounds.",
            tuple(runtime_panel(kind, arms, times[at]) for at, kind in enumerate(KINDS)),
            columns=2,
        )
        rows = tuple(
            (f"{name}, {kind}", f"{np.median(each):.2f}", f"{each.min():.2f} to {each.max():.2f}")
            for kind, of_kind in zip(KINDS, slopes, strict=True)
            for name, each in zip(SERIES, of_kind, strict=True)
        )
        head = ("", "median", "range over repetitions")
        table = ReportTable("Slope, nanoseconds per round and arm", head, rows)
        return Section(told("runtime"), tuple(claims), (picture,), (table,))


def kind_claims(kind: str, times: Floats, slopes: Floats) -> list[Claim]:
    """The paper's three claims, for one kind of implementation."""
    ending, how = ("", "compiled") if kind == KINDS[0] else (f"-{kind}", "as textbook NumPy steps")
    values = {
        "slope": slopes[2] - slopes[0],
        "slope-sorting": slopes[2] - slopes[1],
        "slower": (times[2] / times[0]).mean(axis=0),
    }
    return [
        judge(f"runtime-{name}", [mean_of(kind, each)], ending, how=how)
        for name, each in values.items()
    ]


def runtime_panel(kind: str, arms: Floats, times: Floats) -> Panel:
    """The points and fits of one kind of implementation."""
    series = []
    for style, name in enumerate(SERIES):
        middle = np.median(times[style], axis=-1)
        slope, level = np.polyfit(arms, middle, 1)
        series.append(Series(name, arms, middle, None, style, "points"))
        series.append(Series(name, arms, level + slope * arms, None, style, "fit"))
    return Panel(kind, tuple(series), "K", "microseconds per round")


CONIC_ARMS = (2, 4, 8, 16, 32, 64)
PAPERS_RATIOS = {2: 130.0, 64: 1363.0}  # the ratios that remark 2.1 and appendix E.2 give
CONIC_STEPS = 10_000  # compiled rounds per timing
TEXTBOOK_STEPS = 1_000


class Conic(Timed):
    """A sample of rounds along a trajectory, each solved again by SCS and timed."""

    def units(self, scale: Scale) -> int:
        return len(CONIC_ARMS)

    def code(self, scale: Scale) -> dict[object, Callable[[], object]]:
        return {
            ("step", FTPL): partial(compiled_step, FTPL(), 2, 10),
            ("learner", TsallisINF): partial(one_round, TsallisINF()),
        }

    def record(self, scale: Scale, advance: Advance) -> dict[str, Any]:
        samples = 8 if scale.quick else 60
        try:
            one_round(TsallisINF(solver="scs"))  # the first call loads it
        except UnsupportedError as error:
            return {"missing": str(error)}
        compiled_step(FTPL(), 2, 10)
        lines = []
        for arms in CONIC_ARMS:
            seconds, distance = solve_again(arms, samples, scale.seed)
            rounds = CONIC_STEPS // 5 if scale.quick else CONIC_STEPS
            compiled = [compiled_step(FTPL(), arms, rounds, seed) for seed in range(5)]
            textbook = [
                textbook_step(TextbookFTPL(arms), TEXTBOOK_STEPS // 5, seed) for seed in range(5)
            ]
            lines.append(
                {
                    "arms": arms,
                    "scs": seconds,
                    "compiled": compiled,
                    "textbook": textbook,
                    "error": distance,
                }
            )
            advance(1)
        return {"lines": lines}

    def extent(self, folder: Path) -> str:
        saved = self.saved(folder)
        if "missing" in saved:
            return "Nothing was run."
        line = saved["lines"][0]
        return f"{len(line['scs'])} sampled rounds by the conic solver and {len(line['compiled'])} repetitions of FTPL for each K."

    def section(self, folder: Path) -> Section:
        saved = self.saved(folder)
        if "missing" in saved:
            unjudged = unmeasured("conic-compiled", "scs is not installed")
            return Section(told("conic"), (unjudged,), (), (), (saved["missing"],))
        lines = saved["lines"]
        pictures, tables = (ratio_picture(lines),), (time_table(lines),)
        return Section(told("conic"), conic_claims(lines), pictures, tables)


def one_round(policy: Policy) -> None:
    """Decide and observe once."""
    learner = policy.start(arms=2, seed=0)
    learner.observe(learner.decide(), loss=0.5)


def solve_again(arms: int, samples: int, seed: int) -> tuple[list[float], float]:
    """Time SCS steps at rounds spread over a run; return the seconds and the largest distance from Newton's weights."""
    table = Alternating(arms=arms, gap=0.125).table(HORIZON)
    learner = TsallisINF().start(arms, seed)
    conic = TsallisINF(solver="scs")
    calls, values = conic.entries(), conic.param_values()
    luck = np.random.default_rng(seed)
    wanted = set(np.linspace(1, HORIZON, samples, dtype=int).tolist())
    seconds, worst = [], 0.0
    for t in range(1, HORIZON + 1):
        decision = learner.decide()
        arm = int(decision.explore)
        loss = float(luck.random() < table.rows[table.row_at[t - 1], arm])
        state = conic.layout.new_state(arms)
        if t in wanted:
            state.floats[0] = learner.estimates()
            state.scalars[0] = learner.round
            stream, start = np.ones(2, np.uint64), time.perf_counter()
            calls.update(values, *state, arm, decision.weight, loss)
            calls.decide(values, *state, stream)
            seconds.append(time.perf_counter() - start)
        learner.observe(decision, loss=loss)
        if t in wanted:
            difference = conic.exploitation_law(state) - learner.exploitation_probabilities()
            worst = max(worst, float(np.abs(difference).max()))
    return seconds, worst


def time_ratio(line: dict[str, Any], rival: str, comparisons: int = 1) -> Measure:
    """How many times as long a step by SCS takes as a step of FTPL."""
    return quotient_of(f"K = {line['arms']}", [line["scs"]], [line[rival]], comparisons)


def conic_claims(lines: list[dict[str, Any]]) -> tuple[Claim, ...]:
    """The ratio is at least 100 for either implementation of FTPL, and it grows; both solvers find the same weights."""
    first, last = lines[0], lines[-1]
    above, below = [last["scs"], first["textbook"]], [last["textbook"], first["scs"]]
    ratios = (
        judge(f"conic-{rival}", [time_ratio(line, rival, len(lines)) for line in lines])
        for rival in ("compiled", "textbook")
    )
    growth = judge("conic-grows", [quotient_of("K = 64 over K = 2", above, below)])
    errors = [Measure(f"K = {line['arms']}", *[line["error"]] * 3) for line in lines]
    return (*ratios, growth, judge("conic-same", errors))


def ratio_picture(lines: list[dict[str, Any]]) -> Picture:
    """The paper's figure, with its two published numbers."""
    arms = np.array([line["arms"] for line in lines], float)
    series = []
    for style, (rival, words) in enumerate(
        (("textbook", "NumPy FTPL"), ("compiled", "compiled FTPL"))
    ):
        parts = [time_ratio(line, rival) for line in lines]
        values, lows, highs = np.array([part[1:4] for part in parts]).T
        series.append(Series(words, arms, values, np.array([values - lows, highs - values]), style))
    at, published = np.array(list(PAPERS_RATIOS.items())).T
    series.append(Series("the paper", at, published, None, 2, "points"))
    panel = Panel(
        "", tuple(series), "K", "time of Tsallis-INF by SCS over FTPL's", log_x=True, log_y=True
    )
    spread = f"{len(lines[0]['scs'])} rounds spread over 10,000"
    caption = f"Ratios of mean times, with SCS of {spread}. Bands are 95 % intervals."
    return Picture("conic", "How many times as long a round takes with SCS", caption, (panel,))


def time_table(lines: list[dict[str, Any]]) -> ReportTable:
    """The mean times."""
    rows = tuple(
        (
            f"K = {line['arms']}",
            f"{1e3 * np.mean(line['scs']):.2f} ms",
            f"{1e6 * np.mean(line['textbook']):.1f} µs",
            f"{1e6 * np.mean(line['compiled']):.3f} µs",
        )
        for line in lines
    )
    head = ("", "Tsallis-INF by SCS", "FTPL, NumPy", "FTPL, compiled")
    return ReportTable("Mean time of a step", head, rows)

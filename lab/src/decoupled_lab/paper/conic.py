"""The cost of a general conic solver: Tsallis-INF by SCS, compared with FTPL."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from decoupled.base import Floats
from decoupled.environments import Alternating
from decoupled.errors import UnsupportedError
from decoupled.extend import State
from decoupled.plots import Panel, Picture, Series
from decoupled.policies import FTPL, Policy, TsallisINF

from ..bench.steps import compiled_step, textbook_step
from ..bench.textbook import TextbookFTPL
from ..report.claims import Claim, Measure, judged_above, judged_below, not_judged, quotient_of
from ..report.section import ReportTable, Section
from .base import HORIZON, Advance, Scale, Timed

ARMS = (2, 4, 8, 16, 32, 64)
PAPER = {2: 130.0, 64: 1363.0}  # the ratios that remark 2.1 and appendix E.2 give
STEPS = 10_000  # compiled rounds per timing
TEXTBOOK_STEPS = 1_000


class Conic(Timed):
    """A sample of rounds along a trajectory, each solved again by SCS and timed."""

    def units(self, scale: Scale) -> int:
        return len(ARMS)

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
        for arms in ARMS:
            seconds, distance = solve_again(arms, samples, scale.seed)
            rounds = STEPS // 5 if scale.quick else STEPS
            compiled = [compiled_step(FTPL(), arms, rounds, seed) for seed in range(5)]
            textbook = [textbook_step(TextbookFTPL(arms), TEXTBOOK_STEPS // 5, seed) for seed in range(5)]
            times = {"scs": seconds, "compiled": compiled, "textbook": textbook}
            lines.append({"arms": arms, **times, "error": distance})
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
            place = "Section 4.2 and appendix E.2"
            claim = Claim("conic-compiled", place, STATEMENT, "time ratio", "above 100", (), "")
            unjudged = not_judged(claim, "scs is not installed")
            return Section(TEXT, (unjudged,), (), (), (saved["missing"],))
        lines = saved["lines"]
        claims = (*ratio_claims(lines), accuracy_claim(lines))
        return Section(TEXT, claims, (ratio_picture(lines),), (time_table(lines),))


def one_round(policy: Policy) -> None:
    """Decide and observe once."""
    learner = policy.start(arms=2, seed=0)
    learner.observe(learner.decide(), loss=0.5)


STATEMENT = "A round of Tsallis-INF solved by SCS takes at least 100 times as long as a round of FTPL"
TEXT = (
    "Tsallis-INF plays the alternating environment with Newton's method. At sampled rounds, SCS repeats the same step, one update and "
    "one draw of both arms, and is timed (power cones, accuracy 1e-6, no warm start). FTPL's step is timed as in the runtime "
    "figure, both compiled and as a textbook NumPy step."
)


def solve_again(arms: int, samples: int, seed: int) -> tuple[list[float], float]:
    """Time SCS steps at rounds spread over a run; return the seconds and the largest distance from Newton's weights."""
    table = Alternating(arms=arms, gap=0.125).table(HORIZON)
    learner = TsallisINF().start(arms, seed)
    conic = TsallisINF(solver="scs")
    calls, values = conic.entries(), np.array(conic.params())
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
            seconds.append(timed_step(calls, values, state, arm, decision.weight, loss))
        learner.observe(decision, loss=loss)
        if t in wanted:
            difference = conic.exploitation_law(state) - learner.exploitation_probabilities()
            worst = max(worst, float(np.abs(difference).max()))
    return seconds, worst


def timed_step(calls: Any, values: Floats, state: State, arm: int, weight: float, loss: float) -> float:
    """The seconds of one update by SCS and one draw."""
    stream = np.ones(2, np.uint64)
    start = time.perf_counter()
    calls.update(values, *state, arm, weight, loss)
    calls.decide(values, *state, stream)
    return time.perf_counter() - start


def ratio(line: dict[str, Any], rival: str, comparisons: int = 1) -> Measure:
    """How many times as long a step by SCS takes as a step of FTPL."""
    return quotient_of(f"K = {line['arms']}", [line["scs"]], [line[rival]], comparisons)


def ratio_claims(lines: list[dict[str, Any]]) -> list[Claim]:
    """The ratio is at least 100 for either implementation of FTPL, and it grows."""
    claims = []
    for rival, words in (("compiled", "this package's FTPL"), ("textbook", "a textbook NumPy FTPL")):
        parts = [ratio(line, rival, len(lines)) for line in lines]
        claims.append(
            judged_above(
                f"conic-{rival}",
                "Section 4.2, 'the runtime increases by at least 100 times', and appendix E.2",
                f"{STATEMENT} (compared with {words}).",
                "time of a step by SCS over FTPL's",
                parts,
                100.0,
            )
        )
    first, last = lines[0], lines[-1]
    growth = quotient_of(
        "K = 64 over K = 2", [last["scs"], first["textbook"]], [last["textbook"], first["scs"]]
    )
    claims.append(
        judged_above(
            "conic-grows",
            "Appendix E.2, 'the ratio grows rapidly', from about 130 at K = 2 to 1363 at K = 64",
            "From K = 2 to K = 64 the ratio grows at least by the factor of the paper, 1363/130 (compared with a textbook NumPy FTPL).",
            "ratio at K = 64 over ratio at K = 2",
            [growth],
            PAPER[64] / PAPER[2],
        )
    )
    return claims


def accuracy_claim(lines: list[dict[str, Any]]) -> Claim:
    """The claim that both solvers find the same weights."""
    parts = [Measure(f"K = {line['arms']}", line["error"], line["error"], line["error"]) for line in lines]
    return judged_below(
        "conic-same",
        "ours",
        "SCS and Newton's method find the same weights, to SCS's accuracy.",
        "largest difference between weights over the sampled rounds",
        parts,
        1e-5,
    )


def ratio_picture(lines: list[dict[str, Any]]) -> Picture:
    """The paper's figure, with its two published numbers."""
    arms = np.array([line["arms"] for line in lines], float)
    series = []
    for style, (rival, words) in enumerate((("textbook", "NumPy FTPL"), ("compiled", "compiled FTPL"))):
        parts = [ratio(line, rival) for line in lines]
        values, lows, highs = np.array([part[1:4] for part in parts]).T
        series.append(Series(words, arms, values, np.array([values - lows, highs - values]), style))
    at, published = np.array(list(PAPER.items())).T
    series.append(Series("the paper", at, published, None, 2, "points"))
    panel = Panel("", tuple(series), "K", "time of Tsallis-INF by SCS over FTPL's", log_x=True, log_y=True)
    samples = len(lines[0]["scs"])
    caption = (
        f"Ratios of mean times, with SCS of {samples} rounds spread over 10,000. Bands are 95 % intervals."
    )
    return Picture("conic", "How many times as long a round takes with SCS", caption, (panel,))


def time_table(lines: list[dict[str, Any]]) -> ReportTable:
    """The mean times."""
    rows = tuple(
        (
            f"K = {line['arms']}",
            f"{1e3 * np.mean(line['scs']):.2f} ms",
            f"{1e6 * np.mean(line['textbook']):.1f} us",
            f"{1e6 * np.mean(line['compiled']):.3f} us",
        )
        for line in lines
    )
    return ReportTable(
        "Mean time of a step", ("", "Tsallis-INF by SCS", "FTPL, NumPy", "FTPL, compiled"), rows
    )

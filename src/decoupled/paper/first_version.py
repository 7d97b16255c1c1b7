"""What the abstract of the paper's first version claims, and the final version no longer does."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..base.arrays import Floats
from ..base.files import write_atomically
from ..bench.steps import compiled_step, textbook_step
from ..environments import Environment
from ..errors import UnsupportedError
from ..plots import Picture
from ..policies import FTPL, TopTwo, TsallisINF
from ..report.claims import Claim, judged_above, judged_within, mean_of
from ..report.section import Section, Table
from ..simulation import Results
from ..simulation.plan import Plan, make_plan
from .base import HORIZON, TIMES_FILE, Advance, Scale, Simulated
from .conic import solve_again
from .runtime import COMPILED, TEXTBOOK
from .setup import ADVERSARIES, BENCHMARKS, named_panel, regret_ratio

PAPER, OURS, PURE = FTPL(), FTPL.recommended(), TopTwo()
NAMES = {PAPER.label: "FTPL", OURS.label: "FTPL.recommended()", PURE.label: "Top two (pure exploration)"}
PLACE = "the abstract of version 1 (arXiv:2510.12152v1)"

TIMED_ARMS = (8, 64)
ROUNDS = {"compiled": 10_000, "textbook": 400}
SOLVER = "conic solver"
LEAST, MOST = 10.0, 40.0  # what "about 20 times" may mean


class FirstVersion(Simulated):
    """Regret beside a rule for pure exploration, and the time of a round beside Tsallis-INF with three solvers."""

    name = "first-version"
    title = "Claims of the paper's first version"
    about = "a rule for pure exploration beside FTPL, and whether a round is 20 times as fast as one of Tsallis-INF"
    origin = "the abstract of the paper's first version"
    in_quick = False
    times = True
    on_device = False  # it times the CPU

    def plans(self, scale: Scale) -> dict[str, Plan]:
        worlds: dict[str, Environment] = {**BENCHMARKS, **({} if scale.quick else ADVERSARIES)}
        return {
            name: make_plan((PAPER, OURS, PURE), world, HORIZON, scale.runs, scale.seed, 50)
            for name, world in worlds.items()
        }

    def code(self, scale: Scale) -> dict[object, Callable[[], object]]:
        steps: dict[object, Callable[[], object]] = {
            ("step", type(policy)): partial(compiled_step, policy, 2, 10) for policy in COMPILED
        }
        return {**super().code(scale), **steps}

    def measure(self, scale: Scale, folder: Path, advance: Advance) -> None:
        super().measure(scale, folder, advance)
        path = folder / TIMES_FILE
        if not path.exists():
            write_atomically(path, json.dumps(times(scale), indent=1))

    def section(self, folder: Path) -> Section:
        cells = self.results(folder)
        measured = json.loads((folder / TIMES_FILE).read_text())
        slower = {name: np.array(each) for name, each in measured["slower"].items()}
        runs = next(iter(cells.values())).runs
        picture = Picture(
            "first-version",
            "FTPL and a rule for pure exploration",
            f"Mean regret over {runs:,} runs, with bands of one standard deviation. Top two exploits its leader.",
            tuple(named_panel(name, results, NAMES) for name, results in cells.items()),
            columns=3,
        )
        text = (
            "The abstract of the first version says that FTPL is 'about 20 times faster than Decoupled-Tsallis-INF' and 'outperforms a pure exploration policy'. The final version says neither. "
            "We read the pure exploration policy as EB-TC<sub>eps</sub> (<i>top two</i>), the anytime rule that the paper cites; in this game it exploits its leader. "
            "How much faster FTPL is depends on how Tsallis-INF is solved, so three ways are timed: Newton's method compiled, as a textbook NumPy step, and a conic solver against a textbook FTPL. "
            f"'About 20' is taken as between {LEAST:g} and {MOST:g}. That 'naively combining a pure exploration with a standard exploitation policy is suboptimal' is not judged, because the abstract does not say which policies are combined."
        )
        claims = (*pure_claims(cells), faster_claim(slower))
        tables = (regret_table(cells), time_table(slower))
        return Section(self.name, self.title, text, claims, (picture,), tables, tuple(measured["missing"]))


def times(scale: Scale) -> dict[str, Any]:
    """How many times as long a round of Tsallis-INF takes as one of FTPL, by solver and repetition."""
    repetitions, part, samples = (3, 5, 8) if scale.quick else (7, 1, 60)
    slower: dict[str, list[float]] = {}
    missing: list[str] = []
    for policy in COMPILED:
        compiled_step(policy, 2, 10)  # compile before the clock starts
    for arms in TIMED_ARMS:
        slower[f"Newton's method, compiled, K = {arms}"] = [
            compiled_step(COMPILED[2], arms, ROUNDS["compiled"] // part, seed)
            / compiled_step(COMPILED[0], arms, ROUNDS["compiled"] // part, seed)
            for seed in range(repetitions)
        ]
        textbook = [
            [textbook_step(TEXTBOOK[which](arms), ROUNDS["textbook"] // part, seed) for which in (0, 2)]
            for seed in range(repetitions)
        ]
        slower[f"Newton's method, textbook, K = {arms}"] = [tsallis / ftpl for ftpl, tsallis in textbook]
        try:
            TsallisINF(solver="scs")
        except UnsupportedError as error:
            missing = [str(error)]
            continue
        seconds, _ = solve_again(arms, samples, scale.seed)
        usual = float(np.median([ftpl for ftpl, _ in textbook]))
        slower[f"{SOLVER}, textbook, K = {arms}"] = [each / usual for each in seconds]
    return {"slower": slower, "missing": missing}


def pure_claims(cells: dict[str, Results]) -> list[Claim]:
    """The claim about pure exploration, for the paper's policy and for ours."""

    def judged(name: str, place: str, statement: str, policy: FTPL) -> Claim:
        parts = [regret_ratio(cell, each, PURE, policy, len(cells)) for cell, each in cells.items()]
        statistic = f"regret of top two over that of {NAMES[policy.label]}"
        return judged_above(f"first-version-{name}", place, statement, statistic, parts, 1.0)

    return [
        judged("pure", f"{PLACE}: 'outperforms a pure exploration policy'", "FTPL has less regret than a rule for pure exploration whose leader is exploited.", PAPER),
        judged("pure-recommended", "ours", "FTPL.recommended() has less regret than that rule.", OURS),
    ]  # fmt: skip


def faster_claim(slower: dict[str, Floats]) -> Claim:
    """The claim about the time of a round."""
    return judged_within(
        "first-version-faster",
        f"{PLACE}: 'about 20 times faster than Decoupled-Tsallis-INF'",
        "A round of FTPL is about 20 times as fast as one of Tsallis-INF.",
        "time of Tsallis-INF over FTPL's",
        [mean_of(name, each, len(slower)) for name, each in slower.items()],
        LEAST,
        MOST,
    )


def regret_table(cells: dict[str, Results]) -> Table:
    """Mean regret and 99th percentile of the three policies."""
    rows = []
    for name, results in cells.items():
        known = [results.final_regret(label) for label in NAMES]
        rows.append((name, *(f"{each.mean():.0f} ({np.quantile(each, 0.99):.0f})" for each in known)))
    title = "Regret after 10,000 rounds: mean (99th percentile)"
    return Table(title, ("", *NAMES.values()), tuple(rows))


def time_table(slower: dict[str, Floats]) -> Table:
    """The ratios of times, with their range."""
    rows = tuple(
        (name, f"{np.median(each):,.1f}", f"{each.min():,.1f} to {each.max():,.1f}")
        for name, each in slower.items()
    )
    return Table("Time of a round of Tsallis-INF over FTPL's", ("", "median", "range"), rows)

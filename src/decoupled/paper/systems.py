"""Every system the paper names, side by side: regret, tails, time, draws, and what each must know."""

import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from ..base.arrays import Floats
from ..base.files import write_atomically
from ..environments import AdaptiveAlternating, Alternating, Bernoulli, Environment, MovieLens, PunishLast
from ..plots import Panel, Picture, Series
from ..policies import (
    FTPL,
    UCB1,
    AvnerExp3,
    CoupledExp3,
    CoupledFTPL,
    CoupledTsallisINF,
    Exp3,
    FollowTheLeader,
    JinHybrid,
    Policy,
    ThompsonSampling,
    TopTwo,
    TsallisINF,
)
from ..report.claims import Claim, Measure, judged_above, judged_within, mean_of, ratio_of
from ..report.page import short
from ..report.section import Section, Table
from ..simulation import Results
from ..simulation.cpu import run_block
from ..simulation.draws import draws_per_round
from ..simulation.plan import Plan, make_plan
from .base import HORIZON, TIMES_FILE, Advance, Scale, Simulated
from .movielens import source
from .setup import ADVERSARIAL, STOCHASTIC_EASY, STOCHASTIC_HARD

# Each policy with a short name, and what must be known before the first round to run it as its theory
# wants it.
SYSTEMS: dict[Policy, tuple[str, str]] = {
    FTPL(): ("FTPL", "nothing"),
    TsallisINF(): ("Tsallis-INF (FTRL)", "nothing"),
    Exp3(): ("EXP3", "nothing"),
    AvnerExp3(horizon=HORIZON): ("Avner's Exp3", "the horizon"),
    JinHybrid(): ("Jin-style hybrid", "nothing (constants chosen by us)"),
    TopTwo(): ("top two", "that losses are stochastic"),
    FollowTheLeader(): ("follow the leader", "that losses do not watch"),
    CoupledFTPL(): ("coupled FTPL, GR", "nothing"),
    CoupledFTPL(resampling="conditional"): ("coupled FTPL, CGR", "nothing"),
    CoupledTsallisINF(): ("coupled Tsallis-INF", "nothing"),
    CoupledTsallisINF(estimator="reduced-variance"): ("coupled Tsallis-INF, RV", "nothing"),
    CoupledExp3(): ("coupled Exp3", "nothing"),
    UCB1(): ("UCB1 (coupled)", "that losses are stochastic"),
    ThompsonSampling(): ("Thompson (coupled)", "that losses are stochastic"),
}
RESAMPLING = (CoupledFTPL(cap=None), CoupledFTPL(resampling="conditional", cap=None))
RESAMPLED_ARMS = (8, 64, 256)
TIMED_ARMS = (8, 64)
MOVIES = 32


def worlds(quick: bool) -> dict[str, Environment]:
    """The paper's instances, both adversaries unless it must be quick (each has loops of its own), the movies."""
    tables = {
        "alternating": ADVERSARIAL,
        "stochastic easy": STOCHASTIC_EASY,
        "stochastic hard": STOCHASTIC_HARD,
    }
    adversaries = {
        "punish last": PunishLast(arms=8),
        "adaptive alternating": AdaptiveAlternating(arms=8, gap=0.125),
    }
    movies = {f"movies, K = {MOVIES}": MovieLens(MOVIES, data=source()["data"])}
    return {**tables, **({} if quick else adversaries), **movies}


class Systems(Simulated):
    """The whole field on one page. The quick version leaves it out: fourteen policies take long to compile."""

    name = "systems"
    title = "Every system the paper names"
    about = "every system that the paper names, side by side"
    origin = "ours, after sections 1 and 2"
    in_quick = False
    on_device = False  # its times are the CPU's

    def plans(self, scale: Scale) -> dict[str, Plan]:
        runs = scale.fewer(4)
        return {
            name: make_plan(tuple(SYSTEMS), world, HORIZON, runs, scale.seed, 20)
            for name, world in worlds(scale.quick).items()
        }

    def measure(self, scale: Scale, folder: Path, advance: Advance) -> None:
        super().measure(scale, folder, advance)
        path = folder / TIMES_FILE
        if not path.exists():
            measured = {"seconds": round_times(scale), "draws": resampling_draws(scale), **source()}
            write_atomically(path, json.dumps(measured, indent=1))

    def section(self, folder: Path) -> Section:
        cells = self.results(folder)
        measured = json.loads((folder / TIMES_FILE).read_text())
        runs = next(iter(cells.values())).data.sizes["run"]
        claims = (
            *draw_claims(measured["draws"]),
            exp3_claim(cells),
            top_two_claim(cells),
            hybrid_claim(measured["seconds"]),
            decoupling_claim(cells),
        )
        warnings: tuple[str, ...] = ()
        if measured["data"] == "stand-in":
            warnings = ("The movies of this section are a generated stand-in: MovieLens was not at hand.",)
        text = (
            "Policies marked <i>coupled</i> play the standard game, where the arm that is played is the arm "
            "that is seen: they have less information, and are here to show what decoupling is worth. GR and CGR are plain and conditional geometric resampling, RV is the estimator of reduced variance. <i>Top two</i> is EB-TC<sub>eps</sub>, a rule for pure "
            "exploration, whose leader is exploited. The <i>hybrid</i> is after Jin, Liu and Luo (2023), with constants chosen by us. Times are of the compiled "
            "round loop on one thread, environment included."
        )
        tables = (overview(cells, measured["seconds"], measured["draws"]),)
        return Section(
            self.name,
            self.title,
            text,
            claims,
            (cost_picture(cells, measured["seconds"], runs),),
            tables,
            warnings,
        )


def round_times(scale: Scale) -> dict[str, list[list[float]]]:
    """Seconds a round: for each policy, repetitions at each number of arms, all policies in turn."""
    rounds, repetitions = (5_000, 3) if scale.quick else (20_000, 7)
    times: dict[str, list[list[float]]] = {policy.label: [] for policy in SYSTEMS}
    for arms in TIMED_ARMS:
        world = Alternating(arms=arms, gap=0.125)
        for policy in SYSTEMS:
            times[policy.label].append([])
        for repetition in range(repetitions):
            for policy in SYSTEMS:
                start = time.perf_counter()
                run_block(policy, world, rounds, np.array([rounds]), repetition, 0, 1)
                times[policy.label][-1].append((time.perf_counter() - start) / rounds)
    return times


def resampling_draws(scale: Scale) -> dict[str, dict[str, list[float]]]:
    """Draws a round by each kind of resampling, without a cap, for runs of several numbers of arms."""
    runs = scale.fewer(40)
    return {
        policy.resampling: {
            str(arms): draws_per_round(policy, Bernoulli([0.5] * (arms - 1) + [0.6]), 1_000, runs, scale.seed).tolist()
            for arms in RESAMPLED_ARMS
        }
        for policy in RESAMPLING
    }  # fmt: skip


def draw_claims(draws: dict[str, dict[str, list[float]]]) -> list[Claim]:
    """What resampling costs."""
    count = len(RESAMPLED_ARMS)
    plain = [
        mean_of(f"K = {arms}", np.array(each) / int(arms), count)
        for arms, each in draws["geometric"].items()
    ]
    sums = {arms: float((1.0 / np.arange(1, int(arms) + 1)).sum()) for arms in draws["conditional"]}
    conditional = [
        mean_of(f"K = {arms}", np.array(each) / sums[arms], count)
        for arms, each in draws["conditional"].items()
    ]
    return [
        judged_within(
            "systems-geometric",
            "Section 1: geometric resampling costs O(K^2) a round, K draws of K perturbations",
            "Geometric resampling takes about K draws a round.",
            "draws a round over K",
            plain,
            0.5,
            2.0,
        ),
        judged_within(
            "systems-conditional",
            "Section 1: its efficient variant costs O(K log K) a round",
            "Conditional geometric resampling takes about log K draws a round.",
            "draws a round over 1 + 1/2 + ... + 1/K",
            conditional,
            0.8,
            1.25,
        ),
    ]


def ratios(
    cells: dict[str, Results], above: Policy, below: Policy, names: tuple[str, ...]
) -> list[Measure]:
    """Regret of one policy over another's in some worlds."""
    return [
        ratio_of(name, cells[name].final_regret(above), cells[name].final_regret(below), len(names))
        for name in names
    ]


STOCHASTIC = ("stochastic easy", "stochastic hard")


def exp3_claim(cells: dict[str, Results]) -> Claim:
    """Exponential weights pay in the stochastic regime."""
    return judged_above(
        "systems-exp3",
        "Sections 1 and 2.2: Exp3-type policies are suboptimal in the stochastic regime",
        "The Exp3-type policy of Avner, Mannor and Shamir, tuned for the horizon, has more stochastic regret than FTPL.",
        "regret of AvnerExp3 over FTPL's",
        ratios(cells, AvnerExp3(horizon=HORIZON), FTPL(), STOCHASTIC),
        1.0,
    )


def top_two_claim(cells: dict[str, Results]) -> Claim:
    """A rule for pure exploration does better than exponential weights."""
    return judged_above(
        "systems-top-two",
        "Section 1, 'even an anytime sampling rule designed for pure exploration tasks' does better",
        "EB-TC_eps, a rule for pure exploration, has less stochastic regret than the Exp3-type policy.",
        "regret of AvnerExp3 over TopTwo's",
        ratios(cells, AvnerExp3(horizon=HORIZON), TopTwo(), STOCHASTIC),
        1.0,
    )


def hybrid_claim(seconds: dict[str, list[list[float]]]) -> Claim:
    """What the hybrid regulariser costs with a solver made for it."""
    count = len(TIMED_ARMS)
    parts = [
        mean_of(
            f"K = {arms}",
            np.array(seconds[JinHybrid().label][at]) / np.median(seconds[FTPL().label][at]),
            count,
        )
        for at, arms in enumerate(TIMED_ARMS)
    ]
    return judged_above(
        "systems-hybrid",
        "Section 2.2, remark: 'substantially heavier computational costs', 'around 130 times slower'",
        "A round of the hybrid FTRL policy takes at least 100 times as long as one of FTPL, also with a solver made for it.",
        "time of JinHybrid over FTPL's",
        parts,
        100.0,
    )


def decoupling_claim(cells: dict[str, Results]) -> Claim:
    """What the second arm is worth."""
    names = ("alternating", *STOCHASTIC)
    return judged_above(
        "systems-decoupling",
        "Section 1: decoupled regret 'outperforms the optimal bound for the standard stochastic bandits'",
        "Decoupled FTPL has less regret than the standard game's Tsallis-INF on the paper's three instances.",
        "regret of CoupledTsallisINF over FTPL's",
        ratios(cells, CoupledTsallisINF(), FTPL(), names),
        1.0,
    )


def cost_picture(cells: dict[str, Results], seconds: dict[str, list[list[float]]], runs: int) -> Picture:
    """Regret against time, a point for each policy."""
    panels = []
    for name, results in cells.items():
        series = []
        for style, (policy, (name_of, _)) in enumerate(SYSTEMS.items()):
            at = np.array([1e6 * np.median(seconds[policy.label][0])])
            line = results.summary().loc[policy.label]
            half = np.array([line["high"] - line["mean"]])
            series.append(Series(name_of, at, np.array([line["mean"]]), half, style, "points"))
        panels.append(Panel(name, tuple(series), "microseconds a round, K = 8", "regret", log_x=True))
    caption = f"Mean regret after 10,000 rounds over {runs:,} runs with its 95 % interval, against the time of a round at K = 8. Lower and further left is better."
    return Picture("systems", "Regret and cost of every system", caption, tuple(panels), columns=2)


def overview(
    cells: dict[str, Results],
    seconds: dict[str, list[list[float]]],
    draws: dict[str, dict[str, list[float]]],
) -> Table:
    """One line a policy."""
    head = (
        "policy",
        *(f"{name}: mean (99th percentile)" for name in cells),
        *(f"us a round, K = {arms}" for arms in TIMED_ARMS),
        "draws a round, K = 64",
        "must know",
    )
    lines = {name: results.summary() for name, results in cells.items()}
    rows = []
    for policy, (name, knowledge) in SYSTEMS.items():
        label = policy.label
        regret = (formatted(each.loc[label]) for each in lines.values())
        times = (short(1e6 * float(np.median(each))) for each in seconds[label])
        rows.append((name, *regret, *times, drawn(policy, draws), knowledge))
    return Table("Regret after 10,000 rounds, and cost", head, tuple(rows))


def formatted(line: Any) -> str:
    """Mean, half-width of its interval, 99th percentile."""
    return f"{line['mean']:.0f} ± {line['high'] - line['mean']:.0f} ({line['p99']:.0f})"


def drawn(policy: Policy, draws: dict[str, dict[str, list[float]]]) -> str:
    """How many draws resampling makes, for a policy that resamples."""
    if not isinstance(policy, CoupledFTPL):
        return ""
    made: Floats = np.array(draws[policy.resampling]["64"])
    return f"{made.mean():.1f}"

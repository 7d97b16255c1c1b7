"""What several experiments share: the paper's policies and instances, and how they present regret."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ..base.arrays import Floats
from ..environments import AdaptiveAlternating, Alternating, Bernoulli, Environment, PunishLast
from ..plots import Panel, Picture, Series
from ..policies import FTPL, Exp3, Policy, TsallisINF
from ..report import comparison
from ..report.claims import Claim, Measure, judged_above, mean_of, ratio_of
from ..report.section import Table
from ..simulation import Results

POLICIES: tuple[Policy, ...] = (FTPL(), TsallisINF(), Exp3())

NAMES = {
    "FTPL": "FTPL",
    "TsallisINF": "Tsallis-INF",
    "Exp3": "EXP3",
    "FollowTheLeader": "Follow the leader",
}
LEGENDS = {**NAMES, "TsallisINF": "FTRL"}  # as in the paper's figures

EASY = (0.55, 0.6, 0.45, 0.3, 0.2)  # mean rewards, mu1
HARD = (0.905, 0.91, 0.89, 0.908, 0.88)  # mu2

ADVERSARIAL = Alternating(arms=8, gap=0.125)
STOCHASTIC_EASY = Bernoulli(rewards=EASY)
STOCHASTIC_HARD = Bernoulli(rewards=HARD)
BENCHMARKS: dict[str, Environment] = {
    "alternating": ADVERSARIAL,
    "stochastic easy": STOCHASTIC_EASY,
    "stochastic hard": STOCHASTIC_HARD,
}
ADVERSARIES: dict[str, Environment] = {
    "punish last": PunishLast(arms=8),
    "adaptive alternating": AdaptiveAlternating(arms=8, gap=0.125),
}
PUNISHED_ARMS = (2, 8, 32, 128)

# What `FTPL.recommended()` was in version 0.1.0: the hard gate, and one exploitation rate.
RECOMMENDED_BEFORE = FTPL(
    c=0.5, ranking="auto", estimator="centred", c_exploit=3.0, lam=0.1, schedule="losses"
)


def regret_panel(title: str, results: Results, log_x: bool = False) -> Panel:
    """The paper's kind of figure: mean regret by round, with bands of one standard deviation."""
    styles = {name: style for style, name in enumerate(LEGENDS.values())}  # the same in every figure
    series = tuple(each._replace(style=styles[each.label]) for each in results.series(LEGENDS))
    return Panel(title, series, log_x=log_x)


def regret_picture(
    name: str,
    title: str,
    cells: Mapping[str, Results],
    columns: int = 1,
    *,
    more: str = "",
    log_x: bool = False,
) -> Picture:
    """A panel for each cell; `more` continues the caption."""
    runs = next(iter(cells.values())).runs
    caption = (
        f"Mean regret over {runs:,} runs, with bands of one standard deviation. Every policy has c = 2. "
        f"FTRL is the paper's name for Tsallis-INF. {more}"
    )
    panels = tuple(regret_panel(cell, results, log_x) for cell, results in cells.items())
    return Picture(name, title, caption.strip(), panels, columns=columns)


def mean_series(
    label: str,
    at: Floats,
    samples: Iterable[Floats],
    style: int,
    kind: str = "line",
    scale: Floats | float = 1.0,
) -> Series:
    """The mean of each sample with its 95 % interval, divided by `scale`."""
    parts = [mean_of("", each) for each in samples]
    middle = np.array([part.value for part in parts]) / scale
    half = np.array([part.high - part.value for part in parts]) / scale
    return Series(label, at, middle, half, style, kind)


def leads(
    cells: Mapping[str, Results], rivals: Sequence[str] = ("TsallisINF", "Exp3"), leader: str = "FTPL"
) -> list[Measure]:
    """How much larger each rival's regret is than the leader's, paired by run, in every cell."""
    count = len(cells) * len(rivals)
    return [
        mean_of(
            f"{NAMES[rival]} - {NAMES[leader]}{', ' if cell else ''}{cell}",
            results.final_regret(rival) - results.final_regret(leader),
            count,
        )
        for cell, results in cells.items()
        for rival in rivals
    ]


def regret_ratio(
    cell: str, results: Results, above: Policy | str, below: Policy | str, comparisons: int
) -> Measure:
    """The final regret of one policy over another's, paired by run."""
    return ratio_of(cell, results.final_regret(above), results.final_regret(below), comparisons)


def lowest_claim(name: str, place: str, statement: str, cells: Mapping[str, Results]) -> Claim:
    """The claim that FTPL has the lowest regret in every cell."""
    return judged_above(name, place, statement, "regret of a rival minus FTPL's", leads(cells), 0.0)


def regret_table(cells: Mapping[str, Results]) -> Table:
    """The final regret of every policy."""
    return comparison.regret_table("Final regret", cells, NAMES)

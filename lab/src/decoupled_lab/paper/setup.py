"""The paper's policies and instances, and how experiments present regret."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from decoupled.base import Floats
from decoupled.environments import (
    AdaptiveAlternating,
    Alternating,
    Bernoulli,
    Environment,
    PunishLast,
)
from decoupled.plots import NAMES, Panel, Picture, Series
from decoupled.policies import (
    FTPL,
    CentredFTPL,
    Exp3,
    FollowTheLeader,
    Ladder,
    Policy,
    TsallisINF,
)
from decoupled.simulation import Results, described

from ..report import comparison
from ..report.claims import Measure, mean_of, quantile_gap, ratio_of
from ..report.page import ReportTable

POLICIES: tuple[Policy, ...] = (FTPL(), TsallisINF(), Exp3())

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

# What we used before the ladder: one exploitation rate.
CENTRED_FTPL = CentredFTPL(c=0.5, exploit_c=3.0, mean_rate=0.1, schedule="losses")
# A ladder without the rung on means: theorem T2 holds for it with a smaller constant.
TWO_RUNGS = Ladder(prior=(0.05, 0.95), mean_rate=0.1, top_two_share=0.0)
# The ladder before it had a memory of the recent past.
WITHOUT_MEMORY = Ladder(memory=None)

# The recommended policy and what it is compared with.
CONTENDERS: dict[Policy, str] = {
    FTPL(): NAMES["FTPL"],
    CENTRED_FTPL: "centred FTPL",
    Ladder(): NAMES["Ladder"],
    FollowTheLeader(): NAMES["FollowTheLeader"],
    TsallisINF(): NAMES["TsallisINF"],
    Exp3(): NAMES["Exp3"],
}
RIVALS = tuple(policy for policy in CONTENDERS if policy != Ladder())
CONTENDER_NAMES = {policy.label: name for policy, name in CONTENDERS.items()}


def named_panel(title: str, results: Results, names: Mapping[str, str]) -> Panel:
    """Mean regret by round, with bands of the 95 % interval of the mean (the paper's are one standard deviation)."""
    series = results.series([names[label] for label in results.labels])
    return Panel(title, series, y_label=described("mean", results.runs))


def regret_picture(
    name: str,
    title: str,
    cells: Mapping[str, Results],
    columns: int = 1,
    *,
    names: Mapping[str, str] = NAMES,
    more: str = "",
    log_x: bool = False,
) -> Picture:
    """The paper's kind of figure: mean regret by round, a panel for each cell; `more` continues the caption."""
    runs = sorted({results.runs for results in cells.values()})
    span = " to ".join(f"{each:,}" for each in dict.fromkeys((runs[0], runs[-1])))
    same = " FTPL, Tsallis-INF and EXP3 have c = 2." if names is NAMES else ""
    caption = (
        f"Mean regret over {span} runs, with bands of the 95 % interval of the mean.{same} {more}"
    )
    panels = tuple(named_panel(*cell, names)._replace(log_x=log_x) for cell in cells.items())
    return Picture(name, title, caption.strip(), panels, columns=columns)


def mean_series(
    label: str, at: Floats, samples: Iterable[Floats], style: int, kind: str = "line",
    scale: Floats | float = 1.0,
) -> Series:  # fmt: skip
    """The mean of each sample with its 95 % interval, divided by `scale`."""
    parts = [mean_of("", each) for each in samples]
    middle = np.array([part.value for part in parts]) / scale
    half = np.array([part.high - part.value for part in parts]) / scale
    return Series(label, at, middle, half, style, kind)


def leads(
    cells: Mapping[str, Results],
    rivals: Sequence[str] = ("TsallisINF", "Exp3"),
    leader: str = "FTPL",
    names: Mapping[str, str] = NAMES,
) -> list[Measure]:
    """How much larger each rival's regret is than the leader's, paired by run, in every cell."""
    count = len(cells) * len(rivals)
    return [
        mean_of(
            f"{names[rival]} - {names[leader]}{', ' if cell else ''}{cell}",
            results.final_regret(rival) - results.final_regret(leader),
            count,
        )
        for cell, results in cells.items()
        for rival in rivals
    ]


def contender_leads(
    cells: Mapping[str, Results], rivals: Sequence[Policy] = RIVALS
) -> list[Measure]:
    """How much larger the regret of each rival is than that of the recommended policy, in every cell."""
    return leads(cells, [each.label for each in rivals], Ladder().label, CONTENDER_NAMES)


def tail_leads(cells: Mapping[str, Results], rivals: Sequence[Policy] = RIVALS) -> list[Measure]:
    """The same for 99th percentiles, with intervals by bootstrap."""
    gaps = []
    for cell, results in cells.items():
        ours = results.final_regret(Ladder())
        for rival in rivals:
            name, theirs = f"{CONTENDERS[rival]}, {cell}", results.final_regret(rival)
            gaps.append(quantile_gap(name, theirs, ours, 0.99, len(cells) * len(rivals)))
    return gaps


def regret_ratio(
    cell: str, results: Results, above: Policy | str, below: Policy | str, comparisons: int
) -> Measure:
    """The final regret of one policy over another's, paired by run."""
    return ratio_of(cell, results.final_regret(above), results.final_regret(below), comparisons)


def late_share(of: str, results: Results, label: str, since: float, comparisons: int) -> Measure:
    """The share of a policy's regret that comes after a part `since` of the rounds."""
    rounds = results.data["round"].values
    start = int(np.argmin(np.abs(rounds - since * rounds[-1])))
    curves = results.data.regret.sel(policy=label).values
    return ratio_of(of, curves[:, -1] - curves[:, start], curves[:, -1], comparisons)


def regret_table(cells: Mapping[str, Results], names: Mapping[str, str] = NAMES) -> ReportTable:
    """The final regret of every policy."""
    return comparison.regret_table("Final regret", cells, names)

"""What several experiments share: the paper's policies and instances, and how regret is told."""

from collections.abc import Sequence

from ..environments import Alternating, Bernoulli
from ..plots import Panel
from ..policies import FTPL, Exp3, Policy, TsallisINF
from ..report import comparison
from ..report.claims import Claim, Measure, judged_above, mean_of
from ..report.section import Table
from ..simulation import Results

POLICIES: tuple[Policy, ...] = (FTPL(), TsallisINF(), Exp3())

# What the paper calls them.
NAMES = {"FTPL": "FTPL", "TsallisINF": "FTRL", "Exp3": "EXP3", "FollowTheLeader": "Follow the leader"}

EASY = (0.55, 0.6, 0.45, 0.3, 0.2)  # mean rewards, mu1
HARD = (0.905, 0.91, 0.89, 0.908, 0.88)  # mu2

ADVERSARIAL = Alternating(arms=8, gap=0.125)
STOCHASTIC_EASY = Bernoulli(rewards=EASY)
STOCHASTIC_HARD = Bernoulli(rewards=HARD)


def regret_panel(title: str, results: Results, log_x: bool = False) -> Panel:
    """The paper's kind of figure: mean regret by round, with bands of one standard deviation."""
    styles = {name: style for style, name in enumerate(NAMES.values())}  # the same in every figure
    series = tuple(each._replace(style=styles[each.label]) for each in results.series(NAMES))
    return Panel(title, series, log_x=log_x)


def leads(
    cells: dict[str, Results], rivals: Sequence[str] = ("TsallisINF", "Exp3"), leader: str = "FTPL"
) -> list[Measure]:
    """How much more each rival regrets than the leader, run by run, in every cell."""
    count = len(cells) * len(rivals)
    return [
        mean_of(
            f"{NAMES.get(rival, rival)} - {NAMES.get(leader, leader)}{', ' if cell else ''}{cell}",
            results.final_regret(rival) - results.final_regret(leader),
            count,
        )
        for cell, results in cells.items()
        for rival in rivals
    ]


def lowest_claim(name: str, place: str, statement: str, cells: dict[str, Results]) -> Claim:
    """The claim that FTPL has the lowest regret in every cell."""
    return judged_above(name, place, statement, "regret of a rival minus FTPL's", leads(cells), 0.0)


def regret_table(title: str, cells: dict[str, Results]) -> Table:
    """Final regret of every policy, under the paper's names."""
    return comparison.regret_table(title, cells, NAMES)

"""Beyond the paper: judges that err, and labels, by which what is learned and said is true for any judge."""

import multiprocessing
import random
from collections.abc import Collection
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, cast

import numpy as np
from scipy.stats import binomtest

from decoupled.base import Ints
from decoupled.environments import Bernoulli
from decoupled.learner import Labels
from decoupled.plots import Panel, Picture
from decoupled.policies import Ladder
from decoupled.simulation import Block, BlockResult, Plan, Results, as_rounds, make_plan

from ..report.claims import LEVEL, Claim, Measure, mean_of
from ..report.page import ReportTable, Section
from .base import PlayedByLearners, Scale, judge, told
from .setup import regret_table

HORIZON, LONGEST = 8_000, 12_000  # rounds of a simulation, and at most until a verdict
ASK = 50  # rounds between two questions: every observation is tested, and a verdict notes which one decided
MEANS = (0.3, 0.2)
# The probability that the judged loss is 1 if the true one is 0, and if it is 1: for both arms, or for each.
JUDGES: dict[str, Any] = {
    "fair": (0.15, 0.85),
    "favours the worse arm": ((0.05, 0.5), (0.2, 0.9)),
    "right in 94 %": ((0.0, 0.8), (0.06, 0.98)),
    "a coin": (0.5, 0.5),
}
FAVOURING = ("favours the worse arm", "right in 94 %")
ALONE, WITH, GOLD = "; the judge alone", "; with labels", "true losses in a tenth of the rounds"
LABELS = Labels(share=0.1, first=200)
GOLD_SHARE = 0.1


def verdict_of(task: tuple[str, str, int]) -> tuple[int, bool] | None:
    """When a watched learner decides, and whether it is right; None if it does not in time."""
    title, how, seed = task
    luck, says = random.Random(seed), np.broadcast_to(JUDGES[title], (2, 2)).tolist()
    learner = Ladder().start(2, seed, labels=LABELS if how == WITH else None)
    learner.watch()
    for number in range(1, LONGEST + 1):
        decision = learner.decide()
        arm = int(decision.explore)
        loss = luck.random() < MEANS[arm]
        judged = float(luck.random() < says[arm][loss])
        if how == ALONE:
            learner.observe(decision, judged)
        else:
            learner.observe(decision, float(loss) if decision.label else None, judged=judged)
        if number % ASK == 0 and (found := learner.inference.verdict()).decided_at is not None:
            return found.decided_at, found.best == 1
    return None


def play_judged(title: str, how: str, checkpoints: Ints, seed: int) -> BlockResult:
    """Play a run in which a learner is told what a judge says, or the true loss of a share of the rounds."""
    luck = random.Random(seed)
    learner = Ladder().start(2, seed, labels=LABELS if how == WITH else None)
    judge_says = np.broadcast_to(JUDGES.get(title, (0.0, 1.0)), (2, 2)).tolist()
    exploited: list[int] = []
    plays = np.zeros((2, 2), np.int64)
    for _ in range(int(checkpoints[-1])):
        if how == GOLD and luck.random() >= GOLD_SHARE:
            exploited.append(cast(int, learner.exploit().exploit))
            continue
        decision = learner.decide()
        exploited.append(cast(int, decision.exploit))
        arm = cast(int, decision.explore)
        plays[1, arm] += 1
        loss = luck.random() < MEANS[arm]
        judged = float(luck.random() < judge_says[arm][loss])
        if how == WITH:
            learner.observe(decision, float(loss) if decision.label else None, judged=judged)
        else:
            learner.observe(decision, judged)
    plays[0] = np.bincount(exploited, minlength=2)
    regret = np.cumsum(np.array(MEANS)[exploited] - min(MEANS))
    return BlockResult(regret[None, checkpoints - 1], plays)


class Judges(PlayedByLearners):
    """Regret and verdicts by the judge: its word alone, labels, and true losses on a share of the rounds."""

    file = "verdicts.json"

    def plans(self, scale: Scale) -> dict[str, Plan]:
        environment = Bernoulli(rewards=[1.0 - mean for mean in MEANS])
        plan = make_plan(Ladder(), environment, HORIZON, scale.fewer(5), scale.seed, 50)
        judged = [title + how for title in JUDGES for how in (ALONE, WITH)]
        return dict.fromkeys([GOLD, *judged], plan)

    def play(self, name: str, plan: Plan, block: Block) -> dict[str, BlockResult]:
        title, how = "", GOLD
        for ending in (ALONE, WITH):
            if name.endswith(ending):
                title, how = name.removesuffix(ending), ending
        return {"": play_judged(title, how, as_rounds(plan), plan.seed + block.first)}

    def beside(self, scale: Scale) -> dict[str, Any]:
        count = scale.most(4) if scale.quick else 3 * scale.runs // 10
        counts = {
            (title, how): count if how == WITH else -(-count // 3)
            for title in JUDGES
            for how in (ALONE, WITH)
        }
        tasks = [
            (*name, scale.seed + run) for name, among in counts.items() for run in range(among)
        ]
        with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as processes:
            found = processes.map(verdict_of, tasks, chunksize=4)
            return {
                "".join(name): [next(found) for _ in range(among)] for name, among in counts.items()
            }

    def section(self, folder: Path) -> Section:
        cells, verdicts = self.results(folder), self.saved(folder)
        rows = tuple((name, *map(str, counted(found))) for name, found in verdicts.items())
        head = ("", "experiments", "decided", "wrong", "median round")
        decided = ReportTable("Verdicts, tested after every observation", head, rows)
        tables = regret_table(cells), decided
        return Section(told("judges"), tuple(claims(cells, verdicts)), (picture(cells),), tables)


def picture(cells: dict[str, Results]) -> Picture:
    """Regret by round, a panel for each judge."""
    panels = []
    for title in JUDGES:
        known = {
            "the judge alone": title + ALONE,
            "true losses in a tenth": GOLD,
            "labels": title + WITH,
        }
        lines = [cells[name].series([short])[0] for short, name in known.items()]
        panels.append(
            Panel(title, tuple(each._replace(style=style) for style, each in enumerate(lines)))
        )
    caption = f"Mean regret in true losses over {cells[GOLD].runs:,} runs, with 95 % intervals. The scales differ."
    return Picture("judges", "Regret by the judge", caption, tuple(panels), columns=2)


def counted(found: list[Any]) -> tuple[int, int, int, str]:
    """How many experiments there are, how many decide, how many of these wrongly, and the median round."""
    made = [each for each in found if each]
    middle = f"{np.median([at for at, _ in made]):,.0f}" if made else ""
    return len(found), len(made), sum(not right for _, right in made), middle


def claims(cells: dict[str, Results], verdicts: dict[str, Any]) -> list[Claim]:
    """What a judge costs, and what labels change."""

    def regret(titles: Collection[str], how: str) -> list[Measure]:
        return [
            mean_of(title, cells[title + how].final_regret(Ladder()), len(titles))
            for title in titles
        ]

    def share(title: str, column: int) -> Measure:
        known = counted(verdicts[title + WITH])
        count, among = int(known[column]), known[0]
        exact = binomtest(count, among).proportion_ci(1.0 - (1.0 - LEVEL) / len(JUDGES))
        return Measure(title, count / among, float(exact.low), float(exact.high), among)

    return [
        judge("judges-labels", regret(JUDGES, WITH)),
        judge("judges-alone", regret(FAVOURING, ALONE)),
        judge("judges-decided", [share(title, 1) for title in JUDGES]),
        judge("judges-wrong", [share(title, 2) for title in JUDGES]),
    ]

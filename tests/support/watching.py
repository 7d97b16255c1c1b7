"""Experiments that are watched at every observation: recorded with learners, judged in NumPy.

A look is judged without computing an interval: it excludes a mean if the supermartingale at that mean has reached
1 / risk. The logarithm of the latter is at most D^2 / (2 V), where D is the deviation of the sum and V the least sum of
squares around any guess. So only looks at which this is large enough are computed exactly.
"""

from typing import NamedTuple

import numpy as np

from decoupled.base.arrays import Floats, Ints
from decoupled.decision import Decision
from decoupled.environments import Alternating
from decoupled.inference import stakes
from decoupled.inference.sums import Sums
from decoupled.kernels.rounds import Table
from decoupled.policies import Policy

# Of the interval for one look: its quantile, and the observations below which it claimed nothing.
_NORMAL, ENOUGH = 1.959963984540054, 30

margin = 1.0  # a test that breaks the supermartingale needs a larger one


class Run(NamedTuple):
    """The observations of one experiment in the order of their decisions."""

    explore: Ints
    exploit: Ints
    weight: Floats
    loss: Floats
    means: Floats  # of every arm (columns) in the round of each observation
    laws: Floats | None = None

    @property
    def arms(self) -> int:
        return int(self.means.shape[1])

    def explored(self, values: Floats) -> Floats:
        """The values in the column of the explored arm, and 0 elsewhere."""
        spread = np.zeros(self.means.shape)
        spread[np.arange(len(values)), self.explore] = values
        return spread


def record(
    policy: Policy,
    table: Table,
    count: int,
    seed: int,
    *,
    every: int = 1,
    delay: int = 0,
    missing: float = 0.0,
    laws: bool = False,
) -> Run:
    """Play until `count` losses were observed.

    Args:
        every: explore in one of so many rounds, and only exploit in the others.
        delay: feedback is late by up to so many decisions, uniformly.
        missing: the share of decisions without feedback.
    """
    rng = np.random.default_rng([seed, 7])
    learner = policy.start(table.rows.shape[1], seed, max_pending=10**6)
    decide, observe, rows = learner.decide, learner.observe, table.rows.tolist()
    made = int(count * (1.2 + 2.0 * missing)) + 2 * delay + 20 if delay or missing else count
    times = np.arange(made) * every + (rng.integers(every, size=made) if every > 1 else 0)
    uniform, row_at = rng.random(made).tolist(), table.row_at[times].tolist()
    chosen: list[Decision] = []
    kept: list[Floats] = []
    losses, order = [], []
    arrivals = np.arange(made) + (rng.integers(delay + 1, size=made) if delay else 0)
    lost = (rng.random(made) < missing).tolist() if missing else [False] * made
    due: dict[int, list[int]] = {}
    for t in range(made):
        decision = decide()
        if laws:
            kept.append(learner.exploration_probabilities())
        chosen.append(decision)
        losses.append(1.0 if uniform[t] < rows[row_at[t]][decision[3]] else 0.0)
        if not lost[t]:
            if not delay:
                observe(decision, losses[t])
                order.append(t)
                continue
            due.setdefault(int(arrivals[t]), []).append(t)
        for late in due.pop(t, ()):
            observe(chosen[late], losses[late])
            order.append(late)
    order = sorted(order)[:count]
    fields = list(zip(*(chosen[t] for t in order), strict=True))
    explore, exploit = (np.array(fields[place], np.int64) for place in (3, 2))
    means = table.rows[np.array([row_at[t] for t in order])]
    return Run(
        explore, exploit, np.array(fields[5]), np.array([losses[t] for t in order]), means,
        np.array([kept[t] for t in order]) if laws else None,
    )  # fmt: skip


# Whether an interval of a family ever excludes the truth


def differences_wrong(run: Run, risk: float) -> bool:
    """Whether the difference of two arms is ever outside its interval, with weights."""
    loss, gain = run.explored(run.weight * run.loss), run.explored(run.weight * (1.0 - run.loss))
    first, second = np.nonzero(~np.eye(run.arms, dtype=np.bool_))
    values = (loss[:, first] + gain[:, second] - 1.0) / run.arms
    return bets_wrong(run, values, np.full(values.shape, 1.0 / run.arms), risk)


def bets_wrong(run: Run, values: Floats, weights: Floats, risk: float) -> bool:
    """Whether bets on these values ever win so much that the true difference of two arms is outside its interval."""
    first, second = np.nonzero(~np.eye(run.arms, dtype=np.bool_))
    truth = np.cumsum(weights * (run.means[:, first] - run.means[:, second]), axis=0)
    sums = Sums.start(run.arms)
    share = float(sums.share_of_pairs(np.array([1]), 0)[0] * sums.part_of_pairs(0))
    goal, won = -np.log(risk * share), np.full(values.shape, -np.inf)
    for stake, prior in zip(stakes.STAKES, np.log(stakes.PRIOR), strict=True):
        gains = np.cumsum(np.log1p(stake * values), axis=0)
        won = np.logaddexp(won, prior + gains - stake * truth)
    return bool((won >= goal).any())


def paired_wrong(run: Run, risk: float) -> bool:
    """Whether the difference of two arms is ever outside its interval, compared two by two."""
    assert run.laws is not None
    weights, level = pair_weights(run)
    first, second = np.nonzero(~np.eye(run.arms, dtype=np.bool_))
    above = run.loss[:, None] - level
    chance = np.take_along_axis(run.laws, run.explore[:, None], axis=1)
    explored = run.explore[:, None]
    sign = (explored == first) * 1.0 - (explored == second)
    return bets_wrong(run, weights * sign * above / chance, weights, risk)


def pair_weights(run: Run) -> tuple[Floats, Floats]:
    """The weight of each round (rows) for each ordered pair of arms, and the level of its bet."""
    assert run.laws is not None
    seen = run.explored(np.ones(len(run.loss)))
    counts = np.cumsum(seen, axis=0) - seen
    totals = np.cumsum(seen * run.loss[:, None], axis=0) - seen * run.loss[:, None]
    means = (totals + 0.5) / (counts + 1.0)
    first, second = np.nonzero(~np.eye(run.arms, dtype=np.bool_))
    is_first = counts[:, first] > counts[:, second]
    is_first |= (counts[:, first] == counts[:, second]) & (first < second)
    level = np.where(is_first, means[:, first], means[:, second]).clip(0.02, 0.98)
    weights = np.minimum(run.laws[:, first] / level, run.laws[:, second] / (1.0 - level))
    return weights, level


def fixed_time_wrong(run: Run) -> bool:
    """Whether an arm is ever outside the interval for a single look at 95 %, by the formula that the service once used."""
    count = np.arange(1.0, len(run.loss) + 1.0)
    known = np.concatenate([[0.5], np.cumsum(run.loss)[:-1] / count[:-1]])[:, None]
    values = known + run.explored(run.weight * (run.loss - known[:, 0]))
    n = count[:, None]
    mean = np.cumsum(values, axis=0) / n
    error = np.sqrt(np.maximum(np.cumsum(values**2, axis=0) / n - mean**2, 0.0) / n)
    telling = np.cumsum(run.explored(np.ones(len(run.loss))), axis=0) >= ENOUGH
    truth = np.cumsum(run.means, axis=0) / n
    return bool((telling & (np.abs(mean - truth) > _NORMAL * error)).any())


def stationary(arms: int) -> Table:
    """Bernoulli losses with means from 0.35 to 0.65, the first arm the best."""
    return Table(np.linspace(0.35, 0.65, arms)[None, :], np.zeros(10**6, np.int64))


def alternating(arms: int) -> Table:
    """Zimmert and Seldin's alternating losses."""
    return Alternating(arms=arms, gap=0.125).table(200_000)


def equal(arms: int) -> Table:
    """Bernoulli losses with the mean 1/2 for every arm: nothing may be decided."""
    return Table(np.full((1, arms), 0.5), np.zeros(10**6, np.int64))


def turning(arms: int) -> Table:
    """The best arm becomes the worst after 150 rounds, and again the best after 150 more."""
    means = np.linspace(0.3, 0.7, arms)
    return Table(np.array([means, means[::-1]]), np.arange(200_000) // 150 % 2)

"""The promise of the sequences: watched at every observation, everything in a family holds in 95 %
of experiments.

`make test` plays two kinds of experiments a hundred times and `make test-slow` a few more;
`DECOUPLED_COVERAGE=full` plays all of them 2,000 times and prints the rows that docs/inference.md
sums up (`pytest -rP`).

A test fails if more experiments are wrong than 5 % of them would explain: 1 in 1,000 would be by
chance if exactly 5 % were wrong. The sequences are wrong less often than that. The tests can fail:
see those with a broken boundary.
"""

import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import decoupled as dc
from decoupled.inference import Sequences, boundary, singles, stakes
from decoupled.inference.comparisons import difference_now
from support import watching
from support.seeds import seeded
from support.singles import against_served_wrong, looks_wrong, served_wrong
from support.watching import (
    Run,
    alternating,
    differences_wrong,
    equal,
    fixed_time_wrong,
    pair_weights,
    paired_wrong,
    record,
    stationary,
    turning,
)

FULL = os.environ.get("DECOUPLED_COVERAGE") == "full"
RUNS = 2_000 if FULL else 100
RISK, FALSE_ALARM = 0.05, 1e-3

POLICIES = {"FTPL()": dc.FTPL(), "Ladder()": dc.Ladder()}
WORLDS = {"stationary": stationary, "alternating": alternating}
# Where a difference of arms may be thought to be above 0 and is not: arms that are equal, and arms
# that take turns.
HARD = {"equal": equal, "turning": turning}
TRAFFIC: dict[str, dict[str, Any]] = {
    "direct": {},
    "5 % slice": {"every": 20},
    "late": {"delay": 100, "missing": 0.1},
}
Cell = tuple[int, str, str, str]
EVERY: list[Cell] = [
    (arms, policy, world, traffic)
    for arms in (5, 2, 50)
    for traffic in TRAFFIC
    for policy in POLICIES
    for world in WORLDS
    if arms == 5 or traffic == "direct"
]
SAMPLE: list[Cell] = [
    (2, "FTPL()", "stationary", "direct"),
    (5, "Ladder()", "alternating", "direct"),
]
FEW: list[Cell] = [
    (5, "FTPL()", "alternating", "5 % slice"),
    (5, "FTPL()", "stationary", "late"),
    (50, "FTPL()", "stationary", "direct"),
]
FAMILIES: dict[str, Callable[[Run, float], bool]] = {
    "arms": looks_wrong,
    "served": served_wrong,
    "against served": against_served_wrong,
    "differences": differences_wrong,
}


def cells(every: list[Cell], sample: list[Cell], few: list[Cell]) -> list[Any]:
    """The kinds of experiments to play, as parameters of a test."""
    if FULL:
        return [pytest.param(cell, id=str(cell)) for cell in every]
    quick = [pytest.param(cell, id=str(cell)) for cell in sample]
    return [
        *quick,
        *(pytest.param(cell, id=str(cell), marks=pytest.mark.exhaustive) for cell in few),
    ]


def played(cell: Cell, run: int, count: int, **options: Any) -> Run:
    arms, policy, world, traffic = cell
    return record(
        POLICIES[policy],
        (WORLDS | HARD)[world](arms),
        count,
        seeded(run),
        **TRAFFIC[traffic],
        **options,
    )


def observed(cell: Cell) -> int:
    """How many losses are observed in an experiment."""
    if FULL:
        return 500 if cell[0] == 50 else 1_000
    return 600  # fewer would not tell the interval for one look with 50 arms


def most_by_chance(runs: int) -> int:
    """The least number that a binomial of 5 % exceeds with a probability of at most FALSE_ALARM."""
    tail, count = 1.0, -1
    while tail > FALSE_ALARM:
        count += 1
        tail -= math.comb(runs, count) * RISK**count * (1 - RISK) ** (runs - count)
    return count


def highest_rate(wrong: int, runs: int) -> float:
    """The upper end of the exact one-sided 97.5 % interval of a rate (Clopper and Pearson)."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        logs = [
            math.lgamma(runs + 1)
            - math.lgamma(k + 1)
            - math.lgamma(runs - k + 1)
            + k * math.log(middle)
            + (runs - k) * math.log1p(-middle)
            for k in range(wrong + 1)
        ]
        low, high = (middle, high) if sum(map(math.exp, logs)) > 0.025 else (low, middle)
    return low


@pytest.mark.parametrize("cell", cells(EVERY, SAMPLE, FEW))
def test_everything_holds_at_every_look_in_95_percent_of_experiments(cell: Cell) -> None:
    wrong, old = counted(cell)
    rates = [f"{each / RUNS:.1%} (≤ {highest_rate(each, RUNS):.1%})" for each in wrong.values()]
    print(f"| {' | '.join(map(str, cell))} | {' | '.join(rates)} | {old / RUNS:.0%} |")
    assert max(wrong.values()) <= most_by_chance(RUNS), wrong
    # The interval for one look, watched in the same experiments, is wrong in most of them.
    assert old > 2 * most_by_chance(RUNS)


def counted(cell: Cell) -> tuple[dict[str, int], int]:
    """In how many experiments each family is ever wrong, and the interval for one look."""
    # 50 arms have 2,450 differences.
    families = {
        name: each for name, each in FAMILIES.items() if name != "differences" or cell[0] <= 5
    }
    wrong, old = dict.fromkeys(families, 0), 0
    for number in range(RUNS):
        run = played(cell, number, observed(cell))
        for name, is_wrong in families.items():
            wrong[name] += is_wrong(run, RISK)
        old += fixed_time_wrong(run)
    return wrong, old


PAIRED: list[Cell] = [
    *(each for each in EVERY if each[0] == 5 and each[3] == "direct"),
    *(
        (arms, policy, world, "direct")
        for arms in (2, 3, 5)
        for policy in POLICIES
        for world in HARD
    ),
]
SAMPLE_PAIRED: list[Cell] = [(2, "Ladder()", "equal", "direct")]
FEW_PAIRED: list[Cell] = [
    (5, "Ladder()", "alternating", "direct"),
    (3, "FTPL()", "turning", "direct"),
]


@pytest.mark.parametrize("cell", cells(PAIRED, SAMPLE_PAIRED, FEW_PAIRED))
def test_pairs_hold_at_every_look_in_95_percent_of_experiments(cell: Cell) -> None:
    runs, count = (2_000, 500) if FULL else (60, 400)
    wrong = sum(
        paired_wrong(played(cell, number, count, laws=True), RISK) for number in range(runs)
    )
    print(
        f"| {' | '.join(map(str, cell))} | {wrong / runs:.1%} (≤ {highest_rate(wrong, runs):.1%}) |"
    )
    assert wrong <= most_by_chance(runs)


def break_the_boundary(monkeypatch: pytest.MonkeyPatch, times: float, start: float) -> None:
    """Make the price for the spread so many times too small; 4 makes intervals half as wide. Bets
    begin with so much.
    """
    monkeypatch.setattr(boundary, "PSI", boundary.PSI / times)
    monkeypatch.setattr(boundary, "PSI_DIFFERENCE", boundary.PSI_DIFFERENCE / times)
    monkeypatch.setattr(watching, "margin", times)
    monkeypatch.setattr(stakes, "PRIOR", stakes.PRIOR * start)
    monkeypatch.setattr(singles, "LOOK_PRIOR", 10.0 * start * singles.LOOK_PRIOR)
    monkeypatch.setattr(singles, "RATE_PRIOR", 10.0 * start * singles.RATE_PRIOR)


@pytest.mark.parametrize(
    ("narrower", "runs"), [(3.0, 60), pytest.param(2.0, 1_000, marks=pytest.mark.exhaustive)]
)
def test_a_narrow_boundary_is_noticed(
    narrower: float, runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Intervals a third as wide, and half as wide, which takes more runs.

    Of the family that notices least, 53 % and 13 % of the experiments are wrong, which is five
    standard errors or more above what is allowed: a false alarm in a million seeds.
    """
    break_the_boundary(monkeypatch, narrower**2, 40.0)
    cell: Cell = (2, "Ladder()", "stationary", "direct")
    wrong = dict.fromkeys(FAMILIES, 0)
    for number in range(runs):
        run = played(cell, number, 1_000)
        for name, is_wrong in FAMILIES.items():
            wrong[name] += is_wrong(run, RISK)
    assert min(wrong.values()) > most_by_chance(runs), wrong


def test_the_intervals_that_are_judged_are_those_that_users_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a broken boundary and a high risk, many intervals are wrong, and both ways say which.

    At a risk of 0.9 about 15 of 16 are wrong, and at 0.6 about 10: all or none would be in fewer
    than one seed in 1,000.
    """
    break_the_boundary(monkeypatch, 16.0, 2.0)
    cell: Cell = (2, "Ladder()", "alternating", "direct")
    wrong = dict.fromkeys((0.9, 0.6), 0)
    for number in range(8):
        run = played(cell, number, 50, laws=True)
        for risk in wrong:
            judged = {
                "weighted": differences_wrong(run, risk),
                "paired": paired_wrong(run, risk),
            }
            assert judged == watched(run, risk)
            wrong[risk] += sum(judged.values())
    assert wrong[0.9] > 8
    assert 0 < wrong[0.6] < 16


def watched(run: Run, risk: float) -> dict[str, bool]:
    """Whether the intervals of `Sequences` for two arms are ever wrong, with weights only and with
    laws.
    """
    wrong = {"weighted": False, "paired": False}
    assert run.laws is not None
    gap = run.means[:, 0] - run.means[:, 1]
    plain = np.full((len(gap), 2), 0.5)
    for name, weights in (("weighted", plain), ("paired", pair_weights(run)[0])):
        # The ends weigh rounds for the bets that the first arm is worse, and that the second is.
        gaps = np.cumsum(weights * gap[:, None], axis=0) / np.cumsum(weights, axis=0)
        sequences = Sequences(2, risk)
        for n in range(len(gap)):
            law = run.laws[n] if name == "paired" else None
            sequences.update(
                int(run.explore[n]),
                float(run.weight[n]),
                float(run.loss[n]),
                int(run.exploit[n]),
                law=law,
            )
            apart = difference_now(sequences.sums, 0, 1, drift=True)
            wrong[name] |= not (apart.low <= gaps[n, 0] and gaps[n, 1] <= apart.high)
    return wrong

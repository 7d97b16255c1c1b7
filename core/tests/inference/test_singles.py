"""Single means: of arms by looks, of what was exploited, and of their difference, each against its
definition; that no round costs more than everything; and how often a statement is false.
"""

import csv
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import decoupled as dc
from decoupled.inference import Interval, Sequences, singles
from decoupled.inference.questions import ArmSeen, Question
from decoupled.inference.sums import Observation
from decoupled.kernels.single_bets import FIRST_RATE_OF_ARMS, LOOK_STAKES, MOST_LOST, RATES
from support.betting import labelled
from support.seeds import seeded
from support.singles import (
    World,
    against_level,
    against_served_wrong,
    asked_of,
    centred_ends,
    drifting,
    equal,
    levels_before,
    levels_in,
    look_ends,
    looks_wrong,
    played,
    rare,
    rounds_of,
    served_wrong,
)
from support.watching import Run

RISK, ARMS = 0.05, 3
SHARE_OF_ARM = 0.9 / (ARMS + 1)


def fed(seen: list[Observation], arms: int = ARMS, **options: Any) -> Sequences:
    sequences = Sequences(arms, RISK, **options)
    for each in seen:
        sequences.add(each)
    return sequences


def ends(interval: Interval) -> tuple[float, float]:
    return interval.low, interval.high


@pytest.mark.parametrize("label_share", [1.0, 0.25])
def test_arms_are_bounded_by_their_looks_as_the_definition_says(label_share: float) -> None:
    seen, width = rounds_of(200, ARMS, seed=1), 2.0 / label_share - 1.0
    if label_share < 1.0:
        seen = labelled(seen, label_share)
    found = fed(seen, label_share=label_share).arms()
    for arm in range(ARMS):
        low, high = look_ends(seen, arm, ARMS, RISK * SHARE_OF_ARM / 2.0, width)
        assert ends(found[arm]) == pytest.approx((max(low, 0.0), min(high, 1.0)), abs=1e-8)
    if label_share == 1.0:
        third = [each.loss for each in seen if each.explore == 2]
        assert found[2].estimate == pytest.approx(np.mean(third))


def test_looks_need_no_weight_and_what_drift_means_is_the_same_for_them() -> None:
    seen = rounds_of(300, ARMS, seed=2)
    blind = [each._replace(weight=None, law=None, exploit=None) for each in seen]
    assert fed(blind).arms() == fed(seen).arms() == fed(seen, drift=False).arms()
    assert Sequences(ARMS).arms() == [Interval(0.5, 0.0, 1.0)] * ARMS


@pytest.mark.parametrize("laws", [1.0, 0.7, 0.0])
def test_what_was_exploited_is_bounded_as_the_definition_says(laws: float) -> None:
    seen = rounds_of(60, ARMS, seed=3, laws=laws)
    expected = centred_ends(list(asked_of(seen, ARMS)), RISK * SHARE_OF_ARM / 2.0)
    assert ends(fed(seen).served()) == pytest.approx(np.clip(expected, 0.0, 1.0), abs=1e-7)


@pytest.mark.parametrize("laws", [1.0, 0.7, 0.0])
def test_an_arm_and_what_was_exploited_are_compared_as_the_definition_says(laws: float) -> None:
    seen = rounds_of(35, ARMS, seed=4, laws=laws)
    found = fed(seen)
    for arm in range(ARMS):
        rounds = list(asked_of(seen, ARMS, arm))
        expected = centred_ends(rounds, RISK * 0.9 / (2 * ARMS), FIRST_RATE_OF_ARMS)
        assert ends(found.against_served(arm)) == pytest.approx(
            np.clip(expected, -1.0, 1.0), abs=1e-7
        )


def test_the_definition_holds_with_labels_on_their_map() -> None:
    seen, width = labelled(rounds_of(60, ARMS, seed=5), 0.5), 3.0
    expected = centred_ends(list(asked_of(seen, ARMS, width=width)), RISK * SHARE_OF_ARM / 2.0)
    real = [min(max(0.5 + width * (end - 0.5), 0.0), 1.0) for end in expected]
    assert ends(fed(seen, label_share=0.5).served()) == pytest.approx(real, abs=1e-7)


def test_in_the_standard_game_what_was_exploited_is_what_was_seen() -> None:
    """It is then centred without a law; an arm is compared with it without levels."""
    seen = rounds_of(60, ARMS, seed=6, coupled=True)
    rounds = []
    for asked in asked_of(seen, ARMS):
        sure = np.zeros(ARMS)
        sure[asked.explore] = 1.0
        rounds.append(asked._replace(law=sure, weight=1.0))
    expected = centred_ends(rounds, RISK * SHARE_OF_ARM / 2.0)
    found = fed(seen, coupled=True)
    assert ends(found.served()) == pytest.approx(np.clip(expected, 0.0, 1.0), abs=1e-7)
    blind = [each._replace(law=None) for each in seen]
    assert fed(blind, coupled=True).against_served(1) == found.against_served(1)


def test_a_round_without_a_chance_for_an_arm_does_not_compare_it() -> None:
    """It counts for what was exploited, if that could be explored."""
    sequences, twin = fed(rounds_of(100, ARMS, seed=7)), fed(rounds_of(100, ARMS, seed=7))
    before = [sequences.against_served(arm) for arm in range(ARMS)]
    for number, exploit in enumerate((0, 1, 2) * 20):
        sequences.update(number % 2, 2.0, 0.9, exploit, law=[0.5, 0.5, 0.0])
        counted = None if exploit == 2 else exploit
        twin.update(number % 2, 2.0, 0.9, counted, law=[0.5, 0.5, 0.0])
    assert [sequences.against_served(arm) for arm in range(ARMS)] == before
    assert ends(sequences.served()) == ends(twin.served())
    assert sequences.served().low > fed(rounds_of(100, ARMS, seed=7)).served().low


def test_a_question_of_a_log_is_answered_as_the_definition_says() -> None:
    """A mixture of arms less another one, in rounds with and without a law."""
    seen, counts = rounds_of(60, ARMS, seed=8), np.array([0.7, -1.0, 0.3])
    levels = np.array(levels_before(seen, ARMS))
    explore = np.array([each.explore for each in seen])
    loss = np.array([each.loss for each in seen])
    unknown = np.full(ARMS, np.nan)
    laws = np.array([unknown if each.law is None else each.law for each in seen])
    inverse = np.array([each.weight for each in seen], np.float64)
    question = Question(len(seen))
    for arm in range(ARMS):
        mine = explore == arm
        known = ArmSeen(levels[:, arm], laws[:, arm], mine, loss, inverse)
        question.add(np.full(len(seen), counts[arm]), known)
    asked = [each._replace(counts=counts) for each in asked_of(seen, ARMS)]
    expected = centred_ends(asked, 0.01)
    assert question.ends(np.arange(len(seen)), 0.01) == pytest.approx(expected, abs=1e-7)


# What a round can cost


CHANCES = st.floats(1e-6, 1.0)
SHARES = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0.0, 1.0))


@settings(max_examples=300, deadline=None)
@given(
    before=st.lists(st.tuples(st.integers(0, 2), SHARES), max_size=30),
    chances=st.tuples(CHANCES, CHANCES, CHANCES),
    explore=st.integers(0, 2),
    exploit=st.integers(0, 2),
    loss=SHARES,
    expected=SHARES,
    label_share=st.sampled_from([1.0, 0.5, 0.05, 0.001]),
    wanted=st.booleans(),
    has_law=st.booleans(),
)
def test_no_round_costs_more_than_everything(
    before: list[tuple[int, float]],
    chances: tuple[float, float, float],
    explore: int,
    exploit: int,
    loss: float,
    expected: float,
    label_share: float,
    wanted: bool,
    has_law: bool,
) -> None:
    """For every loss, law, level, judge and label: a stake f has at least 1 - f of what it had, and
    a rate at least 1 - `MOST_LOST`.
    """
    law = np.array(chances) / sum(chances)
    width = 2.0 / label_share - 1.0
    sequences = Sequences(ARMS, risk=1e-12, label_share=label_share)
    for arm, past in before:
        mapped = 0.5 + (past - 0.5) / width
        sequences.update(arm, 3.0, mapped, arm, law=[1.0 / 3.0] * 3)
    old = sequences.sums.copy().singles
    label = None
    if label_share < 1.0:
        estimate = expected + (loss - expected) / label_share if wanted else expected
        label = loss if wanted else None
        loss = min(max(0.5 + (estimate - 0.5) / width, 0.0), 1.0)
    weight = min(1.0 / float(law[explore]), 1e6)
    known = law if has_law else None
    sequences.update(explore, weight, loss, exploit, law=known, rho=label_share, label=label)
    new = sequences.sums.singles
    looks, centred = np.log(new.look_won / old.look_won), np.log(new.centred_won / old.centred_won)
    assert (looks + 693.147 * (new.look_powers - old.look_powers) >= least(LOOK_STAKES)).all()
    assert (centred >= least(np.full(len(RATES), MOST_LOST))).all()


def least(stakes: Any) -> Any:
    return np.log1p(-stakes) - 1e-9


def test_the_stake_of_a_look_is_the_largest_that_it_can_lose() -> None:
    """The worst loss costs a stake of f its share f, not less: a bound that is 5 % off would cost
    more or less than that.
    """
    for level in (0.1, 0.45, 0.9):
        for row, worst in enumerate((0.0, 1.0)):
            sequences = Sequences(2)
            for _ in range(100):
                sequences.update(0, None, level)
            before = sequences.sums.singles.look_won[row].copy()
            sequences.update(0, None, worst)
            left = sequences.sums.singles.look_won[row] / before
            assert left == pytest.approx(1.0 - LOOK_STAKES)


# How often a statement is false


WORLDS: dict[str, World] = {
    "equal": equal,
    "drifting": drifting,
    "rare": rare,
    "against the level": against_level,
}
MANY = 4
# The least numbers that a binomial of 5 % exceeds in at most 1 of 1,000 cases.
MOST = {20: 5, 400: 35}
FAMILIES: dict[str, Callable[[Run, float], bool]] = {
    "arms": looks_wrong,
    "served": served_wrong,
    "against served": against_served_wrong,
}
RUNS = pytest.mark.parametrize("runs", [20, pytest.param(400, marks=pytest.mark.exhaustive)])


def false_statements(runs: int, world: World, **options: Any) -> dict[str, int]:
    """In how many runs some interval of each family is ever false."""
    counts = dict.fromkeys(FAMILIES, 0)
    for number in range(runs):
        run = played(world, 300 if runs == 20 else 800, MANY, seeded(number), **options)
        for family, is_wrong in FAMILIES.items():
            counts[family] += is_wrong(run, RISK)
    return counts


@pytest.mark.parametrize("world", WORLDS)
@RUNS
def test_few_runs_have_a_false_statement(runs: int, world: str) -> None:
    """At a risk of 5 %, whatever drifts. A false alarm in at most 1 of 1,000 seeds for each family,
    if the risk were used up; it is not.
    """
    counts = false_statements(runs, WORLDS[world])
    print(f"| {world} | {runs} | {counts} |")
    assert max(counts.values()) <= MOST[runs], counts


@RUNS
def test_feedback_that_is_missing_by_arm_makes_no_interval_of_an_arm_false(runs: int) -> None:
    """Looks without a loss are none. A false alarm in at most 1 of 1,000 seeds."""
    counts = false_statements(runs, drifting, missing_by_arm=True)
    print(f"| missing by arm | {runs} | {counts} |")
    assert counts["arms"] <= MOST[runs]


def break_the_bets(monkeypatch: pytest.MonkeyPatch, times: float) -> None:
    """Let bets on single means begin with so many times the money that they have."""
    monkeypatch.setattr(singles, "LOOK_PRIOR", times * singles.LOOK_PRIOR)
    monkeypatch.setattr(singles, "RATE_PRIOR", times * singles.RATE_PRIOR)


def test_false_statements_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 400 times the money each family is false in most runs."""
    break_the_bets(monkeypatch, 400.0)
    counts = false_statements(20, equal)
    assert min(counts.values()) > 2 * MOST[20], counts


def test_statements_that_are_judged_are_those_that_users_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With broken bets some are false, and both ways say which. All or none of the 24 would be in
    fewer than one of 1,000 seeds.
    """
    break_the_bets(monkeypatch, 60.0)
    wrong = 0
    for number in range(8):
        run = played(against_level, 40, MANY, seeded(number))
        judged = {family: is_wrong(run, RISK) for family, is_wrong in FAMILIES.items()}
        assert judged == watched(run)
        wrong += sum(judged.values())
    assert 0 < wrong < 24


def watched(run: Run) -> dict[str, bool]:
    """Whether an interval of `Sequences` is ever false, looked at after every observation."""
    wrong = dict.fromkeys(FAMILIES, False)
    sequences, levels = Sequences(MANY, RISK), levels_in(run)
    weights, sums = np.zeros((2, MANY)), np.zeros((2, MANY))
    served, apart = 0.0, np.zeros(MANY)
    assert run.laws is not None
    for n, means in enumerate(run.means):
        arm, exploit = int(run.explore[n]), int(run.exploit[n])
        weight, loss = float(run.weight[n]), float(run.loss[n])
        sequences.update(arm, weight, loss, exploit, law=run.laws[n])
        level = levels[n, arm]
        for end, of_look in enumerate((1.0 / level, 1.0 / (1.0 - level))):
            weights[end, arm] += of_look
            sums[end, arm] += of_look * means[arm]
        served += means[exploit]
        apart += means - means[exploit]
        _, lows, highs = sequences.bounds()
        covered = np.where(weights > 0.0, sums / np.where(weights > 0.0, weights, 1.0), 0.5)
        wrong["arms"] |= bool((lows > covered[0]).any() or (highs < covered[1]).any())
        wrong["served"] |= is_outside(sequences.served(), served / (n + 1))
        wrong["against served"] |= any(
            is_outside(sequences.against_served(other), float(apart[other]) / (n + 1))
            for other in range(MANY)
        )
    return wrong


def is_outside(interval: Interval, mean: float) -> bool:
    return not interval.low <= mean <= interval.high


# How narrow intervals are


SUMMARIES = Path(os.environ.get("DECOUPLED_DATA") or "nowhere") / "judges/summeval/summeval.csv"


@pytest.mark.skipif(
    not SUMMARIES.is_file(), reason="DECOUPLED_DATA names no folder with judges/summeval"
)
def test_intervals_on_summaries_are_narrow() -> None:
    """After 10,000 rounds, all twelve arms at once. Over seeds, the widest of each was at least a
    tenth narrower.
    """
    losses: dict[str, list[float]] = {}
    with SUMMARIES.open(newline="") as file:
        for row in csv.DictReader(file):
            losses.setdefault(row["arm"], []).append(float(row["human"]))
    rng = np.random.default_rng(seeded(0))
    learner = dc.Ladder().start(arms=sorted(losses), seed=seeded(0))
    learner.watch()
    rows, counts = [], dict.fromkeys(losses, 0)
    for _ in range(10_000):
        law = learner.exploration_probabilities()
        decision = learner.decide()
        arm = str(decision.explore)
        counts[arm] += 1
        loss = losses[arm][int(rng.integers(len(losses[arm])))]
        learner.observe(decision, loss)
        rows.append(
            {
                "explore": arm,
                "exploit": decision.exploit,
                "propensity": decision.propensity,
                "loss": loss,
                "law": dict(zip(learner.arms, law.tolist(), strict=True)),
            }
        )

    def width(found: Any) -> float:
        return float(found.high - found.low)

    intervals = learner.inference.intervals()
    most_seen, least_seen = max(counts, key=counts.__getitem__), min(counts, key=counts.__getitem__)
    assert width(intervals[most_seen]) < 0.012
    assert 15 < counts[least_seen] < 45
    assert width(intervals[least_seen]) < 0.5 * np.sqrt(25.0 / min(counts[least_seen], 25))
    assert width(learner.inference.exploited()) < 0.015
    best = min(losses, key=lambda arm: sum(losses[arm]))
    by_law = dc.evaluate(rows, best)
    blind = dc.evaluate([{**row, "law": None} for row in rows], best)
    assert width(by_law.candidate) < 0.5 * width(blind.candidate)
    assert width(by_law.served) < 0.5 * width(blind.served)

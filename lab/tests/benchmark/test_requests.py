"""The suite `decoupled-2`: what its tasks tell a player and count, and what its players do."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import decoupled as dc
from decoupled_lab.benchmark import requests
from decoupled_lab.benchmark.entry import read
from decoupled_lab.benchmark.loading import Source
from decoupled_lab.benchmark.peers import Linear, Looking, ParetoBandit, coin, player
from decoupled_lab.benchmark.run import run
from decoupled_lab.benchmark.suite import SECOND, Size

QUICK: dict[str, Any] = {task.name: task for task in SECOND.tasks("quick")}
THOMPSON = dc.baselines.PerSegment(dc.ThompsonSampling(), ["segment"])


def test_the_second_suite_is_frozen() -> None:
    # Never write another digest here once entries were made with it: make another suite.
    assert SECOND.digest() == "f05d0f103785d8ded5e7164a91929877d3440c3b6de5876ebfd996f06708cb8d"
    assert [task.group for task in SECOND.tasks("standard")] == [g for g in SECOND.groups for _ in range(2)]


class Noted:
    """A player that serves the last arm and looks at each in turn, and notes what it is told."""

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.heard: list[tuple[float, float, bool]] = []
        self.arms = 0

    def decide(self, row: int) -> tuple[int, int | None]:
        self.rows.append(row)
        t = len(self.rows) - 1
        return self.arms - 1, None if t % 10 == 9 else t % self.arms

    def observe(self, told: float, true: float, labelled: bool) -> None:
        self.heard.append((told, true, labelled))

    def add_arm(self) -> None:
        self.arms += 1


@pytest.mark.parametrize("name", QUICK)
def test_a_task_tells_and_counts_what_it_says(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    task = replace(QUICK[name], rounds=3_000, runs=1)
    if late := task.rules.get("late"):
        task = replace(task, rules={"late": 1_000})
    players: list[Noted] = []

    def noting(policy: Any, here: Any, contexts: Any, arms: int, *more: Any, **others: Any) -> Noted:
        players.append(Noted())
        players[-1].arms = arms
        return players[-1]

    monkeypatch.setattr(requests, "player", noting)
    (value,) = task.play(dc.Ladder()).values
    _, noted, _ = players  # one to see that it can play, and one that plays the same run again
    means = np.array(task.world(0).losses)[noted.rows]
    arms = np.where(np.arange(3_000) < 1_000, 3, 4) if late else np.full(3_000, 4)
    of = [row[:k] for row, k in zip(means, arms, strict=True)]
    regret = sum(row[-1] - row.min() for row in of)
    assert value == pytest.approx(regret + task.rules.get("price", 0.0) * len(noted.heard))
    at = np.flatnonzero(np.arange(3_000) % 10 != 9)
    looked = np.array([t % arms[t] for t in at])
    told, true, labelled = np.array(noted.heard).T
    # Of 2,700 rounds, at least 600 for each arm. Five standard errors: wrong once in a million, for each number.
    for arm in range(4):
        here = looked == arm
        assert abs(true[here].mean() - means[at[here], arm].mean()) < 5 * 0.5 / np.sqrt(here.sum())
    lied = told != true
    if "hostile" in task.rules:
        best = np.array([of[t].argmin() for t in at])
        assert (told[lied] == (looked == best)[lied]).all()
        if task.rules.get("burst"):
            assert set(at[lied] // 300) == {2}
            within = at // 300 == 2
            assert (told[within] == (looked == best)[within]).all()
        else:
            assert lied.mean() == pytest.approx(0.05, abs=0.022)  # half of a tenth are lies
    elif "judge" in task.rules:
        judge = np.array(task.rules["judge"])[task.places(0)]
        assert labelled[:90].all()
        assert labelled[100:].mean() == pytest.approx(0.1, abs=0.03)
        for arm, was in ((arm, was) for arm in range(4) for was in (0, 1)):
            here = (looked == arm) & (true == was)
            assert abs(told[here].mean() - judge[arm, was]) < 5 * 0.5 / np.sqrt(here.sum())
    else:
        assert not lied.any()
        assert not labelled.any()


def test_an_arm_that_comes_late_is_the_last_and_is_better_or_worse() -> None:
    for name, better in (("cold-start-better-4", True), ("cold-start-worse-4", False)):
        task = QUICK[name]
        assert all(task.places(run)[-1] == 3 for run in range(task.runs))
        means = np.array(task.environment.losses).mean(axis=0)
        assert (means[-1] < means[:-1].min()) == better
        assert (means[-1] > means[:-1].max()) != better


class Definition:
    """ParetoBandit's rule by its definition, from all that was seen, anew in each round."""

    def __init__(self, rule: ParetoBandit, size: int) -> None:
        self.rule, self.size = rule, size
        self.seen: list[tuple[int, np.ndarray[Any, Any], float]] = []  # arm, features, reward; a round each

    def scores(self, x: np.ndarray[Any, Any], arms: int) -> list[float]:
        found, now = [], len(self.seen)
        for arm in range(arms):
            own = [(t + 1, x, r) for t, (a, x, r) in enumerate(self.seen) if a == arm]
            last = max((t for t, _, _ in own), default=0)
            a = self.rule.gamma**last * self.rule.ridge * np.eye(self.size)
            b = np.zeros(self.size)
            for t, x_t, r in own:
                a += self.rule.gamma ** (last - t) * np.outer(x_t, x_t)
                b += self.rule.gamma ** (last - t) * r * x_t
            fresh = max(self.rule.gamma ** (now - last), 1.0 / self.rule.most)
            variance = x @ np.linalg.solve(a, x) / fresh
            found.append(float(np.linalg.solve(a, b) @ x + self.rule.alpha * np.sqrt(variance)))
        return found


@pytest.mark.parametrize("rule", [ParetoBandit(0.5, 0.97, 2.0, 3.0, 2), ParetoBandit(1.0, 1.0, burn_in=0)])
def test_a_ridge_regression_plays_as_it_is_defined(rule: ParetoBandit) -> None:
    draw = np.random.default_rng(0)
    features = draw.normal(size=(300, 3))
    seeds = np.random.SeedSequence(0).spawn(2)
    playing, twin = Linear(rule, 1.0, features, 3, seeds[0], coin(1.0, seeds[1])), Definition(rule, 3)
    forced = [0] * rule.burn_in + [1] * rule.burn_in + [2] * rule.burn_in
    first, scored = list(forced), 0
    for t in range(200):
        served, looked = playing.decide(t)
        assert served == looked
        if first:
            first.remove(served)
        else:
            scores = twin.scores(features[t], 3)
            assert scores[served] == pytest.approx(max(scores), abs=1e-8)
            scored += max(scores) - min(scores) > 0.01
        loss = float(draw.random() < (0.2, 0.5, 0.6)[served])
        playing.observe(loss, 0.0, labelled=False)
        twin.seen.append((served, features[t], 1.0 - loss))
    assert scored > 100
    playing.add_arm()
    assert [playing.decide(0)[0] for _ in range(rule.burn_in)] == [3] * rule.burn_in or not rule.burn_in


def test_linucb_plays_as_in_the_package() -> None:
    # The same losses in the same order; only the draws among ties differ. Means over 32 runs, within 5 standard errors:
    # wrong once in a million. An alpha of 3 is 14 of them away.
    task = replace(QUICK["cold-start-better-4"], rounds=1_500, runs=32, rules={})
    rule = SECOND.references["LinUCB"]
    means = np.array(task.environment.losses)
    losses = (np.random.default_rng(0).random(means.shape) < means).astype(float)
    task = replace(task, environment=replace(task.environment, losses=losses))
    table: Any = task.environment
    results = dc.simulate([rule, THOMPSON], table, 1_500, 32, seed=task.seed)
    rows = [losses[table.row_at(1_500, task.seed, run)] for run in range(32)]
    single = np.array([row.sum(axis=0).min() - row.min(axis=1).sum() for row in rows])
    for policy in (rule, THOMPSON):
        apart = task.play(policy).values - results.final_regret(policy) - single
        assert abs(apart.mean()) < 5.0 * apart.std(ddof=1) / np.sqrt(32)


@pytest.mark.parametrize("policy", [dc.Ladder(), THOMPSON, ParetoBandit()])
def test_a_coin_says_who_pays_for_a_look(policy: Any) -> None:
    task = replace(QUICK["paid-high-4"], rounds=1_000, runs=2)
    free = replace(task, rules={"price": 0.0})
    looking = Looking(policy, share=0.2)
    looks = (task.play(looking).values - free.play(looking).values) / 0.2
    assert looks == pytest.approx([200, 200], abs=64)  # five standard deviations
    assert (task.play(policy).values - free.play(policy).values) == pytest.approx([200.0, 200.0])
    unpriced = replace(task, rules={})  # here it always looks, so it plays as the policy does
    assert unpriced.play(looking).values.tolist() == unpriced.play(policy).values.tolist()


def test_labels_reach_a_learner_as_labels_and_a_peer_as_losses() -> None:
    seed, here = np.random.SeedSequence(1), QUICK["biased-judge-harsh-4"].environment
    contexts = [{"segment": "s0", "x": 0.0}]
    for policy, wants in ((dc.Ladder(), requests.LABELS), (THOMPSON, None)):
        playing: Any = player(policy, here, contexts, 4, seed, requests.LABELS, priced=False)
        for _ in range(150):
            playing.decide(0)
            playing.observe(1.0, 0.0, labelled=True)
        (learner,) = playing.learners.values()
        assert playing.labels == wants
        if wants:
            assert learner.labels.used >= 100
        else:  # it has learned the labels alone
            assert learner.estimates().max() < 0.5


@pytest.fixture(scope="module")
def entered(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    out = tmp_path_factory.mktemp("second")
    return out, run("Looking(FTPL(), share=0.3)", Size("quick", 2, 60), out, workers=1, suite="decoupled-2")


def test_an_entry_of_the_second_suite(entered: tuple[Path, dict[str, Any]]) -> None:
    out, entry = entered
    assert read(out / "entry.json") == entry
    assert entry["suite"] == "decoupled-2"
    assert [each["name"] for each in entry["groups"]] == list(SECOND.groups)
    assert set(entry["tasks"][0]["references"]) == set(SECOND.references)
    for task in entry["tasks"]:  # FTPL always looks where looks are free
        same = task["regret"]["mean"] == task["references"]["FTPL()"]["mean"]
        assert same == (task["group"] != "paid")


def test_peers_play_the_second_suite_only_and_are_called_by_name() -> None:
    for call in ("ParetoBandit(alpha=0.1)", "LinUCB(segments=['segment'])", "Looking(Ladder(), share=0.5)"):
        source = Source(call)
        name = source.described(source.load())["name"]
        assert Source(name).load() == source.load()
    with pytest.raises(dc.UnsupportedError, match="plays the suite decoupled-2 only; give --suite"):
        ParetoBandit().start(3)
    for name, value in (("alpha", 0.0), ("gamma", 1.1)):
        with pytest.raises(dc.ParameterError, match=name):
            replace(ParetoBandit(), **{name: value})  # type: ignore[arg-type]
    with pytest.raises(dc.ParameterError, match="share"):
        Looking(dc.Ladder(), share=1.0)
    with pytest.raises(dc.ParameterError, match="policy"):
        Looking(Looking(dc.Ladder()))

"""Late, lost and rare feedback: a simulation plays as a learner does with a heap of pending
feedback.
"""

import heapq
import json
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import decoupled as dc
from decoupled.base.arrays import Words
from decoupled.kernels.dispatch import Functions
from decoupled.kernels.feedback_delay import OWN_FLOATS, OWN_INTS
from decoupled.kernels.jit import compiled
from decoupled.kernels.random.stream import uniform
from decoupled.kernels.state import ROUND, SHARED_SCALARS, Layout, State
from decoupled.policy import Baselines
from decoupled.simulation.cpu import RunFactory, run_streams
from decoupled.simulation.plan import make_plan
from decoupled.simulation.traffic import (
    KEY,
    MOST_BYTES,
    Traffic,
    kept_places,
    pending_capacity,
    stream_of,
)
from support import late_games
from support.centred_ftpl import CENTRED_FTPL
from support.once import made_once
from support.plain_python import output_of

CENTRED_SORTING = dc.CentredFTPL(c=0.5, exploit_c=3.0, schedule="losses", ranking="sorting")
EASY = dc.environments.Bernoulli(rewards=[0.2, 0.5, 0.7])
LADDER = dc.Ladder()
BIASED = ((0.1, 0.5), (0.5, 0.9), (0.9, 0.1))

# Plain Python plays all games, and Numba's code a few. DECOUPLED_TWINS=all compiles for all
# policies: `make twins`.
EVERY = os.environ.get("DECOUPLED_TWINS") == "all"


class Marks:
    """The random numbers of a run, by round and purpose, in plain whole numbers."""

    def __init__(self, key: Any) -> None:
        self.first, self.second = map(int, key)

    @staticmethod
    def mixed(word: int) -> int:
        word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        word = (word ^ (word >> 27)) * 0x94D049BB133111EB % 2**64
        return word ^ (word >> 31)

    def at(self, t: int, purpose: int) -> float:
        word = self.mixed((self.first + (5 * t + purpose + 1) * 0x9E3779B97F4A7C15) % 2**64)
        return ((self.mixed(word ^ self.second) >> 11) + 1) / 2**53


def delay_of(traffic: Traffic, mark: float) -> int:
    if isinstance(traffic.delay, int):
        return traffic.delay
    if traffic.delay[0] == "uniform":
        low, high = map(int, traffic.delay[1:])
        return low + min(math.floor((1.0 - mark) * (high - low + 1)), high - low)
    return math.floor(math.log(mark) / -math.log1p(1.0 / traffic.delay[1]))


class Twin:
    """A learner that is told what arrives, when it arrives."""

    def __init__(
        self, policy: dc.Policy, arms: int, traffic: Traffic, run: int = late_games.RUN
    ) -> None:
        seed = np.random.SeedSequence(late_games.SEED, spawn_key=(run, 1))
        self.learner = policy.start(arms, seed)
        self.traffic, self.marks = traffic, Marks(stream_of(late_games.SEED, run, KEY))
        self.heap: list[tuple[int, int, dc.Decision, float]] = []
        self.plays = np.zeros((2, arms), int)
        self.noise, _ = run_streams(late_games.SEED, run)

    def play(self, t: int, means: Any) -> int:
        """Play a round; return the exploited arm."""
        traffic, marks = self.traffic, self.marks
        chance = uniform(self.noise)
        if marks.at(t, 0) <= traffic.explore_share:
            decision = self.learner.decide()
            exploit, explore = decision.exploit, decision.explore
            assert isinstance(explore, int)
            self.plays[1, explore] += 1
            if marks.at(t, 1) > traffic.missing:
                arrival = t + delay_of(traffic, marks.at(t, 2))
                heapq.heappush(self.heap, (arrival, t, decision, float(chance <= means[explore])))
        else:
            exploit = self.learner.exploit().exploit
        while self.heap and self.heap[0][0] <= t:
            _, _, decision, loss = heapq.heappop(self.heap)
            self.learner.observe(decision, loss)
        assert isinstance(exploit, int)
        self.plays[0, exploit] += 1
        return exploit


@pytest.fixture(scope="module")
def interpreted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What plain Python makes of every game."""
    found: dict[str, Any] = json.loads(
        made_once(tmp_path_factory, "late-games", lambda _: output_of("support.late_games"))[1]
    )
    return found


every_traffic = pytest.mark.parametrize("traffic", late_games.TRAFFIC, ids=lambda each: each.label)


@pytest.mark.parametrize("game", late_games.on_tables(), ids=lambda each: each.name)
def test_plays_as_a_learner_with_a_heap(game: late_games.Game, interpreted: dict[str, Any]) -> None:
    policy = game.policy
    twin, table = Twin(policy, game.world.arms, game.traffic), game.world.table(late_games.ROUNDS)
    best = table.rows[table.row_at].mean(axis=0).argmin()
    regret, curve = 0.0, []
    for t in range(late_games.ROUNDS):
        means = table.rows[table.row_at[t]]
        regret += means[twin.play(t, means)] - means[best]
        curve.append(regret)
    assert interpreted[game.name] == [curve, *twin.plays.tolist()]


@pytest.mark.slow
@pytest.mark.parametrize(
    "game",
    [each for each in late_games.on_tables() if EVERY or each.policy == dc.Exp3()],
    ids=lambda each: each.name,
)
def test_compiled_loops_play_as_plain_python(
    game: late_games.Game, interpreted: dict[str, Any]
) -> None:
    assert late_games.outcome(game.played()) == interpreted[game.name]


@every_traffic
def test_adversaries_answer_what_is_exploited(
    traffic: Traffic, interpreted: dict[str, Any]
) -> None:
    game = late_games.against_adversary(traffic)
    twin, suffered, met = Twin(game.policy, game.world.arms, traffic), [], []
    last = -1
    for t in range(late_games.ROUNDS):
        losses = [0.75] + [1.0] * 5 if last == 0 else [0.0] + [0.25] * 5
        last = twin.play(t, losses)
        suffered.append(losses[last])
        met.append(losses)
    sums = np.cumsum(met, axis=0)
    regret, *plays = interpreted[game.name]
    assert np.allclose(regret, np.cumsum(suffered) - sums[:, sums[-1].argmin()], atol=1e-9)
    assert plays == twin.plays.tolist()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policies", "world"),
    [
        ([dc.Exp3(), CENTRED_SORTING], EASY),
        ([dc.Exp3()], dc.environments.PunishLast(3)),
        *([([dc.Ladder(), dc.TsallisINF()], dc.environments.PunishLast(3))] if EVERY else []),
    ],
    ids=lambda each: getattr(each, "label", ""),
)
def test_empty_rules_change_no_bits(
    policies: list[dc.Policy], world: dc.environments.Environment
) -> None:
    given = {"horizon": 400, "runs": 6, "seed": 3, "checkpoints": "all"}
    plain = dc.simulate(policies, world, **given).data  # type: ignore[arg-type]
    defaults = {"delay": 0, "missing": 0.0, "explore_share": 1.0}
    for how in (defaults, {"delay": ("uniform", 0, 0)}):
        same = dc.simulate(policies, world, **given, traffic=Traffic(**how)).data  # type: ignore[arg-type]
        assert np.array_equal(same.regret, plain.regret)
        assert np.array_equal(same.plays, plain.plays)
    assert set(json.loads(plain.attrs["plan"])) == {
        *("policies", "environment", "horizon", "runs", "seed", "checkpoints")
    }


def test_another_traffic_is_another_specification(tmp_path: Path) -> None:
    given: dict[str, Any] = {"horizon": 30, "runs": 4, "out": tmp_path}
    results = dc.simulate(
        dc.FTPL(), EASY, **given, traffic=Traffic(delay=("geometric", 30), explore_share=0.7)
    )
    with pytest.raises(dc.StorageError, match="holds the results of another specification"):
        dc.simulate(
            dc.FTPL(), EASY, **given, traffic=Traffic(delay=("geometric", 30), explore_share=0.8)
        )
    assert results.specification["delay"] == ["geometric", 30.0]
    assert results.setting.endswith("delay geometric(30), explore_share 0.7")
    figure = results.plot()
    assert (
        f"{figure.get_suptitle()[: -len(', 4 runs')]}, {figure.axes[0].get_title()}"
        == results.setting
    )


def estimates(
    policy: dc.Policy,
    traffic: Traffic,
    rounds: int,
    runs: int,
    world: dc.environments.Environment = EASY,
) -> Any:
    """The estimates at the end of each run, in a world of constant means."""
    factory = RunFactory(policy, world, rounds, late_games.SEED, traffic=traffic)
    found = np.empty((runs, world.arms))
    for number in range(runs):
        plays = np.zeros((2, world.arms), np.int64)
        run = factory.new_run(number, np.array([rounds]), np.zeros(1), plays)
        factory.loop(run)
        found[number] = policy.at(world.arms).estimates(run.state)
    return found


@pytest.mark.parametrize(
    ("traffic", "share"),
    [
        (Traffic(delay=15), 45 / 60),
        (Traffic(delay=("uniform", 0, 30), missing=0.25), 0.75 * 45 / 60),
        (Traffic(explore_share=0.4), 0.4),
    ],
    ids=lambda each: getattr(each, "label", ""),
)
@pytest.mark.parametrize(
    "policy",
    [dc.Exp3(), CENTRED_SORTING, *([CENTRED_FTPL] if EVERY else [])],
    ids=lambda each: each.label,
)
def test_estimates_are_unbiased(policy: dc.Policy, traffic: Traffic, share: float) -> None:
    # Of 60 rounds, `share` are learned from. 4.5 standard errors: 3 arms in up to 9 cases raise a
    # false alarm in 2e-4 of all seeds.
    found = estimates(policy, traffic, rounds=60, runs=1_000)
    expected = 60 * share * np.array([0.8, 0.5, 0.3])
    error = found.std(axis=0, ddof=1) / math.sqrt(len(found))
    assert (abs(found.mean(axis=0) - expected) < 4.5 * error).all()


@pytest.mark.parametrize(
    "policy", [dc.Exp3(), CENTRED_SORTING, dc.Ladder()], ids=lambda each: each.label
)
def test_estimates_are_those_of_a_learner(policy: dc.Policy) -> None:
    traffic = Traffic(delay=2, explore_share=0.9)
    found = estimates(policy, traffic, rounds=200, runs=2)
    for run in range(2):
        twin = Twin(policy, EASY.arms, traffic, run)
        for t in range(200):
            twin.play(t, [0.8, 0.5, 0.3])
        assert found[run].tolist() == twin.learner.estimates().tolist()


def test_delays_and_shares_have_their_laws() -> None:
    marks = Marks(stream_of(0, 0, KEY))
    for traffic, mean, deviation in (
        (Traffic(delay=("geometric", 100)), 100.0, math.sqrt(100 * 101)),
        (Traffic(delay=("uniform", 10, 20)), 15.0, math.sqrt(10.0)),
    ):
        delays = [delay_of(traffic, marks.at(t, 2)) for t in range(20_000)]
        assert abs(np.mean(delays) - mean) < 4.5 * deviation / math.sqrt(20_000)
        assert max(delays) <= traffic.longest_delay
    for purpose in range(3):
        at_most = np.mean([marks.at(t, purpose) <= 0.3 for t in range(20_000)])
        assert abs(at_most - 0.3) < 4.5 * math.sqrt(0.21 / 20_000)


STAMP = len(SHARED_SCALARS)


class StampedParams(NamedTuple):
    nothing: float


@compiled
def init(params: StampedParams, state: State) -> None:
    state.scalars[STAMP] = state.scalars[ROUND]


@compiled
def decide(params: StampedParams, state: State, stream: Words) -> tuple[int, int, float, float]:
    return 0, 1, 1.0, 1.0


@compiled
def update_stamped(
    params: StampedParams, state: State, arm: int, weight: float, loss: float
) -> None:
    state.floats[0, arm] += state.scalars[STAMP]
    state.scalars[STAMP] = state.scalars[ROUND]


@dataclass(frozen=True)
class Stamped(dc.Policy):
    """Adds up the rounds of its decisions, which only the decisions know."""

    layout = Layout(scalars=("stamp",), floats=("estimates",), learned=("estimates",))
    baselines = Baselines(layout, kept=("stamp",))
    params_type = StampedParams
    functions = Functions(init, decide, update_stamped)
    nothing: float = 0.0


def test_pending_decisions_keep_what_their_updates_read() -> None:
    assert kept_places(dc.FTPL(), 4).tolist() == [0, 0, 0]
    recommended = CENTRED_FTPL.at(4)
    row = recommended.layout.floats.index("baseline")
    assert kept_places(recommended, 4).tolist() == [0, 1, 0, row]
    soft = LADDER.at(4).layout
    assert LADDER.baselines is not None
    names = LADDER.baselines.kept
    scalars = sorted(len(SHARED_SCALARS) + soft.scalars.index(name) for name in names)
    expected = [len(names), 1, 0, *scalars, soft.floats.index("law")]
    assert kept_places(LADDER.at(4), 4).tolist() == expected
    layout = late_games.STRATA.layout
    assert kept_places(late_games.STRATA, 4).tolist() == [
        *(1, 1, 1, len(SHARED_SCALARS) + layout.scalars.index("covered")),
        *(layout.floats.index("baseline"), layout.ints.index("covered_arms")),
    ]
    forgetful = dc.Forgetting(late_games.STRATA, period=50)
    assert kept_places(forgetful, 4)[3] == len(SHARED_SCALARS) + forgetful.layout.scalars.index(
        "covered"
    )
    room = pending_capacity(late_games.STRATA, 4, Traffic(delay=9), horizon=100)
    assert room == (10, OWN_FLOATS + 1 + 4, OWN_INTS + 4)
    # Decision t (from 0) is made after max(0, t - 4) observations; those of the last four rounds
    # are not learned.
    found = estimates(Stamped(), Traffic(delay=4), rounds=20, runs=1)
    # A policy that forgets keeps the same.
    own = len(SHARED_SCALARS)
    assert kept_places(Stamped(), 3).tolist() == [1, 0, 0, own]
    assert kept_places(dc.Forgetting(Stamped(), period=9), 3).tolist() == [1, 0, 0, own]
    assert found[0].tolist() == [0.0, sum(1.0 + max(0, t - 4) for t in range(16)), 0.0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"delay": -1}, "delay = -1: must be a whole number from 0 on; a number of rounds"),
        ({"delay": 2.5}, "delay = 2.5: must be a whole number"),
        ({"delay": True}, "delay = True: must be a whole number"),
        ({"delay": 10**16}, "must not exceed"),
        ({"delay": ("geometrc", 5)}, "did you mean 'geometric'"),
        ({"delay": ("geometric",)}, "give 1 after the name"),
        ({"delay": ("geometric", 0.0)}, "delay[1] = 0.0: must be a finite number above 0"),
        ({"delay": ("uniform", 9, 3)}, "must name the lower end first; write ('uniform', 3, 9)"),
        ({"delay": "geometric"}, "delay = 'geometric': must be a number of rounds"),
        ({"delay": []}, "delay = []: must be"),
        ({"missing": 1.0}, "missing = 1.0: must be a finite number from 0 on and below 1"),
        ({"explore_share": 0.0}, "explore_share = 0.0: must be a number above 0 and at most 1"),
        ({"explore_share": 1.5}, "explore_share = 1.5: must be a number above 0 and at most 1"),
    ],
)
def test_errors_name_the_argument_and_the_rule(given: dict[str, Any], message: str) -> None:
    with pytest.raises(dc.ParameterError) as caught:
        Traffic(**given)
    assert message in str(caught.value)


def test_what_traffic_cannot_be_is_refused() -> None:
    with pytest.raises(dc.ParameterError, match=r"traffic = 5: .*dc\.Traffic\(delay=100\)"):
        dc.simulate(dc.FTPL(), EASY, horizon=10, runs=1, traffic=5)  # type: ignore[arg-type]
    with pytest.raises(
        dc.ParameterError, match=r"explore_share = 0.5: .* UCB1 sees the arm that it plays"
    ):
        dc.simulate(
            [dc.FTPL(), dc.UCB1()], EASY, horizon=10, runs=1, traffic=Traffic(explore_share=0.5)
        )
    many = dc.environments.Catalogue(arms=100_000, gap=0.1, top=0.9, seed=0)
    assert make_plan(dc.FTPL(), many, 10**6, 1, 0, traffic=Traffic(delay=1_000))
    with pytest.raises(
        dc.ParameterError, match=rf"delay = 5000: needs .* {MOST_BYTES:,} are allowed"
    ):
        make_plan(dc.Ladder(), many, 10**6, 1, 0, traffic=Traffic(delay=5_000))


def test_a_specification_sets_them(tmp_path: Path) -> None:
    from decoupled.simulation.toml import read_specification

    path = tmp_path / "spec.toml"
    tail = '[[policy]]\nname = "FTPL"\n[[environment]]\nname = "Bernoulli"\nrewards = [0.2, 0.7]\n'
    lines = 'delay = ["uniform", 1, 9]\nmissing = 0.1\nexplore_share = 0.5\n'
    path.write_text(f"horizon = 10\nruns = 2\n{lines}{tail}")
    (plan,) = read_specification(path)
    assert plan.traffic == Traffic(("uniform", 1, 9), 0.1, 0.5)
    assert Traffic(**json.loads(json.dumps(plan.traffic.to_dict()))) == plan.traffic
    path.write_text(path.read_text().replace('"uniform"', '"unifrom"'))
    with pytest.raises(dc.ParameterError, match=r"spec\.toml, line 3: .*did you mean 'uniform'"):
        read_specification(path)

"""Runs with a context: games by hand, the twin of LinUCB, and regret against segments."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import decoupled as dc
from decoupled.base.arrays import Floats
from decoupled.kernels.random.stream import below
from decoupled.simulation.baselines import LinUCB, PerSegment
from decoupled.simulation.toml import read_specification
from decoupled.simulation.traffic import DRAWS, stream_of

ROUNDS, SEED = 300, 5
DATA = Path(os.environ.get("DECOUPLED_DATA") or "nowhere") / "context" / "mmlu.npz"


def made_up(rounds: int, segments: int, apart: float, gap: float = 0.02) -> Any:
    """Losses of 0 and 1 for two arms.

    The first is better by `gap`, and by `apart` more or less in a segment.
    """
    draw = np.random.default_rng(0)
    segment, tokens = draw.integers(0, segments, rounds), draw.normal(size=rounds)
    better = gap + np.where(segment % 2 == 0, apart, -apart)
    losses = (draw.random((rounds, 2)) < 0.4 + np.stack([-better, better], axis=1) / 2).astype(
        float
    )
    context = {"subject": [f"s{each}" for each in segment], "tokens": tokens.tolist()}
    return dc.environments.ContextTable(losses, context, order="shuffled")


WORLD = made_up(200, segments=4, apart=0.2)


def played_by_hand(policy: Any, run: int) -> Floats:
    """The loss of a learner in each round, or of a dictionary of learners."""
    inner, fields = (
        (policy.policy, policy.segments) if isinstance(policy, PerSegment) else (policy, None)
    )
    learners: dict[Any, dc.Learner] = {}
    numbers = WORLD.segment_at(fields or ())
    suffered = []
    for row in WORLD.row_at(ROUNDS, SEED, run).tolist():
        key = (run, 1) if fields is None else (run, 1, int(numbers[row]))
        if key not in learners:
            learners[key] = dc.Learner(
                inner, WORLD.arms, np.random.SeedSequence(SEED, spawn_key=key)
            )
        context = {name: column[row] for name, column in WORLD.context.items()}
        decision = learners[key].decide(context=context if inner.contextual else None)
        learners[key].observe(decision, WORLD.losses.item(row, decision.explore))
        suffered.append(WORLD.losses.item(row, decision.exploit))
    return np.array(suffered)


def linear_by_hand(policy: LinUCB, run: int) -> Floats:
    """Algorithm 1 of the paper as it stands: sums of moments, and a system of equations in every
    round.
    """
    subjects = sorted(set(WORLD.context["subject"]), key=WORLD.context["subject"].index)
    tokens = np.array(WORLD.context["tokens"])
    tokens = (tokens - tokens.mean()) / tokens.std()
    one_hot = [[float(value == each) for each in subjects] for value in WORLD.context["subject"]]
    features = np.column_stack([np.ones(len(tokens)), one_hot, tokens])
    moments = np.stack([policy.ridge * np.eye(features.shape[1])] * WORLD.arms)
    sums = np.zeros((WORLD.arms, features.shape[1]))
    stream, suffered = stream_of(SEED, run, DRAWS), []
    for row in WORLD.row_at(ROUNDS, SEED, run):
        x, index = features[row], np.empty(WORLD.arms)
        for arm in range(WORLD.arms):
            width = np.sqrt(x @ np.linalg.solve(moments[arm], x))
            index[arm] = np.linalg.solve(moments[arm], sums[arm]) @ x - policy.alpha * width
        arm = int(index.argmin())
        if abs(index[0] - index[1]) < 1e-12:
            arm = 1 if below(2, stream) == 0 else 0
        moments[arm] += np.outer(x, x)
        sums[arm] += WORLD.losses[row, arm] * x
        suffered.append(WORLD.losses[row, arm])
    return np.array(suffered)


@pytest.mark.parametrize(
    "policy",
    [
        dc.Ladder(),
        dc.ContextualLadder(segments=("subject",), max_segments=2),
        dc.ContextualLadder(segments=("subject",), numbers=("tokens",)),
        PerSegment(dc.Ladder(), ["subject"]),
        PerSegment(dc.ThompsonSampling(), ["subject"]),
        LinUCB(["subject"], ["tokens"], alpha=0.5),
    ],
    ids=lambda policy: policy.label,
)
def test_a_simulation_is_the_game_played_by_hand(policy: Any) -> None:
    checkpoints = [1, 2, 7, 250, ROUNDS]
    results = dc.simulate(policy, WORLD, ROUNDS, 2, SEED, checkpoints=checkpoints)
    by_hand = linear_by_hand if isinstance(policy, LinUCB) else played_by_hand
    for run in range(2):
        losses = WORLD.losses[WORLD.row_at(ROUNDS, SEED, run)]
        best = losses[:, losses.sum(axis=0).argmin()]
        expected = np.cumsum(by_hand(policy, run) - best)[np.array(checkpoints) - 1]
        np.testing.assert_allclose(results.data["regret"].values[0, run], expected, atol=1e-9)


def test_results_have_both_regrets() -> None:
    policies = [dc.ContextualLadder(segments=("subject",)), dc.Ladder(), LinUCB(["subject"])]
    size: Any = {"horizon": ROUNDS, "runs": 6, "seed": SEED}
    one = dc.simulate(policies, WORLD, **size)
    available = [WORLD.available(WORLD.row_at(ROUNDS, SEED, run)) for run in range(6)]
    assert np.allclose(one.segment_regret("Ladder"), one.final_regret("Ladder") + available)
    line = one.summary().loc["Ladder"]
    assert line["gain"] == -line["mean"]
    assert np.isclose(line["segment_regret"], line["mean"] + np.mean(available))
    assert one.short_labels[-1] == "LinUCB(segments=('subject',))"


def test_in_the_given_order_a_blind_policy_meets_an_ordinary_table() -> None:
    given = dc.environments.ContextTable(WORLD.losses, WORLD.context)
    plain = dc.environments.LossTable(WORLD.losses, noise="none")
    traffic = dc.Traffic(delay=10)
    one, two = (dc.simulate(dc.FTPL(), each, 400, 4, traffic=traffic) for each in (given, plain))
    assert (one.data["regret"] == two.data["regret"]).all()
    assert one.has_segments
    with pytest.raises(dc.UnsupportedError, match=r"^segment_regret: rounds had no context"):
        two.segment_regret("FTPL")


@pytest.mark.parametrize(
    ("policy", "given", "said"),
    [
        (
            LinUCB(["subject"]),
            {"environment": dc.environments.Bernoulli([0.1, 0.9])},
            "Bernoulli has none",
        ),
        (LinUCB(["subjct"]), {}, "segments = 'subjct': is not a column .* did you mean 'subject'"),
        (
            LinUCB(numbers=["subject"]),
            {},
            "numbers = 'subject': has 's.' in row 0, and needs numbers",
        ),
        (dc.ContextualLadder(segments=("tokens",)), {}, "segments = 'tokens': has the fraction"),
        (
            dc.ContextualLadder(advisers=("mine",)),
            {},
            "advisers = .*: cannot give advice in a simulation",
        ),
        (
            PerSegment(dc.Ladder(), ["subject"]),
            {"traffic": dc.Traffic(delay=3)},
            "traffic = 'delay 3'",
        ),
        (
            dc.Ladder(),
            {"traffic": dc.Traffic(missing=0.5)},
            "traffic = 'missing 0.5': cannot .* order = 'shuffled'",
        ),
        (dc.Ladder(), {"device": "cuda"}, "device = 'cuda': cannot play order = 'shuffled'"),
    ],
)
def test_what_cannot_be_simulated_with_a_context(policy: Any, given: Any, said: str) -> None:
    with pytest.raises((dc.ParameterError, dc.UnsupportedError), match=said):
        dc.simulate(policy, **{"environment": WORLD, "horizon": 10, "runs": 1, **given})


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: PerSegment("Ladder", ["s"]), "policy = 'Ladder': must be a policy"),
        (lambda: PerSegment(dc.Ladder(), []), r"segments = \[\]: must be a list of names"),
        (
            lambda: PerSegment(dc.ContextualLadder(segments=("s",)), ["s"]),
            "policy: ContextualLadder.*",
        ),
        (lambda: LinUCB(), "segments, numbers = .*: must not both be empty"),
        (lambda: LinUCB(["s"], alpha=-1), "alpha = -1"),
        (lambda: LinUCB(["s"]).start(arms=2), r"start\(\): LinUCB.* runs in simulations only"),
    ],
)
def test_baselines_that_cannot_be(make: Any, said: str) -> None:
    with pytest.raises((dc.ParameterError, dc.UnsupportedError), match=f"^{said}"):
        make()


@pytest.mark.parametrize("name", dc.baselines.Baseline.homes)
def test_baselines_are_values(name: str) -> None:
    for each in dc.baselines.Baseline.known()[name].examples():
        assert dc.baselines.Baseline.from_json(each.to_json()) == each
        assert hash(each) == hash(dc.baselines.Baseline.from_json(each.to_json()))
        assert name not in dc.Policy.known()


def test_a_specification_names_a_log_with_contexts_and_baselines(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("subject,small,large\nlaw,0.1,0.9\nart,0.8,0.2\n")
    specification = tmp_path / "spec.toml"
    specification.write_text("""
horizon = 20
runs = 2
[[policy]]
name = "LinUCB"
segments = ["subject"]
alpha = [0.5, 1.0]
[[policy]]
name = "PerSegment"
segments = ["subject"]
policy = { name = "FTPL", c = [1.0, 2.0] }
[[environment]]
name = "ContextTable"
losses = "log.csv"
context = ["subject"]
order = ["given", "shuffled"]
""")
    one, two = read_specification(specification)
    assert one.environment == dc.environments.ContextTable(tmp_path / "log.csv", ["subject"])
    assert two.environment.label == "ContextTable(2 rows, 2 arms, shuffled)"
    assert [policy.label for policy in one.policies] == [
        "LinUCB(segments=('subject',), alpha=0.5)",
        "LinUCB(segments=('subject',))",
        "FTPL(c=1) for each subject",
        "FTPL for each subject",
    ]
    specification.write_text(specification.read_text().replace("log.csv", "lost.csv"))
    with pytest.raises(dc.ParameterError, match=r"^spec.toml, line 14: .*lost.csv"):
        read_specification(specification)


def gains(table: Any, runs: int) -> dict[str, Floats]:
    """What each policy gains over the best single arm, in each run."""
    policies = {
        "pooled": dc.Ladder(),
        "ours": dc.ContextualLadder(segments=("subject",)),
        "apart": PerSegment(dc.Ladder(), ["subject"]),
    }
    results = dc.simulate(
        [*policies.values()], table, len(table.losses), runs, seed=0, checkpoints=1
    )
    return {name: -results.final_regret(policy) for name, policy in policies.items()}


def test_segments_that_differ_pay_and_labels_that_tell_nothing_cost_little() -> None:
    """A stand-in for the recorded answers below.

    Seeded; the bounds are more than five standard errors from the means.
    """
    telling = gains(made_up(6_000, segments=30, apart=0.12), runs=8)
    assert telling["ours"].mean() > 120.0 > 40.0 > telling["pooled"].mean()
    noise = gains(made_up(6_000, segments=30, apart=0.0, gap=0.1), runs=8)
    assert noise["ours"].mean() > -35.0 > -75.0 > noise["apart"].mean()


@pytest.mark.skipif(
    not DATA.is_file(), reason="DECOUPLED_DATA names no folder with context/mmlu.npz"
)
@pytest.mark.parametrize(
    ("price", "labels", "least", "rival", "most"),
    [
        (0.1, False, 90.0, "pooled", 40.0),
        (0.2, True, -35.0, "apart", -100.0),
    ],
)
def test_recorded_answers(
    price: float, labels: bool, least: float, rival: str, most: float
) -> None:
    """Two models on the questions of 57 subjects, or of as many labels that tell nothing.

    The dear model costs more.

    Seeded; the bounds are more than five standard errors from the means, which were 142 and -9 in a
    hundred runs.
    """
    with np.load(DATA) as kept:
        wrong, subjects = kept["wrong"], kept["names"][kept["segment"]]
    told = np.random.default_rng(0).permutation(subjects) if labels else subjects
    losses = (wrong + np.array([0.0, price])) / (1.0 + price)
    found = gains(dc.environments.ContextTable(losses, {"subject": told}, order="shuffled"), runs=8)
    assert found["ours"].mean() > least > most > found[rival].mean()

"""False statements of verdicts, at every look, in worlds where nothing that is said of an arm may
be said.

`make test` plays two worlds and `make test-slow` all eight, 400 times each; docs/inference.md has
the counts. A test fails if more runs have a false statement than 5 % of them would explain: 1 in
1,000 would be by chance if exactly 5 % had one.
"""

import math
from collections.abc import Callable, Iterable

import numpy as np
import pytest

import decoupled as dc
from support.statistics import most_false

ROUNDS = 1_000

# Whether a run of a world, by its seed, ever says something false.
World = Callable[[int, bool], bool]


def ladder_says(
    seed: int, drift: bool, loss_of: Callable[[np.random.Generator, int, int], float], arms: int
) -> tuple[int, ...]:
    """The arms that are ever out, by a `Ladder` in a world of this loss by round and arm."""
    rng = np.random.default_rng(seed)
    learner = dc.Ladder().start(arms, seed)
    learner.watch(drift=drift)
    for number in range(ROUNDS):
        decision = learner.decide()
        learner.observe(decision, loss=loss_of(rng, number, int(decision.explore)))
    return out_of(learner)


def out_of(learner: dc.Learner) -> tuple[int, ...]:
    """The arms that were ever shown to be out: what is out stays out."""
    return tuple(int(arm) for arm in learner.inference.verdict().out)


def is_any(out: Iterable[int], best: Iterable[int]) -> bool:
    """Whether an arm that is among the best is out."""
    return not set(out).isdisjoint(best)


def equal_zero_one(seed: int, drift: bool) -> bool:
    """Four arms, losses of 0 and 1."""
    return bool(ladder_says(seed, drift, lambda rng, _, __: float(rng.random() < 0.3), 4))


def equal_continuous(seed: int, drift: bool) -> bool:
    """Four arms with losses that lie close together, where the stakes are largest."""
    loss_of = lambda rng, _, __: float(np.clip(rng.normal(0.3, 0.1), 0.0, 1.0))  # noqa: E731
    return bool(ladder_says(seed, drift, loss_of, 4))


def together_drifting(seed: int, drift: bool) -> bool:
    """Four arms whose common mean goes up and down, so that no level is right for long."""

    def loss_of(rng: np.random.Generator, number: int, _: int) -> float:
        return float(rng.random() < 0.5 + 0.4 * math.sin(number / 40.0))

    return bool(ladder_says(seed, drift, loss_of, 4))


def rare_large_losses(seed: int, drift: bool) -> bool:
    """Four arms with small losses, and one in thirty of 1."""
    loss_of = lambda rng, _, __: 1.0 if rng.random() < 1.0 / 30.0 else 0.05  # noqa: E731
    return bool(ladder_says(seed, drift, loss_of, 4))


def tied_best(seed: int, drift: bool) -> bool:
    """Two best arms and two worse ones."""
    means = (0.3, 0.3, 0.5, 0.6)
    loss_of = lambda rng, _, arm: float(rng.random() < means[arm])  # noqa: E731
    return is_any(ladder_says(seed, drift, loss_of, 4), (0, 1))


def late_arm(seed: int, drift: bool) -> bool:
    """Two equal arms, and a third one after 300 rounds."""
    rng = np.random.default_rng(seed)
    learner = dc.Ladder().start([0, 1], seed)
    learner.watch(drift=drift)
    for number in range(ROUNDS):
        if number == 300:
            learner.add_arms([2])
        decision = learner.decide()
        learner.observe(decision, loss=float(np.clip(rng.normal(0.4, 0.15), 0.0, 1.0)))
    return bool(out_of(learner))


def contexts_of_two_kinds(seed: int, drift: bool) -> bool:
    """Each arm is best for one kind of requests, and both kinds are as frequent."""
    assert drift, "refused for contexts"
    rng = np.random.default_rng(seed)
    learner = dc.ContextualLadder(segments=("kind",)).start([0, 1], seed)
    learner.watch()
    for _ in range(ROUNDS):
        kind = int(rng.integers(2))
        decision = learner.decide(context={"kind": str(kind)})
        mean = 0.2 if decision.explore == kind else 0.6
        learner.observe(decision, loss=float(rng.random() < mean))
    return bool(out_of(learner))


def biased_judge(seed: int, drift: bool) -> bool:
    """Three equal arms, of which a judge prefers one."""
    rng = np.random.default_rng(seed)
    learner = dc.Ladder().start([0, 1, 2], seed, labels=dc.Labels(share=0.2, first=50))
    learner.watch(drift=drift)
    for _ in range(ROUNDS):
        decision = learner.decide()
        loss = float(rng.random() < 0.4)
        judged = float(rng.random() < (0.1 if decision.explore == 1 else 0.7))
        learner.observe(decision, judged=judged, loss=loss if decision.label else None)
    return bool(out_of(learner))


WORLDS: list[World] = [
    equal_zero_one,
    equal_continuous,
    together_drifting,
    rare_large_losses,
    tied_best,
    late_arm,
    contexts_of_two_kinds,
    biased_judge,
]
# Means do not change there, so that closed testing is right too.
STEADY: list[World] = [equal_zero_one, equal_continuous, rare_large_losses, tied_best]


def count_false(world: World, runs: int, *, drift: bool) -> int:
    """In how many runs something false is ever said."""
    false = sum(world(seed, drift) for seed in range(runs))
    print(f"| {world.__name__} | {'drift' if drift else 'no drift'} | {false} of {runs} |")
    return false


@pytest.mark.parametrize("world", [equal_continuous, tied_best])
def test_two_worlds(world: World) -> None:
    assert count_false(world, 60, drift=True) <= most_false(60, 0.05)


@pytest.mark.exhaustive
@pytest.mark.parametrize("world", WORLDS)
def test_each_world(world: World) -> None:
    assert count_false(world, 400, drift=True) <= most_false(400, 0.05)


@pytest.mark.exhaustive
@pytest.mark.parametrize("world", STEADY)
def test_each_world_in_which_no_mean_changes(world: World) -> None:
    assert count_false(world, 400, drift=False) <= most_false(400, 0.05)


def test_a_pair_that_bets_more_than_a_round_can_lose_is_noticed() -> None:
    """The worlds can fail: bets that begin with forty times their money are wrong too often."""
    from decoupled.inference import stakes

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stakes, "PRIOR", 40.0 * stakes.PRIOR)
        assert count_false(equal_continuous, 60, drift=True) > most_false(60, 0.05)

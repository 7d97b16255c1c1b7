"""Policies in plain Python: they do what compiled policies do, with no compiler, and say what is
wrong with them.
"""

import pickle
import textwrap
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import decoupled as dc
from decoupled.base.arrays import Floats
from decoupled.extend import State
from decoupled.kernels.random.stream import new_stream, uniform
from decoupled.learner.seeds import randomness
from support.plain_python import ran

pytestmark = pytest.mark.usefixtures("forget_policies")


@dataclass(frozen=True)
class Hedge(dc.PythonPolicy):
    rate: float = 0.1
    floor: float = 0.2

    def decide(self, known: Any) -> Any:
        weights = np.exp(-self.rate * (known.estimates - known.estimates.min()))
        law = weights / weights.sum()
        return law, self.floor / known.arms + (1.0 - self.floor) * law

    def update(self, known: Any, arm: int, weight: float, loss: float) -> None:
        known.estimates[arm] += weight * loss


@dataclass(frozen=True)
class Means(dc.PythonPolicy):
    """Follows the smallest mean loss, and explores uniformly; it has no row called estimates."""

    learned = ("losses", "seen")

    def decide(self, known: Any) -> Any:
        means = known.losses / np.maximum(known.seen, 1.0)
        best = means == means.min()
        return best / best.sum(), np.full(known.arms, 1.0 / known.arms)

    def update(self, known: Any, arm: int, weight: float, loss: float) -> None:
        known.losses[arm] += loss
        known.seen[arm] += 1.0

    def estimates(self, state: State) -> Any:
        losses, seen = state.floats
        return losses / np.maximum(seen, 1.0)


def by_inverse_law(law: Floats, mark: float) -> int:
    """The arm whose part of (0, 1] has the mark."""
    so_far = 0.0
    for arm, chance in enumerate(law):
        so_far += chance
        if mark <= so_far:
            return arm
    return len(law) - 1


def test_decisions_are_drawn_from_the_two_laws_with_two_numbers_of_the_stream() -> None:
    learner, (stream, _) = Hedge().start(4, seed=5), randomness(5)
    estimates, losses = np.zeros(4), np.random.default_rng(1).random((300, 4))
    for row in losses:
        weights = np.exp(-0.1 * (estimates - estimates.min()))
        law = weights / weights.sum()
        exploring = 0.05 + 0.8 * law
        decision = learner.decide()
        assert decision.exploit == by_inverse_law(law, uniform(stream))
        assert decision.explore == by_inverse_law(exploring, uniform(stream))
        assert decision.propensity == pytest.approx(exploring[decision.explore], rel=1e-12)
        estimates[decision.explore] += row[decision.explore] / decision.propensity
        learner.observe(decision, loss=float(row[decision.explore]))
    assert learner.estimates() == pytest.approx(estimates, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("policy", [Hedge(), Means()], ids=str)
def test_it_keeps_the_contract(policy: dc.Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "decoupled.testing.case.DRAWS", 5_000
    )  # a sound policy passes with any number
    dc.testing.check_policy(policy, rounds=100)


@pytest.mark.parametrize(
    "traffic",
    [dc.Traffic(), dc.Traffic(delay=7), dc.Traffic(missing=0.3, explore_share=0.5)],
    ids=lambda each: each.label,
)
@pytest.mark.parametrize(
    "world",
    [dc.environments.Bernoulli(rewards=[0.2, 0.5, 0.9]), dc.environments.PunishLast(3)],
    ids=["table", "adversary"],
)
def test_simulations_run_it_beside_compiled_policies(world: Any, traffic: Any) -> None:
    policies = [Hedge(), dc.FTPL()]
    results = dc.simulate(
        policies, world, horizon=60, runs=3, seed=2, checkpoints="all", traffic=traffic
    )
    alone = dc.simulate(
        policies[1], world, horizon=60, runs=3, seed=2, checkpoints="all", traffic=traffic
    )
    assert np.isfinite(results.final_regret(policies[0])).all()
    assert (results.final_regret(policies[1]) == alone.final_regret(policies[1])).all()


def test_a_simulation_with_late_feedback_is_the_learner_fed_late() -> None:
    world, horizon, delay = dc.environments.Bernoulli(rewards=[0.2, 0.5, 0.9]), 200, 7
    results = dc.simulate(
        Hedge(),
        world,
        horizon=horizon,
        runs=1,
        seed=3,
        checkpoints="all",
        traffic=dc.Traffic(delay=delay),
    )
    noise = new_stream(np.random.SeedSequence(3, spawn_key=(0, 0)))
    learner = Hedge().start(3, np.random.SeedSequence(3, spawn_key=(0, 1)))
    means, waiting, regret = np.array([0.8, 0.5, 0.1]), [], []
    for _ in range(horizon):
        decision = learner.decide()
        waiting.append((decision, float(uniform(noise) <= means[decision.explore])))
        if len(waiting) > delay:
            late, loss = waiting.pop(0)
            learner.observe(late, loss=loss)
        regret.append(means[decision.exploit] - means.min())
    assert results.data["regret_mean"].values.ravel() == pytest.approx(np.cumsum(regret))


def test_it_is_saved_pickled_and_given_new_arms() -> None:
    learner = Hedge(rate=0.3).start(["a", "b", "c"], seed=7)
    for _ in range(30):
        learner.observe(learner.decide(), loss=0.4)
    for again in (dc.Learner.from_json(learner.to_json()), pickle.loads(pickle.dumps(learner))):
        assert again.policy == Hedge(rate=0.3)
        assert [again.decide() for _ in range(5)] == learner_draws(learner)
    learner.add_arms(["d"])
    assert learner.decide(available=["d"]).explore == "d"
    assert learner.estimates()[3] == learner.estimates()[:3].min()


def learner_draws(learner: dc.Learner) -> list[dc.Decision]:
    again = dc.Learner.from_json(learner.to_json())
    return [again.decide() for _ in range(5)]


def test_an_arm_that_the_policy_draws_itself() -> None:
    @dataclass(frozen=True)
    class Perturbed(dc.PythonPolicy):
        def decide(self, known: Any) -> Any:
            noise = [-np.log(known.random()) for _ in range(known.arms)]
            return int(np.argmin(known.estimates - noise)), np.full(known.arms, 1.0 / known.arms)

        def update(self, known: Any, arm: int, weight: float, loss: float) -> None:
            known.estimates[arm] += weight * loss

    learner = Perturbed().start(3, seed=1)
    assert {learner.decide().exploit for _ in range(60)} == {0, 1, 2}
    with pytest.raises(dc.UnsupportedError, match="draws the arm to exploit itself"):
        learner.exploitation_probabilities()
    assert learner.exploration_probabilities() == pytest.approx(np.full(3, 1 / 3))


GOOD = np.full(3, 1 / 3)


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (None, r"Wrong.decide: returned None; return two lists of probabilities"),
        ((GOOD, [0.5, 0.5]), r"gave \[0.5, 0.5\] to explore 3 arms; return two lists"),
        ((GOOD, [0.5, 0.2, 0.2]), r"to explore 3 arms, which are not probabilities that sum to 1"),
        ((GOOD * np.nan, GOOD), r"to exploit 3 arms, which are not probabilities"),
        ((3, GOOD), r"gave arm 3 to exploit; arms are numbered 0 to 2"),
    ],
    ids=str,
)
def test_a_wrong_return_value_is_explained(returned: Any, message: str) -> None:
    @dataclass(frozen=True)
    class Wrong(dc.PythonPolicy):
        def decide(self, known: Any) -> Any:
            return returned

        def update(self, known: Any, arm: int, weight: float, loss: float) -> None:
            pass

    with pytest.raises(dc.ContractError, match=message):
        Wrong().start(3).decide()


def made(**parts: Any) -> Any:
    """A class of a policy in plain Python that explores and exploits evenly, with some parts
    replaced.
    """

    def decide(self: Any, known: Any) -> Any:
        return GOOD, GOOD

    def update(self: Any, known: Any, arm: int, weight: float, loss: float) -> None:
        pass

    return type("Made", (dc.PythonPolicy,), {"decide": decide, "update": update, **parts})


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        (
            {"update": dc.PythonPolicy.update},
            r"no method update; add update\(self, known, arm, weight",
        ),
        ({"learned": ("sums",)}, "neither an array nor a method called estimates; add a method"),
        ({"learned": ("round", "estimates")}, "learned names 'round', which the package keeps"),
        (
            {"learned": "estimates"},
            r"must be a tuple of names; for one name write \('estimates',\)",
        ),
        ({"update": lambda self, known, loss: None}, r"update takes \(known, loss\); it must take"),
    ],
)
def test_a_missing_method_or_row_is_explained(parts: dict[str, Any], said: str) -> None:
    with pytest.raises(dc.ContractError, match=said):
        dc.testing.check_policy(dataclass(frozen=True)(made(**parts))())


def test_a_missing_decorator_or_name_is_explained() -> None:
    with pytest.raises(
        dc.ContractError, match=r"is not a dataclass; put @dataclass\(frozen=True\)"
    ):
        made()()
    unnamed = made(learned=("sums",), decide=lambda self, known: (GOOD, GOOD + known.estimates))
    with pytest.raises(AttributeError, match=r"'estimates' is not learned; name it in `learned`"):
        dataclass(frozen=True)(unnamed)().start(3).decide()
    world = dc.environments.Bernoulli(rewards=[0.2, 0.5])
    with pytest.raises(dc.UnsupportedError, match="cannot run Hedge, which is plain Python"):
        dc.simulate(Hedge(), world, horizon=10, runs=1, device="cuda")
    with pytest.raises(dc.UnsupportedError, match="needs the interpreter at every step"):
        dc.Forgetting(Hedge(), period=10)


@pytest.mark.slow
def test_it_needs_no_compiler() -> None:
    script = """
        import sys
        sys.modules["numba"] = None  # as if it were not installed
        from dataclasses import dataclass
        import numpy as np
        import decoupled as dc

        @dataclass(frozen=True)
        class Level(dc.PythonPolicy):
            def decide(self, known):
                law = np.full(known.arms, 1 / known.arms)
                return law, law

            def update(self, known, arm, weight, loss):
                known.estimates[arm] += weight * loss

        for traffic in (dc.Traffic(), dc.Traffic(delay=5)):
            table = dc.environments.Alternating(arms=3, gap=0.2)
            adversary = dc.environments.PunishLast(3)
            dc.simulate([Level(), dc.FTPL()], table, horizon=20, runs=2, traffic=traffic)
            dc.simulate([Level()], adversary, horizon=20, runs=2, traffic=traffic)
        learner = Level().start(3)
        learner.observe(learner.decide(), loss=0.5)
        print("ran")
    """
    assert ran("-c", textwrap.dedent(script)) == "ran\n"

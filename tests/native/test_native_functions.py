"""Every function that ships gives the bits of its twin, which Numba compiles from the same source."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import decoupled as dc
from decoupled.builder import catalogue
from decoupled.environments.base import Adversary
from decoupled.kernels import merging
from decoupled.kernels.dispatch import Entries, compiled_entries, entries, register
from decoupled.kernels.laws import leader_tiered, winner_law, winner_moments
from decoupled.kernels.random.noise import BERNOULLI, BETA
from decoupled.kernels.random.stream import new_stream
from decoupled.kernels.rounds import against_best, drive, drive_adaptive
from decoupled.kernels.state import State
from decoupled.native import load
from decoupled.native.calls import NativeFunction
from decoupled.simulation.cpu import world

ROUNDS = 60

if (reason := load.why_not()) is not None:
    pytest.skip(
        f"of the shipped machine code: {reason}; build it with: make native", allow_module_level=True
    )


def contract_policies() -> list[dc.Policy]:
    """Those of the contract suite."""
    path = Path(__file__).parents[1] / "policies" / "test_contract.py"
    spec = importlib.util.spec_from_file_location("contract_suite", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    policies: list[dc.Policy] = module.POLICIES
    return policies


def shipped_and_compiled(policy: dc.Policy) -> tuple[Entries, Entries]:
    kind = policy.params_type
    register(kind, policy.functions)
    shipped = entries(kind)
    assert all(isinstance(each, NativeFunction) for each in shipped)
    return shipped, compiled_entries(kind)


def native(function: Any, *kinds: type) -> NativeFunction:
    found = load.function(load.name_of(function), *kinds)
    assert found is not None
    return found


def course(policy: dc.Policy, arms: int, calls: Entries) -> Iterator[bytes]:
    """All that a policy's arrays hold, after every call."""
    state = policy.layout.new_state(arms)
    flat = (np.array(policy.params(), np.float64), *state)
    stream = new_stream(np.random.SeedSequence(arms))
    losses = np.random.default_rng(arms).random((ROUNDS, arms)).round(1)
    calls.init(*flat)
    for t in range(ROUNDS):
        exploit, explore, weight, propensity = calls.decide(*flat, stream)
        yield np.array([exploit, explore, weight, propensity]).tobytes()
        calls.update(*flat, explore, weight, losses[t, explore])
        yield b"".join(array.tobytes() for array in (*state, stream))


def test_nothing_is_left_out() -> None:
    expected = {export.name for name in catalogue.names() for export in catalogue.group(name).exports}
    assert set(load.read_manifest(load.FOLDER)["functions"]) == expected


@pytest.mark.slow
@pytest.mark.parametrize("policy", contract_policies(), ids=repr)
def test_learners(policy: dc.Policy) -> None:
    many = 1_500 if getattr(policy, "ranking", None) in ("strata", "auto") else 70
    for arms in (2, 5, many):
        form = policy.at(arms)
        shipped, compiled = shipped_and_compiled(form)
        for one, other in zip(course(form, arms, shipped), course(form, arms, compiled), strict=True):
            assert one == other, arms


@pytest.mark.slow
@pytest.mark.parametrize("policy", catalogue.policies(), ids=lambda policy: policy.label)
def test_round_loops(policy: dc.Policy) -> None:
    shipped_and_compiled(policy)
    for arms, noise in ((3, BERNOULLI), (20, BETA)):
        table, best = world(dc.environments.Bernoulli(np.linspace(0.2, 0.8, arms).tolist()), ROUNDS)
        table = table._replace(noise=noise, concentration=3.0)

        def played(loop: Any, arms: int = arms, table: Any = table, best: int = best) -> bytes:
            state, plays = policy.layout.new_state(arms), np.zeros((2, arms), np.int64)
            noise, draws = (new_stream(np.random.SeedSequence(k)) for k in range(2))
            regret, checkpoints = np.zeros(3), np.array([1, 7, ROUNDS])
            local = np.zeros(2, np.uint64)
            loop(policy.params(), state, draws, noise, local, table, best, checkpoints, regret, plays)
            return b"".join(array.tobytes() for array in (*state, noise, draws, local, regret, plays))

        assert played(native(drive, policy.params_type)) == played(drive.dispatcher)  # type: ignore[attr-defined]


@pytest.mark.slow
@pytest.mark.parametrize(
    "adversary", catalogue.adversaries(), ids=lambda adversary: type(adversary).__name__
)
@pytest.mark.parametrize(
    "policy",
    [
        dc.FTPL.recommended().at(5),
        dc.TsallisINF(),
        dc.UCB1(),
        dc.TopTwo(),
        dc.Forgetting(dc.UCB1(), period=9),
    ],
    ids=lambda each: each.label,
)
def test_loops_against_adversaries(policy: dc.Policy, adversary: Adversary) -> None:
    shipped_and_compiled(policy)
    adversary.prepare()
    arms = adversary.arms

    def played(loop: Any) -> bytes:
        state, plays = policy.layout.new_state(arms), np.zeros((2, arms), np.int64)
        noise, draws = (new_stream(np.random.SeedSequence(k)) for k in range(2))
        checkpoints, suffered, arm_losses = np.array([1, 7, ROUNDS]), np.zeros(3), np.zeros((3, arms))
        memory, work, sums = adversary.memory(), np.zeros(arms), np.zeros(arms)
        loop(
            *(policy.params(), state, draws, noise, np.zeros(2, np.uint64), adversary.params(), memory),
            *(ROUNDS, work, sums, checkpoints, suffered, arm_losses, plays),
        )
        found = (*state, *memory, noise, draws, work, sums, suffered, arm_losses, plays)
        return b"".join(array.tobytes() for array in found)

    shipped = native(drive_adaptive, policy.params_type, adversary.params_type)
    assert played(shipped) == played(drive_adaptive.dispatcher)  # type: ignore[attr-defined]


def both(function: Any, *arguments: Any) -> list[bytes]:
    """What a function makes of arrays and returns, as shipped and as compiled."""
    found = []
    for call in (native(function), function.dispatcher):
        fresh = [each.copy() if isinstance(each, np.ndarray) else each for each in arguments]
        returned = call(*fresh)
        arrays = (each.tobytes() for each in fresh if isinstance(each, np.ndarray))
        found.append(repr(returned).encode() + b"".join(arrays))
    return found


@pytest.mark.parametrize("frechet", [False, True])
@pytest.mark.parametrize("alpha", [1.3, 2.0, 3.0])
def test_laws_of_the_leader(alpha: float, frechet: bool) -> None:
    for arms in (2, 9, 50):
        shifts = np.sort(np.random.default_rng(arms).exponential(size=arms))
        shifts -= shifts[0]
        nodes = winner_law.grid(arms, alpha, frechet)
        work, law, square = np.zeros(arms), np.zeros(arms), np.zeros((max(arms, 4), arms))
        moves = np.linspace(0.0, 2.0, arms)
        for function, arguments in (
            (winner_law._add_law, (shifts, alpha, frechet, nodes, work, law)),
            (winner_moments._add_moments, (shifts, alpha, frechet, nodes, work, square)),
            (winner_moments._add_moved, (shifts, moves, alpha, frechet, nodes, work, law)),
            (winner_moments._add_pairs, (shifts, alpha, frechet, nodes, work, square)),
        ):
            one, other = both(function, *arguments)
            assert one == other, (function, arms)


def test_the_law_in_strata() -> None:
    policy = dc.FTPL(ranking="strata")
    learner = policy.start(arms=300, seed=1)
    for _ in range(200):
        learner.observe(learner.decide(), loss=0.7)
    state: State = learner._running.state
    laws = np.empty((2, 300))
    native(leader_tiered.fill_exploration_law)(3.0, 1.0, state, laws[0])
    leader_tiered.fill_exploration_law.dispatcher(3.0, 1.0, state, laws[1])  # type: ignore[attr-defined]
    assert laws[0].tobytes() == laws[1].tobytes()
    assert laws[0].sum() == pytest.approx(1.0)


def test_accounts() -> None:
    rng = np.random.default_rng(0)
    one, other = both(
        against_best, np.array([5, 9]), rng.random((2, 4)) * [[5.0], [9.0]], rng.random(2) * 5.0
    )
    assert one == other
    one, other = both(merging.merge_groups, rng.random((120, 3)), 50, rng.random(3), rng.random(3))
    assert one == other


def test_arguments_that_do_not_suit_are_compiled_for() -> None:
    # Every second column: not contiguous, so that the shipped function cannot take it.
    curves = np.random.default_rng(0).random((60, 6))
    results = []
    for given in (curves[:, ::2], curves[:, ::2].copy()):
        mean, squares = np.zeros(3), np.zeros(3)
        assert merging.merge_groups(given, 0, mean, squares) == 60
        results.append((mean.tobytes(), squares.tobytes()))
    assert results[0] == results[1]

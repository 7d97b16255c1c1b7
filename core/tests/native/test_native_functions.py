"""Every function that ships gives the bits of its source, run as plain Python and as Numba compiles
it.

Plain Python is compared for all functions, since nothing has to be compiled for that. Numba's code
is compared for a few policies. DECOUPLED_TWINS=all compares it for all of them, which takes
minutes: `make twins`.
"""

import json
import os
from typing import Any

import numpy as np
import pytest

import decoupled as dc
from decoupled.builder import catalogue
from decoupled.environments.base import Adversary
from decoupled.kernels import rounds
from decoupled.kernels.dispatch import Entries, compiled_entries, entries, register
from decoupled.kernels.feedback_delay import Direct, FeedbackQueue
from decoupled.kernels.rounds import play_rounds
from decoupled.kernels.worlds import ContextWorld, TableWorld
from decoupled.native import load
from decoupled.native.calls import NativeFunction
from support import courses
from support.once import made_once
from support.plain_python import output_of
from support.policies import examples

if (reason := load.unavailable_reason()) is not None:
    pytest.skip(f"of the shipped machine code: {reason}; run make native", allow_module_level=True)

every_adversary = pytest.mark.parametrize(
    "adversary", courses.adversaries(), ids=lambda adversary: type(adversary).__name__
)


def shipped_entries(policy: dc.Policy) -> Entries:
    kind = policy.params_type
    register(kind, policy.functions)
    shipped = entries(kind)
    assert all(isinstance(each, NativeFunction) for each in shipped)
    return shipped


def native(function: Any, *kinds: type) -> NativeFunction:
    found = load.function(load.name_of(function), *kinds)
    assert found is not None
    return found


@pytest.fixture(scope="module")
def interpreted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The digests that plain Python comes to, for each case."""

    found: dict[str, list[str]] = json.loads(
        made_once(tmp_path_factory, "interpreted", lambda _: output_of("support.courses"))[1]
    )
    return found


SHIPPED = {policy.params_type for policy in catalogue.policies()}


@pytest.mark.parametrize("policy", examples(), ids=repr)
def test_learners(policy: dc.Policy, interpreted: dict[str, list[str]]) -> None:
    for arms in courses.numbers_of_arms(policy):
        form = policy.at(arms)
        calls = shipped_entries(form) if form.params_type in SHIPPED else form.entries()
        found = [*map(courses.digest, courses.course(form, arms, calls))]
        assert found == interpreted[courses.learner_case(policy, arms)], arms


@pytest.mark.parametrize("policy", courses.without_contexts(), ids=lambda policy: policy.label)
def test_round_loops(policy: dc.Policy, interpreted: dict[str, list[str]]) -> None:
    shipped_entries(policy)
    loop = native(play_rounds, policy.params_type, TableWorld, Direct)
    assert [*map(courses.digest, courses.table_games(policy, loop))] == interpreted[policy.label]


def test_a_loop_with_contexts_and_functions_that_policies_share(
    interpreted: dict[str, list[str]],
) -> None:
    policy = dc.ContextualLadder()
    shipped_entries(policy)
    game = courses.context_game(native(play_rounds, policy.params_type, ContextWorld, Direct))
    assert [courses.digest(game)] == interpreted["contexts"]
    met = set()
    for name, function, arguments in courses.common_calls():
        assert [courses.digest(courses.outcome(native(function), arguments))] == interpreted[
            name
        ], name
        met.add(load.name_of(function))
    exports = catalogue.group(catalogue.COMMON).exports
    assert met == {export.name for export in exports if "(" not in export.name}
    expected = {
        export.name for name in catalogue.names() for export in catalogue.group(name).exports
    }
    assert set(load.read_manifest(load.FOLDER)["functions"]) == expected


@pytest.mark.parametrize("policy", courses.with_late_feedback(), ids=lambda policy: policy.label)
def test_round_loops_with_late_feedback(
    policy: dc.Policy, interpreted: dict[str, list[str]]
) -> None:
    shipped_entries(policy)
    loop = native(play_rounds, policy.params_type, TableWorld, FeedbackQueue)
    games = courses.table_games(policy, loop, late=True)
    assert [*map(courses.digest, games)] == interpreted[courses.late_case(policy)]


@every_adversary
@pytest.mark.parametrize("policy", courses.against_adversaries(), ids=lambda policy: policy.label)
def test_loops_against_adversaries(
    policy: dc.Policy, adversary: Adversary, interpreted: dict[str, list[str]]
) -> None:
    register(policy.params_type, policy.functions)
    adversary.prepare()
    found = courses.digest(courses.adversary_game(policy, adversary, play_rounds))
    assert [found] == interpreted[courses.adversary_case(policy, adversary)]
    found = courses.digest(courses.adversary_game(policy, adversary, play_rounds, late=True))
    assert [found] == interpreted[courses.late_case(policy, adversary)]


@every_adversary
def test_functions_of_adversaries(adversary: Adversary, interpreted: dict[str, list[str]]) -> None:
    adversary.prepare()
    for name, function, arguments in courses.adversary_calls(adversary):
        call = native(function, adversary.params_type)
        assert [courses.digest(courses.outcome(call, arguments))] == interpreted[name], name


EVERY = os.environ.get("DECOUPLED_TWINS") == "all"
TWINS = courses.without_contexts() if EVERY else [dc.Exp3(), dc.UCB1()]


@pytest.mark.slow
@pytest.mark.parametrize("policy", TWINS, ids=lambda policy: policy.label)
def test_learners_and_round_loops_of_numba(policy: dc.Policy) -> None:
    shipped, compiled = shipped_entries(policy), compiled_entries(policy.params_type)
    for arms in courses.numbers_of_arms(policy):
        both = (courses.course(policy, arms, calls) for calls in (shipped, compiled))
        for one, other in zip(*both, strict=True):
            assert one == other, arms
    shipped_entries(policy)
    loops: Any = (
        native(play_rounds, policy.params_type, TableWorld, Direct),
        play_rounds.dispatcher,  # type: ignore[attr-defined]
    )
    one, other = ([*courses.table_games(policy, loop)] for loop in loops)
    assert one == other


def test_arguments_that_do_not_suit_are_compiled_for() -> None:
    # Every second column: not contiguous, so that the shipped function cannot take it.
    curves = np.random.default_rng(0).random((60, 6))
    results = []
    for given in (curves[:, ::2], curves[:, ::2].copy()):
        mean, squares = np.zeros(3), np.zeros(3)
        assert rounds.merge_groups(given, 0, mean, squares) == 60
        results.append((mean.tobytes(), squares.tobytes()))
    assert results[0] == results[1]

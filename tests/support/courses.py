"""What machine code makes of some inputs, for a comparison bit for bit: learners, round loops and common functions.

Run as a script, with NUMBA_DISABLE_JIT=1, it prints the same of the plain Python that the machine code was made of.
Nothing is compiled then, and Python checks every index.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np

import decoupled as dc
from decoupled.builder import catalogue
from decoupled.environments.base import Adversary
from decoupled.inference.adding import pack_observations
from decoupled.inference.sequences import Sequences
from decoupled.inference.sums import Observation
from decoupled.kernels import dispatch, late, rounds
from decoupled.kernels.betting import ArmTotals, add_observations
from decoupled.kernels.dispatch import Entries, register
from decoupled.kernels.late import Late, drive_adaptive_late, drive_late
from decoupled.kernels.laws import winner_law
from decoupled.kernels.laws.contextual import keyed_contextual
from decoupled.kernels.laws.ladder_rungs import keyed_ladder
from decoupled.kernels.random import keyed
from decoupled.kernels.random.sampling import BERNOULLI, BETA, draw_loss
from decoupled.kernels.random.stream import new_stream, uniform
from decoupled.kernels.rounds import against_best, drive, drive_adaptive, drive_in_context
from decoupled.kernels.state import State
from decoupled.simulation.baseline import TableRun
from decoupled.simulation.contextual import play_in_context
from decoupled.simulation.cpu import world
from decoupled.simulation.traffic import Traffic, new_late
from support.policies import examples

ROUNDS = 60
LADDER = dc.Ladder()
CONTEXTUAL = dc.ContextualLadder(segments=("s",))


def numbers_of_arms(policy: dc.Policy) -> tuple[int, ...]:
    # Strata note a slot that two arms never use, one place past the row, where Python would stop.
    return (3, 5, 1_500) if getattr(policy, "ranking", None) in ("strata", "auto") else (2, 5, 70)


def adversaries() -> list[Adversary]:
    """One of each kind, with more arms than the fewest."""
    return [replace(cast(Any, each), arms=5) for each in catalogue.adversaries()]


def without_contexts() -> list[dc.Policy]:
    """The policies for which the loops over tables of losses ship."""
    return [policy for policy in catalogue.policies() if not policy.contextual]


def against_adversaries() -> list[dc.Policy]:
    """The policies whose loops against adversaries are compared, which are compiled on first use."""
    return without_contexts() if os.environ.get("DECOUPLED_TWINS") == "all" else [dc.Exp3()]


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


def room(policy: dc.Policy, arms: int) -> Late:
    """Feedback that comes late, is lost or altered, or is not asked for."""
    rules = Traffic(delay=("geometric", 4.0), missing=0.2, slice=0.7, reported=("flip", 0.2))
    return new_late(policy, arms, rules, ROUNDS)._replace(key=np.array([3, 4], np.uint64))


def table_games(policy: dc.Policy, loop: Any, *, late: bool = False) -> Iterator[bytes]:
    """All that a round loop leaves behind, with few arms and bits, and with more arms and any losses."""
    for arms, kind in ((3, BERNOULLI), (20, BETA)):
        table, best = world(dc.environments.Bernoulli(np.linspace(0.2, 0.8, arms).tolist()), ROUNDS)
        table = table._replace(noise=kind, concentration=3.0)
        state, plays = policy.layout.new_state(arms), np.zeros((2, arms), np.int64)
        noise, draws = (new_stream(np.random.SeedSequence(k)) for k in range(2))
        regret, checkpoints = np.zeros(3), np.array([1, 7, ROUNDS])
        local = np.zeros(2, np.uint64)
        more = (room(policy, arms),) if late else ()
        loop(
            policy.params(),
            state,
            draws,
            noise,
            local,
            table,
            best,
            checkpoints,
            regret,
            plays,
            *more,
        )
        yield b"".join(array.tobytes() for array in (*state, noise, draws, local, regret, plays))


def context_game(loop: Any) -> bytes:
    """All that the round loop with contexts leaves behind."""
    policy = dc.ContextualLadder(segments=("s",), numbers=("x",))
    policy.register()
    draw = np.random.default_rng(0)
    context = {"s": draw.integers(0, 3, ROUNDS), "x": draw.normal(size=ROUNDS)}
    table = dc.environments.ContextTable(draw.random((ROUNDS, 3)).round(1), context)
    found: list[Any] = []

    def kept(params: Any, state: Any, *others: Any) -> None:
        loop(params, state, *others)
        found.extend((*state, others[0]))

    plays, regret = np.zeros((2, 3), np.int64), np.zeros(2)
    row_at = table.row_at(ROUNDS, 0, 0)
    play_in_context(
        policy, kept, TableRun(table, row_at, 0, np.array([7, ROUNDS]), 0, 0, regret, plays)
    )
    return b"".join(array.tobytes() for array in (*found, regret, plays))


def adversary_game(
    policy: dc.Policy, adversary: Adversary, loop: Any, *, late: bool = False
) -> bytes:
    """All that a round loop against an adversary leaves behind."""
    arms = adversary.arms
    state, plays = policy.layout.new_state(arms), np.zeros((2, arms), np.int64)
    noise, draws = (new_stream(np.random.SeedSequence(k)) for k in range(2))
    checkpoints, suffered, arm_losses = np.array([1, 7, ROUNDS]), np.zeros(3), np.zeros((3, arms))
    memory, work, sums = adversary.memory(), np.zeros(arms), np.zeros(arms)
    loop(
        *(policy.params(), state, draws, noise, np.zeros(2, np.uint64), adversary.params(), memory),
        *(ROUNDS, work, sums, checkpoints, suffered, arm_losses, plays),
        *((room(policy, arms),) if late else ()),
    )
    found = (*state, *memory, noise, draws, work, sums, suffered, arm_losses, plays)
    return b"".join(array.tobytes() for array in found)


def common_calls() -> Iterator[tuple[str, Any, tuple[Any, ...]]]:
    """The functions that all policies share, each with a name of the case and with arguments."""
    for alpha, frechet in ((1.3, False), (2.0, True), (3.0, False), (3.0, True)):
        for arms in (2, 9, 30):
            shifts = np.sort(np.random.default_rng(arms).exponential(size=arms))
            shifts -= shifts[0]
            nodes = winner_law.grid(arms, alpha, frechet)
            arguments = (shifts, alpha, frechet, nodes, np.zeros(arms), np.zeros(arms))
            yield f"winner law, {alpha}, {frechet}, {arms}", winner_law._add_law, arguments
    rng = np.random.default_rng(0)
    accounts = (np.array([5, 9]), rng.random((2, 4)) * [[5.0], [9.0]], rng.random(2) * 5.0)
    yield "against_best", against_best, accounts
    seen = [Observation(n % 3, 3.0, n % 7 / 6.0, n % 2, None, np.full(3, 1 / 3)) for n in range(20)]
    sums = Sequences(3).sums
    by_arm = ArmTotals(sums.moments, sums.counts, sums.rounds, sums.flow)
    yield (
        "add_observations",
        add_observations,
        (pack_observations(sums, seen), by_arm, sums.pairs.totals(), 0),
    )
    yield (
        "merge_groups",
        rounds.merge_groups,
        (rng.random((120, 3)), 50, rng.random(3), rng.random(3)),
    )
    stream, pending = new_stream(np.random.SeedSequence(3)), room(dc.FTPL(), 4)
    rules, some = pending.rules, dc.FTPL().layout.new_state(4)
    some.floats[:] = rng.random(some.floats.shape)
    pending.floats[:] = rng.random(pending.floats.shape)
    yield "uniform", uniform, (stream,)
    for kind in (BERNOULLI, BETA):
        yield f"draw_loss, {kind}", draw_loss, (kind, 3.0, 0.3, stream, np.zeros(2, np.uint64))
    yield "clear", late.clear, (pending,)
    yield "explores", late.explores, (rules, pending.key, 7)
    yield "_wait", late._wait, (some, pending, 7, 2, 1.5, 0.25)
    for keep in (True, False):
        yield f"_copy, {keep}", late._copy, (some, pending, 7, keep)
    numbers, serials = rng.random(6), np.arange(3, 9)
    yield (
        "key_word",
        keyed.key_word,
        (np.frombuffer(b"session-17" + bytes(6), np.uint64), 5.0**20, 10),
    )
    ladder = LADDER.layout.new_state(6)
    ladder.floats[:] = rng.random(ladder.floats.shape)
    for name, value in (
        ("eta", 0.5),
        ("rung_weight_0", 0.2),
        ("rung_weight_1", 0.3),
        ("rung_weight_2", 0.5),
    ):
        LADDER.layout.row(ladder, name)[:] = value
    for name, value in (("rung_rate_0", 1.0), ("rung_rate_1", 16.0), ("rung_rate_2", -1.0)):
        LADDER.layout.row(ladder, name)[:] = value
    known = CONTEXTUAL.layout.new_state(6)
    known.floats[:] = rng.random(known.floats.shape)
    for rung, (weight, rate) in enumerate(((0.2, 1.0), (0.3, 16.0), (0.5, -1.0))):
        CONTEXTUAL.layout.row(known, f"outer_weight_{rung}")[:] = weight
        CONTEXTUAL.layout.row(known, f"outer_kind_{rung}")[:] = rung
        for prefix in ("", "segment_"):
            CONTEXTUAL.layout.row(known, f"{prefix}eta")[:] = 0.5
            CONTEXTUAL.layout.row(known, f"{prefix}rung_weight_{rung}")[:] = weight
            CONTEXTUAL.layout.row(known, f"{prefix}rung_rate_{rung}")[:] = rate
    for key in range(10**9, 10**9 + 20):
        yield f"keyed_contextual, {key}", keyed_contextual, (*known[:2], 3, 3, serials, key)
        yield f"keyed_leader, {key}", keyed.keyed_leader, (numbers, numbers[:1], 3.0, serials, key)
        yield f"keyed_race, {key}", keyed.keyed_race, (numbers, serials, key)
        yield f"keyed_ladder, {key}", keyed_ladder, (ladder.scalars, ladder.floats, 3, serials, key)


def adversary_calls(adversary: Adversary) -> Iterator[tuple[str, Any, tuple[Any, ...]]]:
    """The functions of an adversary, each with a name of the case and with arguments."""
    losses, note = adversary.functions
    known = (adversary.params(), adversary.memory(), 3)
    yield f"losses of {adversary!r}", losses, (*known, np.zeros(adversary.arms))
    yield f"note of {adversary!r}", note, (*known, 1)


def outcome(call: Any, arguments: tuple[Any, ...]) -> bytes:
    """What a function returns and makes of its arrays, which are copied first."""
    fresh = [_copied(each) for each in arguments]
    returned = call(*fresh)
    arrays = (each.tobytes() for each in _flat(fresh) if isinstance(each, np.ndarray))
    return repr(returned).encode() + b"".join(arrays)


def _copied(argument: Any) -> Any:
    if isinstance(argument, tuple):  # a named one
        return type(argument)(*map(_copied, argument))
    return argument.copy() if isinstance(argument, np.ndarray) else argument


def _flat(arguments: Iterable[Any]) -> Iterator[Any]:
    for each in arguments:
        if isinstance(each, tuple):
            yield from _flat(each)
        else:
            yield each


def dispatched(policy: dc.Policy) -> Entries:
    """A learner's calls of the policy's own functions: plain Python where Numba is disabled."""
    register(policy.params_type, policy.functions)
    params = policy.params()

    def call(function: Any, values: Any, scalars: Any, floats: Any, ints: Any, *more: Any) -> Any:
        return function(params, State(scalars, floats, ints), *more)

    functions = (dispatch.init, dispatch.decide, dispatch.update)
    return Entries(*(partial(call, function) for function in functions))


def digest(*parts: bytes) -> str:
    return hashlib.sha256(b"".join(parts)).hexdigest()


def learner_case(policy: dc.Policy, arms: int) -> str:
    return f"{policy!r} with {arms} arms"


def adversary_case(policy: dc.Policy, adversary: Adversary) -> str:
    return f"{policy.label} against {adversary!r}"


def late_case(policy: dc.Policy, adversary: Adversary | None = None) -> str:
    return f"{policy.label} against {adversary!r}, late"


def interpreted() -> Iterator[tuple[str, list[str]]]:
    """What every case comes to in plain Python."""
    for policy in examples():
        for arms in numbers_of_arms(policy):
            form = policy.at(arms)
            yield learner_case(policy, arms), [*map(digest, course(form, arms, dispatched(form)))]
    for policy in without_contexts():
        register(policy.params_type, policy.functions)
        yield policy.label, [*map(digest, table_games(policy, drive))]
    for policy in without_contexts():
        yield late_case(policy), [*map(digest, table_games(policy, drive_late, late=True))]
    for policy in against_adversaries():
        for adversary in adversaries():
            adversary.prepare()
            game = adversary_game(policy, adversary, drive_adaptive)
            yield adversary_case(policy, adversary), [digest(game)]
            game = adversary_game(policy, adversary, drive_adaptive_late, late=True)
            yield late_case(policy, adversary), [digest(game)]
    yield "contexts", [digest(context_game(drive_in_context))]
    for adversary in adversaries():
        for name, function, arguments in adversary_calls(adversary):
            yield name, [digest(outcome(function, arguments))]
    for name, function, arguments in common_calls():
        yield name, [digest(outcome(function, arguments))]


if __name__ == "__main__":
    with np.errstate(all="ignore"):  # words of streams overflow, as they should
        print(json.dumps(dict(interpreted())))

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
from decoupled.inference.adding import empty_standing, pack_observations
from decoupled.inference.sequences import Sequences
from decoupled.inference.sums import Observation
from decoupled.kernels import dispatch, feedback_delay, rounds, winner_law
from decoupled.kernels.alarm_bets import AlarmTotals, bet_since
from decoupled.kernels.betting import ArmTotals, add_observations
from decoupled.kernels.dispatch import Entries, register
from decoupled.kernels.feedback_delay import Direct, FeedbackQueue
from decoupled.kernels.random import keyed
from decoupled.kernels.random.sampling import BERNOULLI, BETA, draw_loss
from decoupled.kernels.random.stream import new_stream, uniform
from decoupled.kernels.rounds import Run, against_best, play_rounds
from decoupled.kernels.single_bets import add_looks, bet_on_rounds
from decoupled.kernels.stakes import PRIOR, STAKES
from decoupled.kernels.state import State
from decoupled.kernels.worlds import AdversaryWorld, TableWorld
from decoupled.policies.contextual.kernels import keyed_contextual
from decoupled.policies.ladder.rungs import keyed_ladder
from decoupled.simulation.cpu import RunFactory, table_and_best
from decoupled.simulation.traffic import Traffic, new_queue
from support.policies import examples

ROUNDS = 60
LADDER = dc.Ladder()
CONTEXTUAL = dc.ContextualLadder(segments=("s",))


def numbers_of_arms(policy: dc.Policy) -> tuple[int, ...]:
    # Strata note a slot that two arms never use, one place past the row, where Python would stop.
    in_strata = getattr(policy.at(1_500), "ranking", None) == "strata"
    return (3, 5, 1_500) if in_strata else (2, 5, 70)


def adversaries() -> list[Adversary]:
    """One of each kind, with more arms than the fewest."""
    return [replace(cast(Any, each), arms=5) for each in catalogue.adversaries()]


def without_contexts() -> list[dc.Policy]:
    """The policies for which the loops over tables of losses ship."""
    return [policy for policy in catalogue.policies() if not policy.contextual]


def with_late_feedback() -> list[dc.Policy]:
    """The policies for which the loops over tables of losses with late feedback ship."""
    names = catalogue.WITH_LATE_FEEDBACK
    return [policy for policy in without_contexts() if type(policy).__name__ in names]


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


def queue_for(policy: dc.Policy, arms: int) -> FeedbackQueue:
    """Feedback that comes late, is lost, or is not asked for."""
    rules = Traffic(delay=("geometric", 4.0), missing=0.2, explore_share=0.7)
    return new_queue(policy, arms, rules, ROUNDS)._replace(key=np.array([3, 4], np.uint64))


def table_games(policy: dc.Policy, loop: Any, *, late: bool = False) -> Iterator[bytes]:
    """All that a round loop leaves behind, with few arms and bits, and with more arms and any losses."""
    for arms, kind in ((3, BERNOULLI), (20, BETA)):
        environment = dc.environments.Bernoulli(np.linspace(0.2, 0.8, arms).tolist())
        table, best = table_and_best(environment, ROUNDS)
        noise, draws = (new_stream(np.random.SeedSequence(k)) for k in range(2))
        run = Run(
            params=policy.params(),
            state=policy.layout.new_state(arms),
            draws=draws,
            world=TableWorld(
                table=table._replace(noise=kind, concentration=3.0),
                best=best,
                noise=noise,
                scratch=np.zeros(2, np.uint64),
            ),
            feedback=queue_for(policy, arms) if late else Direct(),
            horizon=ROUNDS,
            checkpoints=np.array([1, 7, ROUNDS]),
            regret=np.zeros(3),
            plays=np.zeros((2, arms), np.int64),
        )
        loop(run)
        yield bytes_of(*run.state, noise, draws, run.world.scratch, run.regret, run.plays)


def bytes_of(*arrays: Any) -> bytes:
    return b"".join(array.tobytes() for array in arrays)


def context_game(loop: Any) -> bytes:
    """All that the round loop with contexts leaves behind."""
    policy = dc.ContextualLadder(segments=("s",), numbers=("x",))
    draw = np.random.default_rng(0)
    context = {"s": draw.integers(0, 3, ROUNDS), "x": draw.normal(size=ROUNDS)}
    table = dc.environments.ContextTable(draw.random((ROUNDS, 3)).round(1), context)
    plays, regret = np.zeros((2, 3), np.int64), np.zeros(2)
    factory = RunFactory(policy, table, ROUNDS, seed=0)
    run = factory.new_run(0, np.array([7, ROUNDS]), regret, plays)
    loop(run._replace(world=run.world._replace(best=0)))
    return bytes_of(*run.state, run.draws, regret, plays)


def adversary_game(
    policy: dc.Policy, adversary: Adversary, loop: Any, *, late: bool = False
) -> bytes:
    """All that a round loop against an adversary leaves behind."""
    arms = adversary.arms
    noise, draws = (new_stream(np.random.SeedSequence(k)) for k in range(2))
    world = AdversaryWorld(
        params=adversary.params(),
        memory=adversary.memory(),
        noise=noise,
        scratch=np.zeros(2, np.uint64),
        losses=np.zeros(arms),
        arm_sums=np.zeros(arms),
        arm_losses=np.zeros((3, arms)),
    )
    run = Run(
        params=policy.params(),
        state=policy.layout.new_state(arms),
        draws=draws,
        world=world,
        feedback=queue_for(policy, arms) if late else Direct(),
        horizon=ROUNDS,
        checkpoints=np.array([1, 7, ROUNDS]),
        regret=np.zeros(3),
        plays=np.zeros((2, arms), np.int64),
    )
    loop(run)
    left = (*run.state, *world.memory, noise, draws, world.losses, world.arm_sums)
    return bytes_of(*left, run.regret, world.arm_losses, run.plays)


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
    live = np.ones(3, np.int64)
    singles = sums.singles.totals(live)
    yield (
        "add_observations",
        add_observations,
        (
            pack_observations(sums, seen),
            by_arm,
            sums.pairs.totals(),
            sums.outs.totals(live, 60.0, closed=False),
            singles,
            empty_standing(3),
            0,
        ),
    )
    alarm = AlarmTotals(STAKES, PRIOR, np.array([1, 2]), np.ones((2, len(STAKES))))
    standing = empty_standing(3)._replace(chances=np.full(3, 1 / 3), means=rng.random(3))
    yield "bet_since", bet_since, (pack_observations(sums, seen), alarm, standing, 0, 0)
    looks = (singles.looks, np.zeros(3), np.zeros(3), np.arange(20) % 3, rng.random(20))
    yield "add_looks", add_looks, looks
    rounds_bet_on = (np.full(20, 0.4), np.full(20, 0.4), rng.random(20) + 0.4, *rng.random((3, 20)))
    yield "bet_on_rounds", bet_on_rounds, (singles.centred, 0, *rounds_bet_on)
    yield (
        "merge_groups",
        rounds.merge_groups,
        (rng.random((120, 3)), 50, rng.random(3), rng.random(3)),
    )
    stream, queue = new_stream(np.random.SeedSequence(3)), queue_for(dc.FTPL(), 4)
    rules, some = queue.rules, dc.FTPL().layout.new_state(4)
    some.floats[:] = rng.random(some.floats.shape)
    queue.floats[:] = rng.random(queue.floats.shape)
    yield "uniform", uniform, (stream,)
    for kind in (BERNOULLI, BETA):
        yield f"draw_loss, {kind}", draw_loss, (kind, 3.0, 0.3, stream, np.zeros(2, np.uint64))
    yield "clear", feedback_delay.clear, (queue,)
    yield "explores", feedback_delay.explores, (rules, queue.key, 7)
    yield "_enqueue", feedback_delay._enqueue, (some, queue, 7, 2, 1.5, 0.25)
    yield "_keep", feedback_delay._keep, (some, queue, 7)
    yield "_restore", feedback_delay._restore, (some, queue, 7)
    numbers, serials = rng.random(6), np.arange(3, 9)
    yield (
        "hash_key",
        keyed.hash_key,
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
    if isinstance(returned, np.floating):  # machine code returns Python's own numbers
        returned = returned.item()
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
        yield policy.label, [*map(digest, table_games(policy, play_rounds))]
    for policy in with_late_feedback():
        yield late_case(policy), [*map(digest, table_games(policy, play_rounds, late=True))]
    for policy in against_adversaries():
        for adversary in adversaries():
            adversary.prepare()
            game = adversary_game(policy, adversary, play_rounds)
            yield adversary_case(policy, adversary), [digest(game)]
            game = adversary_game(policy, adversary, play_rounds, late=True)
            yield late_case(policy, adversary), [digest(game)]
    yield "contexts", [digest(context_game(play_rounds))]
    for adversary in adversaries():
        for name, function, arguments in adversary_calls(adversary):
            yield name, [digest(outcome(function, arguments))]
    for name, function, arguments in common_calls():
        yield name, [digest(outcome(function, arguments))]


if __name__ == "__main__":
    with np.errstate(all="ignore"):  # words of streams overflow, as they should
        print(json.dumps(dict(interpreted())))

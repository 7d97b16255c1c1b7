"""What ships: every function that a learner or a simulation calls for a policy of this package."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..environments import AdaptiveAlternating, PunishLast
from ..environments.base import Adversary
from ..kernels import feedback_delay, rounds, winner_law
from ..kernels.alarm_bets import AlarmTotals, bet_since
from ..kernels.betting import ArmTotals, add_observations
from ..kernels.dispatch import Entries, compiled_entries, register
from ..kernels.feedback_delay import (
    OWN_FLOATS,
    OWN_INTS,
    Direct,
    FeedbackQueue,
    Rules,
)
from ..kernels.observed import Observed, Standing
from ..kernels.out_bets import OutTotals
from ..kernels.pair_bets import PairTotals
from ..kernels.random import keyed
from ..kernels.random.sampling import draw_loss
from ..kernels.random.stream import uniform
from ..kernels.rounds import Run, Table, against_best, play_rounds
from ..kernels.single_bets import (
    CentredBets,
    LookBets,
    SingleTotals,
    add_looks,
    bet_on_rounds,
)
from ..kernels.worlds import ContextWorld, RoundContexts, TableWorld
from ..native.load import full_name, name_of
from ..policies import FTPL, Forgetting, Policy, strata
from ..policies.contextual import state as contextual
from ..policies.contextual.kernels import fill_chances, keyed_contextual
from ..policies.ladder import state as ladder
from ..policies.ladder.rungs import keyed_ladder, prepare_for

ARMS = 2  # in the sample arguments; the code is the same for any number
COMMON = "what all policies share"
# A million arms are rare, and this takes as long to compile as six other policies.
COMPILED_ON_FIRST_USE = (strata.Params,)
# Whose simulations with late feedback ship. Those of the other policies, which nobody serves, are
# compiled on first use.
WITH_LATE_FEEDBACK = ("CentredFTPL", "Exp3", "FTPL", "Ladder", "TsallisINF")


class Export(NamedTuple):
    """A function to ship, with sample arguments of the right types.

    Attributes:
        name: the name in the library.
        function: the function.
        arguments: arguments, for their types alone.
        held: a function of the policy that this one calls, after its field in `Functions`. What is
            compiled after it, here and in the groups of the same family, calls the same code.
        inlines: the fields whose functions are copied into this one all the same, which takes
            longer to compile and runs faster.
    """

    name: str
    function: Any
    arguments: tuple[Any, ...]
    held: tuple[str, Any] | None = None
    inlines: tuple[str, ...] = ()


class Group(NamedTuple):
    """Functions that are compiled together because they share callees."""

    label: str
    exports: tuple[Export, ...]
    built_from: dict[str, list[str]]


def adversaries() -> tuple[Adversary, ...]:
    """One adversary of each kind in the package."""
    return PunishLast(ARMS), AdaptiveAlternating(ARMS, gap=0.125)


def policies() -> list[Policy]:
    """One policy for each form of compiled functions that ships."""
    policy_types = Policy.known()  # looks at every installed package
    shipped: dict[Any, Policy] = {}
    # A forgetting policy has the code of its policy.
    for name in sorted(Policy.homes.keys() - {Forgetting.__name__}):
        for policy in policy_types[name].forms():
            if policy.params_type not in COMPILED_ON_FIRST_USE:
                shipped.setdefault(policy.params_type, policy)
    return list(shipped.values())


def names() -> list[str]:
    """The names of all groups. The name of a policy's group is its description."""
    return [name for family in families() for name in family]


def families() -> list[list[str]]:
    """The names of groups that share most callees; one process compiles a family, in this order."""
    # The contextual ladder calls the functions of the ladder. These take longest, so they come
    # first: no process then waits for another at the end.
    ladders = (ladder.Params, contextual.Params)
    together = sorted(
        (policy for policy in policies() if policy.params_type in ladders),
        key=lambda policy: ladders.index(policy.params_type),
    )
    alone = [policy for policy in policies() if policy.params_type not in ladders]
    return [
        [policy.to_json() for policy in together],
        *([policy.to_json()] for policy in alone),
        [COMMON],
    ]


def group(name: str) -> Group:
    """The functions of a group."""
    return _common() if name == COMMON else _of_policy(Policy.from_json(name))


def _common() -> Group:
    """What all policies share: betting, keys, streams, simulated worlds and adversaries."""
    numbers = np.zeros(ARMS)
    table = np.zeros((ARMS, ARMS))
    nodes = winner_law.grid(ARMS, 2.0, True)
    ints = np.zeros(ARMS, np.int64)
    state = FTPL().layout.new_state(ARMS)
    # Only the functions listed here have a name in the library.
    functions: tuple[tuple[Any, tuple[Any, ...]], ...] = (
        (winner_law._add_law, (numbers, 2.0, True, nodes, numbers, numbers)),
        (against_best, (ints, table, numbers)),
        (add_observations, (*_betting(), 0)),
        (add_looks, (_look_bets(), numbers, numbers, ints, numbers)),
        (bet_on_rounds, (_centred_bets(), 0, *6 * (numbers,))),
        (bet_since, _alarm()),
        (rounds.merge_groups, (table, 1, numbers, numbers)),
        # What draws the arm of a key.
        (keyed.hash_key, (_stream(), 1.0, 0)),
        (keyed.keyed_leader, (numbers, numbers, 2.0, ints, 0)),
        (keyed.keyed_race, (numbers, ints, 0)),
        (keyed_ladder, (numbers, table, 1, ints, 0)),
        (keyed_contextual, (numbers, table, 1, 1, ints, 0)),
        # What the round loops of policies in plain Python call.
        (uniform, (_stream(),)),
        (draw_loss, (0, 1.0, 0.5, _stream(), _stream())),
        (feedback_delay.clear, (_queue(),)),
        (feedback_delay.explores, (_queue().rules, _stream(), 0)),
        (feedback_delay._enqueue, (state, _queue(), 0, 0, 1.0, 1.0)),
        (feedback_delay._keep, (state, _queue(), 0)),
        (feedback_delay._restore, (state, _queue(), 0)),
    )
    exports = [Export(name_of(function), function, arguments) for function, arguments in functions]
    for adversary in adversaries():
        kind = name_of(adversary.params_type)
        arguments = (adversary.params(), adversary.memory(), 0)
        losses, note = adversary.functions
        exports.append(Export(full_name(name_of(losses), kind), losses, (*arguments, numbers)))
        exports.append(Export(full_name(name_of(note), kind), note, (*arguments, 0)))
    built_from = {
        name_of(adversary.params_type): [name_of(function) for function in adversary.functions]
        for adversary in adversaries()
    }
    return Group(COMMON, tuple(exports), built_from)


def _of_policy(policy: Policy) -> Group:
    """The compiled functions of one form of a policy."""
    kind = policy.params_type
    register(kind, policy.functions)
    named = name_of(kind)
    exports = [*_entry_points(policy)]
    if not policy.contextual:  # which is simulated in a `ContextTable`
        exports += _table_loops(policy)
    if kind is ladder.Params:  # for a learner whose feedback is late
        arguments = (policy.params(), policy.layout.new_state(ARMS), 0)
        exports.append(Export(full_name(name_of(prepare_for), named), prepare_for, arguments))
    if policy.contextual:  # for a learner that reads a log, and for simulations
        arguments = (policy.params(), policy.layout.new_state(ARMS), 0)
        exports.append(Export(full_name(name_of(fill_chances), named), fill_chances, arguments))
        contexts = RoundContexts(np.zeros(1, np.int64), np.zeros((1, ARMS)), 0, 0, 0)
        exports.append(_loop(policy, ContextWorld(_table(), 0, contexts), Direct()))
    return Group(policy.label, tuple(exports), {named: [*map(name_of, policy.functions)]})


def _table_loops(policy: Policy) -> Iterator[Export]:
    """The loops over a table of losses: with prompt feedback, and with late if that ships."""
    world = TableWorld(_table(), 0, _stream(), _stream())
    often = ("decide", "update")  # what runs every round
    yield _loop(policy, world, Direct())._replace(inlines=often)
    if type(policy).__name__ in WITH_LATE_FEEDBACK:
        yield _loop(policy, world, _queue())


def _loop(policy: Policy, world: Any, feedback: Any) -> Export:
    """The round loop of a policy in a kind of world, with a kind of feedback."""
    run = Run(
        params=policy.params(),
        state=policy.layout.new_state(ARMS),
        draws=_stream(),
        world=world,
        feedback=feedback,
        horizon=1,
        checkpoints=np.ones(1, np.int64),
        regret=np.zeros(1),
        plays=np.zeros((2, ARMS), np.int64),
    )
    kinds = (name_of(type(argument)) for argument in (run.params, world, feedback))
    return Export(full_name(name_of(play_rounds), *kinds), play_rounds, (run,))


def _entry_points(policy: Policy) -> Iterator[Export]:
    kind = policy.params_type
    flat = (np.array(policy.params(), np.float64), *policy.layout.new_state(ARMS))
    arguments = Entries(flat, (*flat, _stream()), (*flat, 0, 1.0, 1.0))  # type: ignore[arg-type]
    for step, function in compiled_entries(kind)._asdict().items():
        held = step, getattr(policy.functions, step)
        yield Export(full_name(step, name_of(kind)), function, getattr(arguments, step), held)


def _betting() -> tuple[Observed, ArmTotals, PairTotals, OutTotals, SingleTotals, Standing]:
    """Arguments of `add_observations`, for their types alone."""
    numbers = np.zeros(ARMS)
    table = np.zeros((ARMS, ARMS))
    ints = np.zeros(ARMS, np.int64)
    rows = np.zeros((ARMS, ARMS), np.int64)
    return (
        Observed(rows, table, table),
        ArmTotals(moments=table, counts=rows, rounds=ints, flow=numbers),
        PairTotals(
            owners=ints,
            stakes=numbers,
            won=table,
            powers=rows,
            weights=table,
            gains=table,
            goals=table,
            common=numbers,
            chances=numbers,
            counts=numbers,
            as_worse=numbers,
            as_better=numbers,
            factors=numbers,
        ),
        OutTotals(
            stakes=numbers,
            won=table,
            powers=rows,
            money=numbers,
            marks=ints,
            led=ints,
            live=ints,
            goal=numbers,
            closed=ints,
        ),
        SingleTotals(looks=_look_bets(), centred=_centred_bets(), live=ints),
        _standing(),
    )


def _standing() -> Standing:
    numbers = np.zeros(ARMS)
    return Standing(
        means=numbers,
        counts=np.zeros(ARMS, np.int64),
        chances=numbers,
        levels=numbers,
        as_worse=numbers,
        as_better=numbers,
    )


def _alarm() -> tuple[Observed, AlarmTotals, Standing, int, int]:
    """Arguments of `bet_since`, for their types alone."""
    numbers = np.zeros(ARMS)
    table = np.zeros((ARMS, ARMS))
    ints = np.zeros(ARMS, np.int64)
    rows = np.zeros((ARMS, ARMS), np.int64)
    return (
        Observed(rows, table, table),
        AlarmTotals(stakes=numbers, prior=numbers, rivals=ints, sums=table),
        _standing(),
        0,
        0,
    )


def _look_bets() -> LookBets:
    numbers = np.zeros(ARMS)
    table = np.zeros((ARMS, ARMS))
    rows = np.zeros((ARMS, ARMS), np.int64)
    return LookBets(won=table, powers=rows, weights=numbers, centres=numbers)


def _centred_bets() -> CentredBets:
    numbers = np.zeros(ARMS)
    table = np.zeros((ARMS, ARMS))
    ints = np.zeros(ARMS, np.int64)
    rows = np.zeros((ARMS, ARMS), np.int64)
    return CentredBets(won=table, powers=rows, levels=numbers, excesses=table, rounds=ints)


def _stream() -> Any:
    return np.zeros(2, np.uint64)


def _queue() -> FeedbackQueue:
    rules = Rules(law=0, low=1, span=1, tail=0.0, missing=0.0, explore_share=1.0)
    return FeedbackQueue(
        rules=rules,
        kept=np.zeros(3, np.int64),
        floats=np.zeros((1, OWN_FLOATS)),
        ints=np.zeros((1, OWN_INTS), np.int64),
        key=_stream(),
    )


def _table() -> Table:
    return Table(np.zeros((1, ARMS)), np.zeros(1, np.int64))

"""What ships: every function that a learner or a simulation calls for a policy of this package."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..environments import AdaptiveAlternating, PunishLast
from ..environments.base import Adversary
from ..kernels import late, rounds
from ..kernels.betting import ArmTotals, Observed, PairTotals, add_observations
from ..kernels.dispatch import Entries, compiled_entries, register
from ..kernels.late import OWN_FLOATS, OWN_INTS, TOLD, Late, Rules, drive_late
from ..kernels.laws import contextual_state, ladder_state, leader_tiered, winner_law
from ..kernels.laws.contextual import fill_chances, keyed_contextual
from ..kernels.laws.ladder_rungs import keyed_ladder, prepare_for
from ..kernels.random import keyed
from ..kernels.random.sampling import draw_loss
from ..kernels.random.stream import uniform
from ..kernels.rounds import RoundContexts, Table, against_best, drive, drive_in_context
from ..native.load import full_name, name_of
from ..policies import FTPL, Forgetting, Policy

ARMS = 2  # in the sample arguments; the code is the same for any number
COMMON = "what all policies share"
# A million arms are rare, and this takes as long to compile as six other policies.
COMPILED_ON_FIRST_USE = (leader_tiered.Params,)


class Export(NamedTuple):
    """A function to ship, with sample arguments of the right types."""

    name: str
    function: Any
    arguments: tuple[Any, ...]
    # A function of the policy that this one calls, with its field in `Functions`. What is compiled after it, here and in
    # the groups of the same family, calls the same code.
    held: tuple[str, Any] | None = None
    # The fields whose functions are copied into this one all the same, which takes longer to compile and runs faster.
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
    known = Policy.known()  # looks at every installed package
    shipped: dict[Any, Policy] = {}
    for name in sorted(
        Policy.homes.keys() - {Forgetting.__name__}
    ):  # which has the code of its policy
        for policy in known[name].forms():
            if policy.params_type not in COMPILED_ON_FIRST_USE:
                shipped.setdefault(policy.params_type, policy)
    return list(shipped.values())


def names() -> list[str]:
    """The names of all groups. The name of a policy's group is its description."""
    return [name for family in families() for name in family]


def families() -> list[list[str]]:
    """The names of groups that share most callees; each policy is one of its own."""
    # These take longest, so they come first: no process then waits for another at the end.
    longest = (contextual_state.Params, ladder_state.Params)
    ordered = sorted(policies(), key=lambda policy: policy.params_type not in longest)
    return [*([policy.to_json()] for policy in ordered), [COMMON]]


def group(name: str) -> Group:
    """The functions of a group."""
    return _common() if name == COMMON else _of_policy(Policy.from_json(name))


def _common() -> Group:
    numbers, table, nodes = np.zeros(ARMS), np.zeros((ARMS, ARMS)), winner_law.grid(ARMS, 2.0, True)
    ints = np.zeros(ARMS, np.int64)
    state = FTPL().layout.new_state(ARMS)
    # Only the functions listed here have a name in the library.
    functions: tuple[tuple[Any, tuple[Any, ...]], ...] = (
        (winner_law._add_law, (numbers, 2.0, True, nodes, numbers, numbers)),
        (against_best, (ints, table, numbers)),
        (add_observations, (*_betting(), 0)),
        (rounds.merge_groups, (table, 1, numbers, numbers)),
        # What draws the arm of a key.
        (keyed.key_word, (_stream(), 1.0, 0)),
        (keyed.keyed_leader, (numbers, numbers, 2.0, ints, 0)),
        (keyed.keyed_race, (numbers, ints, 0)),
        (keyed_ladder, (numbers, table, 1, ints, 0)),
        (keyed_contextual, (numbers, table, 1, 1, ints, 0)),
        # What the round loops of policies in plain Python call.
        (uniform, (_stream(),)),
        (draw_loss, (0, 1.0, 0.5, _stream(), _stream())),
        (late.clear, (_late(),)),
        (late.explores, (_late().rules, _stream(), 0)),
        (late._wait, (state, _late(), 0, 0, 1.0, 1.0)),
        (late._copy, (state, _late(), 0, False)),
    )
    exports = [Export(name_of(function), function, arguments) for function, arguments in functions]
    for each in adversaries():
        kind, arguments = name_of(each.params_type), (each.params(), each.memory(), 0)
        losses, note = each.functions
        exports.append(Export(full_name(name_of(losses), kind), losses, (*arguments, numbers)))
        exports.append(Export(full_name(name_of(note), kind), note, (*arguments, 0)))
    built_from = {
        name_of(each.params_type): [*map(name_of, each.functions)] for each in adversaries()
    }
    return Group(COMMON, tuple(exports), built_from)


def _of_policy(policy: Policy) -> Group:
    kind, functions = policy.params_type, policy.functions
    register(kind, functions)
    named = name_of(kind)
    exports = [*_entry_points(policy)]
    if not policy.contextual:  # which is simulated in a `ContextTable`
        exports += _table_loops(policy)
    if kind is ladder_state.Params:  # for a learner whose feedback is late
        arguments = (policy.params(), policy.layout.new_state(ARMS), 0)
        exports.append(Export(full_name(name_of(prepare_for), named), prepare_for, arguments))
    if policy.contextual:  # for a learner that reads a log, and for simulations
        arguments = (policy.params(), policy.layout.new_state(ARMS), 0)
        exports.append(Export(full_name(name_of(fill_chances), named), fill_chances, arguments))
        loop = full_name(name_of(drive_in_context), named)
        exports.append(Export(loop, drive_in_context, _context_run(policy)))
    return Group(policy.label, tuple(exports), {named: [*map(name_of, functions)]})


def _table_loops(policy: Policy) -> Iterator[Export]:
    """The loops over a table of losses, with feedback in the same round and with late feedback."""
    named = name_of(policy.params_type)
    often = ("decide", "update")  # what runs every round
    yield Export(full_name(name_of(drive), named), drive, _table_run(policy), inlines=often)
    yield Export(full_name(name_of(drive_late), named), drive_late, (*_table_run(policy), _late()))


def _entry_points(policy: Policy) -> Iterator[Export]:
    kind = policy.params_type
    flat = (np.array(policy.params(), np.float64), *policy.layout.new_state(ARMS))
    arguments = Entries(flat, (*flat, _stream()), (*flat, 0, 1.0, 1.0))  # type: ignore[arg-type]
    for part, function in compiled_entries(kind)._asdict().items():
        held = part, getattr(policy.functions, part)
        yield Export(full_name(part, name_of(kind)), function, getattr(arguments, part), held)


def _betting() -> tuple[Observed, ArmTotals, PairTotals]:
    numbers, table = np.zeros(ARMS), np.zeros((ARMS, ARMS))
    ints, rows = np.zeros(ARMS, np.int64), np.zeros((ARMS, ARMS), np.int64)
    return (
        Observed(rows, table, table),
        ArmTotals(table, rows, ints, numbers),
        PairTotals(ints, numbers, table, rows, table, table, table, numbers, numbers, numbers),
    )


def _stream() -> Any:
    return np.zeros(2, np.uint64)


def _late() -> Late:
    rules = Rules(0, 1, 1, 0.0, 0.0, 1.0, 0, 0.0, 0.0, False, 0.0, 0, 0, 1.0)
    floats, ints = np.zeros((1, OWN_FLOATS)), np.zeros((1, OWN_INTS), np.int64)
    return Late(
        rules, np.zeros(3, np.int64), floats, ints, _stream(), np.zeros((ARMS, 2)), np.zeros(TOLD)
    )


def _table_run(policy: Policy) -> tuple[Any, ...]:
    table = Table(np.zeros((1, ARMS)), np.zeros(1, np.int64))
    streams = (_stream(), _stream(), _stream())
    checkpoints, plays = np.ones(1, np.int64), np.zeros((2, ARMS), np.int64)
    return (
        *(policy.params(), policy.layout.new_state(ARMS), *streams),
        *(table, 0, checkpoints, np.zeros(1), plays),
    )


def _context_run(policy: Policy) -> tuple[Any, ...]:
    params, state, stream, _, _, table, *others = _table_run(policy)
    contexts = RoundContexts(np.zeros(1, np.int64), np.zeros((1, ARMS)), 0, 0, 0)
    return params, state, stream, table, contexts, *others

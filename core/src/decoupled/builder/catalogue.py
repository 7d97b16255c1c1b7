"""What ships: every function that a learner or a simulation calls for a policy of this package."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..environments import AdaptiveAlternating, PunishLast
from ..environments.base import Adversary
from ..errors import DecoupledError
from ..kernels import late, rounds
from ..kernels.betting import ArmTotals, Observed, PairTotals, add_observations
from ..kernels.dispatch import Entries, compiled_entries, register
from ..kernels.late import OWN_FLOATS, OWN_INTS, TOLD, Late, Rules, drive_adaptive_late, drive_late
from ..kernels.laws import contextual_state, ladder_state, leader_tiered, winner_law
from ..kernels.laws.contextual import fill_chances, keyed_contextual
from ..kernels.laws.ladder_rungs import keyed_ladder, prepare_for
from ..kernels.random import keyed
from ..kernels.random.sampling import draw_loss
from ..kernels.random.stream import uniform
from ..kernels.rounds import RoundContexts, Table, against_best, drive, drive_adaptive, drive_in_context
from ..native.load import full_name, name_of
from ..policies import Policy
from ..policies.forgetting import Forgetting

ARMS = 2  # in the sample arguments; the code is the same for any number
COMMON = "what all policies share"


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
    made_of: dict[str, list[str]]


def adversaries() -> tuple[Adversary, ...]:
    """One adversary of each kind in the package."""
    return PunishLast(ARMS), AdaptiveAlternating(ARMS, gap=0.125)


def policies() -> list[Policy]:
    """One policy for each form of compiled functions."""
    found: dict[Any, Policy] = {}
    for policy in (*_plain_forms(), *_forgetting_forms()):
        found.setdefault(policy.params_type, policy)
    return list(found.values())


def _plain_forms() -> Iterator[Policy]:
    known = Policy.known()  # looks at every installed package
    for name in Policy.homes:
        if name != Forgetting.__name__:
            yield from known[name].forms()


def _forgetting_forms() -> Iterator[Policy]:
    for policy in _plain_forms():
        if policy.contextual:
            continue
        yield Forgetting(policy)
        try:
            yield Forgetting(policy, discount=0.5)
        except DecoupledError:  # not every policy can be discounted
            continue


def names() -> list[str]:
    """The names of all groups. The name of a policy's group is its description."""
    return [name for family in families() for name in family]


def families() -> list[list[str]]:
    """The names of groups that share most callees: a policy, and `Forgetting` around it."""
    found: dict[Any, list[str]] = {}
    for policy in policies():
        inner = policy.policy if isinstance(policy, Forgetting) else policy
        found.setdefault(inner.params_type, []).append(policy.to_json())
    # These take longest, so they come first: no process then waits for another at the end.
    first = [
        found.pop(kind) for kind in (leader_tiered.Params, ladder_state.Params, contextual_state.Params)
    ]
    return [*first, *found.values(), [COMMON]]


def group(name: str) -> Group:
    """The functions of a group."""
    return _common() if name == COMMON else _of_policy(Policy.from_json(name))


def _common() -> Group:
    numbers, table, nodes = np.zeros(ARMS), np.zeros((ARMS, ARMS)), winner_law.grid(ARMS, 2.0, True)
    ints = np.zeros(ARMS, np.int64)
    tiered = next(policy for policy in policies() if policy.params_type is leader_tiered.Params)
    # Only the functions listed here have a name in the library.
    functions: tuple[tuple[Any, tuple[Any, ...]], ...] = (
        (winner_law._add_law, (numbers, 2.0, True, nodes, numbers, numbers)),
        (leader_tiered.fill_exploration_law, (2.0, 1.0, tiered.layout.new_state(ARMS), numbers)),
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
        (late._wait, (tiered.layout.new_state(ARMS), _late(), 0, 0, 1.0, 1.0)),
        (late._copy, (tiered.layout.new_state(ARMS), _late(), 0, False)),
    )
    exports = [Export(name_of(function), function, arguments) for function, arguments in functions]
    for each in adversaries():
        kind, arguments = name_of(each.params_type), (each.params(), each.memory(), 0)
        losses, note = each.functions
        exports.append(Export(full_name(name_of(losses), kind), losses, (*arguments, numbers)))
        exports.append(Export(full_name(name_of(note), kind), note, (*arguments, 0)))
    made_of = {name_of(each.params_type): [*map(name_of, each.functions)] for each in adversaries()}
    return Group(COMMON, tuple(exports), made_of)


def _of_policy(policy: Policy) -> Group:
    kind, functions = policy.params_type, policy.functions
    register(kind, functions)
    named = name_of(kind)
    # What runs every round. A discounted policy calls `init` in each, too.
    often = functions._fields if getattr(policy, "discount", None) is not None else ("decide", "update")
    table_loop = Export(full_name(name_of(drive), named), drive, _table_run(policy), inlines=often)
    exports = [*_entry_points(policy), table_loop]
    if kind is ladder_state.Params:  # for a learner whose feedback is late
        arguments = (policy.params(), policy.layout.new_state(ARMS), 0)
        exports.append(Export(full_name(name_of(prepare_for), named), prepare_for, arguments))
    if policy.contextual:  # for a learner that reads a log, and for simulations
        arguments = (policy.params(), policy.layout.new_state(ARMS), 0)
        exports.append(Export(full_name(name_of(fill_chances), named), fill_chances, arguments))
        loop = full_name(name_of(drive_in_context), named)
        exports.append(Export(loop, drive_in_context, _context_run(policy)))
    # They are seldom wanted there, and those that forget have twice as many forms as all others.
    if not isinstance(policy, Forgetting) and not policy.contextual:
        exports += _further_loops(policy)
    return Group(policy.label, tuple(exports), {named: [*map(name_of, functions)]})


def _further_loops(policy: Policy) -> Iterator[Export]:
    """The loops with late feedback, and against adversaries."""
    named = name_of(policy.params_type)
    yield Export(full_name(name_of(drive_late), named), drive_late, (*_table_run(policy), _late()))
    for adversary in adversaries():
        adversary.prepare()
        kinds, arguments = (named, name_of(adversary.params_type)), _adaptive_run(policy, adversary)
        yield Export(full_name(name_of(drive_adaptive), *kinds), drive_adaptive, arguments)
        name = full_name(name_of(drive_adaptive_late), *kinds)
        yield Export(name, drive_adaptive_late, (*arguments, _late()))


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
    return Late(rules, np.zeros(3, np.int64), floats, ints, _stream(), np.zeros((ARMS, 2)), np.zeros(TOLD))


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


def _adaptive_run(policy: Policy, adversary: Adversary) -> tuple[Any, ...]:
    streams = (_stream(), _stream(), _stream())
    checkpoints, plays = np.ones(1, np.int64), np.zeros((2, ARMS), np.int64)
    return (
        *(policy.params(), policy.layout.new_state(ARMS), *streams),
        *(adversary.params(), adversary.memory(), 1, np.zeros(ARMS), np.zeros(ARMS)),
        *(checkpoints, np.zeros(1), np.zeros((1, ARMS)), plays),
    )

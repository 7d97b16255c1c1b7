"""From a policy's parameters to its compiled functions, resolved at compile time.

A policy registers three functions under the type of its parameter tuple. `init`, `decide` and
`update` below call the functions registered for the type of `params`. Compiled code picks them by
type, so the choice costs nothing at run time and the machine code can be cached on disk.

An adversary computes losses from past plays, inside the compiled loop. It registers its functions
in the same way, and so do the kinds of worlds and of feedback, which are all that differs between
simulations.
"""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

from ..base.arrays import Floats, Ints, Words
from ..native import load
from ..native.calls import NativeFunction, bound_entries
from .jit import add_functions, compiled, is_ours, translate
from .lazy_numba import jit_disabled, numba, overload
from .state import DISCOUNT, EVENTS, FADING, OBSERVED, PERIOD, ROUND, SHARED_SCALARS, State


class Functions(NamedTuple):
    """The compiled functions of one policy.

    Attributes:
        init: `init(params, state)` fills every derived row from the learned ones, which are zero at
            the start.
        decide: `decide(params, state, stream)` returns (exploit, explore, weight, propensity) and
            changes only the stream, and what the policy's `baselines` keep. An unknown propensity
            is NaN.
        update: `update(params, state, arm, weight, loss)` learns. The round has been advanced
            already.

    Explore any arm and exploit the first one, as plain functions; decorate yours with `compiled`:

    >>> from decoupled.extend import Layout, below
    >>> import numpy as np
    >>> def init(params, state): pass
    >>> def decide(params, state, stream):
    ...     arms = state.floats.shape[1]
    ...     return 0, below(arms, stream), float(arms), 1.0 / arms
    >>> def update(params, state, arm, weight, loss):
    ...     state.floats[0, arm] += weight * loss
    >>> functions = Functions(init, decide, update)
    >>> state = Layout(floats=("estimates",)).new_state(4)
    >>> functions.decide((), state, np.array([11**18, 13**17], np.uint64))
    (0, 0, 4.0, 0.25)
    """

    init: Callable[..., None]
    decide: Callable[..., tuple[int, int, float, float]]
    update: Callable[..., None]


_functions: dict[type, Functions] = {}
NOTHING = 1e-300  # values that fade below this become 0: smaller numbers lose digits and are slow
_OWN = len(SHARED_SCALARS)  # the place of the first scalar that a policy names
_fixed_tuple: Any = None  # of Numba's own, and here as soon as it is needed: see `compiled_entries`


def register(params: type, functions: Functions) -> None:
    """Register a policy's functions under the type of its parameter tuple."""
    add_functions(_functions, params, functions, "policy")


def init(params: Any, state: State) -> None:
    """Derive every row that is not learned."""
    _functions[type(params)].init(params, state)


def decide(params: Any, state: State, stream: Words) -> tuple[int, int, float, float]:
    """Count the event, and draw the arm to exploit and the arm to explore."""
    state.scalars[EVENTS] += 1.0
    return _functions[type(params)].decide(params, state, stream)


def update(params: Any, state: State, arm: int, weight: float, loss: float) -> None:
    """Count the event, advance the round, learn the loss, and forget as the state says.

    An event that explored no arm has no loss to learn from.

    An observation that would be forgotten at once is not learned.
    """
    functions = _functions[type(params)]
    before = state.scalars[ROUND]
    count_observation(state)
    if is_restarting(state, before):
        clear(state)
        functions.init(params, state)
        return
    state.scalars[ROUND] = before + 1.0
    functions.update(params, state, arm, weight, loss)
    if state.scalars[DISCOUNT] > 0.0:
        fade(state, before)
        functions.init(params, state)


# Plain functions, so that the loop of a policy in plain Python needs no compiler; `_update`
# compiles them.


def count_observation(state: State) -> None:
    """Count an observation, which is an event."""
    state.scalars[EVENTS] += 1.0
    state.scalars[OBSERVED] += 1.0


def is_restarting(state: State, before: float) -> bool:
    """Whether an observation in this round makes the policy forget everything."""
    period: float = state.scalars[PERIOD]
    return 0.0 < period <= before


def clear(state: State) -> None:
    """Reset everything but the scalars that every policy has to the start, where the round is 1."""
    state.scalars[ROUND] = 1.0
    state.scalars[_OWN:] = 0.0
    state.floats[:] = 0.0
    state.ints[:] = 0


def fade(state: State, before: float) -> None:
    """Multiply what fades, and the number of observations, by the discount.

    `before` is the round of the observation.
    """
    scalars = state.scalars
    discount = scalars[DISCOUNT]
    rows = state.floats.shape[0]
    for place in range(int(scalars[FADING]), len(scalars)):
        number = int(scalars[place])
        if number >= rows:
            scalars[number - rows] *= discount
        else:
            for arm in range(state.floats.shape[1]):
                shrunk = discount * state.floats[number, arm]
                state.floats[number, arm] = shrunk if abs(shrunk) > NOTHING else 0.0
    scalars[ROUND] = 1.0 + discount * before


_count_observation = compiled(count_observation)
_is_restarting = compiled(is_restarting)
_clear = compiled(clear)
_fade = compiled(fade)


# Not `strict`, because a lambda cannot have the annotations of its overload.
@overload(init, strict=False)
def _init(params: Any, state: Any) -> Any:
    function = _functions[params.instance_class].init
    return lambda params, state: function(params, state)


@overload(decide)
def _decide(params: Any, state: Any, stream: Any) -> Any:
    function = _functions[params.instance_class].decide

    def implementation(params: Any, state: Any, stream: Any) -> Any:
        state.scalars[EVENTS] += 1.0
        return function(params, state, stream)

    return implementation


@overload(update)
def _update(params: Any, state: Any, arm: Any, weight: Any, loss: Any) -> Any:
    """`update` in compiled code: count the observation, and learn from it, forget or restart."""
    derive, _, learn = _functions[params.instance_class]

    def implementation(params: Any, state: Any, arm: Any, weight: Any, loss: Any) -> Any:
        before = state.scalars[ROUND]
        _count_observation(state)
        if _is_restarting(state, before):
            _clear(state)
            derive(params, state)
        else:
            state.scalars[ROUND] = before + 1.0
            learn(params, state, arm, weight, loss)
            if state.scalars[DISCOUNT] > 0.0:
                _fade(state, before)
                derive(params, state)

    return implementation


class Entries(NamedTuple):
    """The calls a learner makes, with flat arrays: a named tuple costs a microsecond a call."""

    init: Callable[[Floats, Floats, Floats, Ints], None]
    decide: Callable[[Floats, Floats, Floats, Ints, Words], tuple[int, int, float, float]]
    update: Callable[[Floats, Floats, Floats, Ints, int, float, float], None]


class Calls(NamedTuple):
    """The entry points of one learner, whose arrays stay where they are: only what changes is
    given.
    """

    init: Callable[[], None]
    decide: Callable[[], tuple[int, int, float, float]]
    update: Callable[[int, float, float], None]


def bound(entries: Entries, values: Floats, state: State, stream: Words) -> Calls:
    """The entry points with a learner's arrays; for one thread at a time."""
    flat = (values, *state)
    if all(isinstance(entry, NativeFunction) for entry in entries):
        return Calls(*bound_entries(entries, flat, stream))  # type: ignore[arg-type]
    init, decide, update = entries
    return Calls(partial(init, *flat), partial(decide, *flat, stream), partial(update, *flat))


def entries(params: Any) -> Entries:
    """The entry points for a parameter type: shipped ones, or compiled on first use."""
    functions = _functions[params]
    if not jit_disabled() and is_ours(params, *functions) and load.allow_shipped(params, functions):
        shipped: Any = [load.function(step, params) for step in Entries._fields]
        if None not in shipped:
            return Entries(*shipped)
    return compiled_entries(params)


def compiled_entries(params: Any) -> Entries:
    """The entry points, compiled when they are first called."""
    global _fixed_tuple
    if not jit_disabled():
        numba()
        _fixed_tuple = import_module("numba.np.unsafe.ndarray").to_fixed_tuple
    fields = len(params._fields)
    keep = is_ours(params, *_functions[params])

    def init_entry(values: Floats, scalars: Floats, floats: Floats, ints: Ints) -> None:
        init(params(*_fixed_tuple(values, fields)), State(scalars, floats, ints))

    def decide_entry(
        values: Floats, scalars: Floats, floats: Floats, ints: Ints, stream: Words
    ) -> tuple[int, int, float, float]:
        own_params = params(*_fixed_tuple(values, fields))
        return decide(own_params, State(scalars, floats, ints), stream)

    def update_entry(
        values: Floats,
        scalars: Floats,
        floats: Floats,
        ints: Ints,
        arm: int,
        weight: float,
        loss: float,
    ) -> None:
        own_params = params(*_fixed_tuple(values, fields))
        update(own_params, State(scalars, floats, ints), arm, weight, loss)

    calls: Any = (init_entry, decide_entry, update_entry)
    # Their names and argument types are the same for every policy otherwise: see
    # `make_name_unique`.
    for entry in calls:
        entry.__qualname__ = f"{entry.__name__}.{params.__module__}.{params.__qualname__}"
    translated: Any = [translate(entry, keep=keep, counting=False, inline=False) for entry in calls]
    # Called with every decision: Numba's own object is faster than the wrapper.
    return Entries(*(getattr(entry, "dispatcher", entry) for entry in translated))


class Memory(NamedTuple):
    """An adversary's memory: two arrays of any length, zero at the start.

    Attributes:
        floats: numbers.
        ints: whole numbers.

    One that counts how often each of three arms was exploited:

    >>> import numpy as np
    >>> Memory(np.zeros(0), np.zeros(3, np.int64)).ints.tolist()
    [0, 0, 0]
    """

    floats: Floats
    ints: Ints


class AdversaryFunctions(NamedTuple):
    """The compiled functions of one adversary.

    Attributes:
        losses: `losses(params, memory, t, out)` fills the mean loss of every arm in round t = 0, 1,
            ...
        note: `note(params, memory, t, exploit)` records the arm exploited in that round.

    The arm exploited last costs more, as plain functions; decorate yours with `compiled`:

    >>> import numpy as np
    >>> def losses(params, memory, t, out):
    ...     for arm in range(len(out)):
    ...         out[arm] = 0.9 if memory.ints[0] == arm else 0.3
    >>> def note(params, memory, t, exploit):
    ...     memory.ints[0] = exploit
    >>> memory, out = Memory(np.zeros(0), np.zeros(1, np.int64)), np.zeros(3)
    >>> functions = AdversaryFunctions(losses, note)
    >>> functions.note((), memory, 0, 2)
    >>> functions.losses((), memory, 1, out)
    >>> out.tolist()
    [0.3, 0.3, 0.9]
    """

    losses: Callable[..., None]
    note: Callable[..., None]


_adversaries: dict[type, AdversaryFunctions] = {}


def register_adversary(params: type, functions: AdversaryFunctions) -> None:
    """Register an adversary's functions under the type of its parameter tuple."""
    add_functions(_adversaries, params, functions, "adversary")


def fill_losses(params: Any, memory: Memory, t: int, out: Floats) -> None:
    """Fill the mean losses of round t."""
    _adversaries[type(params)].losses(params, memory, t, out)


def note_play(params: Any, memory: Memory, t: int, exploit: int) -> None:
    """Record the arm exploited in round t."""
    _adversaries[type(params)].note(params, memory, t, exploit)


# Not `strict`, because a lambda cannot have the annotations of its overload.
@overload(fill_losses, strict=False)
def _fill_losses(params: Any, memory: Any, t: Any, out: Any) -> Any:
    losses = _adversaries[params.instance_class].losses
    return lambda params, memory, t, out: losses(params, memory, t, out)


@overload(note_play, strict=False)
def _note_play(params: Any, memory: Any, t: Any, exploit: Any) -> Any:
    note = _adversaries[params.instance_class].note
    return lambda params, memory, t, exploit: note(params, memory, t, exploit)


class WorldFunctions(NamedTuple):
    """The functions of one kind of world, as plain Python.

    The round loop calls them in this order.

    Attributes:
        begin: `begin(world, state, t)` prepares round t = 0, 1, ... before the policy decides.
        draw: `draw(world, t, arm)` returns the loss of the explored arm.
        exploited: `exploited(world, t, arm)` notes what was exploited, and returns what it adds to
            the regret.
        checkpoint: `checkpoint(world, checkpoint)` notes what the world counts at a checkpoint.
    """

    begin: Callable[..., None]
    draw: Callable[..., float]
    exploited: Callable[..., float]
    checkpoint: Callable[..., None]


_worlds: dict[type, WorldFunctions] = {}
_compiled_worlds: dict[type, WorldFunctions] = {}


def register_world(kind: type, functions: WorldFunctions) -> None:
    """Register the functions of a kind of world. An interpreted loop calls them as they are."""
    _worlds[kind] = functions
    _compiled_worlds[kind] = WorldFunctions(
        begin=compiled(functions.begin),
        draw=compiled(functions.draw),
        exploited=compiled(functions.exploited),
        checkpoint=compiled(functions.checkpoint),
    )


def begin_round(world: Any, state: State, t: int) -> None:
    """Prepare a round, before the policy decides."""
    _worlds[type(world)].begin(world, state, t)


def draw_explored(world: Any, t: int, arm: int) -> float:
    """Draw the loss of the explored arm."""
    return _worlds[type(world)].draw(world, t, arm)


def note_exploited(world: Any, t: int, arm: int) -> float:
    """Note what was exploited, and return what it adds to the regret."""
    return _worlds[type(world)].exploited(world, t, arm)


def note_checkpoint(world: Any, checkpoint: int) -> None:
    """Note what the world counts at a checkpoint."""
    _worlds[type(world)].checkpoint(world, checkpoint)


@overload(begin_round, strict=False)
def _begin_round(world: Any, state: Any, t: Any) -> Any:
    function = _compiled_worlds[world.instance_class].begin
    return lambda world, state, t: function(world, state, t)


@overload(draw_explored, strict=False)
def _draw_explored(world: Any, t: Any, arm: Any) -> Any:
    function = _compiled_worlds[world.instance_class].draw
    return lambda world, t, arm: function(world, t, arm)


@overload(note_exploited, strict=False)
def _note_exploited(world: Any, t: Any, arm: Any) -> Any:
    function = _compiled_worlds[world.instance_class].exploited
    return lambda world, t, arm: function(world, t, arm)


@overload(note_checkpoint, strict=False)
def _note_checkpoint(world: Any, checkpoint: Any) -> Any:
    function = _compiled_worlds[world.instance_class].checkpoint
    return lambda world, checkpoint: function(world, checkpoint)


class FeedbackFunctions(NamedTuple):
    """The functions of one kind of feedback, which the round loop calls, as plain Python.

    Attributes:
        clear: `clear(feedback)` forgets what an earlier run left pending.
        send: `send(feedback, params, state, t, arm, weight, loss)` learns what arrives in round t.
            It returns whether the round explored.
    """

    clear: Callable[..., None]
    send: Callable[..., bool]


_feedbacks: dict[type, FeedbackFunctions] = {}
_compiled_feedbacks: dict[type, FeedbackFunctions] = {}


def register_feedback(kind: type, functions: FeedbackFunctions) -> None:
    """Register the functions of a kind of feedback. An interpreted loop calls them as they are."""
    _feedbacks[kind] = functions
    # What learns is not cached on disk: the parameters may be a user's, which no other process can
    # load.
    send = translate(functions.send, keep=False, counting=False)
    _compiled_feedbacks[kind] = FeedbackFunctions(compiled(functions.clear), send)


def clear_feedback(feedback: Any) -> None:
    """Forget what an earlier run left pending."""
    _feedbacks[type(feedback)].clear(feedback)


def send_feedback(
    feedback: Any, params: Any, state: State, t: int, arm: int, weight: float, loss: float
) -> bool:
    """Learn what arrives in a round, and return whether the round explored."""
    return _feedbacks[type(feedback)].send(feedback, params, state, t, arm, weight, loss)


@overload(clear_feedback, strict=False)
def _clear_feedback(feedback: Any) -> Any:
    function = _compiled_feedbacks[feedback.instance_class].clear
    return lambda feedback: function(feedback)


@overload(send_feedback)
def _send_feedback(
    feedback: Any, params: Any, state: Any, t: Any, arm: Any, weight: Any, loss: Any
) -> Any:
    """`send_feedback` in compiled code, by the type of the feedback."""
    function = _compiled_feedbacks[feedback.instance_class].send

    def implementation(
        feedback: Any, params: Any, state: Any, t: Any, arm: Any, weight: Any, loss: Any
    ) -> Any:
        return function(feedback, params, state, t, arm, weight, loss)

    return implementation

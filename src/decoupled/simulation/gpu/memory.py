"""How many runs go at once, and in how much memory."""

from typing import NamedTuple

from ...errors import UnsupportedError
from ..plan import Plan
from .devices import REMEDY, Card, simulated
from .shapes import Shape, shape_of

WARP = 32
NEAR = 224 * 1024  # bytes of a multiprocessor's near memory that states may take
MOST_THREADS = 768  # of one multiprocessor: more would have too few registers
REGISTERS = 65_536  # of one multiprocessor
FEWEST_THREADS = 64
MOST_LOCAL = 512 * 1024  # bytes of local memory that a thread can have
RESIDENT = 2048  # threads of a multiprocessor, for all of which the driver sets local memory aside
SHARE = 0.4  # of the free memory, for the local memory of all threads; as much is for results
AT_ONCE = 8  # large blocks that are on a device together, if several plans are
MOST_COUNT = 2**31 - 1  # of the plays that the threads of a block count together
MOST_ARMS = 2048  # whose counts, and a table of theirs, fit a block's shared memory

WORKERS = 2  # blocks under way on each device: one is computed while another's results are fetched
BLOCK_SECONDS = 0.1
BLOCK_BYTES = 256 * 1024**2  # of a block's results, of which several wait on the host
ROUNDS_A_SECOND = 1.2e11  # times one over the number of arms: a rough guess is enough


class Grid(NamedTuple):
    """A launch: so many blocks of so many threads."""

    blocks: int
    threads: int

    @property
    def size(self) -> int:
        """All threads."""
        return self.blocks * self.threads


class Needs(NamedTuple):
    """What decides how many runs fit: a thread's state, the rounds of a run, and the checkpoints.

    Against an adversary each thread also keeps what every arm would have cost at every checkpoint.
    """

    shape: Shape
    horizon: int
    checkpoints: int


def resident_threads(shape: Shape) -> int:
    """How many threads of a multiprocessor should run at once: as many as have their states near it."""
    fitting = NEAR // shape.touched() // WARP * WARP
    return int(min(max(fitting, FEWEST_THREADS), MOST_THREADS))


def registers(shape: Shape) -> int:
    """How many registers a thread may have, so that all threads that should run at once do."""
    return int(min(255, REGISTERS // resident_threads(shape) // 8 * 8))


def launch_grid(needs: Needs, card: Card, runs: int) -> Grid:
    """A grid for so many runs; its threads play one after another where there are more."""
    count = min(runs, card.processors * resident_threads(needs.shape))
    if needs.shape.adaptive:
        room = _room(needs, card) // (8 * needs.checkpoints * needs.shape.arms)
        count = min(count, max(WARP, room // WARP * WARP))
    # The local memory of a warp lies together, and a smaller block would leave a part of each line empty.
    threads = 1 if simulated() else WARP
    return Grid(-(-count // threads), threads)


def most_runs(needs: Needs, card: Card) -> int:
    """How many runs one launch can have: their results must fit, and their plays be counted."""
    widest = launch_grid(needs, card, MOST_COUNT)
    # All threads of a block may have one run more than some threads of another.
    each = MOST_COUNT // (widest.threads * needs.horizon)
    return max(1, min(_room(needs, card) // (8 * needs.checkpoints), widest.size * each))


def _room(needs: Needs, card: Card) -> int:
    """Bytes for one block's results; against an adversary as much again is for what every arm would have cost."""
    return int(card.free * SHARE / AT_ONCE / (2 if needs.shape.adaptive else 1))


def check_fits(needs: Needs, card: Card, what: str) -> None:
    """Refuse what the threads of a device cannot hold."""
    shape = needs.shape
    if shape.arms > MOST_ARMS:
        raise UnsupportedError(
            f"device = 'cuda': {what} with {shape.arms} arms: a device counts the plays of {MOST_ARMS} at most; "
            f"{REMEDY}"
        )
    most = min(MOST_LOCAL, int(card.free * SHARE) // (card.processors * RESIDENT))
    if shape.bytes() > most:
        raise UnsupportedError(
            f"device = 'cuda': {what} with {shape.arms} arms needs {shape.bytes():,} bytes a run, and a thread "
            f"of {card.name} can have {most:,}; {REMEDY}"
        )
    if needs.shape.adaptive and 8 * needs.checkpoints * shape.arms * WARP > _room(needs, card):
        raise UnsupportedError(
            f"device = 'cuda': {what} with {shape.arms} arms and {needs.checkpoints} checkpoints needs more memory "
            f"than {card.name} has; record fewer checkpoints, or {REMEDY}"
        )
    if WARP * needs.horizon > MOST_COUNT:
        raise UnsupportedError(
            f"horizon = {needs.horizon}: a device counts plays up to {MOST_COUNT // WARP} rounds; {REMEDY}"
        )


def block_size(plan: Plan, cards: tuple[Card, ...]) -> int:
    """How many runs a block holds: a tenth of a second's work, in whole waves if their results are not too large."""
    card = min(cards, key=lambda each: each.free)
    arms = plan.environment.arms
    shape = max((shape_of(each.at(arms), plan.environment) for each in plan.policies), key=Shape.bytes)
    wave = card.processors * resident_threads(shape)
    wanted = int(BLOCK_SECONDS * ROUNDS_A_SECOND / (arms * plan.horizon))
    share = -(-plan.runs // len(cards))  # every device has some of them
    most = BLOCK_BYTES // (8 * len(plan.checkpoints))
    return max(1, min(max(wave, wanted // wave * wave), share, most))

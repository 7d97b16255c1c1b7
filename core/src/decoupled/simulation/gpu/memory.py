"""How many runs fit on a device at once."""

from typing import NamedTuple

from ...errors import UnsupportedError
from ..plan import Plan
from .devices import REMEDY, Card, simulated
from .shapes import Shape, shape_of

WARP = 32
NEAR = 224 * 1024  # bytes of a multiprocessor's cache that states may use
MOST_THREADS = 768  # per multiprocessor: with more, each has too few registers
REGISTERS = 65_536  # per multiprocessor
FEWEST_THREADS = 64  # per multiprocessor with their states in its cache; with fewer, the cache does not pay
# Per multiprocessor, if states are farther away: some compute while others wait for theirs.
FAR_THREADS = 256
MOST_LOCAL = 512 * 1024  # bytes of local memory that a thread can have
RESIDENT = 2048  # threads of a multiprocessor; the driver reserves local memory for all of them
SHARE = 0.4  # of the free memory for the local memory of all threads; the same for results
AT_ONCE = 8  # large blocks on a device together, if several plans run
MOST_COUNT = 2**31 - 1  # plays that the threads of a block can count together
MOST_ARMS = 2048  # whose counts and table fit in a block's shared memory

WORKERS = 2  # blocks in progress on each device: one computes while another's results are fetched
BLOCK_SECONDS = 0.1
BLOCK_BYTES = 256 * 1024**2  # results of a block; several wait on the host
ROUNDS_A_SECOND = 1.2e11  # divided by the number of arms: a rough guess is enough


class LaunchGrid(NamedTuple):
    """The size of a launch: the number of blocks, and the threads of each."""

    blocks: int
    threads: int

    @property
    def size(self) -> int:
        """The number of threads in all blocks."""
        return self.blocks * self.threads


class Needs(NamedTuple):
    """What determines how many runs fit: a thread's state, the horizon, and the number of checkpoints.

    Against an adversary, each thread also stores the loss of every arm at every checkpoint. If feedback is not direct,
    it stores its pending decisions, which take `pending` bytes.
    """

    shape: Shape
    horizon: int
    checkpoints: int
    pending: int = 0


def resident_threads(shape: Shape) -> int:
    """How many threads of a multiprocessor should run at once: as many as have their states in its cache, if they do."""
    fitting = NEAR // shape.touched() // WARP * WARP
    return int(min(fitting, MOST_THREADS)) if fitting >= FEWEST_THREADS else FAR_THREADS


def registers(shape: Shape) -> int:
    """How many registers a thread may have, so that all resident threads run at once."""
    return int(min(255, REGISTERS // resident_threads(shape) // 8 * 8))


def launch_grid(needs: Needs, card: Card, runs: int) -> LaunchGrid:
    """The grid for a number of runs; if there are more runs than threads, each thread plays several."""
    count = min(runs, card.processors * resident_threads(needs.shape))
    if needs.shape.adaptive:
        room = _room(needs, card) // (8 * needs.checkpoints * needs.shape.arms)
        count = min(count, max(WARP, room // WARP * WARP))
    if needs.pending:
        count = min(count, max(WARP, _room(needs, card) // needs.pending // WARP * WARP))
    # The local memory of a warp is interleaved; a smaller block would leave part of each cache line empty.
    threads = 1 if simulated() else WARP
    return LaunchGrid(-(-count // threads), threads)


def most_runs(needs: Needs, card: Card) -> int:
    """How many runs one launch can have: their results must fit in memory, and their plays in the counters."""
    widest = launch_grid(needs, card, MOST_COUNT)
    # All threads of a block may play one run more than some threads of another.
    each = MOST_COUNT // (widest.threads * needs.horizon)
    return max(1, min(_room(needs, card) // (8 * needs.checkpoints), widest.size * each))


def _room(needs: Needs, card: Card) -> int:
    """Bytes for one block's results; against an adversary, as much again holds the losses of every arm."""
    return int(card.free * SHARE / AT_ONCE / (2 if needs.shape.adaptive else 1))


def check_fits(needs: Needs, card: Card, what: str) -> None:
    """Raise an error if the threads of a device cannot hold a simulation."""
    shape = needs.shape
    if shape.arms > MOST_ARMS:
        raise UnsupportedError(
            f"device = 'cuda': {what} with {shape.arms} arms: a device supports at most {MOST_ARMS} arms; "
            f"{REMEDY}"
        )
    most = min(MOST_LOCAL, int(card.free * SHARE) // (card.processors * RESIDENT))
    if shape.bytes() > most:
        raise UnsupportedError(
            f"device = 'cuda': {what} with {shape.arms} arms needs {shape.bytes():,} bytes per run, and a thread "
            f"of {card.name} has at most {most:,}; {REMEDY}"
        )
    if needs.shape.adaptive and 8 * needs.checkpoints * shape.arms * WARP > _room(needs, card):
        raise UnsupportedError(
            f"device = 'cuda': {what} with {shape.arms} arms and {needs.checkpoints} checkpoints needs more memory "
            f"than {card.name} has; record fewer checkpoints, or {REMEDY}"
        )
    if needs.pending * WARP > _room(needs, card):
        raise UnsupportedError(
            f"device = 'cuda': {what} with {shape.arms} arms needs {needs.pending:,} bytes per run for pending "
            f"decisions, and {card.name} has too little memory for that; give a shorter delay, or {REMEDY}"
        )
    if WARP * needs.horizon > MOST_COUNT:
        raise UnsupportedError(
            f"horizon = {needs.horizon}: must be at most {MOST_COUNT // WARP} rounds on a device; {REMEDY}"
        )


def block_size(plan: Plan, cards: tuple[Card, ...]) -> int:
    """How many runs a block holds: about 0.1 s of work, in whole waves if the results are not too large."""
    card = min(cards, key=lambda each: each.free)
    arms = plan.environment.arms
    shape = max((shape_of(each.at(arms), plan.environment) for each in plan.policies), key=Shape.bytes)
    wave = card.processors * resident_threads(shape)
    wanted = int(BLOCK_SECONDS * ROUNDS_A_SECOND / (arms * plan.horizon))
    share = -(-plan.runs // len(cards))  # so that every device gets some
    most = BLOCK_BYTES // (8 * len(plan.checkpoints))
    return max(1, min(max(wave, wanted // wave * wave), share, most))

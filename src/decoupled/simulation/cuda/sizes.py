"""How many runs go at once, and in how much memory."""

import os
from typing import NamedTuple

from ...errors import UnsupportedError
from ..plan import Plan
from .devices import REMEDY, Card
from .shapes import Shape, shape_of

WARP = 32
NEAR = 224 * 1024  # bytes of a multiprocessor's near memory that states may take
MOST_THREADS = 768  # of one multiprocessor: more would need more registers than it has
FEWEST_THREADS = 64
MOST_LOCAL = 512 * 1024  # bytes of local memory that a thread can have
RESIDENT = 2048  # threads of a multiprocessor, for all of which the driver sets local memory aside
SHARE = 0.4  # of the free memory, for the local memory of all threads; as much is for results

WORKERS = 2  # blocks under way on each device: one is computed while another's results are fetched
BLOCK_SECONDS = 0.1
ROUNDS_A_SECOND = 1.6e11  # times one over the number of arms: a rough guess is enough


class Grid(NamedTuple):
    """A launch: so many blocks of so many threads."""

    blocks: int
    threads: int

    @property
    def size(self) -> int:
        """All threads."""
        return self.blocks * self.threads


def resident_threads(shape: Shape) -> int:
    """How many threads of a multiprocessor should run at once: as many as have their states near it."""
    fitting = NEAR // shape.bytes() // WARP * WARP
    return int(min(max(fitting, FEWEST_THREADS), MOST_THREADS))


def launch_grid(shape: Shape, card: Card, runs: int) -> Grid:
    """A grid for so many runs; its threads play one after another where there are more."""
    most = card.processors * resident_threads(shape)
    count = min(runs, most)
    # A few runs are spread over all multiprocessors, so that they do not wait for each other.
    threads = min(WARP, max(1, -(-count // (4 * card.processors))))
    return Grid(-(-count // threads), threads)


def fitting_grid(shape: Shape, card: Card, runs: int, checkpoints: int) -> Grid:
    """The same against an adversary, where each thread also keeps what every arm would have cost."""
    grid = launch_grid(shape, card, runs)
    room = int(card.free * SHARE / WORKERS) // (8 * checkpoints * shape.arms)
    return grid._replace(blocks=max(1, min(grid.blocks, room // grid.threads)))


def check_fits(shape: Shape, card: Card, what: str) -> None:
    """Refuse what no thread of the device can hold."""
    needed = shape.bytes()
    most = min(MOST_LOCAL, int(card.free * SHARE) // (card.processors * RESIDENT))
    if needed > most:
        raise UnsupportedError(
            f"device = 'cuda': {what} with {shape.arms} arms needs {needed:,} bytes a run, and a thread of "
            f"{card.name} can have {most:,}; {REMEDY}"
        )


def block_size(plan: Plan, cards: tuple[Card, ...]) -> int:
    """How many runs a block holds: a tenth of a second's work, in whole waves, and no more than fits."""
    card = min(cards, key=lambda each: each.free)
    shapes = [shape_of(policy.at(plan.environment.arms), plan.environment) for policy in plan.policies]
    shape = max(shapes, key=Shape.bytes)
    wave = card.processors * resident_threads(shape)
    wanted = int(BLOCK_SECONDS * ROUNDS_A_SECOND / (plan.environment.arms * plan.horizon))
    results = 8 * len(plan.checkpoints)
    room = int(card.free * SHARE / WORKERS) // results
    share = -(-plan.runs // len(cards))  # every device has some of them
    return max(1, min(max(wave, wanted // wave * wave), room, share))

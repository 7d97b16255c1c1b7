"""A progress bar on a terminal: rounds done, rounds per second, time left."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text


class _Done(ProgressColumn):
    """Units done and their rate."""

    def __init__(self, unit: str) -> None:
        super().__init__()
        self._unit = unit

    def render(self, task: Task) -> Text:
        speed = f"{task.finished_speed or task.speed or 0.0:,.0f}"
        return Text(
            f"{task.completed:,.0f} of {task.total or 0:,.0f} {self._unit}, {speed} a second"
        )


@contextmanager
def progress_bar(
    total: int, *, quiet: bool = False, label: str = "simulating", unit: str = "rounds"
) -> Iterator[Callable[[int, float], None]]:
    """A bar over `total` units of work on standard error; nothing if that is not a terminal.

    >>> with progress_bar(100, quiet=True) as advance:
    ...     advance(60, 0.1)  # units, and the seconds that they took
    """
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda done, seconds: None
        return
    columns = (TextColumn(label), BarColumn(), _Done(unit), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=label != "simulating") as progress:
        task = progress.add_task(label, total=total)
        yield lambda done, seconds: progress.advance(task, done)


def duration(seconds: float) -> str:
    """A duration for people to read.

    >>> duration(7), duration(600), duration(10_000)
    ('7.0 seconds', '10 minutes', '2.8 hours')
    """
    if seconds < 90:
        return f"{max(seconds, 0.1):.1f} seconds"
    if seconds < 5400:
        return f"{seconds / 60:.0f} minutes"
    if seconds < 3 * 86_400:
        return f"{seconds / 3600:.1f} hours"
    return f"{seconds / 86_400:,.0f} days"

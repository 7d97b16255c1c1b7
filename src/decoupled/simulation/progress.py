"""Progress on a terminal: rounds done, rounds a second, time left. Elsewhere, silence."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from .execute import Report


class _Rounds(ProgressColumn):
    """Rounds done and their rate."""

    def render(self, task: Task) -> Text:
        speed = f"{task.finished_speed or task.speed or 0.0:,.0f}"
        return Text(f"{task.completed:,.0f} of {task.total or 0:,.0f} rounds, {speed} a second")


@contextmanager
def progress_bar(total: int, quiet: bool = False) -> Iterator[Report]:
    """A bar over `total` rounds, on standard error; nothing where that is no terminal."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda rounds, seconds: None
        return
    columns = (TextColumn("simulating"), BarColumn(), _Rounds(), TimeRemainingColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("simulating", total=total)
        yield lambda rounds, seconds: progress.advance(task, rounds)

"""A progress bar with rate and time left, drawn only in a terminal."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from surefoot.simulation.sweep import Progress as Report

console = Console(stderr=True)


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        """Rounds a second, in millions."""
        return Text(f"{(task.speed or 0) / 1e6:5.2f} M rounds/s")


@contextmanager
def progress_bar(title: str) -> Iterator[Report]:
    """A function of rounds done and rounds in all that shows them."""
    columns = (TextColumn(title), BarColumn(), TextColumn("{task.percentage:>3.0f}%"), _Rate(), TimeElapsedColumn())
    with Progress(
        *columns, TextColumn("left"), TimeRemainingColumn(), console=console, speed_estimate_period=120
    ) as bar:
        task = bar.add_task(title, total=None)

        def report(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield report

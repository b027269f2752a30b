"""A progress bar with rate and time left, drawn only in a terminal."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from surefoot.simulation.sweep import Progress as Report

console = Console(stderr=True)


class _Rate(ProgressColumn):
    def __init__(self, unit: str) -> None:
        super().__init__()
        self._unit = unit

    def render(self, task: Task) -> Text:
        """Rounds or rows done, and how many a second; in millions where they are many."""
        speed = task.speed or 0.0
        rate = f"{speed / 1e6:5.2f} M" if speed >= 1e5 else f"{speed:,.0f}"
        return Text(f"{task.completed:,.0f} {self._unit}, {rate}/s")


@contextmanager
def progress_bar(title: str, unit: str = "rounds") -> Iterator[Report]:
    """A function of what is done and what is to do that shows both."""
    columns = (
        TextColumn(title), BarColumn(), TextColumn("{task.percentage:>3.0f}%"), _Rate(unit), TimeElapsedColumn(),
    )  # fmt: skip
    left = (TextColumn("left"), TimeRemainingColumn())
    with Progress(*columns, *left, console=console, speed_estimate_period=120, disable=not console.is_terminal) as bar:
        task = bar.add_task(title, total=None)

        def report(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield report

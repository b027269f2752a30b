"""A progress bar with rate and time left, drawn only in a terminal."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Column
from rich.text import Text

from surefoot.simulation.sweep import Progress as Report

console = Console(stderr=True)


class _Rate(ProgressColumn):
    def __init__(self, unit: str) -> None:
        super().__init__(table_column=Column(no_wrap=True))
        self._unit = unit

    def render(self, task: Task) -> Text:
        """Rounds or rows done, and how many a second; in millions where they are many."""
        done = f"{task.completed:,.0f} {self._unit}"
        if not task.speed:  # not known yet, or over before it could be measured
            return Text(done)
        rate = f"{task.speed / 1e6:.2f} M" if task.speed >= 1e5 else f"{task.speed:,.0f}"
        return Text(f"{done}, {rate}/s")


@contextmanager
def progress_bar(title: str, unit: str = "rounds") -> Iterator[Report]:
    """A function of what is done and what is to do that shows both."""
    # It takes the room that numbers leave, so that they stay in one line.
    line = BarColumn(None, table_column=Column(ratio=1))
    columns = (TextColumn(title), line, TextColumn("{task.percentage:>3.0f}%"), _Rate(unit), TimeElapsedColumn())
    left = (TextColumn("left"), TimeRemainingColumn())
    told: dict[str, Any] = {"console": console, "speed_estimate_period": 120, "disable": not console.is_terminal}
    with Progress(*columns, *left, expand=True, **told) as bar:
        task = bar.add_task(title, total=None)

        def report(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield report

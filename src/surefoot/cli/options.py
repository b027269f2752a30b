"""Options and words that several commands share: numbers, settings, journals, progress."""

import json
import math
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Column
from rich.text import Text

from surefoot.errors import ConfigError, JournalBusyError, JournalNotFoundError
from surefoot.journal import Journal, open_journal
from surefoot.journal.address import file_of
from surefoot.simulation.workers import Progress as Report


def parse_numbers(option: str, text: str) -> tuple[float, ...]:
    """Numbers between commas."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise ConfigError(f"`{option}` must be numbers between commas, such as 0.05,0.1, but got {text!r}.") from None


def number_text(value: float) -> str:
    """A number as a table shows it."""
    return f"{value:,.4g}" if abs(value) < 1e6 else f"{value:,.0f}" if math.isfinite(value) else "-"


OnOption = Annotated[
    str | None,
    typer.Option(
        "--on",
        help="Where the work runs: local[:threads], ray[://host:port], dask://host:port or gpu[:index]; "
        "the bits are the same.",
    ),
]


JournalArgument = Annotated[str, typer.Argument(help="A SQLite file, or postgresql://...")]


def open_existing(journal: str) -> Journal:
    """Open a journal to write to it; a missing one is an error: its name is probably a typo."""
    file = file_of(journal)
    if file is not None and not file.exists():
        raise JournalNotFoundError(f"There must be a journal at {file}, but there is no such file or folder.")
    try:
        return open_journal(journal)
    except JournalBusyError:
        if file is None:  # another database has words of its own
            raise
        raise JournalBusyError(
            f"One process may write a SQLite journal, but another has {file} open. Stop the server that uses it, or "
            "ask it over HTTP."
        ) from None


def read_pairs(file: Path | None, pairs: list[str]) -> dict[str, Any]:
    """The settings of a file, and those that are given as key=value."""
    settings: dict[str, Any] = {}
    if file is not None:
        try:
            settings = tomllib.loads(file.read_text("utf-8"))
        except (OSError, tomllib.TOMLDecodeError) as error:
            raise ConfigError(f"`--settings` must be a TOML file, but {file} cannot be read as one: {error}.") from None
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise ConfigError(f"`--set` must be key=value, such as alpha=0.05, but got {pair!r}.")
        settings[key.strip()] = _value(value.strip())
    return settings


def _value(text: str) -> Any:
    """A number, a list or a table as JSON; anything else is a string."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


stderr = Console(stderr=True)


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
    look: dict[str, Any] = {"console": stderr, "speed_estimate_period": 120, "disable": not stderr.is_terminal}
    with Progress(*columns, *left, expand=True, **look) as bar:
        task = bar.add_task(title, total=None)

        def report(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield report

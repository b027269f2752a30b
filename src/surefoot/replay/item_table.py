"""A second table: what is known of every action, as numbers and labels, one line for each."""

import csv
import math
from collections.abc import Sequence
from pathlib import Path

from surefoot.errors import LogError
from surefoot.linear.encoding import MOST_LEVELS

NAMES = ("action", "item_id")  # of the column that names the action, beside the log's own


def read_items(path: Path, action: str | None = None) -> dict[str, tuple[float, ...]]:
    """Features of every action: numbers as they are, a label as 0s and a 1.

    The action is in the column that the header calls `action`, "action" or "item_id", else in the first. A column
    without a name, as pandas writes its index, is left out.
    """
    try:
        lines = [cells for cells in csv.reader(path.read_text(encoding="utf-8").splitlines()) if cells]
    except OSError as error:
        raise LogError(f"`{path}` must be a CSV file of actions, but cannot be read: {error.strerror}.") from None
    if not lines:
        raise LogError(f"`{path}` must have a line for every action, but it is empty.")
    for number, cells in enumerate(lines, start=1):
        if len(cells) != len(lines[0]) or len(cells) < 2:
            raise LogError(f"`{path}` must hold a name and features a line, but line {number} is {cells}.")
    key = next((lines[0].index(name) for name in (action, *NAMES) if name in lines[0]), None)
    has_header = key is not None or _is_header(lines)
    rows, place = lines[has_header:], key or 0
    names = [cells[place].strip() for cells in rows]
    for name in names:
        if names.count(name) > 1:
            raise LogError(f"`{path}` must hold every action once, but {name!r} occurs twice.")
    others = [at for at in range(len(lines[0])) if at != place and not (has_header and not lines[0][at].strip())]
    columns = [_read([cells[at].strip() for cells in rows], path, at, 1 + has_header) for at in others]
    return {name: tuple(value for column in columns for value in column[at]) for at, name in enumerate(names)}


def _is_header(lines: Sequence[Sequence[str]]) -> bool:
    """Whether a first line has a word above a column of numbers."""
    return len(lines) > 1 and any(
        not _is_number(lines[0][at]) and all(_is_number(cells[at]) for cells in lines[1:])
        for at in range(1, len(lines[0]))
    )


def _read(cells: Sequence[str], path: Path, at: int, first: int) -> list[list[float]]:
    numbers = [_is_number(cell) for cell in cells]
    if all(numbers):
        return [[float(cell)] for cell in cells]
    if any(numbers):
        odd = numbers.index(False)
        raise LogError(
            f"Column {at + 1} of `{path}` must hold numbers or labels and not both, but line {odd + first} has "
            f"{cells[odd]!r}."
        )
    levels = sorted(set(cells))
    if len(levels) > MOST_LEVELS:
        raise LogError(f"Column {at + 1} of `{path}` must have at most {MOST_LEVELS} labels, but has {len(levels)}.")
    return [[float(cell == level) for level in levels] for cell in cells]


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False

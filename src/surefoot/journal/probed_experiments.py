"""Which experiments are tried next when a journal is probed, and which of them take no events while others do.

A few at a time, so that a journal of thousands is not held up; those that refused, or that were locked, every time.
"""

from collections.abc import Iterable, Mapping, Sequence
from time import monotonic
from typing import NamedTuple

AT_ONCE = 32
STUCK_SECONDS = 15.0  # a lock held so long, while nothing is appended, is nobody's who writes


class ProbedRow(NamedTuple):
    """An experiment's row: its key, name and newest event."""

    id: int
    name: str
    number: int


class ProbedExperiments:
    """What probes have found so far."""

    def __init__(self) -> None:
        self._after, self._refusing = 0, dict[str, str]()
        self._willing = 0  # one that took an event: if that refuses too, it is the journal
        self._locked: dict[int, tuple[int, float]] = {}  # newest event, and since when it is so

    def chosen(self, rows: Iterable[ProbedRow]) -> list[ProbedRow]:
        """The experiments whose turn it is, of all that there are, by their keys."""
        known = sorted(rows)
        self._refusing = {row.name: self._refusing[row.name] for row in known if row.name in self._refusing}
        self._locked = {row.id: self._locked[row.id] for row in known if row.id in self._locked}
        start = next((at for at, row in enumerate(known) if row.id > self._after), 0)
        turn = (known[start:] + known[:start])[:AT_ONCE]
        self._after = turn[-1].id if turn else 0
        again = [
            row for row in known if row.name in self._refusing or row.id in self._locked or row.id == self._willing
        ]
        return sorted({*turn, *again})

    def note(
        self, tried: Sequence[ProbedRow], refused: Mapping[str, str], locked: Sequence[ProbedRow] = ()
    ) -> dict[str, str]:
        """Take in what came of them; why each experiment that takes no events now does not."""
        now = monotonic()
        for row in tried:
            self._refusing.pop(row.name, None)
            self._locked.pop(row.id, None)
            if row.name not in refused:
                self._willing = row.id
        self._refusing.update(refused)
        for row in locked:
            number, since = self._locked.get(row.id, (row.number, now))
            self._locked[row.id] = (row.number, since if number == row.number else now)
            held = now - self._locked[row.id][1]
            if held > STUCK_SECONDS:
                self._refusing[row.name] = f"Somebody has held its lock for {held:.0f} s, and wrote nothing."
            else:
                self._refusing.pop(row.name, None)
        return dict(self._refusing)

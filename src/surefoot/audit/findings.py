"""What an audit found: each finding names an event, and says in a sentence what is wrong with it."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

LISTED = 200  # findings that are kept in full: an edited reward contradicts every decision after it


@dataclass(frozen=True)
class Finding:
    """Something that an honest journal does not have.

    event: number of the event, 0 where none can be named
    what:  one word for the check that failed, such as "hash" or "question"
    text:  what the rule is, and what came instead
    """

    event: int
    what: str
    text: str

    def __str__(self) -> str:
        where = f"event {self.event}" if self.event else "journal"
        return f"{where}, {self.what}: {self.text}"


@dataclass
class Findings:
    """All findings counted, the first of them kept."""

    listed: list[Finding] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, event: int, what: str, text: str) -> None:
        """Note one."""
        self.counts[what] += 1
        if len(self.listed) < LISTED:
            self.listed.append(Finding(event, what, text))

    def __len__(self) -> int:
        return self.counts.total()

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.listed)

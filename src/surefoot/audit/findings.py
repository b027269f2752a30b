"""What an audit finds and counts: each finding names an event, and says in a sentence what is wrong with it."""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from surefoot.journal.events import Event
from surefoot.rounds.events import Acknowledged, Corrected, Erased, PairRound, RowsRound

LISTED = 200  # findings that are kept in full: an edited reward contradicts every decision after it
NOTHING_BESIDE = 1e-6  # of what was earned


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


@dataclass
class ClosestDecision:
    """The learner's decision with the least above its floor."""

    margin: float = math.inf
    round: int = 0
    event: int = 0
    time: float = 0.0


@dataclass
class AuditCounts:
    """Counts over the events of one experiment."""

    events: int = 0
    decisions: int = 0
    learner: int = 0
    held: int = 0
    fallbacks: int = 0
    proofs: int = 0
    pieces: int = 0
    rewards: int = 0
    learned: int = 0
    defaults: int = 0
    pending: int = 0
    snapshots: int = 0
    visits: int = 0  # of a guard's units, after their first
    coin_blocks: int = 0
    coin_blocks_at_once: int = 0  # that a coin could have been of, the most: whoever has several may choose
    coins_missing: int = 0  # rounds in which a block of coins had to begin
    coins_recomputed: int = 0  # from secrets that are revealed
    coins_hidden: Counter[int] = field(default_factory=Counter)  # by the event that began their block
    refused: Counter[str] = field(default_factory=Counter)
    modes: list[tuple[int, str]] = field(default_factory=list)
    first_time: float = math.nan
    last_time: float = math.nan
    last_margin: float = math.nan
    closest: ClosestDecision = field(default_factory=ClosestDecision)
    is_refuted: bool = False  # whether the alarm is on
    short: float = 0.0  # the most that a proof of the learner's fell short by, for which rounding was held responsible
    earned: float = 0.0  # sizes of all rewards that were learned, and what is known of the baseline's, added up
    abandoned: int = 0
    voided: int = 0  # rounds that were not played as decided
    unproved: int = 0  # of these, rounds of the learner's in which another action was played than was proved
    texts: int = 0  # private ones that are what their events commit to
    erasures: list[tuple[int, Erased]] = field(default_factory=list)  # event, what and by whom
    corrections: list[tuple[int, Corrected]] = field(default_factory=list)  # event, what and by whom
    alarms: list[tuple[int, str]] = field(default_factory=list)
    answers: list[tuple[int, int, Acknowledged]] = field(default_factory=list)  # event, round, answer

    @property
    def restart_round(self) -> int:
        """The last round before the newest restart; 0 where there was none."""
        return max((round_ for _, round_, answer in self.answers if answer.response != "stay"), default=0)

    @property
    def promise_round(self) -> int:
        """The round from which on the promise counts."""
        return 1 + max((round_ for _, round_, answer in self.answers if answer.response == "renew"), default=0)

    def check_rounding(self, findings: Findings) -> None:
        """Rounding counts in the units of what was declared: it must be nothing beside what was really earned."""
        if 0.0 < self.earned * NOTHING_BESIDE < self.short:
            text = (
                f"proofs of the learner's rounds fall short by up to {self.short:.3g}, as rounding may in numbers as "
                f"large as declared, but all rewards together come to {self.earned:.6g}"
            )
            findings.add(0, "rounding", text)

    def count(self, event: Event, record: RowsRound | PairRound, margin: float, pieces: int) -> None:
        """Count a round; `margin` is what its proof has above the floor, or a guard's banks have left at worst."""
        is_learner = record.source == "learner"
        self.decisions += 1
        self.learner += is_learner
        self.held += record.is_held
        self.fallbacks += record.is_fallback
        self.proofs += 1
        self.pieces += pieces
        self.last_margin = margin
        if is_learner and margin < self.closest.margin:
            self.closest = ClosestDecision(margin, record.round, event.number, event.time)

    def moved(self, *, was_learner: bool, is_learner: bool) -> None:
        """Count a round that was not played as decided on the side that was played."""
        self.voided += 1
        self.learner += is_learner - was_learner

    @property
    def baseline(self) -> int:
        """Rounds that the baseline played."""
        return self.decisions - self.learner

    @property
    def learner_share(self) -> float:
        """Share of the rounds that the learner played."""
        return self.learner / self.decisions if self.decisions else 0.0

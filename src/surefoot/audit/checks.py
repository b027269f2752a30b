"""What is checked of every kind: who played in which mode, and that rewards are learned in the order of the decisions.

A round is settled by its reward (with a window of seconds, when that closes), of a guard's unit by the sum of its
visits' rewards once its window of rounds has passed, by the word that it was abandoned, or once `settle_after` more
rounds were decided. It is learned when every earlier round that others wait for is settled. When that is never depends
on a reward's value.

A guard's round without a share has nothing at stake. It waits for those before it that have, and none waits for it.
Where many settled rounds wait for one of a guard's, that one is learned at its worst, and again once it is settled.
"""

import heapq
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from surefoot.audit.coins import CoinFairness
from surefoot.audit.findings import AuditCounts, Findings
from surefoot.audit.recorded_round import RoundProblems
from surefoot.journal.events import Event
from surefoot.rounds import Record, events

Values = dict[str, float]


@dataclass(slots=True, kw_only=True)
class OpenRound:
    """A round that is not learned yet.

    waits:     whether it is learned in its turn, and later ones wait for it
    is_income: whether it is learned in its turn, and none waits for it
    place:     in the order of learning; 0 before it has one
    unit:      whose visits bring its reward in parts
    rewards:   of its decision, and of later visits, by metric
    """

    round: int
    time: float
    is_learner: bool
    waits: bool
    is_income: bool = False
    place: int = 0
    unit: str | None = None
    rewards: dict[str, Values] = field(default_factory=dict)
    is_settled: bool = False
    is_abandoned: bool = False
    is_late: bool = False  # learned before it was settled

    @property
    def received(self) -> Values:
        """The rewards of all of its decisions; of a round that is no unit's there is one."""
        return {name: value for values in self.rewards.values() for name, value in values.items()}


R = TypeVar("R", bound=OpenRound)


class Turns(Generic[R]):
    """The order of learning.

    patience: a round that is not settled is learned once so many others wait for it; None lets them wait
    """

    def __init__(self, patience: int | None = None) -> None:
        self._places = self._waiting = 0  # of the queue's rounds, those that are settled
        self._patience = patience
        self._queue: deque[R] = deque()  # rounds that others wait for
        self._income: list[tuple[int, R]] = []  # a heap of settled rounds that none waits for

    def put(self, entry: R) -> None:
        """Give a round the next place."""
        self._places += 1
        entry.place = self._places
        if entry.waits:
            self._queue.append(entry)
        if entry.is_settled:
            self.settle(entry)

    def settle(self, entry: R) -> None:
        """Let a round be learned once its turn comes."""
        entry.is_settled = True
        if not entry.place:  # settled before it has one
            return
        if entry.is_income or entry.is_late:
            heapq.heappush(self._income, (entry.place, entry))
        elif entry.waits:
            self._waiting += 1

    def due(self) -> R | None:
        """Remove the next round, if it is its turn; one that is late will have another."""
        queue, income = self._queue, self._income
        while queue and not queue[0].waits:
            queue.popleft()
        if income and not (queue and queue[0].place < income[0][0]):
            return heapq.heappop(income)[1]
        if queue and queue[0].is_settled:
            self._waiting -= 1
            return queue.popleft()
        if queue and self._patience is not None and self._waiting + len(income) >= self._patience:
            queue[0].is_late = True
            return queue.popleft()
        return None

    def stop(self) -> list[R]:
        """Let none of the rounds so far be learned; those that are settled."""
        rounds, self._queue, self._waiting = self._queue, deque(), 0
        for entry in rounds:
            entry.waits = False
        return [entry for entry in rounds if entry.is_settled]


class Checks(ABC, Generic[R]):
    """Everything that the events so far say of an experiment of one kind."""

    coins: CoinFairness | None = None  # of a guard
    patience: ClassVar[int | None] = None  # of a guard: settled rounds that wait for one, until it is learned without
    is_pair: ClassVar[bool] = False  # whether it is a guard's
    keeps_abandoned: ClassVar[bool]  # whether one that is abandoned is learned all the same, at its worst

    def __init__(
        self, created: events.Created, findings: Findings, tally: AuditCounts, *, unit_window: int | None = None
    ) -> None:
        self.created, self.findings, self.tally = created, findings, tally
        self._window, self._unit_window = created.reward_window, unit_window
        self._settle_after: int | None = created.settings.get("settle_after")
        self._open: dict[int, R] = {}
        self._by_id: dict[str, R] = {}
        self._turns = Turns[R](self.patience)
        self._windows: deque[R] = deque()
        self.units: dict[str, R] = {}
        self._parts: dict[str, int] = {}  # rewards that came for each decision
        self._abandoned, self._corrected, self._voided = set[str](), set[str](), set[str]()

    def learn_history(self, event: Event, history: events.History) -> None:
        """Learn what was logged before the first round."""
        self.findings.add(event.number, "history", "only a policy over rows begins with a history")

    def restored(self, lost: int) -> None:
        """The chain is a copy, which lacks so many events; what rows of theirs were worth nobody knows."""
        return

    def take(self, event: Event, record: Record, mode: str) -> None:
        """Check one event."""
        match record:
            case events.RowsRound() | events.PairRound():
                self._judge(event, record, mode)
            case events.Reward():
                self._reward(event, record)
            case events.Settled():
                self._close(event, record)
            case events.Abandoned():
                self._abandon(event, record)
            case events.Corrected():
                self._correct(event, record)
            case events.Voided():
                self._void(event, record)
            case _ if event.kind not in events.WORDS:
                self.findings.add(event.number, "kind", f"an experiment of this kind has no {event.kind}")

    @abstractmethod
    def _judge(self, event: Event, record: Any, mode: str) -> None:
        """Check a round against everything before it, and count it."""

    @abstractmethod
    def _holds(self, values: Values) -> bool:
        """Whether rewards may be accepted."""

    def _is_whole(self, received: Values) -> bool:
        """Whether no further metric is waited for."""
        return True

    def _came(self, event: Event, entry: R, values: Values) -> None:
        """A reward was accepted or corrected, whenever it is learned."""

    @abstractmethod
    def _learn(self, entry: R) -> None:
        """Learn a round whose turn it is."""

    def find(self, decision_id: str) -> R | None:
        """The round that has a decision of that id, until it is learned."""
        return self._by_id.get(decision_id)

    def _check_protocol(self, event: Event, record: events.Round, mode: str, problems: RoundProblems) -> None:
        """Key, mode, and who may play in it."""
        # A sealed one is found beside the chain.
        if event.key != (None if self.created.is_sealed else f"d:{record.decision_id}"):
            problems.add("key", f"the key of decision {record.decision_id!r} is {event.key!r}")
        if record.mode != mode:
            problems.add("mode", f"the experiment is in mode {mode!r}, but the decision says {record.mode!r}")
        must_hold = record.mode != "guarded" or record.is_fallback
        if record.is_held != must_hold or (must_hold and record.source == "learner"):
            word = "must" if must_hold else "must not"
            problems.add("held", f"in mode {record.mode!r} the baseline {word} be held")
        if self.find(record.decision_id) is not None:
            problems.add("doubled", f"decision {record.decision_id!r} was made before")

    def _check_number(self, record: events.Round, problems: RoundProblems) -> None:
        if record.round != self.tally.decisions + 1:
            problems.add("round", f"round {self.tally.decisions + 1} is next, but this is round {record.round}")

    def _wait(self, decision_id: str, entry: R) -> None:
        """Open a round; those whose windows of rounds end with it are settled."""
        self._open[entry.round] = entry
        self.tally.pending = len(self._open)
        self._visited(entry, decision_id)
        self._turns.put(entry)
        if self._window is not None:
            self._windows.append(entry)
        if entry.unit is not None:
            self.units[entry.unit] = entry
        old = None if self._settle_after is None else self._open.get(entry.round - self._settle_after)
        if old is not None and not old.is_settled:
            self.tally.defaults += not old.received
            self._settle(old)
        unit = None if self._unit_window is None else self._open.get(entry.round - self._unit_window)
        if unit is not None and unit.unit is not None and not unit.is_settled:
            self._settle(unit)

    def _visited(self, entry: R, decision_id: str) -> None:
        """Wait for the reward of a decision or of a visit."""
        entry.rewards[decision_id] = {}
        self._by_id[decision_id] = entry

    def _settle(self, entry: R) -> None:
        """Learn a round by what came of it, as soon as its turn comes."""
        self._turns.settle(entry)
        # A forged journal may have opened the same unit twice.
        if entry.unit is not None and self.units.get(entry.unit) is entry:
            del self.units[entry.unit]
        if not (entry.waits or entry.is_income):
            self._leave(entry)
        self._learn_settled()

    def _learn_settled(self) -> None:
        """Learn up to the first round that is not settled."""
        while (entry := self._turns.due()) is not None:
            if entry.is_settled:
                self._leave(entry)
            self._learn(entry)

    def _leave(self, entry: R) -> None:
        self._forget(entry)
        self.tally.learned += 1

    def _forget(self, entry: R) -> None:
        self._open.pop(entry.round, None)
        for decision_id in entry.rewards:
            self._by_id.pop(decision_id, None)
            self._parts.pop(decision_id, None)
        self.tally.pending = len(self._open)

    def _drop(self, entry: R) -> None:
        """A round that is never learned; those behind it wait for it no more."""
        entry.is_settled, entry.waits = True, False
        self._forget(entry)
        self._learn_settled()

    def stop_teaching(self) -> None:
        """After a restart no round that was decided before teaches any more."""
        for entry in self._turns.stop():
            self._leave(entry)

    def _has_closed(self, event: Event, entry: R) -> bool:
        """Whether the round's window had closed."""
        return self._window is not None and event.time >= entry.time + self._window

    def _reward(self, event: Event, reward: events.Reward) -> None:
        """Rewards that came in, accepted or refused."""
        values = {name: float(value) for name, value in reward.values.items()}
        entry = self.find(reward.decision_id)
        if reward.refused is not None:
            self.tally.refused[reward.refused] += 1 + reward.unrecorded
            self._check_refusal(event, reward, entry, values)
            return
        self.tally.rewards += 1
        text = "no such decision is waiting for one"
        if entry is None or (text := self._fault(event, entry, entry.rewards[reward.decision_id], values)):
            self.findings.add(event.number, "reward", f"a reward of {reward.decision_id!r} was accepted, but {text}")
            return
        parts = self._parts.get(reward.decision_id, 0)
        self._parts[reward.decision_id] = parts + 1
        if event.key != events.reward_key(reward.decision_id, parts):
            self.findings.add(event.number, "key", f"the key of this reward is {event.key!r}")
        entry.rewards[reward.decision_id] |= values
        if self._window is None and entry.unit is None and self._is_whole(entry.received):
            self._settle(entry)
        self._came(event, entry, values)

    def _fault(self, event: Event, entry: R, received: Values, values: Values) -> str:
        if entry.is_settled or set(received) & set(values):
            return "it has one already"
        if not values:
            return "it names no metric"
        if self._has_closed(event, entry):
            return "its window had closed"
        return "" if self._holds(values) else f"{values} is not within what was declared, or what can be computed with"

    def _check_refusal(self, event: Event, reward: events.Reward, entry: R | None, values: Values) -> None:
        """A reward that counts must not be turned away: learning only what is welcome would bias everything."""
        received = {} if entry is None else entry.rewards[reward.decision_id]
        # Of a round that is settled, only another metric comes too late: the same one is a conflict, or repeated.
        is_open = entry is not None and not self._has_closed(event, entry)
        is_open = is_open and entry is not None and (not entry.is_settled or set(values) <= set(received))
        is_wrong = {
            "unknown": entry is not None,
            "too_late": is_open,
            "out_of_range": self._holds(values),
            "conflict": entry is not None and (not received or values.items() <= received.items()),
            "abandoned": reward.decision_id not in self._abandoned,
        }
        if is_wrong[reward.refused or ""]:
            text = f"a reward of {reward.decision_id!r} was refused as {reward.refused}, which it is not"
            self.findings.add(event.number, "refused", text)

    def _correct(self, event: Event, corrected: events.Corrected) -> None:
        """Rewards that count in place of those accepted; never once something was learned from them."""
        entry, key = self.find(corrected.decision_id), corrected.decision_id
        values = {name: float(value) for name, value in corrected.values.items()}
        received = {} if entry is None else entry.rewards[key]
        is_new = key not in self._corrected and event.key == f"x:{key}"
        is_sound = bool(received) and set(values) <= set(received) and self._holds(values)
        if entry is None or entry.unit is not None or self._has_closed(event, entry) or not (is_new and is_sound):
            text = f"the reward of {key!r} was corrected, but had not come, was learned, or corrected"
            self.findings.add(event.number, "corrected", text)
            return
        self._corrected.add(key)
        self.tally.corrections.append((event.number, corrected))
        received |= values
        self._came(event, entry, values)

    def _abandon(self, event: Event, abandoned: events.Abandoned) -> None:
        """A round that is settled without its reward; what has come of it must not be dropped."""
        entry = self.find(abandoned.decision_id)
        received = {} if entry is None else entry.rewards[abandoned.decision_id]
        # Without a window and a unit, a round that is open after a reward waits for further metrics.
        if entry is None or entry.is_settled or (received and (self._window, entry.unit) != (None, None)):
            text = (
                f"{abandoned.decision_id!r} was abandoned, but it is not without a reward: that would choose the data"
            )
            self.findings.add(event.number, "abandoned", text)
            return
        if event.key != events.reward_key(abandoned.decision_id, self._parts.get(abandoned.decision_id, 0)):
            self.findings.add(event.number, "key", f"the key of this event is {event.key!r}")
        self._abandoned.add(abandoned.decision_id)
        self.tally.abandoned += 1
        entry.is_abandoned = True
        if self.keeps_abandoned:
            self._settle(entry)
        else:
            self._drop(entry)

    def _void(self, event: Event, voided: events.Voided) -> None:
        """What was really played; of a guard's round coin, share and side stay (intention to treat)."""
        if self._voidable(event, voided) is not None:
            self.tally.voided += 1

    def _voidable(self, event: Event, voided: events.Voided) -> R | None:
        """The round that may be voided: said once, before its reward had come."""
        entry, key = self.find(voided.decision_id), voided.decision_id
        text = self._played_fault(entry, voided)
        if entry is None or entry.is_settled or entry.rewards[key]:
            text = "it is not without a reward: that would choose the data"
        elif self._has_closed(event, entry):
            text = "its window had closed"
        elif key in self._voided or event.key != f"v:{key}":
            text = f"that is said once, under a key of its own, and not {event.key!r}"
        if text:
            self.findings.add(event.number, "voided", f"{key!r} was voided, but {text}")
            return None
        self._voided.add(key)
        return entry

    def _played_fault(self, entry: R | None, voided: events.Voided) -> str:
        """Why what is said to have been played cannot have been."""
        return ""

    def _close(self, event: Event, settled: events.Settled) -> None:
        """Windows of seconds that closed."""
        if self._window is None:
            self.findings.add(event.number, "window", "windows closed in an experiment that has none")
            return
        for window in settled.windows:
            self._close_window(event, window)

    def _close_window(self, event: Event, window: events.SettledWindow) -> None:
        # Rounds that were abandoned have left their windows behind.
        while self._windows and self._windows[0].is_settled:
            self._windows.popleft()
        entry = self.find(window.decision_id)
        if entry is None or not self._windows or self._windows[0] is not entry or entry.round != window.round:
            text = f"the window of {window.decision_id!r} (round {window.round}) closed, but is not the oldest"
            self.findings.add(event.number, "window", text)
            return
        if not self._has_closed(event, entry):
            self.findings.add(event.number, "window", f"the window of round {window.round} closed too early")
        if window.is_missing != (not entry.received):
            word = "a" if entry.received else "no"
            self.findings.add(
                event.number, "settled", f"round {window.round} has {word} reward, but was settled otherwise"
            )
        self.tally.defaults += window.is_missing
        self._settle(entry)

    @staticmethod
    def settles(record: Record) -> Sequence[str]:
        """The decisions that an event may settle."""
        if isinstance(record, events.Settled):
            return [window.decision_id for window in record.windows]
        return [record.decision_id] if isinstance(record, events.Reward | events.Abandoned) else []

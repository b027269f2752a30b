"""Which rewards of a guard were booked, and when: in the order of the decisions, by a rule that never looks at them.

A round is settled by its reward (with a window of seconds, when that closes), of a unit by the sum of its visits'
rewards once its window of rounds has passed, by the word that it was abandoned, or once `settle_after` more rounds were
decided. What is missing counts as its default where one was declared, and at its worst otherwise.

A round without a share has nothing at stake. It waits for those before it that have, and none waits for it.
"""

import heapq
import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from surefoot.audit.bank import BookedRound
from surefoot.audit.declarations import GuardDeclarations
from surefoot.audit.findings import AuditCounts, Findings
from surefoot.journal.events import Event
from surefoot.rounds import events

Values = tuple[float, ...]


@dataclass(slots=True)
class OpenRound:
    """A round that is not settled, or waits for an earlier one.

    came:    its reward, while its window of seconds is open; of a unit the sum so far
    settled: what it will enter by
    ids:     the decision and the visits that it has, and the rewards that came for each, by metric
    """

    record: events.PairRound
    time: float
    teaches: bool
    booked: list[BookedRound]
    came: Values | None = None
    settled: Values | None = None
    ids: dict[str, dict[str, float]] = field(default_factory=dict)

    @property
    def is_learner(self) -> bool:
        """The side of its coin."""
        return self.record.source == "learner"

    @property
    def is_at_stake(self) -> bool:
        """Whether the proposal had a share."""
        return self.record.share > 0.0

    @property
    def is_income(self) -> bool:
        """Whether it pays with nothing at stake; an agreeing visit of a unit pays into the unit's open round alone."""
        return not self.is_at_stake and (self.teaches or self.record.request.unit is None)


class GuardRewards:
    """The open rounds and units of a guard; `enter` is told each round that is settled, in order."""

    def __init__(
        self,
        declared: GuardDeclarations,
        window: float | None,
        enter: Callable[[OpenRound, Values], None],
        findings: Findings,
        tally: AuditCounts,
    ) -> None:
        self._declared, self._window, self._enter = declared, window, enter
        self._findings, self._tally = findings, tally
        self._by_id: dict[str, OpenRound] = {}
        self._by_round: dict[int, OpenRound] = {}
        self._order: deque[OpenRound] = deque()  # rounds at stake, in the order of their decisions
        self._income: list[tuple[int, OpenRound]] = []  # a heap of settled rounds with nothing at stake
        self._windows: deque[OpenRound] = deque()
        self.units: dict[str, OpenRound] = {}
        self._missing = tuple(metric.default for metric in declared.metrics)
        self._worst = (math.nan,) * len(declared.metrics)
        self._abandoned: set[str] = set()
        self._corrected: set[str] = set()
        self._parts: dict[str, int] = {}  # rewards that came for each decision
        self._waiting_by_id: dict[str, OpenRound] = {}  # settled, and not entered yet
        self._voided: set[str] = set()

    def decided(self, entry: OpenRound) -> None:
        """Open a round; those whose windows of rounds end with it are settled."""
        record, declared = entry.record, self._declared
        self._by_round[record.round] = entry
        self._tally.pending = len(self._by_round)
        self.visited(entry, record.decision_id)
        if entry.is_at_stake:
            self._order.append(entry)
        if self._window is not None:
            self._windows.append(entry)
        if record.request.unit is not None and entry.teaches:
            entry.came = (0.0,) * len(declared.metrics)
            self.units[record.request.unit] = entry
        old = None if declared.settle_after is None else self._by_round.get(record.round - declared.settle_after)
        if old is not None and old.settled is None:
            came = old.ids[old.record.decision_id]
            self._tally.defaults += not came
            self._settle(old, self._scaled(came))
        unit = None if declared.unit_window is None else self._by_round.get(record.round - declared.unit_window)
        if unit is not None and unit.settled is None and unit.came is not None:
            self._settle(unit, unit.came)

    def visited(self, entry: OpenRound, decision_id: str) -> None:
        """Wait for the reward of a decision or of a visit."""
        entry.ids[decision_id] = {}
        self._by_id[decision_id] = entry

    def waiting(self, decision_id: str) -> OpenRound | None:
        """The open round that has a decision of that id."""
        return self._by_id.get(decision_id)

    def _settle(self, entry: OpenRound, values: Values) -> None:
        """Keep what a round enters by until its turn comes."""
        entry.settled = values
        unit = entry.record.request.unit
        # A forged journal may have opened the same unit twice.
        if unit is not None and self.units.get(unit) is entry:
            del self.units[unit]
        for decision_id in entry.ids:
            self._by_id.pop(decision_id, None)
            self._parts.pop(decision_id, None)
            self._waiting_by_id[decision_id] = entry
        if entry.is_income:
            heapq.heappush(self._income, (entry.record.round, entry))
        elif not entry.is_at_stake:
            self._close(entry)
        while (due := self._due()) is not None:
            assert due.settled is not None
            self._enter(due, due.settled)
            self._close(due)

    def _due(self) -> OpenRound | None:
        """The next round whose turn it is to enter."""
        if self._income and not (self._order and self._order[0].record.round < self._income[0][0]):
            return heapq.heappop(self._income)[1]
        return self._order.popleft() if self._order and self._order[0].settled is not None else None

    def _close(self, entry: OpenRound) -> None:
        self._by_round.pop(entry.record.round, None)
        for decision_id in entry.ids:
            self._waiting_by_id.pop(decision_id, None)
        self._tally.learned += 1
        self._tally.pending = len(self._by_round)

    def reward(self, event: Event, reward: events.Reward) -> None:
        """Rewards that came in, accepted or refused."""
        values = {name: float(value) for name, value in reward.values.items()}
        entry = self._by_id.get(reward.decision_id)
        if reward.refused is not None:
            self._tally.refused[reward.refused] += 1 + reward.unrecorded
            self._check_refusal(event, reward, entry, values)
            return
        self._tally.rewards += 1
        text = self._fault(event, reward.decision_id, entry, values)
        if text is not None or entry is None:
            self._findings.add(event.number, "reward", f"a reward of {reward.decision_id!r} was accepted, but {text}")
            return
        came = entry.ids[reward.decision_id]
        parts = self._parts.get(reward.decision_id, 0)
        self._parts[reward.decision_id] = parts + 1
        if event.key != events.reward_key(reward.decision_id, parts):
            self._findings.add(event.number, "key", f"the key of this reward is {event.key!r}")
        came |= values
        self._take(entry, came)

    def correct(self, event: Event, corrected: events.Corrected) -> None:
        """Rewards that count in place of those accepted; never once the round has entered."""
        entry = self._by_id.get(corrected.decision_id) or self._waiting_by_id.get(corrected.decision_id)
        values = {name: float(value) for name, value in corrected.values.items()}
        came = None if entry is None else entry.ids.get(corrected.decision_id)
        is_late = entry is not None and self._window is not None and event.time >= entry.time + self._window
        is_new = corrected.decision_id not in self._corrected and event.key == f"x:{corrected.decision_id}"
        is_unit = entry is not None and entry.record.request.unit is not None and entry.teaches
        is_sound = came is not None and set(values) <= set(came) and self._is_within(values)
        if entry is None or came is None or is_late or not is_new or not is_sound or is_unit:
            text = f"the reward of {corrected.decision_id!r} was corrected, but had not come, was learned, or corrected"
            self._findings.add(event.number, "corrected", text)
            return
        self._corrected.add(corrected.decision_id)
        self._tally.corrections.append((event.number, corrected))
        came |= values
        if self._window is not None:
            entry.came = self._scaled(came)
        elif entry.settled is not None:
            entry.settled = self._scaled(came)

    def _fault(self, event: Event, decision_id: str, entry: OpenRound | None, values: dict[str, float]) -> str | None:
        if entry is None:
            return "no such decision is waiting for one"
        if set(entry.ids[decision_id]) & set(values):
            return "it has one already"
        if not values:
            return "it names no metric"
        if self._window is not None and event.time >= entry.time + self._window:
            return "its window had closed"
        return None if self._is_within(values) else f"{values} is not within the declared bounds"

    def _is_within(self, values: dict[str, float]) -> bool:
        known = {metric.name: metric for metric in self._declared.metrics}
        return all(name in known and known[name].holds(value) for name, value in values.items())

    def _scaled(self, values: dict[str, float]) -> Values:
        return tuple(
            metric.scaled(values[metric.name]) if metric.name in values else metric.default
            for metric in self._declared.metrics
        )

    def _take(self, entry: OpenRound, came: dict[str, float]) -> None:
        if entry.record.request.unit is not None and entry.teaches:
            entry.came = self._sum(entry)
        elif self._window is not None:
            entry.came = self._scaled(came)
        elif all(metric.name in came or not math.isnan(metric.default) for metric in self._declared.metrics):
            self._settle(entry, self._scaled(came))

    def _sum(self, entry: OpenRound) -> Values:
        """What the visits of a unit have brought so far, cut at the highest."""
        totals = (0.0,) * len(self._declared.metrics)
        for came in entry.ids.values():
            if came:
                pairs = zip(totals, self._scaled(came), strict=True)
                totals = tuple(math.nan if math.isnan(total + one) else min(total + one, 1.0) for total, one in pairs)
        return totals

    def _check_refusal(
        self, event: Event, reward: events.Reward, entry: OpenRound | None, values: dict[str, float]
    ) -> None:
        """A reward that counts must not be turned away."""
        is_rewarded = entry is not None and bool(entry.ids[reward.decision_id])
        is_open = entry is not None and (self._window is None or event.time < entry.time + self._window)
        is_wrong = {
            "unknown": entry is not None,
            "too_late": is_open,
            "out_of_range": self._is_within(values),
            "conflict": entry is not None and not is_rewarded,
            "abandoned": reward.decision_id not in self._abandoned,
        }
        if is_wrong[reward.refused or ""]:
            text = f"a reward of {reward.decision_id!r} was refused as {reward.refused}, which it is not"
            self._findings.add(event.number, "refused", text)

    def abandon(self, event: Event, abandoned: events.Abandoned) -> None:
        """A round that is settled without its reward, at its worst; what has come of it must not be dropped."""
        entry = self._by_id.get(abandoned.decision_id)
        came = {} if entry is None else entry.ids[abandoned.decision_id]
        # Without a window and a unit, a round that is open after a reward waits for further metrics.
        if entry is None or (came and (self._window is not None or entry.came is not None)):
            text = f"{abandoned.decision_id!r} was abandoned, but it is not without a reward"
            self._findings.add(event.number, "abandoned", text)
            return
        if event.key != events.reward_key(abandoned.decision_id, self._parts.get(abandoned.decision_id, 0)):
            self._findings.add(event.number, "key", f"the key of this event is {event.key!r}")
        self._abandoned.add(abandoned.decision_id)
        self._tally.abandoned += 1
        self._settle(entry, self._scaled(came) if came else self._worst)

    def void(self, event: Event, voided: events.Voided) -> None:
        """What was really played, said before its reward had come; coin, share and side stay (intention to treat)."""
        entry = self._by_id.get(voided.decision_id)
        is_late = entry is not None and self._window is not None and event.time >= entry.time + self._window
        if entry is None or entry.ids[voided.decision_id] or is_late:
            text = f"{voided.decision_id!r} was voided, but it is not without a reward"
            self._findings.add(event.number, "voided", text)
        elif voided.decision_id in self._voided or event.key != f"v:{voided.decision_id}":
            text = f"{voided.decision_id!r} is voided once, under a key of its own, and not {event.key!r}"
            self._findings.add(event.number, "voided", text)
        else:
            self._voided.add(voided.decision_id)
            self._tally.voided += 1

    def close(self, event: Event, settled: events.Settled) -> None:
        """Windows of seconds that closed."""
        if self._window is None:
            self._findings.add(event.number, "window", "windows closed in an experiment that has none")
            return
        for window in settled.windows:
            self._close_window(event, window, self._window)

    def _close_window(self, event: Event, window: events.SettledWindow, seconds: float) -> None:
        # Rounds that were abandoned have left their windows behind.
        while self._windows and self._windows[0].settled is not None:
            self._windows.popleft()
        entry = self._by_id.get(window.decision_id)
        if entry is None or not self._windows or self._windows[0] is not entry or entry.record.round != window.round:
            text = f"the window of {window.decision_id!r} (round {window.round}) closed, but is not the oldest"
            self._findings.add(event.number, "window", text)
            return
        if event.time < entry.time + seconds:
            self._findings.add(event.number, "window", f"the window of round {window.round} closed too early")
        if window.is_missing != (entry.came is None):
            text = f"round {window.round} has {'no' if entry.came is None else 'a'} reward, but was settled otherwise"
            self._findings.add(event.number, "settled", text)
        self._tally.defaults += window.is_missing
        self._settle(entry, self._missing if entry.came is None else entry.came)

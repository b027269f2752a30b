"""One experiment over rows or arms, checked: what was decided when, what was learned in which order, and alarms."""

import hashlib
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.audit.arm_checks import ArmChecks
from surefoot.audit.checks import Checks, OpenRound, Values
from surefoot.audit.compensated_sums import Matrix, Vector
from surefoot.audit.constraints import LARGEST
from surefoot.audit.declarations import LINEAR, read_linear
from surefoot.audit.findings import AuditCounts, Findings
from surefoot.audit.linear_checks import LinearChecks
from surefoot.audit.recorded_round import RecordedRound, RoundProblems, read_round
from surefoot.journal.events import Event
from surefoot.rounds import Record, events


@dataclass(slots=True, kw_only=True)
class OpenRow(OpenRound):
    """A round over rows or arms, and what its reward teaches.

    declared: the mean of a round that is watched, and that no confidence set learns
    """

    features: Vector
    offered: RecordedRound
    declared: float | None = None


class RowsChecks(Checks[OpenRow]):
    """Everything that the events of an experiment over rows or arms say.

    book: what its rounds and rewards add up to, by which each decision is judged
    """

    keeps_abandoned = False

    def __init__(self, created: events.Created, findings: Findings, tally: AuditCounts) -> None:
        super().__init__(created, findings, tally)
        self.book = self._new_book()
        in_seconds = created.reward_window is not None
        default = created.default_reward if in_seconds else created.settings.get("default_reward")
        self.default = float(default or 0.0)
        self._confirmations = ConfirmationChecks(created, self.book, findings)
        self._catalogues: dict[str, Matrix] = {}

    def _new_book(self) -> LinearChecks | ArmChecks:
        policy, settings = self.created.policy, self.created.settings
        return LinearChecks(read_linear(policy, settings)) if policy in LINEAR else ArmChecks(policy, settings)

    def take(self, event: Event, record: Record, mode: str) -> None:
        """Check one event."""
        self._confirmations.take(event, record)
        match record:
            case events.CatalogueRows():
                self._keep(event, record)
            case events.Acknowledged():
                self._answer(event, record)
            case events.Confirmed() | events.Overdue():
                pass
            case _:
                super().take(event, record, mode)

    def learn_history(self, event: Event, history: events.History) -> None:
        """Learn what the experiment began with."""
        if not isinstance(self.book, LinearChecks) or len(history.features) != len(history.rewards):
            self.findings.add(event.number, "history", "it must hold one reward for each row, for a linear policy")
            return
        rows = _rows(history.features)
        if rows.ndim != 2 or rows.shape[1] != self.book.dim:
            self.findings.add(event.number, "history", f"its rows must have {self.book.dim} numbers each")
            return
        if np.linalg.norm(rows, axis=1).max() > self.book.longest or np.abs(history.rewards).max() > LARGEST:
            self.findings.add(event.number, "history", "a row or a reward is beyond what was declared")
        for low, high in filter(None, (self.created.reward_bounds, self.created.settings.get("reward_bounds"))):
            if not low <= min(history.rewards) <= max(history.rewards) <= high:
                self.findings.add(event.number, "history", f"a reward lies outside of the declared {low:g} to {high:g}")
        for row, reward in zip(rows, history.rewards, strict=True):
            self.book.remember(row, reward)

    def _keep(self, event: Event, catalogue: events.CatalogueRows) -> None:
        rows = _rows(catalogue.rows)
        own = hashlib.sha256(repr(rows.shape).encode() + rows.tobytes()).hexdigest()
        if own != catalogue.digest or event.key != f"c:{own}":
            self.findings.add(event.number, "catalogue", "its rows are not those that its digest was taken of")
        self._catalogues[catalogue.digest] = rows

    def _judge(self, event: Event, record: events.Round, mode: str) -> None:
        assert isinstance(record, events.RowsRound)
        problems = RoundProblems()
        rows = self._rows_of(record, problems)
        round_ = None if rows is None else read_round(record, rows)
        self._check_number(record, problems)
        self._check_protocol(event, record, mode, problems)
        self._check_action(record, problems)
        if rows is None or round_ is None or not _is_within(round_, problems):
            problems.report(event, self.findings)
            return
        self.tally.count(event, record, round_.margin, len(round_.proof.pieces))
        was_alarmed = self.book.is_alarmed
        self.book.judge(round_, problems)
        if self.book.is_alarmed and not was_alarmed:
            self.tally.alarms.append((event.number, "the data contradict what was declared"))
        self.tally.is_refuted = self.book.is_alarmed
        self.tally.short = self.book.short
        self.tally.earned += self.book.known_reward(round_)
        entry = OpenRow(
            round=record.round,
            time=event.time,
            is_learner=round_.is_learner,
            # After `judge`: whether the baseline has moved is known once this round is counted.
            waits=self.book.teaches(round_.is_learner) and not record.is_fallback,
            features=rows[round_.action],
            offered=round_.without_proof(),
            declared=self.book.declared_mean(round_),
        )
        self._wait(record.decision_id, entry)
        problems.report(event, self.findings)

    def _holds(self, values: Values) -> bool:
        # A linear policy has one metric. Written so that NaN is refused, too.
        return set(values) == {events.METRIC} and abs(values[events.METRIC]) <= LARGEST

    def _learn(self, entry: OpenRow) -> None:
        reward = entry.received.get(events.METRIC, self.default)
        self.tally.earned += abs(reward)
        self._book_in(entry.features, reward, entry.is_learner, entry.declared)

    def _book_in(self, features: Vector, reward: float, is_learner: bool, declared: float | None) -> None:
        was_alarmed = self.book.is_alarmed
        self.book.learn(features, reward, is_learner, declared)
        if self.book.is_alarmed and not was_alarmed:
            self.tally.is_refuted = True
            self.tally.alarms.append((self.tally.events, "rewards do not follow one theta any more"))

    def _came(self, event: Event, entry: OpenRow, values: Values) -> None:
        """A reward that contradicts what was declared raises the alarm."""
        if entry.round <= self.tally.restart_round:
            return
        reward = values[events.METRIC]
        low, high = self.created.reward_bounds or (-math.inf, math.inf)
        breach = self.book.breach_by(reward, entry.is_learner)
        if not low <= reward <= high:
            breach = f"a reward of {reward:g}, outside of the declared {low:g} to {high:g}"
        if breach is not None and not self.book.is_alarmed:
            self._alarm(event, breach)

    def _alarm(self, event: Event, text: str) -> None:
        self.book.is_alarmed = self.tally.is_refuted = True
        self.tally.alarms.append((event.number, text))

    def _void(self, event: Event, voided: events.Voided) -> None:
        """A round that was not played as decided: its reward is that of what was played."""
        within, entry = self.created.confirm_within, self.find(voided.decision_id)
        is_late = within is not None and entry is not None and event.time > entry.time + within
        entry = self._voidable(event, voided)
        if is_late:
            # It stands as decided, and is not learned.
            if entry is not None:
                self.tally.voided += 1
                self._drop(entry)
            self._confirmations.condemn(voided.decision_id)
            self._alarm(event, "a round was voided so late that rewards may have influenced it")
        elif entry is not None:
            self._move(entry, int(voided.action))

    def _move(self, entry: OpenRow, played: int) -> None:
        offered = entry.offered
        entry.features, entry.is_learner = offered.rows[played], played != offered.baseline
        entry.declared = None  # it was the mean of another row, perhaps
        self.tally.moved(was_learner=offered.is_learner, is_learner=entry.is_learner)
        self.tally.unproved += entry.is_learner
        # A restart has charged all rounds before it.
        if entry.round > self.tally.restart_round:
            self.book.move(offered, played)

    def _played_fault(self, entry: OpenRow | None, voided: events.Voided) -> str:
        count = 0 if entry is None else len(entry.offered.rows)
        if type(voided.action) is int and 0 <= voided.action < count:
            return ""
        return f"there are {count} actions, and {voided.action!r:.40} is none of them"

    def _answer(self, event: Event, answer: events.Acknowledged) -> None:
        """A person answered the alarm: by a restart, everything learned is forgotten."""
        if not self.book.is_alarmed:
            self.findings.add(event.number, "alarm", "an alarm was answered, but none is on")
        if not answer.reason.strip():
            self.findings.add(event.number, "alarm", "an alarm was answered without a reason")
        if answer.response != "stay":
            refusal = self.book.restart(keep_promise=answer.response == "relearn")
            if refusal is not None:
                self.findings.add(event.number, "alarm", f"a restart is not possible: {refusal}")
                return
            self.stop_teaching()
            self.tally.is_refuted = False
            self._confirmations.restart()
        self.tally.answers.append((event.number, self.tally.decisions, answer))

    def _check_action(self, decision: events.RowsRound, problems: RoundProblems) -> None:
        if decision.source == "learner":
            if decision.action != decision.certificate.proposal:
                problems.add("action", "the learner played another action than the one that was proved safe")
        elif decision.action != decision.request.baseline:
            problems.add(
                "action", f"the baseline is action {decision.request.baseline}, but {decision.action} was played"
            )

    def _rows_of(self, decision: events.RowsRound, problems: RoundProblems) -> Matrix | None:
        if isinstance(self.book, ArmChecks):
            return np.eye(self.book.arms)
        request = decision.request
        if request.catalogue is not None and request.catalogue not in self._catalogues:
            problems.add("catalogue", f"its catalogue {request.catalogue[:12]} was not written before it")
            return None
        rows = self._catalogues[request.catalogue] if request.catalogue is not None else _rows(request.features or [])
        if rows.ndim != 2 or rows.shape[1] != self.book.dim or not np.isfinite(rows).all():
            problems.add("features", f"features must be finite rows of {self.book.dim} numbers")
            return None
        return rows


def _is_within(round_: RecordedRound, problems: RoundProblems) -> bool:
    count = len(round_.rows)
    is_fine = 0 <= round_.action < count and 0 <= round_.proposal < count and -1 <= round_.baseline < count
    if not is_fine:
        problems.add("action", f"there are {count} actions, but another one is named")
    return is_fine


def _rows(values: Any) -> Matrix:
    return np.array(values, dtype=np.float64)


class ConfirmationChecks:
    """Follows the rounds that wait to be confirmed; `book` is told how many are charged."""

    def __init__(self, created: events.Created, book: Any, findings: Findings) -> None:
        self._within, self._findings = created.confirm_within, findings
        self._book = book if isinstance(book, LinearChecks) else None
        self._due: dict[str, tuple[int, float]] = {}  # in the order of the decisions: round, and when it is due
        self._charged: set[str] = set()
        self._condemned: set[str] = set()  # voided too late: charged whatever is said of them

    def take(self, event: Event, record: Record) -> None:
        """Check what one event means for them, before the event itself is judged."""
        if isinstance(record, events.Confirmed):
            if not record.decision_ids or not all(self._awaits(one) for one in record.decision_ids):
                self._findings.add(event.number, "confirmed", "it confirms a round that does not wait for it")
            self._release(*record.decision_ids)
        elif isinstance(record, events.Overdue):
            self._overdue(event, record)
        elif isinstance(record, events.Voided) or (isinstance(record, events.Reward) and not record.refused):
            self._release(record.decision_id)
        elif isinstance(record, events.RowsRound):
            self._check_due(event)
            if self._within is not None and record.source == "learner":
                self._due[record.decision_id] = record.round, event.time + self._within

    def condemn(self, decision_id: str) -> None:
        """Charge a round for good, of which something was said so late that rewards may have influenced it."""
        self._condemned.add(decision_id)
        self._tell()

    def restart(self) -> None:
        """After a restart all rounds before it are charged, or forgotten."""
        self._due.clear()
        self._charged.clear()
        self._condemned.clear()
        self._tell()

    def _overdue(self, event: Event, record: events.Overdue) -> None:
        for decision_id, number in record.decisions:
            round_, due = self._due.pop(decision_id, (0, 0.0))
            if round_ != number or event.time < due:
                text = f"round {number} is charged at its worst, but was confirmed, or is not due yet"
                self._findings.add(event.number, "overdue", text)
            self._charged.add(decision_id)
        self._tell()

    def _check_due(self, event: Event) -> None:
        """The oldest is due first, for times never run backwards."""
        round_, due = next(iter(self._due.values()), (0, event.time + 1.0))
        if due <= event.time:
            text = f"round {round_} was not confirmed in time, and is not counted at its worst"
            self._findings.add(event.number, "overdue", text)

    def _awaits(self, decision_id: str) -> bool:
        return decision_id in self._due or decision_id in self._charged

    def _release(self, *decision_ids: str) -> None:
        for decision_id in decision_ids:
            self._due.pop(decision_id, None)
            self._charged.discard(decision_id)
        self._tell()

    def _tell(self) -> None:
        if self._book is not None:
            self._book.unplayed = len(self._charged) + len(self._condemned)

"""From the first event to the last: what was decided when, what was learned in which order, and whether it fits."""

import hashlib
import math
from typing import Any

import numpy as np

from surefoot.audit.arm_checks import ArmChecks
from surefoot.audit.chain import HashChain
from surefoot.audit.compensated_sums import Matrix, Vector
from surefoot.audit.confirmation_checks import ConfirmationChecks
from surefoot.audit.declarations import ARMS, GUARDS, LARGEST, LINEAR, faults, read_linear
from surefoot.audit.findings import AuditCounts, Findings
from surefoot.audit.guard_checks import GuardChecks
from surefoot.audit.learned_rewards import LearnedRewards
from surefoot.audit.linear_checks import LinearChecks
from surefoot.audit.private_checks import PrivateChecks
from surefoot.audit.recorded_round import RecordedRound, RoundProblems, read_payload, read_round
from surefoot.audit.snapshot_checks import snapshot_faults
from surefoot.journal import View
from surefoot.journal.events import Event
from surefoot.rounds import events

OF_CONFIRMATIONS = (events.CONFIRMED, events.OVERDUE)
# Written out again: the audit takes no rule from the code that it audits.
NEXT_MODES = {"shadow": ("guarded", "paused"), "guarded": ("paused",), "paused": ("guarded",)}


class Auditor:
    """The audit of one experiment, event by event."""

    def __init__(self, view: View) -> None:
        self._attachment = view.attachment
        self.findings, self.tally = Findings(), AuditCounts()
        self.chain = HashChain(view.name, self.findings)
        self.private = PrivateChecks(view, self.findings, self.tally)
        self.created: events.Created | None = None
        self._book: LinearChecks | ArmChecks | None = None
        self.guard: GuardChecks | None = None
        self._mode = self._decides_by = ""  # the mode and the policy as they were declared
        self._catalogues: dict[str, Matrix] = {}
        self._learning: LearnedRewards | None = None
        self._confirmations: ConfirmationChecks | None = None

    @property
    def is_sealed(self) -> bool:
        """Whether the experiment keeps private texts beside its chain."""
        return self.created is not None and self.created.is_sealed

    def take(self, event: Event) -> None:
        """Check one event."""
        # What cannot be read is a link of the chain all the same.
        self.chain.follow(event)
        self.tally.events += 1
        self._check_time(event)
        try:
            record = read_payload(event.kind, event.payload, is_pair=self.guard is not None)
        except ValueError as error:
            self.findings.add(event.number, "payload", f"it cannot be read as a {event.kind}: {error}")
            return
        if event.kind != events.CREATED and self._book is None and self.guard is None:
            if self.created is not None:  # its policy cannot be audited, which was said before
                return
            self.findings.add(event.number, "created", f"a {event.kind} must come after the experiment was created")
            return
        try:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # what leaves the floats proves nothing
                self._take(event, record)
        except (ValueError, ArithmeticError, LookupError, TypeError) as error:
            self.findings.add(event.number, "numbers", f"its numbers cannot be worked with: {error}")

    def _take(self, event: Event, record: Any) -> None:
        shared = (events.CREATED, events.MODE, events.SNAPSHOT, events.ERASED)
        if self.is_sealed:
            self.private.take(event, record)
        if self._confirmations is not None:
            self._confirmations.take(event, record)
        if self.guard is not None and event.kind not in shared:
            self.guard.take(event, record, self._mode)
        elif event.kind in OF_CONFIRMATIONS:
            return
        elif (take := getattr(self, f"_take_{event.kind}", None)) is not None:
            take(event, record)
        else:
            text = f"only shards that share a floor have a {event.kind}: audit their journals together"
            self.findings.add(event.number, "kind", text)

    def _check_time(self, event: Event) -> None:
        if math.isnan(self.tally.first_time):
            self.tally.first_time = self.tally.last_time = event.time
        if event.time < self.tally.last_time:
            seconds = self.tally.last_time - event.time
            self.findings.add(event.number, "time", f"it was written {seconds:.6g} s before the event that it follows")
        self.tally.last_time = event.time

    def _take_created(self, event: Event, created: events.Created) -> None:
        if self.created is not None or event.number != 1:
            self.findings.add(event.number, "created", "an experiment is created once, by event 1")
        if self.created is not None:
            return
        self.created, self._mode, self._decides_by = created, created.mode, created.policy
        self.tally.modes.append((event.number, created.mode))
        for text in faults(created):
            self.findings.add(event.number, "settings", text)
        if created.policy in LINEAR:
            self._book = LinearChecks(read_linear(created.policy, created.settings))
        elif created.policy in ARMS:
            self._book = ArmChecks(created.policy, created.settings)
        elif created.policy in GUARDS:
            self.guard = GuardChecks(created, self.findings, self.tally)
        else:
            text = f"the audit knows {', '.join((*LINEAR, *ARMS, *GUARDS))}, but this is {created.policy!r}"
            self.findings.add(event.number, "policy", text)
        self._confirmations = ConfirmationChecks(created, self._book, self.findings)
        if self._book is not None:
            self._learning = LearnedRewards(created, self._book_in, self._examine, self.findings, self.tally)
        if created.history is not None:
            self._learn_history(event, created.history)

    def _learn_history(self, event: Event, history: events.History) -> None:
        if not isinstance(self._book, LinearChecks) or len(history.features) != len(history.rewards):
            self.findings.add(event.number, "history", "it must hold one reward for each row, for a linear policy")
            return
        rows = _rows(history.features)
        if rows.ndim != 2 or rows.shape[1] != self._book.dim:
            self.findings.add(event.number, "history", f"its rows must have {self._book.dim} numbers each")
            return
        if np.linalg.norm(rows, axis=1).max() > self._book.longest or np.abs(history.rewards).max() > LARGEST:
            self.findings.add(event.number, "history", "a row or a reward is beyond what was declared")
        assert self.created is not None
        for low, high in filter(None, (self.created.reward_bounds, self.created.settings.get("reward_bounds"))):
            if not low <= min(history.rewards) <= max(history.rewards) <= high:
                self.findings.add(event.number, "history", f"a reward lies outside of the declared {low:g} to {high:g}")
        for row, reward in zip(rows, history.rewards, strict=True):
            self._book.remember(row, reward)

    def _take_catalogue(self, event: Event, catalogue: events.CatalogueRows) -> None:
        rows = _rows(catalogue.rows)
        own = hashlib.sha256(repr(rows.shape).encode() + rows.tobytes()).hexdigest()
        if own != catalogue.digest or event.key != f"c:{own}":
            self.findings.add(event.number, "catalogue", "its rows are not those that its digest was taken of")
        self._catalogues[catalogue.digest] = rows

    def _take_mode(self, event: Event, mode: events.Mode) -> None:
        if mode.mode not in NEXT_MODES[self._mode]:
            self.findings.add(event.number, "mode", f"an experiment cannot go from {self._mode!r} to {mode.mode!r}")
        self._mode = mode.mode
        self.tally.modes.append((event.number, mode.mode))

    def _take_erased(self, event: Event, erased: events.Erased) -> None:
        if not self.is_sealed:
            self.findings.add(event.number, "private", "nothing can be erased from an experiment that is not sealed")
        self.private.erased(event, erased)

    def _take_snapshot(self, event: Event, snapshot: events.Snapshot) -> None:
        self.tally.snapshots += 1
        if (snapshot.number, snapshot.hash) != (event.number - 1, event.previous):
            self.findings.add(event.number, "snapshot", "a snapshot must be of the state at the event before it")
        # One that was removed since, for newer ones, is nobody's start any more.
        data = self._attachment(snapshot.digest)
        # After any other finding, what the audit itself has counted may be beside the point.
        is_clean = len(self.findings) == self.findings.counts["snapshot"]
        if data is not None and self.created is not None and is_clean:
            for text in snapshot_faults(data, event, self.created, self._mode, self.tally, self._decides_by):
                self.findings.add(event.number, "snapshot", text)

    def _take_round(self, event: Event, decision: events.RowsRound) -> None:
        problems = RoundProblems()
        rows = self._rows_of(decision, problems)
        round_ = None if rows is None else read_round(decision, rows)
        self._check_protocol(event, decision, problems)
        if rows is None or round_ is None or not _is_within(round_, problems):
            self._report(event, problems)
            return
        assert self._book is not None
        assert self._learning is not None
        self.tally.count(event.number, event.time, decision, round_)
        was_alarmed = self._book.is_alarmed
        self._book.judge(round_, problems)
        if self._book.is_alarmed and not was_alarmed:
            self.tally.alarms.append((event.number, "the data contradict what was declared"))
        self.tally.is_refuted = self._book.is_alarmed
        # After `judge`: whether the baseline has moved is known once this round is counted.
        teaches = self._book.teaches(round_.is_learner) and not decision.is_fallback
        is_new = self._learning.wait(
            decision,
            event.time,
            rows[round_.action],
            is_learner=round_.is_learner,
            teaches=teaches,
            declared=self._book.declared_mean(round_),
            offered=round_.offered,
        )
        if not is_new:
            problems.add("doubled", f"decision {decision.decision_id!r} was made before")
        self._report(event, problems)

    def _book_in(self, features: Vector, reward: float, is_learner: bool, declared: float | None) -> None:
        assert self._book is not None
        was_alarmed = self._book.is_alarmed
        self._book.learn(features, reward, is_learner, declared)
        if self._book.is_alarmed and not was_alarmed:
            self.tally.is_refuted = True
            self.tally.alarms.append((self.tally.events, "rewards do not follow one theta any more"))

    def _examine(self, event: int, reward: float, is_learner: bool) -> None:
        """A reward that contradicts what was declared raises the alarm."""
        assert self._book is not None
        assert self.created is not None
        low, high = self.created.reward_bounds or (-math.inf, math.inf)
        breach = self._book.breach_by(reward, is_learner)
        if not low <= reward <= high:
            breach = f"a reward of {reward:g}, outside of the declared {low:g} to {high:g}"
        if breach is not None and not self._book.is_alarmed:
            self._book.is_alarmed = self.tally.is_refuted = True
            self.tally.alarms.append((event, breach))

    def _take_abandoned(self, event: Event, abandoned: events.Abandoned) -> None:
        assert self._learning is not None
        self._learning.abandon(event, abandoned)

    def _take_corrected(self, event: Event, corrected: events.Corrected) -> None:
        assert self._learning is not None
        self._learning.correct(event, corrected)

    def _take_voided(self, event: Event, voided: events.Voided) -> None:
        assert self._book is not None
        assert self._learning is not None
        assert self.created is not None
        if self._learning.is_late(event, voided.decision_id, self.created.confirm_within):
            assert self._confirmations is not None
            self._learning.void_late(event, voided)
            self._confirmations.condemn(voided.decision_id)
            self._book.is_alarmed = self.tally.is_refuted = True
            self.tally.alarms.append((event.number, "a round was voided so late that rewards may have influenced it"))
            return
        moved = self._learning.void(event, voided)
        if moved is not None:
            self._book.move(*moved)

    def _take_acknowledged(self, event: Event, answer: events.Acknowledged) -> None:
        """A person answered the alarm: by a restart, everything learned is forgotten."""
        assert self._book is not None
        assert self._learning is not None
        if not self._book.is_alarmed:
            self.findings.add(event.number, "alarm", "an alarm was answered, but none is on")
        if not answer.reason.strip():
            self.findings.add(event.number, "alarm", "an alarm was answered without a reason")
        if answer.response != "stay":
            refusal = self._book.restart(keep_promise=answer.response == "relearn")
            if refusal is not None:
                self.findings.add(event.number, "alarm", f"a restart is not possible: {refusal}")
                return
            self._learning.stop_teaching()
            self.tally.is_refuted = False
            assert self._confirmations is not None
            self._confirmations.restart()
        self.tally.answers.append((event.number, self.tally.decisions, answer))

    def _check_protocol(self, event: Event, decision: events.RowsRound, problems: RoundProblems) -> None:
        """Numbering, mode, and who may play in it."""
        if decision.round != self.tally.decisions + 1:
            problems.add("round", f"round {self.tally.decisions + 1} is next, but this is round {decision.round}")
        # A sealed one is found beside the chain.
        if event.key != (None if self.is_sealed else f"d:{decision.decision_id}"):
            problems.add("key", f"the key of decision {decision.decision_id!r} is {event.key!r}")
        if decision.mode != self._mode:
            problems.add("mode", f"the experiment is in mode {self._mode!r}, but the decision says {decision.mode!r}")
        must_hold = decision.mode != "guarded" or decision.is_fallback
        if decision.is_held != must_hold:
            word = "must" if must_hold else "must not"
            problems.add("held", f"in mode {decision.mode!r} the baseline {word} be held")
        if decision.source == "learner":
            if decision.is_held or must_hold:
                problems.add("held", "the learner played where the baseline was to be held")
            if decision.action != decision.certificate.proposal:
                problems.add("action", "the learner played another action than the one that was proved safe")
        elif decision.action != decision.request.baseline:
            problems.add(
                "action", f"the baseline is action {decision.request.baseline}, but {decision.action} was played"
            )

    def _take_reward(self, event: Event, reward: events.Reward) -> None:
        assert self._learning is not None
        self._learning.reward(event, reward)

    def _take_settled(self, event: Event, settled: events.Settled) -> None:
        assert self._learning is not None
        self._learning.close(event, settled)

    def _rows_of(self, decision: events.RowsRound, problems: RoundProblems) -> Matrix | None:
        assert self._book is not None
        if isinstance(self._book, ArmChecks):
            return np.eye(self._book.arms)
        asked = decision.request
        if asked.catalogue is not None and asked.catalogue not in self._catalogues:
            problems.add("catalogue", f"its catalogue {asked.catalogue[:12]} was not written before it")
            return None
        rows = self._catalogues[asked.catalogue] if asked.catalogue is not None else _rows(asked.features or [])
        if rows.ndim != 2 or rows.shape[1] != self._book.dim or not np.isfinite(rows).all():
            problems.add("features", f"features must be finite rows of {self._book.dim} numbers")
            return None
        return rows

    def _report(self, event: Event, problems: RoundProblems) -> None:
        for what, text in problems.found:
            self.findings.add(event.number, what, text)


def _is_within(round_: RecordedRound, problems: RoundProblems) -> bool:
    count = len(round_.rows)
    is_fine = 0 <= round_.action < count and 0 <= round_.proposal < count and -1 <= round_.baseline < count
    if not is_fine:
        problems.add("action", f"there are {count} actions, but another one is named")
    return is_fine


def _rows(values: Any) -> Matrix:
    return np.array(values, dtype=np.float64)

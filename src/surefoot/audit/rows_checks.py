"""One experiment over rows or arms, checked: what was decided when, what was learned in which order, and alarms."""

import hashlib
import math
from typing import Any

import numpy as np

from surefoot.audit.arm_checks import ArmChecks
from surefoot.audit.compensated_sums import Matrix, Vector
from surefoot.audit.confirmation_checks import ConfirmationChecks
from surefoot.audit.declarations import LARGEST, LINEAR, read_linear
from surefoot.audit.findings import AuditCounts, Findings
from surefoot.audit.learned_rewards import LearnedRewards
from surefoot.audit.linear_checks import LinearChecks
from surefoot.audit.recorded_round import RecordedRound, RoundProblems, read_round
from surefoot.journal.events import Event
from surefoot.rounds import Record, events


class RowsChecks:
    """Everything that the events of an experiment over rows or arms say.

    book: what its rounds and rewards add up to, by which each decision is judged
    """

    coins = None

    def __init__(self, created: events.Created, findings: Findings, tally: AuditCounts) -> None:
        self.created, self.findings, self.tally = created, findings, tally
        self.book = self._new_book()
        self.learning = LearnedRewards(created, self._book_in, self._examine, findings, tally)
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
            case events.RowsRound():
                self._judge(event, record, mode)
            case events.Reward():
                self.learning.reward(event, record)
            case events.Settled():
                self.learning.close(event, record)
            case events.Abandoned():
                self.learning.abandon(event, record)
            case events.Corrected():
                self.learning.correct(event, record)
            case events.Voided():
                self._void(event, record)
            case events.Acknowledged():
                self._answer(event, record)
            case events.Confirmed() | events.Overdue():
                pass
            case _:
                text = f"only shards that share a floor have a {event.kind}: audit their journals together"
                self.findings.add(event.number, "kind", text)

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

    def _judge(self, event: Event, decision: events.RowsRound, mode: str) -> None:
        problems = RoundProblems()
        rows = self._rows_of(decision, problems)
        round_ = None if rows is None else read_round(decision, rows)
        self._check_protocol(event, decision, mode, problems)
        if rows is None or round_ is None or not _is_within(round_, problems):
            problems.report(event, self.findings)
            return
        self.tally.count(event, decision, round_.margin, len(round_.proof.pieces))
        was_alarmed = self.book.is_alarmed
        self.book.judge(round_, problems)
        if self.book.is_alarmed and not was_alarmed:
            self.tally.alarms.append((event.number, "the data contradict what was declared"))
        self.tally.is_refuted = self.book.is_alarmed
        # After `judge`: whether the baseline has moved is known once this round is counted.
        teaches = self.book.teaches(round_.is_learner) and not decision.is_fallback
        is_new = self.learning.wait(
            decision,
            event.time,
            rows[round_.action],
            is_learner=round_.is_learner,
            teaches=teaches,
            declared=self.book.declared_mean(round_),
            offered=round_.offered,
        )
        if not is_new:
            problems.add("doubled", f"decision {decision.decision_id!r} was made before")
        problems.report(event, self.findings)

    def _book_in(self, features: Vector, reward: float, is_learner: bool, declared: float | None) -> None:
        was_alarmed = self.book.is_alarmed
        self.book.learn(features, reward, is_learner, declared)
        if self.book.is_alarmed and not was_alarmed:
            self.tally.is_refuted = True
            self.tally.alarms.append((self.tally.events, "rewards do not follow one theta any more"))

    def _examine(self, event: int, reward: float, is_learner: bool) -> None:
        """A reward that contradicts what was declared raises the alarm."""
        low, high = self.created.reward_bounds or (-math.inf, math.inf)
        breach = self.book.breach_by(reward, is_learner)
        if not low <= reward <= high:
            breach = f"a reward of {reward:g}, outside of the declared {low:g} to {high:g}"
        if breach is not None and not self.book.is_alarmed:
            self.book.is_alarmed = self.tally.is_refuted = True
            self.tally.alarms.append((event, breach))

    def _void(self, event: Event, voided: events.Voided) -> None:
        if self.learning.is_late(event, voided.decision_id, self.created.confirm_within):
            self.learning.void_late(event, voided)
            self._confirmations.condemn(voided.decision_id)
            self.book.is_alarmed = self.tally.is_refuted = True
            self.tally.alarms.append((event.number, "a round was voided so late that rewards may have influenced it"))
            return
        moved = self.learning.void(event, voided)
        if moved is not None:
            self.book.move(*moved)

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
            self.learning.stop_teaching()
            self.tally.is_refuted = False
            self._confirmations.restart()
        self.tally.answers.append((event.number, self.tally.decisions, answer))

    def _check_protocol(self, event: Event, decision: events.RowsRound, mode: str, problems: RoundProblems) -> None:
        """Numbering, mode, and who may play in it."""
        if decision.round != self.tally.decisions + 1:
            problems.add("round", f"round {self.tally.decisions + 1} is next, but this is round {decision.round}")
        # A sealed one is found beside the chain.
        if event.key != (None if self.created.is_sealed else f"d:{decision.decision_id}"):
            problems.add("key", f"the key of decision {decision.decision_id!r} is {event.key!r}")
        if decision.mode != mode:
            problems.add("mode", f"the experiment is in mode {mode!r}, but the decision says {decision.mode!r}")
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

"""The chain of one shard, checked: each decision against the frozen set and the amount of its lease."""

import copy
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np

from surefoot import records
from surefoot.audit.audit_ledger import AuditLedger
from surefoot.audit.auditor import Auditor
from surefoot.audit.compensated_sums import Vector
from surefoot.audit.declarations import Declarations, read_linear
from surefoot.audit.expected_heads import HeadSearch
from surefoot.audit.linear_checks import LinearChecks
from surefoot.audit.proof_checker import LinearFact
from surefoot.audit.recorded_round import RecordedRound, RoundProblems
from surefoot.journal.events import Event


@dataclass
class FrozenBook:
    """What the rounds merged so far say of theta, as it stood when a lease was granted."""

    book: LinearChecks
    record: records.LeaseRecord


@dataclass
class Segment:
    """What a shard did under one lease, by its own chain."""

    rounds: list[records.HandedRound]
    rewards: list[tuple[int, float | None]]
    through: float
    fact: LinearFact | None  # what its certificates prove of them; None where nothing was played
    is_refuted: bool  # the alarm was on
    untimed: bool


class LeasedChecks(LinearChecks):
    """Everything that the events of a shard say, lease after lease."""

    def __init__(self, declared: Declarations) -> None:
        super().__init__(declared)
        self._shared, self.is_leased = declared, False
        self._between: list[RecordedRound] = []  # rounds of the baseline since the last hand-in

    def lease(self, frozen: FrozenBook) -> None:
        """Begin an empty ledger on the set of that moment; rounds since the last hand-in count in it."""
        amount = frozen.record.amount
        self.declared = replace(self._shared, constraint="reserve" if amount > 0 else "cumulative", amount=amount)
        self.estimate, self._likelihood = frozen.book.estimate, frozen.book._likelihood
        self._seen = frozen.book._seen  # what was offered to any shard
        self._begin_ledger(frozen.book.account)
        self.is_leased = True
        between, self._between = self._between, []
        for round_ in between:
            self._count_baseline(round_)

    def end(self) -> LinearFact | None:
        """End the lease; what its rounds are worth at least."""
        fact = None if self._proved is None else self._proved.line(self.declared.knowledge.theta_bound)
        self._begin_ledger(self.account)
        self.is_leased = False
        return fact

    def _begin_ledger(self, before: AuditLedger) -> None:
        self.account, self._proved = before.emptied(), None

    def _count_baseline(self, round_: RecordedRound) -> None:
        known, displaced = self.declared.known(round_.known), round_.offered.displaced
        self._carry(round_, displaced, known, displaced, 0.0)
        self.account.play(displaced, displaced, known, is_learner=False)

    def judge(self, round_: RecordedRound, problems: RoundProblems) -> None:
        """Check one decision; without a lease the baseline is held."""
        if self.is_leased:
            super().judge(round_, problems)
            return
        if round_.is_learner:
            problems.add("lease", "the learner played without a lease")
        super().judge(replace(round_, is_held=True), problems)
        self._between.append(round_)

    def _check_proposal(self, round_: RecordedRound, problems: RoundProblems) -> None:
        """A proposal may come from anywhere: rewards that are not merged yet steer it."""


class ShardAuditor(Auditor):
    """The audit of one shard, fed up to its next lease as the hub grants it."""

    _book: LeasedChecks | None

    def __init__(self, view: Any, expected: HeadSearch) -> None:
        super().__init__(view)
        self._expected = expected
        self._events = view.read(verify=False)
        self._next: Event | None = None
        self.segments: dict[int, Segment] = {}
        self._granted: FrozenBook | None = None
        self._since: list[records.HandedRound] = []
        self._rewards: list[tuple[int, float | None]] = []
        self._rounds: dict[str, int] = {}

    def advance(self, granted: FrozenBook | None) -> None:
        """Check events up to the next lease, which this one is the last to come before."""
        self._granted = granted
        if self._next is not None:
            self.take(self._next)
            self._next = None
        for event in self._events:
            if event.kind == records.LEASED:
                self._next = event
                return
            self.take(event)

    def take(self, event: Event) -> None:
        """Check one event."""
        self._expected.take(event, self.findings)
        super().take(event)

    @property
    def waits_for(self) -> int | None:
        """The number of the lease that comes next in its chain."""
        if self._next is None:
            return None
        return msgspec.json.decode(self._next.payload, type=records.LeaseRecord).number

    def _take_created(self, event: Event, created: records.Created) -> None:
        super()._take_created(event, msgspec.structs.replace(created, policy="SafeLUCB"))
        if self.created is not None and self._book is not None:
            self._book = LeasedChecks(read_linear("SafeLUCB", self.created.settings))

    def _take_leased(self, event: Event, record: records.LeaseRecord) -> None:
        if self._granted is None or self._granted.record != record:
            self.findings.add(event.number, "lease", f"no such lease {record.number} was granted where the shards meet")
            return
        assert self._book is not None
        if self._book.is_leased:
            self.findings.add(event.number, "lease", "a lease must be handed in before the next begins")
        self._book.lease(self._granted)

    def _take_lease_ended(self, event: Event, record: records.LeaseEnded) -> None:
        assert self._book is not None
        if not self._book.is_leased or self._granted is None or record.lease != self._granted.record.number:
            self.findings.add(event.number, "lease", f"lease {record.lease} ended, which the shard does not have")
        self.segments[record.lease] = Segment(
            self._since, self._rewards, event.time, self._book.end(), self.tally.is_refuted, record.untimed
        )
        self._since, self._rewards = [], []

    def _take_decision(self, event: Event, decision: records.DecisionRecord) -> None:
        super()._take_decision(event, decision)
        rows, asked = self._rows_of(decision, RoundProblems()), decision.asked
        if rows is None or asked.baseline is None or max(decision.action, asked.baseline) >= len(rows):
            return
        self._rounds[decision.decision_id] = decision.round
        self._since.append(
            records.HandedRound(
                number=decision.round,
                moment=event.time,
                played=rows[decision.action].tolist(),
                displaced=rows[asked.baseline].tolist(),
                is_learner=decision.source == "learner",
                baseline_reward=asked.baseline_reward,
            )
        )

    def _take_reward(self, event: Event, reward: records.RewardRecord) -> None:
        super()._take_reward(event, reward)
        assert self.created is not None
        if reward.refused is None and self.created.reward_window is None and reward.decision_id in self._rounds:
            self._rewards.append((self._rounds[reward.decision_id], float(reward.value)))

    def _take_closed(self, event: Event, closed: records.Closed) -> None:
        super()._take_closed(event, closed)
        self._rewards += [(learned.round, learned.value) for learned in closed.learned]

    def _take_abandoned(self, event: Event, abandoned: records.Abandoned) -> None:
        super()._take_abandoned(event, abandoned)
        if abandoned.decision_id in self._rounds:
            self._rewards.append((self._rounds[abandoned.decision_id], None))

    def _take_voided(self, event: Event, voided: records.Voided) -> None:
        self.findings.add(event.number, "voided", "a round of a shard cannot be moved: it may have been handed in")

    def _book_in(self, features: Vector, reward: float, is_learner: bool, declared: float | None) -> None:
        """A shard proves nothing by its own rewards."""


def frozen_book(book: LinearChecks, record: records.LeaseRecord) -> FrozenBook:
    """A copy of what was learned: the original goes on learning."""
    kept = copy.copy(book)
    kept.estimate, kept._likelihood = copy.deepcopy(book.estimate), copy.deepcopy(book._likelihood)
    kept.account = copy.deepcopy(book.account)
    return FrozenBook(kept, record)


def same_rounds(ours: list[records.HandedRound], theirs: list[records.HandedRound]) -> bool:
    """Whether two lists tell of the same rounds, to the bit."""
    return len(ours) == len(theirs) and all(
        msgspec.structs.astuple(one) == msgspec.structs.astuple(other) for one, other in zip(ours, theirs, strict=True)
    )


def question_of(rounds: list[records.HandedRound], alpha: float, dim: int) -> tuple[Vector, float]:
    """What rounds add up to, z + alpha w - (1 - alpha) v, and the size of what was added."""
    total, size = np.zeros(dim), 0.0
    for made in rounds:
        played, displaced = np.array(made.played), np.array(made.displaced)
        total += played - (1 - alpha) * displaced if made.is_learner else alpha * displaced
        size += float(np.linalg.norm(played) + np.linalg.norm(displaced))
    return total, size

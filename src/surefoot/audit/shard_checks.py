"""The chain of one shard, checked: each decision against the frozen set and the amount of its lease."""

import copy
from dataclasses import dataclass, replace

import numpy as np

from surefoot import records
from surefoot.audit.audit_ledger import AuditLedger
from surefoot.audit.compensated_sums import Vector
from surefoot.audit.declarations import Declarations, read_linear
from surefoot.audit.linear_checks import LinearChecks
from surefoot.audit.proof_checker import LinearFact
from surefoot.audit.recorded_round import RecordedRound, RoundProblems
from surefoot.audit.shard_auditor import ShardAuditor
from surefoot.journal.events import Event


@dataclass
class FrozenBook:
    """What the rounds merged so far say of theta, as it stood when a lease was granted."""

    book: LinearChecks
    record: records.LeaseRecord


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


class FloorShardAuditor(ShardAuditor):
    """The audit of one shard of a linear policy."""

    policy, leased, lease = "SafeLUCB", records.LEASED, records.LeaseRecord
    _book: LeasedChecks | None

    def _take_created(self, event: Event, created: records.Created) -> None:
        super()._take_created(event, created)
        if self.created is not None and self._book is not None:
            self._book = LeasedChecks(read_linear(self.policy, self.created.settings))

    def _take_leased(self, event: Event, record: records.LeaseRecord) -> None:
        if self._is_granted(event, record):
            assert self._book is not None
            self._check_handed_in(event, is_leased=self._book.is_leased)
            self._book.lease(self._granted)

    def _take_lease_ended(self, event: Event, record: records.LeaseEnded) -> None:
        assert self._book is not None
        is_leased = self._book.is_leased
        self._end_segment(event, record, is_leased=is_leased, fact=self._book.end())

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


def question_of(rounds: list[records.HandedRound], alpha: float, dim: int) -> tuple[Vector, float]:
    """What rounds add up to, z + alpha w - (1 - alpha) v, and the size of what was added."""
    total, size = np.zeros(dim), 0.0
    for made in rounds:
        played, displaced = np.array(made.played), np.array(made.displaced)
        total += played - (1 - alpha) * displaced if made.is_learner else alpha * displaced
        size += float(np.linalg.norm(played) + np.linalg.norm(displaced))
    return total, size

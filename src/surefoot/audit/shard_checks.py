"""The chain of one shard, checked: each decision against the frozen set and the amount of its lease."""

import copy
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from surefoot.audit.audit_ledger import AuditLedger
from surefoot.audit.compensated_sums import Vector
from surefoot.audit.declarations import Declarations, read_linear
from surefoot.audit.linear_checks import LinearChecks
from surefoot.audit.proof_checker import LinearFact
from surefoot.audit.rebuilt_gram import EPS
from surefoot.audit.recorded_round import OfferedRound, RecordedRound, RoundProblems
from surefoot.audit.shard_auditor import ShardAuditor
from surefoot.journal.events import Event
from surefoot.rounds import events


@dataclass
class FrozenBook:
    """What the rounds merged so far say of theta, as it stood when a lease was granted."""

    book: LinearChecks
    record: events.Lease


class LeasedChecks(LinearChecks):
    """Everything that the events of a shard say, lease after lease."""

    def __init__(self, declared: Declarations) -> None:
        super().__init__(declared)
        self._shared, self.is_leased = declared, False
        self._between: list[RecordedRound] = []  # rounds of the baseline since the last hand-in
        self._before: LinearFact | None = None  # what was proved when a round was moved, until the learner plays again
        self.moved = 0.0  # what that may have cost

    def lease(self, frozen: FrozenBook) -> None:
        """Begin an empty ledger on the set of that moment; rounds since the last hand-in count in it."""
        (amount,) = frozen.record.amounts
        self.declared = replace(self._shared, constraint="reserve" if amount > 0 else "cumulative", amount=amount)
        self.estimate, self._likelihood = frozen.book.estimate, frozen.book._likelihood
        self._seen = frozen.book._seen  # what was offered to any shard
        self._begin_ledger(frozen.book.account)
        self.is_leased = True
        between, self._between = self._between, []
        for round_ in between:
            self._count_baseline(round_)

    def end(self) -> tuple[LinearFact | None, float]:
        """End the lease; what its rounds are worth at least, and what rounds that were moved may have cost."""
        fact, moved = self._fact(), self.moved
        self._begin_ledger(self.account)
        self.is_leased = False
        return fact, moved

    def _fact(self) -> LinearFact | None:
        bound = self.declared.knowledge.theta_bound
        since = None if self._proved is None else self._proved.line(bound)
        before = self._before
        if since is None or before is None:
            return since or before
        error = before.error + since.error
        return LinearFact(
            before.normal + since.normal, before.level + since.level, error, before.claimed + since.claimed
        )

    def _begin_ledger(self, before: AuditLedger) -> None:
        self.account, self._proved = before.emptied(), None
        self._before, self.moved = None, 0.0

    def move(self, decided: OfferedRound, played: int) -> None:
        """A round was not played as decided: what was proved is carried on, less what that can have cost."""
        alpha, bound, known = self.declared.alpha, self.declared.knowledge.theta_bound, self._fact()
        super().move(decided, played)
        if known is None:  # the alarm is on
            return
        was = _question(decided.rows[decided.action], decided.displaced, alpha, is_learner=decided.is_learner)
        now = _question(decided.rows[played], decided.displaced, alpha, is_learner=played != decided.baseline)
        change = was - now
        cost = bound * float(np.linalg.norm(change)) * (1 + 64 * EPS)
        least = -self.declared.amount - self.moved
        level, claimed = max(least, known.level), max(least, known.claimed)
        self._before = LinearFact(known.normal - change, level - cost, known.error, claimed - cost)
        self.moved += cost

    def _carry(
        self, round_: RecordedRound, b: Vector, known: tuple[float, float], question: Vector, own: float
    ) -> None:
        super()._carry(round_, b, known, question, own)
        if round_.is_learner and not self.is_alarmed:  # the whole question was proved anew
            self._before, self.moved = None, 0.0

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

    policy = "SafeLUCB"
    _book: LeasedChecks | None

    def _take_created(self, event: Event, created: events.Created) -> None:
        super()._take_created(event, created)
        if self.created is not None and self._book is not None:
            self._book = LeasedChecks(read_linear(self.policy, self.created.settings))

    def _take_leased(self, event: Event, record: events.Lease) -> None:
        if self._is_granted(event, record):
            assert self._book is not None
            self._check_handed_in(event, is_leased=self._book.is_leased)
            self._book.lease(self._granted)

    def _take_lease_ended(self, event: Event, record: events.LeaseEnded) -> None:
        assert self._book is not None
        is_leased, (fact, moved) = self._book.is_leased, self._book.end()
        self._end_segment(event, record, is_leased=is_leased, fact=fact, moved=moved)

    def _take_round(self, event: Event, decision: events.RowsRound) -> None:
        super()._take_round(event, decision)
        rows, asked = self._rows_of(decision, RoundProblems()), decision.request
        if rows is None or asked.baseline is None or max(decision.action, asked.baseline) >= len(rows):
            return
        self._rounds[decision.decision_id] = decision.round
        self._since.append(
            events.RowsHanded(
                number=decision.round,
                moment=event.time,
                played=rows[decision.action].tolist(),
                displaced=rows[asked.baseline].tolist(),
                is_learner=decision.source == "learner",
                baseline_reward=asked.baseline_reward,
            )
        )
        if decision.is_fallback:
            self._rewards.append((decision.round, None))

    def _take_reward(self, event: Event, reward: events.Reward) -> None:
        super()._take_reward(event, reward)
        assert self.created is not None
        if reward.refused is None and self.created.reward_window is None and reward.decision_id in self._rounds:
            values = {name: float(value) for name, value in reward.values.items()}
            self._rewards.append((self._rounds[reward.decision_id], values))

    def _take_corrected(self, event: Event, corrected: events.Corrected) -> None:
        super()._take_corrected(event, corrected)
        assert self.created is not None
        if self.created.reward_window is None:
            text = (
                f"the reward of {corrected.decision_id!r} was corrected, but without a window it is handed in at once"
            )
            self.findings.add(event.number, "corrected", text)

    def _take_settled(self, event: Event, settled: events.Settled) -> None:
        assert self._learning is not None
        came = [self._learning.value_of(window.decision_id) for window in settled.windows]
        super()._take_settled(event, settled)
        for window, value in zip(settled.windows, came, strict=True):
            self._rewards.append((window.round, {events.METRIC: value}))

    def _take_abandoned(self, event: Event, abandoned: events.Abandoned) -> None:
        super()._take_abandoned(event, abandoned)
        if abandoned.decision_id in self._rounds:
            self._rewards.append((self._rounds[abandoned.decision_id], None))

    def _take_voided(self, event: Event, voided: events.Voided) -> None:
        assert self._book is not None
        number = self._rounds.get(voided.decision_id, 0)
        if not (self._book.is_leased and self._since and number >= self._since[0].number):
            text = f"{voided.decision_id!r} was moved, but is not of the present lease: it was handed in"
            self.findings.add(event.number, "voided", text)
            return
        assert self._learning is not None
        moved = self._learning.void(event, voided)
        if moved is not None:
            self._book.move(*moved)
            offered, played = moved
            place, row = number - self._since[0].number, offered.rows[played].tolist()
            is_learner = played != offered.baseline
            self._since[place] = msgspec.structs.replace(self._since[place], played=row, is_learner=is_learner)

    def _book_in(self, features: Vector, reward: float, is_learner: bool, declared: float | None) -> None:
        """A shard proves nothing by its own rewards."""


def frozen_book(book: LinearChecks, record: events.Lease) -> FrozenBook:
    """A copy of what was learned: the original goes on learning."""
    kept = copy.copy(book)
    kept.estimate, kept._likelihood = copy.deepcopy(book.estimate), copy.deepcopy(book._likelihood)
    kept.account = copy.deepcopy(book.account)
    return FrozenBook(kept, record)


def _question(played: Vector, displaced: Vector, alpha: float, *, is_learner: bool) -> Vector:
    return played - (1 - alpha) * displaced if is_learner else alpha * displaced


def question_of(rounds: list[events.RowsHanded], alpha: float, dim: int) -> tuple[Vector, float]:
    """What rounds add up to, z + alpha w - (1 - alpha) v, and the size of what was added."""
    total, size = np.zeros(dim), 0.0
    for made in rounds:
        played, displaced = np.array(made.played), np.array(made.displaced)
        total += _question(played, displaced, alpha, is_learner=made.is_learner)
        size += float(np.linalg.norm(played) + np.linalg.norm(displaced))
    return total, size

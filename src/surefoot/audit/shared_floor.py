"""The audit of shards that share one floor: each chain by itself, what they handed in, and that leases add up.

The chain where they meet is followed event by event. It tells in which order rounds were merged, and so which set each
lease froze; the chain of a shard is checked against that set, up to its next lease.
"""

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from surefoot.audit.chain import HeadSearch
from surefoot.audit.compensated_sums import Vector
from surefoot.audit.confidence_sets import EPS
from surefoot.audit.declarations import Declarations, read_linear
from surefoot.audit.findings import AuditCounts, Findings
from surefoot.audit.ledger import AuditLedger
from surefoot.audit.linear_checks import LinearChecks
from surefoot.audit.proof_checker import LinearFact, ProofChecker, Tolerances
from surefoot.audit.recorded_round import OfferedRound, RecordedRound, RoundProblems, read_proof
from surefoot.audit.rows_checks import RowsChecks
from surefoot.audit.shared_chain import AuditedShard, MergedRound, ShardAuditor, SharedChain
from surefoot.journal import Journal, View
from surefoot.journal.events import Event
from surefoot.rounds import Record, events

CARRIED = "earlier proof over all shards"


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


class LeasedRows(RowsChecks):
    """Everything that the events of a shard of a linear policy say.

    rounds, rewards: what is to be handed in at the end of the lease
    """

    book: LeasedChecks

    def __init__(self, created: events.Created, findings: Findings, tally: AuditCounts) -> None:
        super().__init__(created, findings, tally)
        self.rounds: list[events.RowsHanded] = []
        self.rewards: list[tuple[int, dict[str, float] | None]] = []
        self._numbers: dict[str, int] = {}  # of rounds, by the decision's id

    def _new_book(self) -> LeasedChecks:
        return LeasedChecks(read_linear(self.created.policy, self.created.settings))

    @property
    def is_leased(self) -> bool:
        """Whether the learner may play."""
        return self.book.is_leased

    def lease(self, frozen: FrozenBook) -> None:
        """Go on under a lease."""
        self.book.lease(frozen)

    def end(self) -> tuple[LinearFact | None, float]:
        """End the lease, as `LeasedChecks.end`."""
        return self.book.end()

    def take(self, event: Event, record: Record, mode: str) -> None:
        """Check one event, and note what is to be handed in of it."""
        if isinstance(record, events.Corrected) and self.created.reward_window is None:
            text = f"the reward of {record.decision_id!r} was corrected, but without a window it is handed in at once"
            self.findings.add(event.number, "corrected", text)
        closed = record.windows if isinstance(record, events.Settled) else []
        came = [(window.round, {events.METRIC: self.learning.value_of(window.decision_id)}) for window in closed]
        super().take(event, record, mode)
        self.rewards += came
        if isinstance(record, events.Reward) and record.refused is None and self.created.reward_window is None:
            self._settled(record.decision_id, {name: float(value) for name, value in record.values.items()})
        elif isinstance(record, events.Abandoned):
            self._settled(record.decision_id, None)

    def _settled(self, decision_id: str, values: dict[str, float] | None) -> None:
        if decision_id in self._numbers:
            self.rewards.append((self._numbers[decision_id], values))

    def _judge(self, event: Event, decision: events.RowsRound, mode: str) -> None:
        super()._judge(event, decision, mode)
        rows, request = self._rows_of(decision, RoundProblems()), decision.request
        if rows is None or request.baseline is None or max(decision.action, request.baseline) >= len(rows):
            return
        self._numbers[decision.decision_id] = decision.round
        self.rounds.append(
            events.RowsHanded(
                number=decision.round,
                moment=event.time,
                played=rows[decision.action].tolist(),
                displaced=rows[request.baseline].tolist(),
                is_learner=decision.source == "learner",
                baseline_reward=request.baseline_reward,
            )
        )
        if decision.is_fallback:
            self.rewards.append((decision.round, None))

    def _void(self, event: Event, voided: events.Voided) -> None:
        number = self._numbers.get(voided.decision_id, 0)
        if not (self.is_leased and self.rounds and number >= self.rounds[0].number):
            text = f"{voided.decision_id!r} was moved, but is not of the present lease: it was handed in"
            self.findings.add(event.number, "voided", text)
            return
        moved = self.learning.void(event, voided)
        if moved is not None:
            self.book.move(*moved)
            offered, played = moved
            place, row = number - self.rounds[0].number, offered.rows[played].tolist()
            is_learner = played != offered.baseline
            self.rounds[place] = msgspec.structs.replace(self.rounds[place], played=row, is_learner=is_learner)

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
    for round_ in rounds:
        played, displaced = np.array(round_.played), np.array(round_.displaced)
        total += _question(played, displaced, alpha, is_learner=round_.is_learner)
        size += float(np.linalg.norm(played) + np.linalg.norm(displaced))
    return total, size


class SharedFloor(SharedChain):
    """The chain where shards of a linear policy meet."""

    is_pair = False

    def __init__(self, hub: Journal, name: str, journals: Mapping[str, Journal], expected: HeadSearch) -> None:
        super().__init__(hub, name, journals, expected)
        self._question, self._size = np.zeros(0), 0.0
        self._carried: LinearFact | None = None

    def _begin(self, created: events.Created) -> None:
        self._declared = read_linear(created.policy, created.settings)
        self.book = LinearChecks(self._declared)
        dim = self._declared.knowledge.dim
        self._question = np.zeros(dim)
        self._carried = LinearFact(np.zeros(dim), 0.0)

    def _auditor(self, view: View) -> ShardAuditor:
        return ShardAuditor(view, self.expected, rows=LeasedRows)

    def _take_leased(self, event: Event, lease: events.Lease) -> None:
        shard = self._begin_lease(event, lease)
        if lease.learned != self.book.estimate.count:
            text = f"the set has learned {self.book.estimate.count} rewards, but {lease.learned} are written"
            self.findings.add(event.number, "observations", text)
        (amount,) = shard.amounts = tuple(lease.amounts)
        leased = math.fsum(amount for other in self.shards.values() for amount in other.amounts)
        assert self._carried is not None
        reserve = self._declared.amount if self._declared.constraint == "reserve" else 0.0
        bound = self._declared.knowledge.theta_bound
        slack = self._carried.error + 64 * EPS * bound * self._size
        if self.tally.is_refuted and amount > 0:
            self.findings.add(event.number, "alarm", "an amount was leased while the alarm was on")
        # A round that was moved may cost more than its lease; then nothing is leased until what is out is proved again.
        if amount < 0 or (amount > 0 and leased > max(0.0, self._carried.level + reserve + slack)):
            text = f"{leased:.12g} is leased in all, but {self._carried.level + reserve:.12g} is proved"
            self.findings.add(event.number, "leases", text)
        if shard.auditor is not None and shard.auditor.waits_for == lease.number:
            shard.auditor.advance(frozen_book(self.book, lease))

    def _take_handed_in(self, event: Event, hand_in: events.RowsHandIn) -> None:
        shard, problems = self.shards[hand_in.shard], RoundProblems()
        level = self._check_segment(shard, hand_in, problems)
        self._receive(shard, hand_in)
        if hand_in.proof is not None and hand_in.proved is not None:
            self._check_proof(hand_in, level, problems)
        elif not hand_in.refuted:
            problems.add("proof", "what is proved of all rounds must be written, but is not")
        if hand_in.refuted and not self.tally.is_refuted:
            text = "the data contradict what was declared" if hand_in.alarm is None else hand_in.alarm[1]
            self.tally.alarms.append((event.number, f"shard {hand_in.shard!r}: {text}"))
        self.tally.is_refuted |= hand_in.refuted or hand_in.alarm is not None
        shard.amounts = ()
        problems.report(event, self.findings)

    def _check_segment(self, shard: AuditedShard, hand_in: events.RowsHandIn, problems: RoundProblems) -> float:
        """What was handed in must be what the shard's own chain holds, and claim no more; what that proves of it."""
        segment = self._check_handed_in(shard, hand_in, problems)
        own, size = question_of(hand_in.rounds, self._declared.alpha, self.book.dim)
        gap = float(np.linalg.norm(own - np.array(hand_in.question)))
        # Once the alarm is on, a shard carries no proof on.
        if hand_in.alarm is None and gap > 1e-9 * (size + 1.0):
            problems.add("question", f"the rounds add up to another question, which differs by {gap:.3g}")
        if shard.auditor is None:
            return hand_in.level
        if segment is not None and segment.is_refuted and hand_in.alarm is None:
            problems.add("alarm", f"the alarm of shard {hand_in.shard!r} is on by its own chain, and is left out here")
        # Each of its decisions was checked to stay above minus the lease; what was not played as decided may cost more.
        moved = 0.0 if segment is None else segment.moved
        least = -math.fsum(shard.amounts) - moved if hand_in.rounds else 0.0
        fact = None if segment is None else segment.fact
        proved, claimed = (least, least) if fact is None else (max(least, fact.level), max(least, fact.claimed))
        rounding = 1e-9 * self._declared.knowledge.theta_bound * (size + 1.0)
        if hand_in.alarm is None and hand_in.level > claimed + rounding:
            problems.add("level", f"the shard's certificates prove {claimed:.12g}, but {hand_in.level:.12g} is claimed")
        return min(proved, hand_in.level)

    def _count(self, merged: MergedRound) -> None:
        round_ = merged.round
        assert isinstance(round_, events.RowsHanded)
        played, displaced = np.array(round_.played), np.array(round_.displaced)
        known = self._declared.known(round_.baseline_reward)
        self.book._seen.add(np.stack([played, displaced]))
        self.book.account.play(played, displaced, known, is_learner=round_.is_learner)
        merged.teaches = self.book.teaches(round_.is_learner)
        if merged.teaches:
            self._order.append(merged)

    def _learn(self) -> None:
        while self._order and self._order[0].is_settled:
            merged = self._order.popleft()
            if merged.reward is not None:
                self.book.learn(_features(merged), merged.reward[events.METRIC], merged.round.is_learner)
                self.tally.learned += 1

    def _check_proof(self, hand_in: events.RowsHandIn, level: float, problems: RoundProblems) -> None:
        """What is proved of all rounds handed in: by the newest set, what was proved before, and this certificate."""
        assert hand_in.proof is not None
        assert hand_in.proved is not None
        assert self._carried is not None
        own, size = question_of(hand_in.rounds, self._declared.alpha, self.book.dim)
        self._size += size
        self._question = self._question + own
        bound = self._declared.knowledge.theta_bound
        question, scale = np.array(hand_in.proof.question), Tolerances(bound * self._size, bound * self._size)
        if bound * float(np.linalg.norm(question - self._question)) > scale.gap:
            problems.add("question", "the proof must be about all rounds handed in, but is about others")
        certificate = LinearFact(np.array(hand_in.question), level, 8 * EPS * bound * size, hand_in.level)
        known = {CARRIED: [self._carried], f"certificate of shard {hand_in.shard}": [certificate]}
        checker = ProofChecker(bound, self.book._sets, lambda name, *_: known.get(name, []), scale)
        value = checker.check(read_proof(hand_in.proof), question, problems)
        self.tally.proofs += 1
        if hand_in.proved > value + scale.blur:
            problems.add("proof", f"{value:.12g} is proved of all rounds, but {hand_in.proved:.12g} is claimed")
        # Handed on is the audit's own value; the record's is only the most that it may claim.
        self._carried = LinearFact(question, value, 8 * EPS * bound * self._size, hand_in.proved)


def _features(merged: MergedRound) -> Vector:
    round_ = merged.round
    assert isinstance(round_, events.RowsHanded)
    return np.array(round_.played if round_.is_learner else round_.displaced)

"""The audit of shards that share one floor: each chain by itself, what they handed in, and that leases add up.

The chain where they meet is followed event by event. It tells in which order rounds were merged, and so which set each
lease froze; the chain of a shard is checked against that set, up to its next lease.
"""

import math
from collections.abc import Mapping

import numpy as np

from surefoot.audit.compensated_sums import Vector
from surefoot.audit.declarations import read_linear
from surefoot.audit.expected_heads import HeadSearch
from surefoot.audit.linear_checks import LinearChecks
from surefoot.audit.payloads import read_proof
from surefoot.audit.proof_checker import LinearFact, ProofChecker, Tolerances
from surefoot.audit.rebuilt_gram import EPS
from surefoot.audit.recorded_round import RoundProblems
from surefoot.audit.shard_checks import FloorShardAuditor, frozen_book, question_of
from surefoot.audit.shared_chain import AuditedShard, MergedRound, SharedChain
from surefoot.journal import Journal, View
from surefoot.journal.events import Event
from surefoot.rounds import events

CARRIED = "earlier proof over all shards"


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

    def _auditor(self, view: View) -> FloorShardAuditor:
        return FloorShardAuditor(view, self.expected)

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

    def _take_handed_in(self, event: Event, given: events.RowsHandIn) -> None:
        shard, problems = self.shards[given.shard], RoundProblems()
        level = self._check_segment(shard, given, problems)
        self._receive(shard, given)
        if given.proof is not None and given.proved is not None:
            self._check_proof(given, level, problems)
        elif not given.refuted:
            problems.add("proof", "what is proved of all rounds must be written, but is not")
        if given.refuted and not self.tally.is_refuted:
            told = "the data contradict what was declared" if given.alarm is None else given.alarm[1]
            self.tally.alarms.append((event.number, f"shard {given.shard!r}: {told}"))
        self.tally.is_refuted |= given.refuted or given.alarm is not None
        shard.amounts = ()
        for what, text in problems.found:
            self.findings.add(event.number, what, text)

    def _check_segment(self, shard: AuditedShard, given: events.RowsHandIn, problems: RoundProblems) -> float:
        """What was handed in must be what the shard's own chain holds, and claim no more; what that proves of it."""
        segment = self._check_handed_in(shard, given, problems)
        own, size = question_of(given.rounds, self._declared.alpha, self.book.dim)
        gap = float(np.linalg.norm(own - np.array(given.question)))
        # Once the alarm is on, a shard carries no proof on.
        if given.alarm is None and gap > 1e-9 * (size + 1.0):
            problems.add("question", f"the rounds add up to another question, which differs by {gap:.3g}")
        if shard.auditor is None:
            return given.level
        if segment is not None and segment.is_refuted and given.alarm is None:
            problems.add("alarm", f"the alarm of shard {given.shard!r} is on by its own chain, and is left out here")
        # Each of its decisions was checked to stay above minus the lease; what was not played as decided may cost more.
        moved = 0.0 if segment is None else segment.moved
        least = -math.fsum(shard.amounts) - moved if given.rounds else 0.0
        fact = None if segment is None else segment.fact
        proved, claimed = (least, least) if fact is None else (max(least, fact.level), max(least, fact.claimed))
        if given.alarm is None and given.level > claimed + 1e-9 * self._declared.knowledge.theta_bound * (size + 1.0):
            problems.add("level", f"the shard's certificates prove {claimed:.12g}, but {given.level:.12g} is claimed")
        return min(proved, given.level)

    def _count(self, merged: MergedRound) -> None:
        made = merged.made
        assert isinstance(made, events.RowsHanded)
        played, displaced = np.array(made.played), np.array(made.displaced)
        known = self._declared.known(made.baseline_reward)
        self.book._seen.add(np.stack([played, displaced]))
        self.book.account.play(played, displaced, known, is_learner=made.is_learner)
        merged.teaches = self.book.teaches(made.is_learner)
        if merged.teaches:
            self._order.append(merged)

    def _learn(self) -> None:
        while self._order and self._order[0].is_settled:
            merged = self._order.popleft()
            if merged.reward is not None:
                self.book.learn(_features(merged), merged.reward[events.METRIC], merged.made.is_learner)
                self.tally.learned += 1

    def _check_proof(self, given: events.RowsHandIn, level: float, problems: RoundProblems) -> None:
        """What is proved of all rounds handed in: by the newest set, what was proved before, and this certificate."""
        assert given.proof is not None
        assert given.proved is not None
        assert self._carried is not None
        own, size = question_of(given.rounds, self._declared.alpha, self.book.dim)
        self._size += size
        self._question = self._question + own
        bound = self._declared.knowledge.theta_bound
        question, scale = np.array(given.proof.question), Tolerances(bound * self._size, bound * self._size)
        if bound * float(np.linalg.norm(question - self._question)) > scale.gap:
            problems.add("question", "the proof must be about all rounds handed in, but is about others")
        certificate = LinearFact(np.array(given.question), level, 8 * EPS * bound * size, given.level)
        known = {CARRIED: [self._carried], f"certificate of shard {given.shard}": [certificate]}
        checker = ProofChecker(bound, self.book._sets, lambda name, *_: known.get(name, []), scale)
        value = checker.check(read_proof(given.proof), question, problems)
        self.tally.proofs += 1
        if given.proved > value + scale.blur:
            problems.add("proof", f"{value:.12g} is proved of all rounds, but {given.proved:.12g} is claimed")
        # Handed on is the audit's own value; the record's is only the most that it may claim.
        self._carried = LinearFact(question, value, 8 * EPS * bound * self._size, given.proved)


def _features(merged: MergedRound) -> Vector:
    made = merged.made
    assert isinstance(made, events.RowsHanded)
    return np.array(made.played if made.is_learner else made.displaced)

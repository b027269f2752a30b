"""The audit of shards that share the banks of one guard: what they handed in, what it earned, and that leases add up.

A round is charged to the banks at its worst once it is handed in, and enters in the order of decisions over all shards.
"""

import copy
import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from surefoot.audit.bank import BookedRound, RebuiltBank
from surefoot.audit.coins import BLOCK, CoinFairness
from surefoot.audit.declarations import GuardDeclarations, read_guard
from surefoot.audit.findings import AuditCounts, Findings
from surefoot.audit.guard_checks import WRITTEN, GuardChecks, predicted, unfair
from surefoot.audit.recorded_round import RoundProblems
from surefoot.audit.shared_chain import AuditedShard, MergedRound, ShardAuditor, SharedChain
from surefoot.journal import View
from surefoot.journal.events import Event
from surefoot.rounds import Record, events


@dataclass
class FrozenBanks:
    """What the rounds merged so far have earned, as it stood when a lease was granted."""

    banks: Sequence[RebuiltBank]
    record: events.Lease


def frozen_banks(banks: Sequence[RebuiltBank], record: events.Lease) -> FrozenBanks:
    """A copy that holds the lease and no more: all that is beyond it counts as owed."""
    kept = [copy.deepcopy(bank) for bank in banks]
    for bank, amount in zip(kept, record.amounts, strict=True):
        bank.carried, bank.owed = amount, max(0.0, bank.bound + bank.metric.reserve - amount)
    return FrozenBanks(kept, record)


class LeasedGuardChecks(GuardChecks):
    """Everything that the events of a guard's shard say, lease after lease.

    rounds, rewards: what is to be handed in at the end of the lease
    """

    is_leased = False

    def __init__(self, created: events.Created, findings: Findings, tally: AuditCounts) -> None:
        super().__init__(created, findings, tally)
        self._is_windowed = created.reward_window is not None
        self.rounds: list[events.PairHanded] = []
        self.rewards: list[tuple[int, dict[str, float] | None]] = []

    def lease(self, frozen: FrozenBanks) -> None:
        """Go on with what was leased."""
        self._banks, self.is_leased = list(frozen.banks), True
        self._committed.lease = frozen.record

    def end(self) -> tuple[None, float]:
        """End the lease; a guard proves nothing of its rounds, and moves none."""
        self.is_leased = False
        return None, 0.0

    def take(self, event: Event, record: Record, mode: str) -> None:
        """Check one event, and note what is to be handed in of it: rewards once their round is settled."""
        if isinstance(record, events.Corrected) and not self._is_windowed:
            text = f"the reward of {record.decision_id!r} was corrected, but without a window it is handed in at once"
            self._findings.add(event.number, "corrected", text)
        closed = [one.decision_id for one in record.windows] if isinstance(record, events.Settled) else []
        if isinstance(record, events.Reward | events.Abandoned):
            closed = [record.decision_id]
        waiting = {decision_id: self._rewards.waiting(decision_id) for decision_id in closed}
        super().take(event, record, mode)
        for decision_id, entry in waiting.items():
            if entry is not None and entry.settled is not None:
                came = entry.ids[decision_id]
                is_lost = isinstance(record, events.Abandoned) and not came
                self.rewards.append((entry.record.round, None if is_lost else came))

    def _book(self, event: Event, record: events.PairRound, teaches: bool) -> None:
        super()._book(event, record, teaches)
        self.rounds.append(
            events.PairHanded(
                number=record.round,
                moment=event.time,
                share=record.share,
                draw=record.draw,
                is_learner=record.source == "learner",
                teaches=teaches,
                prediction=record.request.prediction,
            )
        )

    def _expected_share(self, record: events.PairRound, teaches: bool) -> float:
        """Without a coin it is nothing: so plays a shard that has lost what its lease knew, and nothing is spent."""
        is_drawn = record.share != 0.0 or record.draw is not None
        return super()._expected_share(record, teaches) if self.is_leased and is_drawn else 0.0

    def _check_figures(self, seen: events.BankCertificate, share: float, problems: RoundProblems) -> None:
        """A round without a share rests on no bank, and a shard that lost its lease knows but an older one's."""
        if share != 0.0:
            super()._check_figures(seen, share, problems)

    def _earn(self, bank: RebuiltBank, booked: BookedRound, is_learner: bool, value: float) -> None:
        """A shard earns nothing: its rewards enter where all are merged."""


class SharedBank(SharedChain):
    """The chain where shards of a guard meet."""

    is_pair = True

    coins: CoinFairness

    def _begin(self, created: events.Created) -> None:
        self._declared: GuardDeclarations = read_guard(created.settings)
        if any(metric.is_played for metric in self._declared.metrics):
            self.findings.add(1, "settings", "the banks of the actions played cannot be shared")
        self._banks = [RebuiltBank(metric) for metric in self._declared.metrics]
        self._entered = self._counted = 0
        self._income: list[tuple[int, MergedRound]] = []  # a heap of settled rounds with nothing at stake
        self.coins = CoinFairness()
        self._commitments: dict[str, tuple[str, int]] = {}  # to secrets of coins: whose they are, and their block

    def _auditor(self, view: View) -> ShardAuditor:
        return ShardAuditor(view, self.expected, pair=LeasedGuardChecks)

    def _take_leased(self, event: Event, lease: events.Lease) -> None:
        shard = self._begin_lease(event, lease)
        if lease.learned != self._entered:
            text = f"the banks have taken in {self._entered} rounds, but {lease.learned} are written"
            self.findings.add(event.number, "observations", text)
        if len(lease.amounts) != len(self._banks) or not all(amount >= 0.0 for amount in lease.amounts):
            self.findings.add(event.number, "leases", "a lease must grant an amount of each metric, at least 0")
            return
        self._check_commitments(event, shard, lease)
        shard.amounts, shard.frozen = tuple(lease.amounts), frozen_banks(self._banks, lease).banks
        for i, bank in enumerate(self._banks):
            leased = math.fsum(other.amounts[i] for other in self.shards.values() if other.amounts)
            waiting = (_coin(merged).share for other in self.shards.values() for merged in other.waiting)
            held = bank.held - math.fsum(map(bank.cost, waiting))
            if leased > max(0.0, held) + WRITTEN * (1.0 + abs(bank.held)):
                text = f"{leased:.12g} of {bank.metric.name!r} is leased in all, but the bank holds {held:.12g}"
                self.findings.add(event.number, "leases", text)
        if shard.auditor is not None and shard.auditor.waits_for == lease.number:
            shard.auditor.advance(frozen_banks(self._banks, lease))

    def _check_commitments(self, event: Event, shard: AuditedShard, lease: events.Lease) -> None:
        """An edge's coins follow from secrets that no other block has, from the block of its next round on."""
        if lease.coins is None:
            return
        if lease.block != shard.handed_in // BLOCK:
            text = f"block {shard.handed_in // BLOCK} of its coins is next, but the lease begins with {lease.block}"
            self.findings.add(event.number, "block", text)
        for block, commitment in enumerate(lease.coins, lease.block):
            if self._commitments.setdefault(commitment, (lease.shard, block)) != (lease.shard, block):
                self.findings.add(event.number, "block", f"block {block} of its coins has the secret of another block")

    def _take_handed_in(self, event: Event, hand_in: events.PairHandIn) -> None:
        shard, problems = self.shards[hand_in.shard], RoundProblems()
        self._check_handed_in(shard, hand_in, problems)
        self._check_rounds(shard, hand_in, problems)
        self._receive(shard, hand_in)
        shard.amounts = ()
        problems.report(event, self.findings)

    def _check_rounds(self, shard: AuditedShard, hand_in: events.PairHandIn, problems: RoundProblems) -> None:
        """Every coin chose its side, and all shares together cost no more than the lease at their worst."""
        for round_ in hand_in.rounds:
            is_coin = round_.draw is None
            if round_.share != 0.0:
                is_coin = round_.teaches and round_.draw is not None and 0.0 <= round_.draw < 1.0
            is_learner = round_.draw is not None and round_.draw < round_.share
            if not (0.0 <= round_.share <= self._declared.most and is_coin and is_learner == round_.is_learner):
                problems.add("draw", f"round {round_.number} cannot have been played by a coin of {round_.draw!r}")
            elif round_.draw is not None and self.coins.toss(round_.share, round_.draw, round_.is_learner):
                problems.add("coins", unfair(self.coins))
        self.tally.proofs += len(hand_in.rounds)
        self.tally.pieces += len(hand_in.rounds) * len(self._banks)
        for bank, amount in zip(self._banks, shard.amounts or [0.0] * len(self._banks), strict=True):
            cost = math.fsum(bank.cost(round_.share) for round_ in hand_in.rounds)
            if cost > amount + WRITTEN * (1.0 + amount):
                text = f"its rounds may cost {cost:.12g} of {bank.metric.name!r}, but {amount:.12g} was leased"
                problems.add("gate", text)

    def _booked(self, shard: AuditedShard, round_: Any) -> list[BookedRound]:
        # Where it had no lease, which is found apart, by what is known now.
        banks = shard.frozen or self._banks
        return [bank.plan(round_.share, predicted(round_.prediction, bank, self._declared)) for bank in banks]

    def _count(self, merged: MergedRound) -> None:
        round_ = _coin(merged)
        merged.teaches, merged.position = round_.teaches, self._counted
        self._counted += 1
        for bank in self._banks:
            bank.charge(round_.share, round_.is_learner)
        if round_.share > 0.0:
            self._order.append(merged)
        elif merged.is_settled:
            heapq.heappush(self._income, (merged.position, merged))

    def _settle(self, shard: AuditedShard, merged: MergedRound, reward: Any) -> None:
        if merged.position is not None and _coin(merged).share == 0.0:
            heapq.heappush(self._income, (merged.position, merged))
        super()._settle(shard, merged, reward)

    def _due(self) -> MergedRound | None:
        """The next round whose turn it is: none waits for one without a share, where nothing is at stake."""
        first = self._order[0] if self._order else None
        if self._income and (first is None or first.position is None or self._income[0][0] < first.position):
            return heapq.heappop(self._income)[1]
        return self._order.popleft() if first is not None and first.is_settled else None

    def _learn(self) -> None:
        while (merged := self._due()) is not None:
            for bank, booked in zip(self._banks, merged.booked, strict=True):
                bank.enter(booked, merged.round.is_learner, self._value(bank, merged.reward))
            self._entered += 1
            self.tally.learned += 1

    def _value(self, bank: RebuiltBank, reward: dict[str, float] | None) -> float:
        """A reward as the bank takes it: abandoned, it counts at its worst; missing, as its default if there is one."""
        metric = bank.metric
        if reward is None:
            return math.nan
        if metric.name not in reward:
            return metric.default
        if not metric.holds(reward[metric.name]):
            self.findings.add(self.tally.events, "reward", f"a reward of {metric.name!r} leaves its declared bounds")
        return metric.scaled(reward[metric.name])


def _coin(merged: MergedRound) -> events.PairHanded:
    assert isinstance(merged.round, events.PairHanded)
    return merged.round

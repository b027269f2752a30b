"""The chain of one shard of a guard, checked: each share against what is left of its lease, and each coin."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from surefoot.audit.guard_checks import GuardChecks, differ
from surefoot.audit.rebuilt_bank import BookedRound, RebuiltBank
from surefoot.audit.recorded_round import RoundProblems
from surefoot.audit.shard_auditor import ShardAuditor
from surefoot.journal.events import Event
from surefoot.rounds import events


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
    """Everything that the events of a guard's shard say, lease after lease."""

    is_leased = False

    def lease(self, frozen: FrozenBanks) -> None:
        """Go on with what was leased."""
        self._banks, self.is_leased = list(frozen.banks), True
        self._committed.lease = frozen.record

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


class BankShardAuditor(ShardAuditor):
    """The audit of one shard of a guard."""

    policy = "Guard"
    guard: LeasedGuardChecks | None

    def __init__(self, view: Any, expected: Any) -> None:
        super().__init__(view, expected)
        self._came: dict[str, dict[str, float]] = {}  # rewards whose window is open

    def _take_created(self, event: Event, created: events.Created) -> None:
        super()._take_created(event, created)
        if self.created is not None and self.guard is not None:
            self.guard = LeasedGuardChecks(self.created, self.findings, self.tally)

    def _take(self, event: Event, record: Any) -> None:
        if isinstance(record, events.Lease):
            if self._is_granted(event, record):
                assert self.guard is not None
                self._check_handed_in(event, is_leased=self.guard.is_leased)
                self.guard.lease(self._granted)
        elif isinstance(record, events.LeaseEnded):
            assert self.guard is not None
            self._end_segment(event, record, is_leased=self.guard.is_leased)
            self.guard.is_leased = False
        else:
            super()._take(event, record)
            self._note(event, record)

    def _note(self, event: Event, record: Any) -> None:
        """What is to be handed in of an event."""
        if event.kind == events.ROUND:
            asked = record.request
            self._rounds[record.decision_id] = record.round
            made = events.PairHanded(
                number=record.round,
                moment=event.time,
                share=record.share,
                draw=record.draw,
                is_learner=record.source == "learner",
                teaches=differ(asked.baseline, asked.proposal),
                prediction=asked.prediction,
            )
            self._since.append(made)
        elif isinstance(record, events.Reward) and record.refused is None:
            values = {name: float(value) for name, value in record.values.items()}
            self._paid(record.decision_id, values)
        elif isinstance(record, events.Settled):
            self._rewards += [(one.round, self._came.pop(one.decision_id, {})) for one in record.windows]
        elif isinstance(record, events.Abandoned) and record.decision_id in self._rounds:
            self._rewards.append((self._rounds[record.decision_id], None))

    def _paid(self, decision_id: str, values: dict[str, float]) -> None:
        assert self.created is not None
        if self.created.reward_window is not None:
            self._came[decision_id] = {**self._came.get(decision_id, {}), **values}
        elif decision_id in self._rounds:
            self._rewards.append((self._rounds[decision_id], values))

"""The journal of an edge that decides for a guard: every coin follows from its lease, so it is drawn once."""

import math
from typing import Any

import msgspec

from surefoot.edge.base_edge_journal import BaseEdgeJournal
from surefoot.edge.bundle import BankHead, Bundle, OpenedBank
from surefoot.edge.edge_entries import Drawn, PlayedEntry, Saved
from surefoot.edge.guard_edge_rounds import GuardEdgeRounds, fingerprint_drawn
from surefoot.errors import JournalCorruptedError
from surefoot.experiment.snapshots import unpack
from surefoot.leases import GuardShard
from surefoot.policies import GuardDecision


class GuardEdgeJournal(BaseEdgeJournal[GuardShard, GuardEdgeRounds, OpenedBank]):
    """The shard at the end of its log."""

    @property
    def head(self) -> BankHead:
        """What the present lease says."""
        head: BankHead = self.bundle.head
        return head

    def opened(self, bundle: Bundle) -> OpenedBank:
        """A bundle for this log, if it is signed and whole."""
        return OpenedBank(bundle, self._key, experiment=self.experiment, shard=self.name, token=self.token)

    def decided(self, round_: int) -> Drawn | None:
        """A round as it was decided; None if that was before the file began."""
        found = self._decided(round_)
        assert found is None or isinstance(found, Drawn)
        return found

    def decide(self, baseline: Any, proposal: Any, prediction: Any, moment: float) -> GuardDecision:
        """Draw the coin of the next round.

        By its moment alone it is expired or not: if it could be said otherwise, one could choose by the coin which
        rounds have one.
        """
        return self.shard.decide(
            baseline=baseline,
            proposal=proposal,
            prediction=prediction,
            moment=moment,
            hold=self.is_expired(moment) or self.head.mode != "guarded",
        )

    def is_expired(self, moment: float) -> bool:
        """Whether the lease has expired by then."""
        return moment >= self.head.expires

    def void(self, decided: Drawn, entry: PlayedEntry) -> None:
        """Note what was played."""
        self.write(entry)
        self.rounds.close(entry.moment)
        self.rounds.void(decided, entry.action)

    def _start(self, opened: OpenedBank) -> None:
        self.shard = GuardShard(opened.lease())
        self.shard.policy.coins = opened.coins
        self.rounds = GuardEdgeRounds(self.shard, opened.head)

    def _renew(self, opened: OpenedBank) -> None:
        self.shard.renew(opened.lease())
        self.shard.policy.coins = opened.coins

    def _resume(self, opened: OpenedBank, saved: Saved) -> None:
        self.shard = GuardShard.from_state(unpack(saved.shard, dict[str, Any]))
        self.shard.policy.coins = opened.coins
        self.rounds = GuardEdgeRounds(self.shard, opened.head, saved.rounds)

    def _do_again(self, entry: Any) -> None:
        if isinstance(entry, PlayedEntry):
            decided = self.decided(entry.round)
            if decided is None:
                raise JournalCorruptedError(f"Round {entry.round} was voided, but is not in the log.")
            self.rounds.void(decided, entry.action)
            return
        if not isinstance(entry, Drawn):
            raise self._foreign(entry)
        read = msgspec.json.decode
        again = self.decide(read(entry.baseline), read(entry.proposal), entry.prediction, entry.moment)
        told = again.round, again.share, again.source == "learner", self.is_expired(entry.moment)
        if told != (entry.round, entry.share, entry.is_learner, entry.is_expired):
            coin = "none" if math.isnan(again.draw) else f"{again.draw:.6g}"
            raise self._altered(entry, f"its coin is {coin} at a share of {again.share:.6g}")
        asked = fingerprint_drawn(entry.baseline, entry.proposal, entry.prediction)
        self.rounds.decided(entry, self.head.mode, asked)

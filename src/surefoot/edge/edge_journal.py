"""The journal of an edge that decides for SafeLUCB."""

from typing import Any

from surefoot.edge.base_edge_journal import BaseEdgeJournal
from surefoot.edge.bundle import Bundle, BundleHead, OpenedBundle
from surefoot.edge.edge_entries import Decided, Saved, VoidedEntry
from surefoot.edge.edge_rounds import EdgeRounds
from surefoot.edge.own_ids import fingerprint
from surefoot.errors import JournalCorruptedError
from surefoot.experiment.snapshots import unpack
from surefoot.leases import Shard


class EdgeJournal(BaseEdgeJournal[Shard, EdgeRounds, OpenedBundle]):
    """The shard at the end of its log."""

    @property
    def head(self) -> BundleHead:
        """What the present lease says."""
        head: BundleHead = self.bundle.head
        return head

    def opened(self, bundle: Bundle) -> OpenedBundle:
        """A bundle for this log, if it is signed and whole."""
        return OpenedBundle(bundle, self._key, experiment=self.experiment, shard=self.name, token=self.token)

    def decided(self, round_: int) -> Decided | None:
        """A round as it was decided; None if that was before the file began."""
        found = self._decided(round_)
        assert found is None or isinstance(found, Decided)
        return found

    def void(self, decided: Decided, entry: VoidedEntry) -> None:
        """Move a round to what was played."""
        self.rounds.close(entry.moment)
        self.rounds.void(decided, entry.action)  # first: what is refused is not written
        self.write(entry)

    def _start(self, opened: OpenedBundle) -> None:
        self.shard = Shard(opened.lease())
        self.rounds = EdgeRounds(self.shard, opened.head)

    def _renew(self, opened: OpenedBundle) -> None:
        self.shard.renew(opened.lease())

    def _resume(self, opened: OpenedBundle, saved: Saved) -> None:
        self.shard = Shard.from_state(unpack(saved.shard, dict[str, Any]))
        self.rounds = EdgeRounds(self.shard, opened.head, saved.rounds)

    def _do_again(self, entry: Any) -> None:
        if isinstance(entry, VoidedEntry):
            decided = self.decided(entry.round)
            if decided is None or not self.is_leased(entry.round):
                raise JournalCorruptedError(f"Round {entry.round} was voided, but is not of the present lease.")
            self.rounds.void(decided, entry.action)
            return
        if not isinstance(entry, Decided):
            raise self._foreign(entry)
        rows = entry.matrix()
        again = self.shard.decide(
            rows,
            baseline=entry.baseline,
            baseline_reward=entry.known,
            moment=entry.moment,
            hold=entry.is_expired or self.head.mode != "guarded",
        )
        if (again.round, again.action) != (entry.round, entry.action):
            raise self._altered(entry, f"says action {entry.action} where {again.action} is played")
        self.rounds.decided(entry, self.head.mode, fingerprint(rows, entry.names, entry.baseline, entry.known))

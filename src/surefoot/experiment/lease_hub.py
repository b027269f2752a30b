"""Where shards meet: the coordinator as a chain of events in a journal that all of them reach, and no server more.

Whoever hands in runs the coordinator, alone and on the true head, and leaves behind what it took in and what it leased.
"""

import logging
import threading
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias, TypeVar

import msgspec

import surefoot
from surefoot import records
from surefoot.errors import ConfigError, InputError, SurefootError
from surefoot.experiment.answer import or_raise
from surefoot.experiment.hub_state import HubState, SharedMode
from surefoot.experiment.lease_forms import AnyHandedIn, AnyLeaseRecord, LeaseForm
from surefoot.experiment.modes import ALLOWED, refused_mode
from surefoot.experiment.question import read_text
from surefoot.experiment.snapshots import pack
from surefoot.experiment.state import decode
from surefoot.journal import Journal, Transaction, View
from surefoot.leases.lease import read_shard
from surefoot.records import BankLease, Created, Joined, Lost, ModeName, encode

LOG = logging.getLogger("surefoot.leases")
T = TypeVar("T")
Commitment: TypeAlias = Callable[[int], str]  # of the lease of this number, the hash of the secret of its coins
SNAPSHOT_ROUNDS = 20_000  # handed in between two snapshots: half a second of a replay
OPEN_ROUNDS = 16  # and so many for each that is open, since a snapshot holds them


class Granted(NamedTuple):
    """A lease, what the shard decides by (None where that was lost), and the mode of all shards."""

    record: AnyLeaseRecord
    data: bytes | None
    mode: SharedMode


class Room(NamedTuple):
    """How many shards may be there for an edge to join: in all, and of those that the same caller had let in."""

    shards: int
    of_caller: int

    def refusal(self, state: HubState, by: str) -> ConfigError | None:
        """Why nobody else is let in; None while there is room."""
        present = state.present()
        if present >= self.shards:
            return ConfigError(
                f"At most {self.shards} shards must share a floor for an edge to join, but there are {present}. Have "
                "some leave, stop waiting for those that are lost, or raise the server's `limits.edges`."
            )
        if by and state.present(by) >= self.of_caller:
            return ConfigError(
                f"At most {self.of_caller} edges of one token must be there for another to join, but so many are of "
                f"{by}. Have some leave, stop waiting for those that are lost, use a token for each "
                "site, or raise the server's `limits.edges_per_token`."
            )
        return None


class LeaseHub:
    """One server's way to the ledger that shards share."""

    def __init__(self, journal: Journal, name: str, clock: Callable[[], float]) -> None:
        self._journal, self.name, self._clock = journal, name, clock
        self._state: HubState | None = None  # until the hub is asked for the first time
        self._alone = threading.Lock()

    def created(self) -> tuple[Created, str]:
        """What the experiment was created with, and the hash of that event."""
        state = HubState(self._journal.view(self.name))
        return state.created, state.first

    def now(self) -> float:
        """The clock of the journal, or where it has none the server's; raises while the journal is away."""
        told = self._journal.clock()
        return self._clock() if told is None else told

    def prepare(self) -> None:
        """Read what is there before the first transaction, which is short then: others wait for it."""
        with self._alone:
            if self._state is None:
                self._state = self._caught_up(self._journal.view(self.name))

    def join(
        self, shard: str, token: str, *, by: str = "", room: Room | None = None, commit: Commitment | None = None
    ) -> Granted:
        """Let a shard in, and give its first lease; the same one again, if its answer was lost.

        Nobody else is let in where there is no `room`. An edge of a guard has its lease `commit` to its coins.
        """
        self.prepare()
        now = self.now()

        def work(state: HubState, transaction: Transaction) -> Granted | SurefootError:
            if transaction.find(f"j:{shard}") is None:
                full = None if room is None else room.refusal(state, by)
                if full is not None:
                    return full
                state.coordinator.admit(shard, now=now)
                since = state.coordinator.members.find(shard).through
                joined = Joined(shard=shard, since=since, token=token, by=by)
                self._write(state, transaction, records.JOINED, joined, f"j:{shard}", now)
                state.joined(joined)
            else:
                self._check_place(state, transaction, shard, token, 1, is_ended=False)
            return self._lease(state, transaction, shard, 1, now, commit)

        return or_raise(self._transact(work, [f"j:{shard}", f"l:{shard}:1", f"h:{shard}:1"]))

    def confirm(self, shard: str, token: str, lease: int, *, is_ended: bool) -> None:
        """Raise unless a shard that is opened again stands where the hub has it: its lease may be spent already."""
        self.prepare()
        now = self.now()

        def work(state: HubState, transaction: Transaction) -> SurefootError | None:
            behind = self._behind(state, transaction, shard, token, lease, now)
            if behind is None:
                self._check_place(state, transaction, shard, token, lease, is_ended=is_ended)
            return behind

        or_raise(self._transact(work, [f"h:{shard}:{lease}", f"l:{shard}:{lease}"]))

    def check_granted(self, shard: str, token: str, lease: int) -> None:
        """Raise if a lease that this hub's servers have signed is not in its chain, and pause all shards then."""
        if self._journal.view(self.name).find(f"l:{shard}:{lease}") is None:
            self.prepare()
            now = self.now()
            or_raise(self._transact(lambda state, it: self._behind(state, it, shard, token, lease, now), []))

    def _behind(
        self, state: HubState, transaction: Transaction, shard: str, token: str, lease: int, now: float
    ) -> ConfigError | None:
        """What to say if a shard has a lease that is not in the chain: an older copy took its place.

        What was leased since would be leased again, so only the baseline is to play.
        """
        is_its_own = state.tokens.get(shard, token) == token
        if not is_its_own or transaction.find(f"l:{shard}:{lease}") is not None:
            return None
        known = state.coordinator.members.all.get(shard)
        told = f"lease {lease} of shard {shard!r}, but it ends with lease {0 if known is None else known.lease}"
        if state.mode.mode == "guarded":
            reason = f"an older copy took the place of this journal: it must hold {told}"
            self._write(state, transaction, records.MODE, records.Mode(mode="paused", reason=reason), None, now)
            state.mode = SharedMode("paused", state.head.number)
            LOG.error("All shards of %r are paused: %s.", self.name, reason)
        return ConfigError(
            f"The journal where the shards of {self.name!r} meet must hold {told}: an older copy took its place, and "
            "would lease again what was spent since. All shards are paused. Put the newest journal back; if it is "
            "gone, start a new experiment, by a new name."
        )

    def _check_place(
        self, state: HubState, transaction: Transaction, shard: str, token: str, lease: int, *, is_ended: bool
    ) -> None:
        state.check_token(shard, token)
        is_handed_in = transaction.find(f"h:{shard}:{lease}") is not None
        newest = max(1, state.coordinator.members.find(shard).lease)
        is_known = lease == newest or (is_ended and is_handed_in and lease + 1 == newest)
        if not is_known or (is_handed_in and not is_ended):
            raise ConfigError(
                f"The journal of shard {shard!r} must be the newest there is, but it is at lease {lease}, and lease "
                f"{newest} is the last one{', handed in' if is_handed_in else ''}, where the shards meet. A copy from "
                "before must not go on: join by a new name."
            )

    def take(self, given: AnyHandedIn, *, sent: float, commit: Commitment | None = None) -> Granted | None:
        """Take in what a shard did, and lease to it anew unless it leaves; once, however often it is said."""
        now, key = self.now(), f"h:{given.shard}:{given.lease}"

        def work(state: HubState, transaction: Transaction) -> Granted | SurefootError | None:
            behind = self._behind(state, transaction, given.shard, given.token, given.lease, now)
            if behind is not None:
                return behind
            found = transaction.find(key)
            before = None if found is None else decode(found, state.form.hand_in)
            try:
                _check_hand_in(state, before, given, now, sent)
            except SurefootError as error:  # returned, since the state is as it was: a replay would be long
                return error
            if before is None:
                state.coordinator.receive(state.form.given_of(given), leaves=given.leaves)
                record = state.form.completed(given, state.coordinator)
                self._write(state, transaction, state.form.handed_in, record, key, now)
                state.since += len(given.rounds)
                self._snapshot(state, transaction, now)
            if given.leaves or (before is not None and before.leaves):
                return None
            return self._lease(state, transaction, given.shard, given.lease + 1, now, commit)

        leases = [f"l:{given.shard}:{lease}" for lease in (given.lease, given.lease + 1)]
        return or_raise(self._transact(work, [key, *leases]))

    def granted(self, shard: str, lease: int, form: LeaseForm) -> tuple[AnyLeaseRecord, bytes] | None:
        """A lease that an edge was given; None once another one has followed."""
        found = self._journal.view(self.name).find(f"l:{shard}:{lease}")
        record = None if found is None else decode(found, form.lease)
        data = None if record is None else self._journal.attachment(self.name, record.digest)
        return None if record is None or data is None else (record, data)

    def lose(self, shard: str, *, reason: str, by: str = "") -> None:
        """Stop waiting for a shard (`Coordinator.lose`)."""
        record = Lost(shard=read_shard(shard), reason=read_text("reason", reason), by=read_text("by", by))
        if not reason.strip():
            raise InputError("`reason` must say why nobody waits for the shard any more, but is empty.")
        self.prepare()
        now = self.now()

        def work(state: HubState, transaction: Transaction) -> SurefootError | None:
            try:
                state.coordinator.lose(shard)
            except InputError as error:  # nobody of that name: the state is as it was
                return error
            self._write(state, transaction, records.LOST, record, None, now)
            return None

        or_raise(self._transact(work, []))

    def set_mode(self, mode: ModeName, *, reason: str, by: str) -> SharedMode:
        """Have all shards go over to a mode, each with its next lease at the latest."""
        self.prepare()
        now = self.now()

        def work(state: HubState, transaction: Transaction) -> SharedMode | SurefootError:
            before = state.mode
            if mode == before.mode and before.event:
                return before
            if mode not in (before.mode, *ALLOWED[before.mode]):
                return refused_mode(before.mode, mode)
            self._write(state, transaction, records.MODE, records.Mode(mode=mode, reason=reason, by=by), None, now)
            state.mode = SharedMode(mode, state.head.number)
            return state.mode

        return or_raise(self._transact(work, []))

    def look(self, at: Callable[[Any], T]) -> T:
        """Ask the coordinator something, events of other servers included."""
        self.prepare()
        return self._transact(lambda state, _: at(state.coordinator), [])

    def _snapshot(self, state: HubState, transaction: Transaction, now: float) -> None:
        """Attach the state to the chain if the newest snapshot is old, and remove the one before the last."""
        waiting = len(state.coordinator.policy.pending)
        if state.since < max(SNAPSHOT_ROUNDS, OPEN_ROUNDS * waiting):
            return
        number, hash_ = state.head
        previous = state.snapshots[-1][0] if state.snapshots else 0
        if len(state.snapshots) == 2:
            transaction.detach(state.snapshots[0][1])
        record = records.Snapshot(
            digest=transaction.attach(state.frozen()),
            number=number,
            hash=hash_,
            previous=previous,
            software=surefoot.__version__,
        )
        self._write(state, transaction, records.SNAPSHOT, record, None, now)
        state.snapshotted(record, state.head.number)

    def _lease(
        self,
        state: HubState,
        transaction: Transaction,
        shard: str,
        lease: int,
        now: float,
        commit: Commitment | None,
    ) -> Granted:
        found = transaction.find(f"l:{shard}:{lease}")
        if found is not None:
            record = decode(found, state.form.lease)
            return Granted(record, transaction.attachment(record.digest), state.mode)
        granted = state.coordinator.grant(shard)
        data = pack(granted._state)
        record = state.form.record_of(granted, state.coordinator, transaction.attach(data))
        if commit is not None and isinstance(record, BankLease):
            record = msgspec.structs.replace(record, coins=commit(lease))
        self._write(state, transaction, state.form.leased, record, f"l:{shard}:{lease}", now)
        self._drop_older(state, transaction, shard, lease - 1)
        return Granted(record, data, state.mode)

    def _drop_older(self, state: HubState, transaction: Transaction, shard: str, lease: int) -> None:
        """Remove the set of the lease before, which the shard has handed in."""
        found = transaction.find(f"l:{shard}:{lease}") if lease else None
        if found is not None:
            transaction.detach(decode(found, state.form.lease).digest)

    def _write(
        self, state: HubState, transaction: Transaction, kind: str, record: Any, key: str | None, now: float
    ) -> None:
        event = transaction.append(kind, encode(record), time=max(now, state.time), key=key)
        state.head, state.time = transaction.head, event.time

    def _transact(self, work: Callable[[HubState, Transaction], T], keys: list[str]) -> T:
        def alone(transaction: Transaction) -> T:
            state = self._caught_up(transaction)
            result = work(state, transaction)
            self._state = state
            return result

        with self._alone:
            return self._journal.transact(self.name, alone, keys=keys)

    def _caught_up(self, view: View) -> HubState:
        # None meanwhile: how far a state got that failed on the way is unknown.
        state, self._state = self._state, None
        if state is None or not view.follows(state.head):
            state = HubState(view)
        for event in view.read(state.head.number):
            state.apply(event)
        return state


def _check_hand_in(state: HubState, before: AnyHandedIn | None, given: AnyHandedIn, now: float, sent: float) -> None:
    """Raise unless a hand-in can be taken in, or is the one that was."""
    state.check_token(given.shard, given.token)
    if not isinstance(given, state.form.hand_in):
        raise InputError(f"What is handed in must be of the experiment's policy, but got {type(given).__name__}.")
    if before is not None:
        _check_same(state.form.plain(before), given)
        return
    checked = state.form.given_of(given)
    state.coordinator.check(checked, now=now, sent=sent)
    if given.leaves and state.coordinator.open_after(checked):
        raise InputError(
            f"Every round of shard {given.shard!r} must be settled before it leaves, but some are open: what others "
            "decided later would wait for their rewards for good."
        )


def _check_same(before: AnyHandedIn, given: AnyHandedIn) -> None:
    """Raise if a hand-in is repeated with another content: its rounds would count nowhere."""
    told = msgspec.structs.replace(before, leaves=given.leaves)
    if encode(told) != encode(given) or given.leaves > before.leaves:
        raise ConfigError(
            f"Lease {given.lease} of shard {given.shard!r} must be handed in once, but what is handed in now differs "
            "from what was taken in. Its journal is a copy from before: join with a new journal, by a new name."
        )

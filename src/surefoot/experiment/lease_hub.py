"""Where shards meet: the coordinator as a chain of events in a journal that all of them reach, and no server more.

Whoever hands in runs the coordinator, alone and on the true head, and leaves behind what it took in and what it leased.
"""

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

import surefoot
from surefoot import records
from surefoot.errors import ConfigError, InputError, JournalCorruptedError, JournalSchemaError, SurefootError
from surefoot.experiment.answer import or_raise
from surefoot.experiment.certificate_records import proof_record
from surefoot.experiment.question import read_text
from surefoot.experiment.shard_state import given_of, packed
from surefoot.experiment.snapshots import pack, unpack
from surefoot.experiment.state import decode, new_policy
from surefoot.journal import Event, Head, Journal, Transaction, View
from surefoot.leases import Coordinator, Lease
from surefoot.leases.lease import read_shard
from surefoot.policies import SafeLUCB
from surefoot.records import Created, HandedIn, Joined, LeaseRecord, Lost, encode, number

T = TypeVar("T")
SNAPSHOT_ROUNDS = 20_000  # handed in between two snapshots: half a second of a replay
OPEN_ROUNDS = 16  # and so many for each that is open, since a snapshot holds them


class HubSnapshot(msgspec.Struct, forbid_unknown_fields=True):
    """The coordinator, who joined with which journal, and what the chain says of earlier snapshots."""

    coordinator: dict[str, Any]
    tokens: dict[str, str]
    time: float
    snapshots: list[tuple[int, str]]


class HubState:
    """The coordinator at a head of the chain."""

    def __init__(self, view: View) -> None:
        event = next(view.read(limit=1))
        self.created = decode(event, Created)
        if self.created.format != records.SHARDED or self.created.shard is not None:
            raise ConfigError(f"Experiment {view.name!r} must be sharded to be joined, but has one ledger: open it.")
        policy = new_policy(self.created)
        assert isinstance(policy, SafeLUCB)
        self.coordinator = Coordinator(policy, skew=self.created.skew or 0.0)
        self.first, self.tokens = event.hash, dict[str, str]()
        self.head, self.time = event.head, event.time
        self.snapshots: list[tuple[int, str]] = []  # event number and attachment, the newest two
        self.since = 0  # rounds handed in since the newest snapshot
        self._resume(view)

    def _resume(self, view: View) -> None:
        """Go on from the newest snapshot that can be used: it only saves time."""
        event = view.latest(records.SNAPSHOT)
        while event is not None:
            record = decode(event, records.Snapshot)
            data, head = view.attachment(record.digest), Head(record.number, record.hash)
            if data is not None and view.follows(head) and self._thaw(data):
                self.head = head
                return
            event = next(view.read(record.previous - 1, limit=1)) if record.previous else None

    def _thaw(self, data: bytes) -> bool:
        try:
            found = unpack(data, HubSnapshot)
            coordinator = Coordinator.from_state(found.coordinator)
        except (SurefootError, ValueError, TypeError, LookupError, msgspec.MsgspecError):  # of another version
            return False
        self.coordinator, self.tokens, self.time = coordinator, found.tokens, found.time
        self.snapshots = found.snapshots
        return True

    def frozen(self) -> bytes:
        """The state as bytes, to the bit."""
        return pack(HubSnapshot(self.coordinator.state(), self.tokens, self.time, self.snapshots))

    def apply(self, event: Event) -> None:
        """Apply the event that follows the head."""
        if event.previous != self.head.hash:
            raise JournalCorruptedError(f"Event {event.number} must follow {self.head}, but does not.")
        if event.kind == records.JOINED:
            joined = decode(event, Joined)
            self.coordinator.admit(joined.shard, now=joined.since)
            self.tokens[joined.shard] = joined.token
        elif event.kind == records.HANDED_IN:
            given = decode(event, HandedIn)
            self.coordinator.receive(given_of(given), leaves=given.leaves)
            self.since += len(given.rounds)
        elif event.kind == records.SNAPSHOT:
            self.snapshotted(decode(event, records.Snapshot), event.number)
        elif event.kind == records.LEASED:
            lease = decode(event, LeaseRecord)
            self.coordinator.granted(lease.shard, lease.amount)
        elif event.kind == records.LOST:
            self.coordinator.lose(decode(event, Lost).shard)
        else:
            raise JournalSchemaError(f"Event {event.number} is of an unknown kind, {event.kind!r}: update surefoot.")
        self.head, self.time = event.head, max(self.time, event.time)

    def snapshotted(self, record: records.Snapshot, number: int) -> None:
        """Remember where the newest snapshots are."""
        # Two, so that another is left where the newest is damaged.
        self.snapshots, self.since = [*self.snapshots[-1:], (number, record.digest)], 0

    def check_token(self, shard: str, token: str | None) -> None:
        """Raise unless a shard comes with the journal that it joined with: two would spend one lease twice."""
        if self.tokens.get(shard) != token:
            raise ConfigError(
                f"Shard {shard!r} must come with the journal that it joined with, but this is another one. Join by a "
                "name that no shard has had; the lease of a journal that is gone stays charged."
            )


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
        """Make sure that somebody answers, and that the next transaction is short: others wait for it."""
        with self._alone:
            if self._state is None:
                self._state = self._caught_up(self._journal.view(self.name))
                return
        self.now()

    def join(self, shard: str, token: str, *, most: int | None = None) -> tuple[LeaseRecord, bytes | None]:
        """Let a shard in, and give its first lease; the same one again, if its answer was lost.

        Where so many as `most` have joined and not left, nobody else is let in.
        """
        self.prepare()
        now = self.now()

        def work(state: HubState, transaction: Transaction) -> tuple[LeaseRecord, bytes | None] | SurefootError:
            if transaction.find(f"j:{shard}") is None:
                present = sum(not member.is_away for member in state.coordinator.members.all.values())
                if most is not None and present >= most:
                    return ConfigError(
                        f"At most {most} shards must share a floor for an edge to join, but there are {present}. Have "
                        "some leave, stop waiting for those that are lost, or raise the server's `limits.edges`."
                    )
                state.coordinator.admit(shard, now=now)
                since = state.coordinator.members.find(shard).through
                joined = Joined(shard=shard, since=since, token=token)
                self._write(state, transaction, records.JOINED, joined, f"j:{shard}", now)
                state.tokens[shard] = token
            else:
                self._check_place(state, transaction, shard, token, 1, is_ended=False)
            return self._lease(state, transaction, shard, 1, now)

        return or_raise(self._transact(work, [f"j:{shard}", f"l:{shard}:1", f"h:{shard}:1"]))

    def confirm(self, shard: str, token: str, lease: int, *, is_ended: bool) -> None:
        """Raise unless a shard that is opened again stands where the hub has it: its lease may be spent already."""
        self.prepare()

        def work(state: HubState, transaction: Transaction) -> None:
            self._check_place(state, transaction, shard, token, lease, is_ended=is_ended)

        self._transact(work, [f"h:{shard}:{lease}"])

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

    def take(self, given: HandedIn, *, sent: float) -> tuple[LeaseRecord, bytes | None] | None:
        """Take in what a shard did, and lease to it anew unless it leaves; once, however often it is said."""
        now, key = self.now(), f"h:{given.shard}:{given.lease}"

        def work(state: HubState, transaction: Transaction) -> tuple[LeaseRecord, bytes | None] | SurefootError | None:
            found = transaction.find(key)
            before = None if found is None else decode(found, HandedIn)
            try:
                _check_hand_in(state, before, given, now, sent)
            except SurefootError as error:  # returned, since the state is as it was: a replay would be long
                return error
            if before is None:
                state.coordinator.receive(given_of(given), leaves=given.leaves)
                self._write(state, transaction, records.HANDED_IN, _proved(given, state.coordinator), key, now)
                state.since += len(given.rounds)
                self._snapshot(state, transaction, now)
            if given.leaves or (before is not None and before.leaves):
                return None
            return self._lease(state, transaction, given.shard, given.lease + 1, now)

        return or_raise(self._transact(work, [key, f"l:{given.shard}:{given.lease + 1}"]))

    def granted(self, shard: str, lease: int) -> tuple[LeaseRecord, bytes] | None:
        """A lease that a shard was given; None once another one has followed."""
        found = self._journal.view(self.name).find(f"l:{shard}:{lease}")
        record = None if found is None else decode(found, LeaseRecord)
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

    def look(self, at: Callable[[Coordinator], T]) -> T:
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
        self, state: HubState, transaction: Transaction, shard: str, lease: int, now: float
    ) -> tuple[LeaseRecord, bytes | None]:
        found = transaction.find(f"l:{shard}:{lease}")
        if found is not None:
            record = decode(found, LeaseRecord)
            return record, transaction.attachment(record.digest)
        granted, coordinator = state.coordinator.grant(shard), state.coordinator
        data = packed(granted)
        digest = transaction.attach(data)
        record = _record(granted, coordinator, digest)
        self._write(state, transaction, records.LEASED, record, f"l:{shard}:{lease}", now)
        self._drop_older(transaction, shard, lease - 1)
        return record, data

    def _drop_older(self, transaction: Transaction, shard: str, lease: int) -> None:
        """Remove the set of the lease before, which the shard has handed in."""
        found = transaction.find(f"l:{shard}:{lease}") if lease else None
        if found is not None:
            transaction.detach(decode(found, LeaseRecord).digest)

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


def _check_hand_in(state: HubState, before: HandedIn | None, given: HandedIn, now: float, sent: float) -> None:
    """Raise unless a hand-in can be taken in, or is the one that was."""
    state.check_token(given.shard, given.token)
    if before is not None:
        _check_same(before, given)
        return
    checked = given_of(given)
    state.coordinator.check(checked, now=now, sent=sent)
    if given.leaves and state.coordinator.open_after(checked):
        raise InputError(
            f"Every round of shard {given.shard!r} must be settled before it leaves, but some are open: what others "
            "decided later would wait for their rewards for good."
        )


def _check_same(before: HandedIn, given: HandedIn) -> None:
    """Raise if a hand-in is repeated with another content: its rounds would count nowhere."""
    told = msgspec.structs.replace(before, proof=None, proved=None, refuted=False, leaves=given.leaves)
    if encode(told) != encode(given) or given.leaves > before.leaves:
        raise ConfigError(
            f"Lease {given.lease} of shard {given.shard!r} must be handed in once, but what is handed in now differs "
            "from what was taken in. Its journal is a copy from before: join with a new journal, by a new name."
        )


def _record(lease: Lease, coordinator: Coordinator, digest: str) -> LeaseRecord:
    return LeaseRecord(
        shard=lease.shard,
        number=lease.number,
        amount=lease.amount,
        since=lease.since,
        watermark=number(lease.watermark),
        merged=lease.merged,
        observations=int(coordinator.policy.ridge.count),
        digest=digest,
    )


def _proved(given: HandedIn, coordinator: Coordinator) -> HandedIn:
    """What a shard handed in, with what is proved of all rounds since; nothing, once the alarm is on."""
    if coordinator.policy.alarm is not None:
        return msgspec.structs.replace(given, refuted=True)
    is_dual = coordinator.policy.settings.get("radius") == "dual"
    proof = proof_record(coordinator.proof, with_sets=is_dual)
    return msgspec.structs.replace(given, proof=proof, proved=coordinator.proved)

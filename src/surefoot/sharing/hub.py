"""Where shards meet: the coordinator as a chain of events in a journal that all of them reach, and no server more.

Whoever hands in runs the coordinator, alone and on the true head, and leaves behind what it took in and what it leased.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import msgspec

from surefoot.errors import ConfigError, InputError, JournalCorruptedError, JournalSchemaError, ModeError, SurefootError
from surefoot.journal import Event, Head, Journal, Transaction, View
from surefoot.policies.by_name import first_policy
from surefoot.rounds import Record, decode, encode, events
from surefoot.rounds.events import Created, HandIn, Joined, Lease, Lost, ModeName
from surefoot.rounds.format import pack, unpack
from surefoot.sharing.coordinator import Coordinator, read_shard
from surefoot.version import VERSION

LOG = logging.getLogger("surefoot.sharing")
T = TypeVar("T")
SNAPSHOT_ROUNDS = 20_000  # handed in between two snapshots: half a second of a replay
OPEN_ROUNDS = 16  # and so many for each that is open, since a snapshot holds them
LEASED_BLOCKS = 16  # of coins, that a lease commits to
NEXT_MODES: dict[ModeName, tuple[ModeName, ...]] = {
    "shadow": ("guarded", "paused"), "guarded": ("paused",), "paused": ("guarded",),
}  # fmt: skip


class SharedMode(NamedTuple):
    """The mode of all shards, and the number of the event that says so; 0 where nobody has changed it."""

    mode: ModeName
    event: int


class Granted(NamedTuple):
    """A lease, what the shard decides by (None where that was lost), and the mode of all shards.

    secrets: of an edge of a guard, those of its coins
    """

    lease: Lease
    data: bytes | None
    mode: SharedMode
    secrets: tuple[bytes, ...] = ()


class EdgeTerms(NamedTuple):
    """What a lease to an edge says beside its amount.

    expires:     from when on only the baseline plays
    event_bytes: the most that an event may take, which has to be sent
    proof:       by which the hub knows a lease that it granted, by its number
    commitment:  of a guard, the SHA-256 of the secret of a block of coins, by its number
    """

    expires: float
    event_bytes: int
    proof: Callable[[int], str]
    commitment: Callable[[int], str] | None = None


class Room(NamedTuple):
    """How many shards may be there for an edge to join: in all, and of those that the same caller had let in."""

    shards: int
    of_caller: int

    def refusal(self, state: "HubState", by: str) -> ConfigError | None:
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


class HubSnapshot(msgspec.Struct, forbid_unknown_fields=True):
    """The coordinator, who joined with which journal, and what the chain says of earlier snapshots."""

    coordinator: dict[str, Any]
    tokens: dict[str, str]
    time: float
    snapshots: list[tuple[int, str]]
    mode: SharedMode
    by: dict[str, str]


class HubState:
    """The coordinator at a head of the chain: events in, state out, the same bits in every server."""

    def __init__(self, view: View, *, resumes: bool = True) -> None:
        event = next(view.read(limit=1))
        self.created = decode(event, Created)
        if not self.created.is_hub:
            raise ConfigError(f"Experiment {view.name!r} must be sharded to be joined, but has one ledger: open it.")
        created = self.created
        policy = first_policy(created.policy, created.settings, policy_id=created.policy_id)
        self.coordinator = Coordinator(policy, skew=created.skew or 0.0)
        self.first, self.tokens, self.by = event.hash, dict[str, str](), dict[str, str]()
        self.head, self.time = event.head, event.time
        self.mode = SharedMode(created.mode, 0)
        self.snapshots: list[tuple[int, str]] = []  # event number and attachment, the newest two
        self.since = 0  # rounds handed in since the newest snapshot
        if resumes:
            self._resume(view)

    def _resume(self, view: View) -> None:
        """Go on from the newest snapshot that can be used: it only saves time."""
        event = view.latest(events.SNAPSHOT)
        while event is not None:
            record = decode(event, events.Snapshot)
            data, head = view.attachment(record.digest), Head(record.number, record.hash)
            if data is not None and view.follows(head) and self._thaw(data):
                # The mode as its event says, which no snapshot can: one from after it is applied once more.
                newest = view.latest(events.MODE)
                self.head, self.mode = head, self.mode if newest is None else _mode_of(newest)
                return
            event = next(view.read(record.previous - 1, limit=1)) if record.previous else None

    def _thaw(self, data: bytes) -> bool:
        try:
            frozen = unpack(data, HubSnapshot)
            coordinator = Coordinator.from_state(frozen.coordinator)
        except (SurefootError, ValueError, TypeError, LookupError, msgspec.MsgspecError):  # of another version
            return False
        self.coordinator, self.tokens, self.time = coordinator, frozen.tokens, frozen.time
        self.snapshots, self.by = frozen.snapshots, frozen.by
        return True

    def frozen(self) -> bytes:
        """The state as bytes, to the bit."""
        return pack(HubSnapshot(self.coordinator.state(), self.tokens, self.time, self.snapshots, self.mode, self.by))

    def apply(self, event: Event) -> None:
        """Apply the event that follows the head."""
        if event.previous != self.head.hash:
            raise JournalCorruptedError(f"Event {event.number} must follow {self.head}, but does not.")
        if event.kind == events.JOINED:
            joined = decode(event, Joined)
            self.coordinator.admit(joined.shard, now=joined.since)
            self.joined(joined)
        elif event.kind == events.HANDED_IN:
            hand_in: Any = decode(event, self.coordinator.pot.hand_in)
            self.coordinator.receive(hand_in)
            self.since += len(hand_in.rounds)
        elif event.kind == events.SNAPSHOT:
            self.snapshotted(decode(event, events.Snapshot), event.number)
        elif event.kind == events.LEASED:
            self.coordinator.granted(decode(event, Lease))
        elif event.kind == events.LOST:
            self.coordinator.lose(decode(event, Lost).shard)
        elif event.kind == events.MODE:
            self.mode = _mode_of(event)
        else:
            raise JournalSchemaError(f"Event {event.number} is of an unknown kind, {event.kind!r}: update surefoot.")
        self.head, self.time = event.head, max(self.time, event.time)

    def joined(self, record: Joined) -> None:
        """Remember with which journal a shard joined, and by whom."""
        self.tokens[record.shard] = record.token
        if record.by:
            self.by[record.shard] = record.by

    def present(self, by: str | None = None) -> int:
        """Shards that have not left and are not lost; those only that somebody had let in, if given."""
        members = self.coordinator.members.all.items()
        return sum(not one.is_away and (by is None or self.by.get(name) == by) for name, one in members)

    def snapshotted(self, record: events.Snapshot, number: int) -> None:
        """Remember where the newest snapshots are."""
        # Two, so that another is left where the newest is damaged.
        self.snapshots, self.since = [*self.snapshots[-1:], (number, record.digest)], 0

    def check_token(self, shard: str, token: str | None) -> None:
        """Raise unless a shard comes with the journal that it joined with: two would spend one lease twice."""
        if self.tokens.get(shard) != token:
            raise refused_token(shard)


class Hub:
    """One server's way to the ledger that shards share."""

    def __init__(self, journal: Journal, name: str, clock: Callable[[], float]) -> None:
        self._journal, self.name, self._clock = journal, name, clock
        self._state: HubState | None = None  # until the hub is asked for the first time
        self._alone = threading.Lock()

    def created(self) -> tuple[Created, str]:
        """What the experiment was created with, and the hash of that event."""
        state = HubState(self._journal.view(self.name), resumes=False)
        return state.created, state.first

    def now(self) -> float:
        """The clock of the journal, or where it has none the server's; raises while the journal is away."""
        time = self._journal.clock()
        return self._clock() if time is None else time

    @property
    def chain(self) -> str:
        """What a shard calls its own chain."""
        return self.name

    @property
    def may_change_mode(self) -> bool:
        """A server may change the mode of all of them."""
        return True

    def prepare(self, chain: View | None = None) -> None:
        """Read what is there before the first transaction, which is short then: others wait for it."""
        with self._alone:
            if self._state is None:
                self._state = self._caught_up(self._journal.view(self.name))

    def join(
        self, shard: str, token: str, *, by: str = "", room: Room | None = None, terms: EdgeTerms | None = None
    ) -> Granted:
        """Let a shard in, and give its first lease; the same one again, if its answer was lost.

        Nobody else is let in where there is no `room`. An edge is leased to on `terms`.
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
                self._write(state, transaction, events.JOINED, joined, f"j:{shard}", now)
                state.joined(joined)
            else:
                self._check_place(state, transaction, shard, token, 1, is_ended=False)
            return self._lease(state, transaction, shard, 1, now, terms)

        return self._transact(work, [f"j:{shard}", f"l:{shard}:1", f"h:{shard}:1"])

    def confirm(self, shard: str, token: str, lease: Lease | int, *, is_ended: bool) -> None:
        """Raise unless a shard that is opened again stands where the hub has it: its lease may be spent already."""
        lease = lease.number if isinstance(lease, Lease) else lease
        self.prepare()
        now = self.now()

        def work(state: HubState, transaction: Transaction) -> SurefootError | None:
            behind = self._behind(state, transaction, shard, token, lease, now)
            if behind is None:
                self._check_place(state, transaction, shard, token, lease, is_ended=is_ended)
            return behind

        self._transact(work, [f"h:{shard}:{lease}", f"l:{shard}:{lease}"])

    def check_granted(self, shard: str, token: str, lease: int, *, is_proved: bool) -> None:
        """Raise unless the chain holds a lease of an edge, who joined with that token.

        One that this hub granted (`is_proved`), and that is not there, was lost: all shards are paused then.
        """
        view = self._journal.view(self.name)
        joined = view.find(f"j:{shard}")
        if joined is not None and decode(joined, Joined).token != token:
            raise refused_token(shard)
        if view.find(f"l:{shard}:{lease}") is not None:
            return
        if not is_proved:
            raise ConfigError(f"Edge {shard!r} must go by a lease that was granted to it, but lease {lease} was not.")
        self.prepare()
        now = self.now()
        self._transact(lambda state, it: self._behind(state, it, shard, token, lease, now), [])

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
        missing = f"lease {lease} of shard {shard!r}, but it ends with lease {0 if known is None else known.lease}"
        if state.mode.mode == "guarded":
            reason = f"an older copy took the place of this journal: it must hold {missing}"
            self._write(state, transaction, events.MODE, events.Mode(mode="paused", reason=reason), None, now)
            state.mode = SharedMode("paused", state.head.number)
            LOG.error("All shards of %r are paused: %s.", self.name, reason)
        return ConfigError(
            f"The journal where the shards of {self.name!r} meet must hold {missing}: an older copy took its place, "
            "and would lease again what was spent since. All shards are paused. Put the newest journal back; if it is "
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

    def take(
        self, hand_in: Any, *, sent: float, chain: View | None = None, terms: EdgeTerms | None = None
    ) -> Granted | None:
        """Take in what a shard did, and lease to it anew unless it leaves; once, however often it is said."""
        now, key = self.now(), f"h:{hand_in.shard}:{hand_in.lease}"

        def work(state: HubState, transaction: Transaction) -> Granted | SurefootError | None:
            pot = state.coordinator.pot
            behind = self._behind(state, transaction, hand_in.shard, hand_in.token, hand_in.lease, now)
            if behind is not None:
                return behind
            event = transaction.find(key)
            before: Any = None if event is None else decode(event, pot.hand_in)
            try:
                _check_hand_in(state, before, hand_in, now, sent)
            except SurefootError as error:  # returned, since the state is as it was: a replay would be long
                return error
            if before is None:
                state.coordinator.receive(hand_in)
                self._write(state, transaction, events.HANDED_IN, pot.complete(hand_in), key, now)
                state.since += len(hand_in.rounds)
                self._snapshot(state, transaction, now)
            if hand_in.leaves or (before is not None and before.leaves):
                return None
            return self._lease(state, transaction, hand_in.shard, hand_in.lease + 1, now, terms)

        leases = [f"l:{hand_in.shard}:{lease}" for lease in (hand_in.lease, hand_in.lease + 1)]
        return self._transact(work, [key, *leases])

    def granted(self, shard: str, lease: int) -> tuple[Lease, bytes] | None:
        """A lease that an edge was given; None once another one has followed."""
        event = self._journal.view(self.name).find(f"l:{shard}:{lease}")
        record = None if event is None else decode(event, Lease)
        data = None if record is None else self._journal.attachment(self.name, record.digest)
        return None if record is None or data is None else (record, data)

    def mode_at(self, number: int) -> ModeName:
        """The mode of all shards, as an event says it."""
        event = next(self._journal.view(self.name).read(max(0, number - 1), limit=1), None)
        if event is None or (event.number, event.kind) != (number, events.MODE):
            raise InputError(f"Event {number} of {self.name!r} must say a mode, but does not.")
        return decode(event, events.Mode).mode

    def mode_of_lease(self, shard: str, lease: int) -> int:
        """The event that said the mode of all shards when a lease was granted; 0 where none did."""
        view = self._journal.view(self.name)
        granted = view.find(f"l:{shard}:{lease}")
        until = 0 if granted is None else granted.number
        return next((event.number for event in view.newest_of(events.MODE, until) if event.number < until), 0)

    def lose(self, shard: str, *, reason: str, by: str = "") -> None:
        """Stop waiting for a shard (`Coordinator.lose` says when that is valid)."""
        if not isinstance(reason, str) or not reason.strip() or not isinstance(by, str):
            raise InputError(
                "`reason` must be a text that says why nobody waits for the shard any more, and `by` one that says "
                f"who, but got {reason=!r:.80} and {by=!r:.80}."
            )
        record = Lost(shard=read_shard(shard), reason=reason, by=by)
        self.prepare()
        now = self.now()

        def work(state: HubState, transaction: Transaction) -> SurefootError | None:
            try:
                state.coordinator.lose(shard)
            except InputError as error:  # nobody of that name: the state is as it was
                return error
            self._write(state, transaction, events.LOST, record, None, now)
            return None

        self._transact(work, [])

    def set_mode(self, mode: ModeName, *, reason: str, by: str) -> SharedMode:
        """Have all shards go over to a mode, each with its next lease at the latest."""
        self.prepare()
        now = self.now()

        def work(state: HubState, transaction: Transaction) -> SharedMode | SurefootError:
            before = state.mode
            if mode == before.mode and before.event:
                return before
            if mode not in (before.mode, *NEXT_MODES[before.mode]):
                return refused_mode(before.mode, mode)
            self._write(state, transaction, events.MODE, events.Mode(mode=mode, reason=reason, by=by), None, now)
            state.mode = SharedMode(mode, state.head.number)
            return state.mode

        return self._transact(work, [])

    def look(self, at: Callable[[HubState, View], T]) -> T:
        """Read something off the state at the journal's head, events of other servers included."""
        with self._alone:
            view = self._journal.view(self.name)
            self._state = self._caught_up(view)
            return at(self._state, view)

    def _snapshot(self, state: HubState, transaction: Transaction, now: float) -> None:
        """Attach the state to the chain if the newest snapshot is old, and remove the one before the last."""
        waiting = len(state.coordinator.policy.pending)
        if state.since < max(SNAPSHOT_ROUNDS, OPEN_ROUNDS * waiting):
            return
        number, hash_ = state.head
        previous = state.snapshots[-1][0] if state.snapshots else 0
        if len(state.snapshots) == 2:
            transaction.detach(state.snapshots[0][1])
        digest = transaction.attach(state.frozen())
        record = events.Snapshot(digest=digest, number=number, hash=hash_, previous=previous, software=VERSION)
        self._write(state, transaction, events.SNAPSHOT, record, None, now)
        state.snapshotted(record, state.head.number)

    def _lease(
        self,
        state: HubState,
        transaction: Transaction,
        shard: str,
        lease: int,
        now: float,
        terms: EdgeTerms | None,
    ) -> Granted:
        event = transaction.find(f"l:{shard}:{lease}")
        if event is not None:
            record = decode(event, Lease)
            return Granted(record, transaction.attachment(record.digest), state.mode)
        granted, frozen = state.coordinator.grant(shard)
        data = pack(frozen)
        record = msgspec.structs.replace(granted, digest=transaction.attach(data))
        if terms is not None:
            block = state.coordinator.members.find(shard).rounds // events.BLOCK
            blocks = range(block, block + LEASED_BLOCKS)
            coins = None if terms.commitment is None else [terms.commitment(one) for one in blocks]
            record = msgspec.structs.replace(
                record, expires=terms.expires, coins=coins, block=block, event_bytes=terms.event_bytes,
                proof=terms.proof(lease),
            )  # fmt: skip
        self._write(state, transaction, events.LEASED, record, f"l:{shard}:{lease}", now)
        # The set of the lease before, which the shard has handed in, is of no use any more.
        older = transaction.find(f"l:{shard}:{lease - 1}") if lease > 1 else None
        if older is not None:
            transaction.detach(decode(older, Lease).digest)
        return Granted(record, data, state.mode)

    def _write(
        self, state: HubState, transaction: Transaction, kind: str, record: Record, key: str | None, now: float
    ) -> None:
        event = transaction.append(kind, encode(record), time=max(now, state.time), key=key)
        state.head, state.time = transaction.head, event.time

    def _transact(self, work: Callable[[HubState, Transaction], T | SurefootError], keys: list[str]) -> T:
        """Work alone on the true head; an error that is returned, not raised, leaves the state as it is."""

        def alone(transaction: Transaction) -> T | SurefootError:
            state = self._caught_up(transaction)
            result = work(state, transaction)
            self._state = state
            return result

        with self._alone:
            result = self._journal.transact(self.name, alone, keys=keys)
        if isinstance(result, SurefootError):
            raise result
        return result

    def _caught_up(self, view: View) -> HubState:
        # None meanwhile: how far a state got that failed on the way is unknown.
        state, self._state = self._state, None
        if state is None or not view.follows(state.head):
            state = HubState(view)
        for event in view.read(state.head.number):
            state.apply(event)
        return state


def refused_token(shard: str) -> ConfigError:
    """Why a shard cannot go on with a journal."""
    return ConfigError(
        f"Shard {shard!r} must come with the journal that it joined with, but this is another one. Join by a name that "
        "no shard has had; the lease of a journal that is gone stays charged."
    )


def refused_mode(before: ModeName, mode: ModeName) -> ModeError:
    """Why an experiment cannot go over to a mode."""
    return ModeError(
        f"An experiment goes from {before!r} to {' or '.join(map(repr, NEXT_MODES[before]))}, but got {mode!r}."
    )


def hub_snapshots(view: View) -> Iterator[tuple[int, bool, HubSnapshot, HubSnapshot]]:
    """Snapshots of a hub beside what a replay of its events comes to: number, whether ours, and both."""
    state = HubState(view, resumes=False)
    for event in view.read(1):
        if event.kind == events.SNAPSHOT:
            record = decode(event, events.Snapshot)
            data = view.attachment(record.digest)
            try:
                frozen = None if data is None else unpack(data, HubSnapshot)
            except msgspec.MsgspecError:  # nobody goes on from what cannot be read
                frozen = None
            if frozen is not None:
                yield event.number, record.software == VERSION, frozen, unpack(state.frozen(), HubSnapshot)
        state.apply(event)


def _mode_of(event: Event) -> SharedMode:
    return SharedMode(decode(event, events.Mode).mode, event.number)


def _check_hand_in(state: HubState, before: Any, hand_in: HandIn, now: float, sent: float) -> None:
    """Raise unless a hand-in can be taken in, or is the one that was."""
    state.check_token(hand_in.shard, hand_in.token)
    if before is not None:
        _check_same(state.coordinator.pot.plain(before), hand_in)
        return
    state.coordinator.check(hand_in, now=now, sent=sent)
    if hand_in.leaves and state.coordinator.open_after(hand_in):
        raise InputError(
            f"Every round of shard {hand_in.shard!r} must be settled before it leaves, but some are open: what others "
            "decided later would wait for their rewards for good."
        )


def _check_same(before: HandIn, hand_in: HandIn) -> None:
    """Raise if a hand-in is repeated with another content: its rounds would count nowhere."""
    again = msgspec.structs.replace(before, leaves=hand_in.leaves)
    if encode(again) != encode(hand_in) or hand_in.leaves > before.leaves:
        raise ConfigError(
            f"Lease {hand_in.lease} of shard {hand_in.shard!r} must be handed in once, but what is handed in now "
            "differs from what was taken in. Its journal is a copy from before: join with a new journal, by a new name."
        )

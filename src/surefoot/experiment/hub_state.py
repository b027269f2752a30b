"""The coordinator at a head of the chain where shards meet: events in, state out, the same bits in every server."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from surefoot import __version__, records
from surefoot.errors import ConfigError, JournalCorruptedError, JournalSchemaError, SurefootError
from surefoot.experiment.lease_forms import form_of
from surefoot.experiment.snapshots import pack, unequal, unpack
from surefoot.experiment.state import decode, new_policy
from surefoot.journal import Event, Head, View
from surefoot.records import Created, Joined, Lost, ModeName


class SharedMode(NamedTuple):
    """The mode of all shards, and the number of the event that says so; 0 where nobody has changed it."""

    mode: ModeName
    event: int


class HubSnapshot(msgspec.Struct, forbid_unknown_fields=True):
    """The coordinator, who joined with which journal, and what the chain says of earlier snapshots."""

    coordinator: dict[str, Any]
    tokens: dict[str, str]
    time: float
    snapshots: list[tuple[int, str]]
    mode: SharedMode | None = None
    by: dict[str, str] = {}


class HubState:
    """The coordinator at a head of the chain."""

    def __init__(self, view: View, *, resumes: bool = True) -> None:
        event = next(view.read(limit=1))
        self.created = decode(event, Created)
        if self.created.format != records.SHARDED or self.created.shard is not None:
            raise ConfigError(f"Experiment {view.name!r} must be sharded to be joined, but has one ledger: open it.")
        self.form = form_of(self.created)
        self.coordinator: Any = self.form.coordinator(new_policy(self.created), skew=self.created.skew or 0.0)  # type: ignore[arg-type]
        self.first, self.tokens, self.by = event.hash, dict[str, str](), dict[str, str]()
        self.head, self.time = event.head, event.time
        self.mode = SharedMode(self.created.mode, 0)
        self.snapshots: list[tuple[int, str]] = []  # event number and attachment, the newest two
        self.since = 0  # rounds handed in since the newest snapshot
        if resumes:
            self._resume(view)

    def _resume(self, view: View) -> None:
        """Go on from the newest snapshot that can be used: it only saves time."""
        event = view.latest(records.SNAPSHOT)
        while event is not None:
            record = decode(event, records.Snapshot)
            data, head = view.attachment(record.digest), Head(record.number, record.hash)
            if data is not None and view.follows(head) and self._thaw(data):
                self.head, self.mode = head, self._newest_mode(view)
                return
            event = next(view.read(record.previous - 1, limit=1)) if record.previous else None

    def _newest_mode(self, view: View) -> SharedMode:
        """As its event says, which no snapshot can: one from after it is applied once more."""
        event = view.latest(records.MODE)
        return self.mode if event is None else _mode_of(event)

    def _thaw(self, data: bytes) -> bool:
        try:
            found = unpack(data, HubSnapshot)
            coordinator = self.form.coordinator.from_state(found.coordinator)
        except (SurefootError, ValueError, TypeError, LookupError, msgspec.MsgspecError):  # of another version
            return False
        self.coordinator, self.tokens, self.time = coordinator, found.tokens, found.time
        self.snapshots, self.by = found.snapshots, found.by
        return True

    def frozen(self) -> bytes:
        """The state as bytes, to the bit."""
        return pack(HubSnapshot(self.coordinator.state(), self.tokens, self.time, self.snapshots, self.mode, self.by))

    def apply(self, event: Event) -> None:
        """Apply the event that follows the head."""
        if event.previous != self.head.hash:
            raise JournalCorruptedError(f"Event {event.number} must follow {self.head}, but does not.")
        if event.kind == records.JOINED:
            joined = decode(event, Joined)
            self.coordinator.admit(joined.shard, now=joined.since)
            self.joined(joined)
        elif event.kind == self.form.handed_in:
            given = decode(event, self.form.hand_in)
            self.coordinator.receive(self.form.given_of(given), leaves=given.leaves)
            self.since += len(given.rounds)
        elif event.kind == records.SNAPSHOT:
            self.snapshotted(decode(event, records.Snapshot), event.number)
        elif event.kind == self.form.leased:
            lease = decode(event, self.form.lease)
            self.coordinator.granted(lease.shard, self.form.amount_of(lease))
        elif event.kind == records.LOST:
            self.coordinator.lose(decode(event, Lost).shard)
        elif event.kind == records.MODE:
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


def _mode_of(event: Event) -> SharedMode:
    return SharedMode(decode(event, records.Mode).mode, event.number)


def differing_of_hub(view: View) -> Iterator[tuple[int, str]]:
    """Snapshots of a hub that are not what a replay of its events comes to: the event's number, and what differs."""
    state = HubState(view, resumes=False)
    for event in view.read(1):
        if event.kind == records.SNAPSHOT:
            record = decode(event, records.Snapshot)
            data = view.attachment(record.digest)
            for place in () if data is None else _differing(data, state, is_ours=record.software == __version__):
                yield event.number, f"its {place} is not what the events come to"
        state.apply(event)


def _differing(data: bytes, state: HubState, *, is_ours: bool) -> Iterator[str]:
    try:
        frozen = unpack(data, HubSnapshot)
    except msgspec.MsgspecError:  # nobody goes on from what cannot be read
        return
    ours = unpack(state.frozen(), HubSnapshot)
    if frozen.mode is None:  # from before it was kept here
        ours.mode = None
    if not is_ours:
        # The facts that a search found worth keeping are in it: those of another version may be others.
        for one in (frozen, ours):
            one.coordinator["policy"].pop("memory", None)
    yield from unequal(frozen, ours)

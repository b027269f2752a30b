"""Snapshots: a state as bytes, so that opening an experiment does not replay all of it.

They only save time, and the mode is not theirs to say: it is read from its event. A snapshot that is missing, damaged,
or of an unknown format is skipped for the one before it and finally for the events themselves; the state is the same to
the bit.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from surefoot.errors import JournalError, SurefootError
from surefoot.experiment.state import Counts, OpenWindow, State, UnconfirmedRound, Windows, first_state
from surefoot.journal import Head, View
from surefoot.policies.policy import Policy
from surefoot.rounds import decode, encode, events
from surefoot.rounds.events import Acknowledged, Lease, Mode, ModeName
from surefoot.rounds.format import pack, unpack
from surefoot.sharing.hub import hub_snapshots
from surefoot.version import VERSION

FORMAT = 4
SAME = 1e-9  # what may differ between two builds of the core, or two versions of it
ALL = 1 << 31  # more events than there are of one kind
# Of a policy under a lease, what does not rest on what the lease knew.
OF_ROUNDS = (
    "settings",
    "rounds",
    "pending_rounds",
    "pending_is_learner",
    "waiting_rounds",
    "waiting_rewards",
    "settled",
    "parts",
)


class FrozenLease(msgspec.Struct, forbid_unknown_fields=True):
    """What a snapshot keeps of a shard beside its policy; records as they are written."""

    lease: bytes | None
    since: bytes
    due: bytes | None


class Frozen(msgspec.Struct, forbid_unknown_fields=True):
    """A state, in full."""

    format: int
    number: int
    hash: str
    time: float
    mode: ModeName
    policy: dict[str, Any]
    waiting: list[OpenWindow]
    counts: Counts
    snapshots: list[tuple[int, str]]
    open_ids: dict[int, str]
    answer: Acknowledged | None
    unconfirmed: list[UnconfirmedRound]
    shard: FrozenLease | None


def freeze(state: State) -> bytes:
    """The state as bytes, to the bit."""
    shard = state.shard
    frozen = None
    if shard is not None:
        lease, due = (None if one is None else encode(one) for one in (shard.lease, shard.due))
        frozen = FrozenLease(lease, msgspec.json.encode(shard.since), due)
    return pack(
        Frozen(
            FORMAT, *state.head, state.time, state.mode, state.policy.state(), list(state.windows or ()), state.counts,
            state.snapshots, state.open_ids, state.answer, list(state.unconfirmed), frozen,
        )
    )  # fmt: skip


def caught_up(state: State | None, view: View) -> State:
    """The state at the view's head: as it is, after the events that it lacks, or rebuilt."""
    if state is None or not view.follows(state.head):
        state = rebuild(view)
    for event in view.read(state.head.number):
        state.apply(event, view)
    return state


def rebuild(view: View) -> State:
    """The state at the newest usable snapshot, or else at the first event."""
    start = first_state(view)
    event = view.latest(events.SNAPSHOT)
    while event is not None:
        record = decode(event, events.Snapshot)
        state = _thaw(start, record, view)
        if state is not None:
            return state
        event = next(view.read(record.previous - 1, limit=1)) if record.previous else None
    return start


def _thaw(start: State, record: events.Snapshot, view: View) -> State | None:
    data = view.attachment(record.digest)
    head = Head(record.number, record.hash)
    # It may be of a head that this chain does not have.
    if data is None or not view.follows(head):
        return None
    try:
        frozen = unpack(data, Frozen)
        if frozen.format != FORMAT or (frozen.number, frozen.hash) != head:
            return None
        state = State(start.created, Policy.from_state(frozen.policy), head, frozen.time)
        if frozen.shard is not None:
            _thaw_lease(state, frozen.shard, view)
    except JournalError:
        # A journal that cannot be read is no reason to try an older snapshot.
        raise
    except (msgspec.MsgspecError, SurefootError):
        return None
    state.counts, state.snapshots = frozen.counts, frozen.snapshots
    # The newest, which may be from after the snapshot and is applied once more.
    modes = [(event.number, decode(event, Mode)) for event in view.newest_of(events.MODE, ALL)]
    state.mode = modes[0][1].mode if modes else start.mode
    state.restored = next((number for number, mode in modes if mode.lost is not None), 0)
    state.open_ids, state.answer = frozen.open_ids, frozen.answer
    state.unconfirmed.restore(frozen.unconfirmed)
    if start.created.reward_window is not None:
        state.windows = Windows(start.created.reward_window, frozen.waiting)
    return state


def _thaw_lease(state: State, frozen: FrozenLease, view: View) -> None:
    shard, pot, read = state.shard, state.kind.pot, msgspec.json.decode
    assert shard is not None
    shard.lease = None if frozen.lease is None else read(frozen.lease, type=Lease)
    shard.due = None if frozen.due is None else read(frozen.due, type=pot.hand_in)
    shard.since = read(frozen.since, type=list[pot.handed])  # type: ignore[name-defined]
    # What was said of the mode is read from its events; those from after the snapshot are applied once more.
    for event in reversed(view.newest_of(events.MODE, ALL)):
        shard.went_over(decode(event, Mode))


def differing(view: View) -> Iterator[tuple[int, str]]:
    """Snapshots that are not what a replay of the events comes to: the event's number, and what differs."""
    if decode(next(view.read(limit=1)), events.Created).is_hub:
        pairs: Any = hub_snapshots(view)
    else:
        pairs = _snapshots(view)
    for number, is_ours, frozen, ours in pairs:
        if not is_ours:
            # The facts that a search found worth keeping are in it: those of another version may be others.
            for one in (frozen, ours):
                (one.policy if isinstance(one, Frozen) else one.coordinator["policy"]).pop("memory", None)
        yield from ((number, f"its {place} is not what the events come to") for place in unequal(frozen, ours))


def _snapshots(view: View) -> Iterator[tuple[int, bool, Frozen, Frozen]]:
    state = first_state(view)
    for event in view.read(1):
        if event.kind == events.SNAPSHOT:
            record = decode(event, events.Snapshot)
            data = view.attachment(record.digest)
            frozen = None if data is None else _comparable(data, state)
            if frozen is not None:
                yield event.number, record.software == VERSION, frozen, _of_rounds(unpack(freeze(state), Frozen), state)
        state.apply(event, view)


def _comparable(data: bytes, state: State) -> Frozen | None:
    """A snapshot as a state of today is written; None where nobody goes on from it."""
    try:
        frozen = unpack(data, Frozen)
        if frozen.format != FORMAT:
            return None
        frozen.policy = unpack(pack(Policy.from_state(frozen.policy).state()), dict[str, Any])
    except msgspec.MsgspecError:
        return None
    return _of_rounds(frozen, state)


def _of_rounds(frozen: Frozen, state: State) -> Frozen:
    """Less what rests on what a lease knew, where that is removed with its lease."""
    if state.shard is not None and not state.shard.is_whole and frozen.shard is not None:
        frozen.policy = {
            key: value for key, value in frozen.policy.items() if key in OF_ROUNDS or key.startswith("unit_")
        }
        if frozen.shard.due is not None:
            due = msgspec.json.decode(frozen.shard.due)
            for name in ("question", "level", "alarm", "moved"):
                due.pop(name, None)
            frozen.shard.due = msgspec.json.encode(due)
    return frozen


def unequal(a: Any, b: Any, place: str = "state") -> Iterator[str]:
    """Where two states differ by more than another build of the core could make them."""
    if isinstance(a, msgspec.Struct) and isinstance(b, msgspec.Struct):
        a, b = msgspec.structs.asdict(a), msgspec.structs.asdict(b)
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        for key in a:
            yield from unequal(a[key], b[key], f"{place}.{key}")
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for n, pair in enumerate(zip(a, b, strict=True)):
            yield from unequal(*pair, f"{place}[{n}]")
    elif isinstance(a, np.ndarray | float) and isinstance(b, np.ndarray | float):
        if np.shape(a) != np.shape(b) or not np.allclose(a, b, rtol=SAME, atol=SAME, equal_nan=True):
            yield place
    elif a != b:
        yield place

"""Snapshots: a state as bytes, so that opening an experiment does not replay all of it.

They only save time, and the mode is not theirs to say: it is read from its event. A snapshot that is missing, damaged,
or of an unknown format is skipped for the one before it and
finally for the events themselves; the state is the same to the bit.
"""

from collections.abc import Iterator
from typing import Any, Protocol, TypeVar, runtime_checkable

import msgspec
import numpy as np

import surefoot
from surefoot import records
from surefoot.errors import JournalError, JournalSchemaError, SurefootError
from surefoot.experiment.attribution_windows import AttributionWindows, OpenWindow
from surefoot.experiment.counts import ExperimentCounts, GuardCounts
from surefoot.experiment.policy_by_name import new_policy
from surefoot.experiment.state import KINDS, State, decode
from surefoot.experiment.unconfirmed_rounds import UnconfirmedRound
from surefoot.journal import Event, Head, View
from surefoot.policies.base_policy import BasePolicy
from surefoot.records import Created, ModeName

T = TypeVar("T")
FORMAT = 2
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
)
ARRAY = 1  # the code under which msgpack carries an array


class SnapshotState(msgspec.Struct, forbid_unknown_fields=True):
    """A state, in full."""

    format: int
    number: int
    hash: str
    time: float
    mode: ModeName
    policy: dict[str, Any]
    waiting: list[OpenWindow]
    tally: ExperimentCounts
    snapshots: list[tuple[int, str]]
    open_ids: dict[int, str]
    answer: records.Acknowledged | None
    unconfirmed: list[UnconfirmedRound] = []


class FrozenGuard(SnapshotState, forbid_unknown_fields=True):
    """A state with a guard, in full."""

    tally: GuardCounts


class FrozenShard(SnapshotState, forbid_unknown_fields=True, kw_only=True):
    """A shard's state, in full."""

    shard: bytes


class FrozenGuardShard(FrozenGuard, forbid_unknown_fields=True, kw_only=True):
    """The same with a guard."""

    shard: bytes


@runtime_checkable
class LeasedState(Protocol):
    """A state with a lease, which is kept beside the rest."""

    @property
    def is_whole(self) -> bool:
        """Whether what the lease knew is in the journal; that of an earlier lease is not."""

    def freeze_lease(self) -> bytes:
        """The lease, and what is to be handed in."""

    def without_set(self, data: bytes) -> bytes:
        """The same as `freeze_lease` gave, less what rests on what the lease knew."""

    def thaw_lease(self, data: bytes, modes: list[Event]) -> None:
        """Restore what `freeze_lease` gave; what was said of the mode is read from its events, newest first."""


def _kind_of(state: State) -> type[SnapshotState]:
    is_guard = isinstance(state.tally, GuardCounts)
    if isinstance(state, LeasedState):
        return FrozenGuardShard if is_guard else FrozenShard
    return FrozenGuard if is_guard else SnapshotState


def freeze(state: State) -> bytes:
    """The state as bytes, to the bit."""
    kind: Any = _kind_of(state)
    leased = {"shard": state.freeze_lease()} if isinstance(state, LeasedState) else {}
    return pack(
        kind(
            FORMAT,
            *state.head,
            state.time,
            state.mode,
            state.policy.state(),
            list(state.windows or ()),
            state.tally,
            state.snapshots,
            state.open_ids,
            state.answer,
            list(state.unconfirmed),
            **leased,
        )
    )


def pack(value: Any) -> bytes:
    """Plain data and arrays as msgpack; equal bytes mean equal bits."""
    return msgspec.msgpack.encode(value, enc_hook=_plain)


def unpack(data: bytes, kind: type[T]) -> T:
    """What `pack` wrote."""
    return msgspec.msgpack.decode(data, type=kind, ext_hook=_array)


def begin(view: View) -> State:
    """The state after the first event."""
    event = next(view.read(limit=1))
    created = decode(event, Created)
    kind = KINDS.get(created.format)
    if kind is None:
        known = " and ".join(map(str, sorted(KINDS)))
        raise JournalSchemaError(f"Experiment {view.name!r} has format {created.format}; this surefoot reads {known}.")
    return kind(created, new_policy(created), event.head, event.time)


def rebuild(view: View) -> State:
    """The state at the newest usable snapshot, or else at the first event."""
    start = begin(view)
    event = view.latest(records.SNAPSHOT)
    while event is not None:
        record = decode(event, records.Snapshot)
        state = _thaw(start, record, view)
        if state is not None:
            return state
        event = next(view.read(record.previous - 1, limit=1)) if record.previous else None
    return start


def _thaw(start: State, record: records.Snapshot, view: View) -> State | None:
    data = view.attachment(record.digest)
    head = Head(record.number, record.hash)
    # It may be of a head that this chain does not have.
    if data is None or not view.follows(head):
        return None
    try:
        frozen = _read(data, start)
        if frozen is None or (frozen.number, frozen.hash) != head:
            return None
        policy = BasePolicy.from_state(frozen.policy)
        state = KINDS[start.created.format](start.created, policy, head, frozen.time)
        if isinstance(state, LeasedState) and isinstance(frozen, FrozenShard | FrozenGuardShard):
            state.thaw_lease(frozen.shard, view.newest_of(records.MODE, ALL))
    except JournalError:
        # A journal that cannot be read is no reason to try an older snapshot.
        raise
    except (msgspec.MsgspecError, SurefootError):
        return None
    state.tally, state.snapshots = frozen.tally, frozen.snapshots
    state.mode = _newest_mode(start, view)
    state.open_ids, state.answer = frozen.open_ids, frozen.answer
    state.unconfirmed.restore(frozen.unconfirmed)
    if start.created.reward_window is not None:
        state.windows = AttributionWindows(
            start.created.reward_window, start.created.default_reward or 0.0, frozen.waiting
        )
    return state


def _read(data: bytes, like: State) -> SnapshotState | None:
    """The state in bytes; None if it is of another format."""
    frozen = unpack(data, _kind_of(like))
    return frozen if frozen.format == FORMAT else None


def _newest_mode(start: State, view: View) -> ModeName:
    # It may be one from after the snapshot, which is applied once more.
    event = view.latest(records.MODE)
    return start.mode if event is None else decode(event, records.Mode).mode


def differing(view: View) -> Iterator[tuple[int, str]]:
    """Snapshots that are not what a replay of the events comes to: the event's number, and what differs."""
    state = begin(view)
    for event in view.read(1):
        if event.kind == records.SNAPSHOT:
            record = decode(event, records.Snapshot)
            data = view.attachment(record.digest)
            is_ours = record.software == surefoot.__version__
            for place in () if data is None else _differing(data, state, is_ours=is_ours):
                yield event.number, f"its {place} is not what the events come to"
        state.apply(event, view)


def _differing(data: bytes, state: State, *, is_ours: bool) -> Iterator[str]:
    try:
        frozen, ours = _read(data, state), _read(freeze(state), state)
        if frozen is None or ours is None:
            return
        # As a state of today is written: an older one may lack what is new.
        frozen.policy = unpack(pack(BasePolicy.from_state(frozen.policy).state()), dict[str, Any])
        if isinstance(state, LeasedState) and not state.is_whole:
            for one in (frozen, ours):
                assert isinstance(one, FrozenShard | FrozenGuardShard)
                one.shard = state.without_set(one.shard)
                one.policy = {key: one.policy[key] for key in one.policy if key in OF_ROUNDS or key.startswith("unit_")}
    except msgspec.MsgspecError:  # nobody goes on from what cannot be read
        return
    if not is_ours:
        # The facts that a search found worth keeping are in it: those of another version may be others.
        frozen.policy.pop("memory", None), ours.policy.pop("memory", None)
    yield from unequal(frozen, ours)


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


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        packed = (value.dtype.str, value.shape, np.ascontiguousarray(value).tobytes())
        return msgspec.msgpack.Ext(ARRAY, msgspec.msgpack.encode(packed))
    if isinstance(value, np.generic):
        return value.item()
    raise NotImplementedError(f"A snapshot cannot hold a {type(value).__name__}.")


def _array(code: int, data: memoryview) -> Any:
    if code != ARRAY:
        raise msgspec.ValidationError(f"Unknown extension {code}.")
    dtype, shape, raw = msgspec.msgpack.decode(data, type=tuple[str, list[int], bytes])
    # A copy, since an array over bytes is read-only.
    return np.frombuffer(raw, dtype=np.dtype(dtype)).reshape(shape).copy()

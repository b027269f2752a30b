"""Snapshots: a state as bytes, so that opening an experiment does not replay all of it.

They only save time. A snapshot that is missing, damaged, or of an unknown format is skipped for the one before it and
finally for the events themselves; the state is the same to the bit.
"""

from typing import Any

import msgspec
import numpy as np

from surefoot import records
from surefoot.errors import JournalError, SurefootError
from surefoot.experiment.attribution_windows import AttributionWindows, OpenWindow
from surefoot.experiment.counts import ExperimentCounts, GuardCounts
from surefoot.experiment.state import State, begin, decode
from surefoot.journal import Head, View
from surefoot.policies.base_policy import BasePolicy
from surefoot.records import ModeName

FORMAT = 2
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


class FrozenGuard(SnapshotState, forbid_unknown_fields=True):
    """A state with a guard, in full."""

    tally: GuardCounts


def freeze(state: State) -> bytes:
    """The state as bytes, to the bit."""
    kind: Any = FrozenGuard if isinstance(state.tally, GuardCounts) else SnapshotState
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
        )
    )


def pack(value: Any) -> bytes:
    """Plain data and arrays as msgpack; equal bytes mean equal bits."""
    return msgspec.msgpack.encode(value, enc_hook=_plain)


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
        kind: type[SnapshotState] = FrozenGuard if isinstance(start.tally, GuardCounts) else SnapshotState
        frozen = msgspec.msgpack.decode(data, type=kind, ext_hook=_array)
        if (frozen.format, frozen.number, frozen.hash) != (FORMAT, *head):
            return None
        policy = BasePolicy.from_state(frozen.policy)
    except JournalError:
        # A journal that cannot be read is no reason to try an older snapshot.
        raise
    except (msgspec.MsgspecError, SurefootError):
        return None
    state = State(start.created, policy, head, frozen.time)
    state.mode, state.tally, state.snapshots = frozen.mode, frozen.tally, frozen.snapshots
    state.open_ids, state.answer = frozen.open_ids, frozen.answer
    if start.created.reward_window is not None:
        state.windows = AttributionWindows(
            start.created.reward_window, start.created.default_reward or 0.0, frozen.waiting
        )
    return state


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

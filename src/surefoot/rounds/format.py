"""How a record is written and read: canonical JSON, with numbers that read back to the bit.

A newer minor version may add fields to a record, and an older one passes over them, so that servers of one journal can
be updated one after the other. Whatever changes what a state is comes as a new kind of event, which is not passed over.
"""

import math
import re
from typing import Any, Literal, TypeAlias, TypeVar

import msgspec

from surefoot.errors import JournalSchemaError
from surefoot.journal import Event, canonical
from surefoot.journal.events import encode_sorted

Number: TypeAlias = float | Literal["inf", "-inf", "nan"]
ARRAY = 1  # the code under which msgpack carries an array
T = TypeVar("T")
MOST_NEW = 100  # fields of one event that may be passed over
UNKNOWN = re.compile(r"Object contains unknown field `(?P<field>.+?)`(?: - at `(?P<path>.+)`)?")


class Record(msgspec.Struct, omit_defaults=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """What an event holds: a tree, which the garbage collector need not search for cycles."""


R = TypeVar("R", bound=Record)


def number(value: float) -> Number:
    """A float as JSON can tell it.

    >>> number(0.1), number(-math.inf), float(number(-math.inf))
    (0.1, '-inf', -inf)
    """
    if math.isfinite(value):
        return float(value)
    return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"


def encode(record: Record) -> bytes:
    """The payload of an event."""
    return canonical(record)


def encode_finite(record: Record) -> bytes:
    """The same where every number is known to be finite, and parts may be bytes (`msgspec.Raw`) already."""
    return encode_sorted(record)


def decode(event: Event, kind: type[R]) -> R:
    """The record that an event holds."""
    try:
        return msgspec.json.decode(event.payload, type=kind)
    except msgspec.MsgspecError as error:
        first = error
    try:
        return _without_new(event.payload, kind)
    except msgspec.MsgspecError:
        raise JournalSchemaError(
            f"Event {event.number} must hold a {event.kind}, but cannot be read as one ({first}). "
            "It was written by a newer surefoot, or by something else."
        ) from first


def _without_new(payload: bytes, kind: type[R]) -> R:
    """The same without the fields that this version does not know."""
    plain = msgspec.json.decode(payload)
    for _ in range(MOST_NEW):
        try:
            return msgspec.json.decode(msgspec.json.encode(plain), type=kind)
        except msgspec.ValidationError as error:
            unknown = UNKNOWN.fullmatch(str(error))
            if unknown is None:
                raise
            for place in _places(plain, unknown["path"] or "$"):
                place.pop(unknown["field"], None)
    raise msgspec.ValidationError(f"More than {MOST_NEW} fields are unknown.")


def _places(plain: Any, path: str) -> list[Any]:
    """The objects at a path as msgspec writes it: $.request, $.pieces[...].fact."""
    places = [plain]
    for name, index in re.findall(r"\.(\w+)|(\[[^\]]*\])", path):
        inner = [place.get(name) if name and isinstance(place, dict) else place for place in places]
        places = inner if not index else [one for place in inner for one in _values(place)]
    return [place for place in places if isinstance(place, dict)]


def _values(place: Any) -> Any:
    return place.values() if isinstance(place, dict) else place


def pack(value: Any) -> bytes:
    """Plain data and arrays as msgpack, for attachments; equal bytes mean equal bits."""
    return msgspec.msgpack.encode(value, enc_hook=_plain)


def unpack(data: bytes, kind: type[T]) -> T:
    """What `pack` wrote."""
    return msgspec.msgpack.decode(data, type=kind, ext_hook=_array)


def _plain(value: Any) -> Any:
    import numpy as np  # here, for a client reads records without it

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
    import numpy as np

    # A copy, since an array over bytes is read-only.
    return np.frombuffer(raw, dtype=np.dtype(dtype)).reshape(shape).copy()

"""Events can be checked by anyone, and an edit of any part of any event is found."""

import hashlib
import json
import math
import struct
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from surefoot.errors import InputError, JournalCorruptedError
from surefoot.journal.contract import View
from surefoot.journal.events import START, Event, Head, canonical, next_event, verified, verify

JSON = some.recursive(
    some.none() | some.booleans() | some.integers(-(2**60), 2**60) | some.floats(allow_nan=False, allow_infinity=False)
    | some.text(some.characters(codec="utf-8")),
    lambda inner: some.lists(inner, max_size=4) | some.dictionaries(some.text(some.characters(codec="utf-8")), inner),
    max_leaves=12,
)  # fmt: skip


def chain(count: int = 6) -> list[Event]:
    events, head = list[Event](), START
    for n in range(count):
        events.append(next_event("shop", head, kind="decision", payload=canonical({"n": n}), time=n / 3, key=f"d{n}"))
        head = events[-1].head
    return events


def test_the_hash_can_be_taken_by_hand() -> None:
    first, second = chain(2)
    text = f"surefoot-event/1\nshop\n2\ndecision\nd1\n{(1 / 3).hex()}\n{first.hash}\n" + '{"n":1}'
    assert second.hash == hashlib.sha256(text.encode()).hexdigest()
    assert first.previous == "0" * 64


@given(JSON)
def test_a_payload_reads_back_to_the_bit(value: Any) -> None:
    encoded = canonical(value)
    assert _bits(msgspec.json.decode(encoded)) == _bits(value)
    assert _bits(json.loads(encoded)) == _bits(value)
    assert canonical(json.loads(encoded)) == encoded


def _bits(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _bits(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_bits(inner) for inner in value]
    return struct.pack("d", value) if isinstance(value, float) else value


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("place", [lambda x: x, lambda x: [None, {"a": (1, x)}]], ids=["bare", "inside"])
def test_what_json_cannot_tell_is_refused(value: float, place: Any) -> None:
    with pytest.raises(InputError, match="finite"):
        canonical(place(value))


EDITS: dict[str, dict[str, Any]] = {
    "number": {"number": 9},
    "kind": {"kind": "reward"},
    "time": {"time": math.nextafter(1.0, 2.0)},
    "payload": {"payload": b'{"n":4}'},
    "key": {"key": "d9"},
    "no key": {"key": None},
    "previous": {"previous": "f" * 64},
    "hash": {"hash": "f" * 64},
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_event_is_named(edit: str) -> None:
    events = chain()
    events[3] = msgspec.structs.replace(events[3], **EDITS[edit])
    with pytest.raises(JournalCorruptedError, match=f"event {9 if edit == 'number' else 4} "):
        verify("shop", events)


def test_dropped_moved_and_foreign_events_are_named() -> None:
    events = chain()
    verify("shop", events)
    for broken, name in [(events[:3] + events[4:], 5), ([*events[:2], events[3], events[2]], 4), (events[1:], 2)]:
        with pytest.raises(JournalCorruptedError, match=f"event {name} "):
            verify("shop", broken)
    with pytest.raises(JournalCorruptedError, match="event 1 "):
        verify("another shop", events)


def test_a_chain_can_be_verified_from_its_middle() -> None:
    events = chain()
    verify("shop", events[3:], after=events[2].head)
    assert list(verified("shop", events[3:])) == events[3:]
    with pytest.raises(JournalCorruptedError):
        verify("shop", events[3:], after=events[1].head)


def test_parts_cannot_run_into_each_other() -> None:
    one = next_event("shop", START, kind="a", payload=b"", time=0.0, key="b")
    for kind, key in [("a\nb", None), ("a", "b\n"), ("", "ab")]:
        with pytest.raises(InputError, match="printable"):
            next_event("shop", START, kind=kind, payload=b"", time=0.0, key=key)
    assert one.hash != next_event("shop", START, kind="b", payload=b"", time=0.0, key="a").hash
    assert next_event("shop", START, kind="a", payload=b"", time=-0.0).hash == (
        next_event("shop", START, kind="a", payload=b"", time=0.0).hash
    )


class Overtaken(View):
    """A view of one event, to which another process appends whenever its head was looked at."""

    name = "shop"

    def __init__(self, event: Event) -> None:
        self.event, self.looks = event, 0

    @property
    def head(self) -> Head:
        self.looks += 1
        return self.event.head if self.looks == 1 else Head(self.looks, "f" * 64)

    def page(self, after: int, limit: int) -> list[Event]:
        return [self.event] if after == 0 else []

    def find(self, key: str) -> None:
        return None

    def latest(self, kind: str) -> None:
        return None

    def attachment(self, digest: str) -> None:
        return None


def test_a_head_that_is_overtaken_while_it_is_compared_is_still_followed() -> None:
    event = next_event("shop", START, kind="created", payload=b"{}", time=0.0)
    assert Overtaken(event).follows(event.head)
    assert not Overtaken(event).follows(Head(1, "0" * 64))

"""Checks of what is written and read back."""

from surefoot.errors import JournalConflictError, JournalNotFoundError
from surefoot.journal.conformance.rules import NAME, append, begin, check, refused
from surefoot.journal.contract import Journal, Transaction
from surefoot.journal.events import START, Event, Head, canonical, verify
from surefoot.journal.view import PAGE

ODD_FLOATS = [0.0, 0.1, 1e300, 5e-324, 1.7976931348623157e308, 1 / 3, 1754000000.123457]


@check
def an_experiment_begins_with_one_created_event(journal: Journal) -> None:
    created = begin(journal)
    assert (created.number, created.kind, created.previous) == (1, "created", START.hash)
    assert list(journal.read(NAME)) == [created]
    assert journal.head(NAME) == created.head
    refused(JournalConflictError, lambda: begin(journal))
    assert list(journal.read(NAME)) == [created]


@check
def names_are_sorted_by_code_point(journal: Journal) -> None:
    for name in ["b", "ä", "B", "a b", "Z", "a"]:
        begin(journal, name)
    assert journal.names() == sorted(["b", "ä", "B", "a b", "Z", "a"])


@check
def what_does_not_exist_is_not_found(journal: Journal) -> None:
    assert journal.names() == []
    refused(JournalNotFoundError, lambda: journal.head("none"))
    refused(JournalNotFoundError, lambda: list(journal.read("none")))
    refused(JournalNotFoundError, lambda: append(journal, name="none"))
    begin(journal)
    assert journal.find(NAME, "no such key") is None
    # PostgreSQL cannot store a NUL in text, and must not raise for one either.
    assert journal.find(NAME, "\0") is None
    assert journal.latest(NAME, "snapshot") is None
    assert journal.attachment(NAME, "0" * 64) is None


@check
def events_come_back_to_the_bit(journal: Journal) -> None:
    begin(journal)
    payloads = [canonical({"x": value, "text": "é\u2028\U0001f43e\\\0", "none": None}) for value in ODD_FLOATS]
    payloads.append(b'{"a" : "not canonical, and kept so"}\n')

    def work(transaction: Transaction) -> list[Event]:
        return [transaction.append("k", data, time=n / 3, key=f"{n}é?%s") for n, data in enumerate(payloads)]

    written = journal.transact(NAME, work)
    assert list(journal.read(NAME, 1)) == written
    assert [event.payload for event in written] == payloads
    assert [event.value()["x"] for event in written[:-1]] == ODD_FLOATS
    assert [journal.find(NAME, f"{n}é?%s") for n in range(len(written))] == written


@check
def reading_is_paged_in_order(journal: Journal) -> None:
    begin(journal)
    # Full pages and a part of one.
    written = append(journal, 2 * PAGE + 7)
    everything = list(journal.read(NAME))
    assert everything[1:] == written
    verify(NAME, everything)
    assert list(journal.read(NAME, 5, limit=PAGE + 3)) == everything[5 : PAGE + 8]
    assert list(journal.read(NAME, 5, limit=0)) == []
    assert list(journal.read(NAME, len(everything))) == list(journal.read(NAME, len(everything) + 9)) == []


@check
def the_latest_of_a_kind_is_found(journal: Journal) -> None:
    begin(journal)
    append(journal, 3, kind="snapshot")
    newest = append(journal, 2, kind="snapshot")[-1]
    append(journal, 3)
    assert journal.latest(NAME, "snapshot") == newest
    assert journal.latest(NAME, "created") == next(journal.read(NAME))


@check
def a_probe_leaves_no_trace(journal: Journal) -> None:
    journal.probe()
    begin(journal)
    events = [*append(journal, 2)]
    for _ in range(3):
        journal.probe()
    assert journal.names() == [NAME]
    assert list(journal.read(NAME, 1)) == events
    assert journal.head(NAME) == events[-1].head
    append(journal)


@check
def experiments_do_not_mix(journal: Journal) -> None:
    for name in ("one", "two"):
        begin(journal, name)
        journal.transact(name, lambda t: t.append("decision", b"{}", time=0.0, key="same key"))
    one, two = (list(journal.read(name)) for name in ("one", "two"))
    assert [event.number for event in one] == [event.number for event in two] == [1, 2]
    assert {event.hash for event in one}.isdisjoint(event.hash for event in two)


@check
def attachments_are_named_by_their_hash_and_can_go(journal: Journal) -> None:
    begin(journal)
    large = bytes(range(256)) * 5_000
    digests = journal.transact(NAME, lambda t: [t.attach(data) for data in (large, large, b"")])
    assert digests[0] == digests[1]
    assert journal.attachment(NAME, digests[0]) == large
    assert journal.attachment(NAME, digests[2]) == b""
    journal.transact(NAME, lambda t: t.detach(digests[0]))
    journal.transact(NAME, lambda t: t.detach("0" * 64))
    assert journal.attachment(NAME, digests[0]) is None
    assert journal.transact(NAME, lambda t: (t.detach(digests[2]), t.attach(b""), t.attachment(digests[2]))[-1]) == b""


@check
def earlier_heads_are_known_and_strange_ones_not(journal: Journal) -> None:
    created = begin(journal)
    heads = [created.head, *(event.head for event in append(journal, 3))]
    assert journal.transact(NAME, lambda t: all(map(t.follows, [START, *heads])))
    strange = [Head(2, heads[2].hash), Head(9, heads[-1].hash), Head(0, heads[0].hash), Head(4, "f" * 64)]
    assert not journal.transact(NAME, lambda t: any(map(t.follows, strange)))


@check
def the_newest_events_of_a_kind_come_newest_first(journal: Journal) -> None:
    begin(journal)
    for n in range(7):
        append(journal, kind="mode" if n % 2 else "reward")
    view = journal.view(NAME)
    numbers = [event.number for event in view.newest_of("mode", 2)]
    assert numbers == sorted((event.number for event in view.read() if event.kind == "mode"), reverse=True)[:2]
    assert len(view.newest_of("mode", 99)) == 3
    assert view.newest_of("none", 5) == view.newest_of("\0", 5) == []

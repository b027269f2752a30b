"""The contract of `surefoot.journal.contract` as checks that run on any journal.

A new backend passes every one of `CHECKS` on a fresh, empty journal:

>>> from surefoot.journal.memory import MemoryJournal
>>> for check in CHECKS:
...     check(MemoryJournal())

One that outlasts its process passes `check_durable` too, with a function that opens the same place again.
"""

import math
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from surefoot.errors import (
    InputError,
    JournalBusyError,
    JournalConflictError,
    JournalNotFoundError,
    JournalUnavailableError,
)
from surefoot.journal.contract import PAGE, Journal, Transaction
from surefoot.journal.events import JOURNAL, START, Event, Head, canonical, verify
from surefoot.journal.private_text import PrivateText, by_alias

__all__ = ["CHECKS", "check_durable"]

# Quotes, placeholders and letters beyond ASCII: what a careless statement trips over.
NAME = "shop — büro 'one'; %s ?"
CHECKS: list[Callable[[Journal], None]] = []


def check(rule: Callable[[Journal], None]) -> Callable[[Journal], None]:
    """Add a rule to `CHECKS`."""
    CHECKS.append(rule)
    return rule


def append(journal: Journal, count: int = 1, *, kind: str = "decision", name: str = NAME) -> list[Event]:
    """Append events in one transaction."""

    def work(transaction: Transaction) -> list[Event]:
        return [transaction.append(kind, canonical({"n": n}), time=float(n)) for n in range(count)]

    return journal.transact(name, work)


def begin(journal: Journal, name: str = NAME) -> Event:
    """Create an experiment."""
    return journal.create(name, b'{"alpha":0.05}', time=1.0)


def refused(error: type[Exception], call: Callable[[], object]) -> None:
    """The call must raise this error."""
    try:
        call()
    except error:
        return
    raise AssertionError(f"{error.__name__} must be raised, but nothing was")


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

    def attach_again(transaction: Transaction) -> bytes | None:
        transaction.detach(digests[2])
        return transaction.attachment(transaction.attach(b""))

    assert journal.transact(NAME, attach_again) == journal.attachment(NAME, digests[2]) == b""


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

    def within(transaction: Transaction) -> list[int]:
        transaction.append("mode", b"{}", time=99.0)
        assert transaction.newest_of("mode", 1) == [transaction.events[-1]]
        return [event.number for event in transaction.newest_of("mode", 3)]

    before = journal.head(NAME).number
    assert journal.transact(NAME, within) == [before + 1, *numbers]


@check
def a_key_is_used_once(journal: Journal) -> None:
    begin(journal)
    first = journal.transact(NAME, lambda t: t.append("decision", b"1", time=0.0, key="d"))
    refused(JournalConflictError, lambda: journal.transact(NAME, lambda t: t.append("other", b"2", time=0.0, key="d")))

    def twice(transaction: Transaction) -> None:
        transaction.append("decision", b"3", time=0.0, key="e")
        transaction.append("decision", b"4", time=0.0, key="e")

    refused(JournalConflictError, lambda: journal.transact(NAME, twice))
    assert journal.head(NAME) == first.head
    assert journal.find(NAME, "e") is None


@check
def a_transaction_sees_the_truth_and_itself(journal: Journal) -> None:
    created = begin(journal)

    def work(transaction: Transaction) -> str:
        assert transaction.head == created.head
        assert transaction.find("d") is None
        event = transaction.append("decision", b"1", time=0.0, key="d")
        digest = transaction.attach(b"state")
        assert transaction.head == event.head
        assert list(transaction.read()) == [created, event]
        assert list(transaction.read(1)) == list(transaction.read(1, limit=1)) == [event]
        assert transaction.find("d") == transaction.latest("decision") == event
        assert transaction.latest("created") == created
        assert transaction.attachment(digest) == b"state"
        return "done"

    assert journal.transact(NAME, work) == "done"
    assert append(journal)[0].number == 3


@check
def keys_told_beforehand_change_nothing_but_time(journal: Journal) -> None:
    begin(journal)
    # More than one statement takes, and not a multiple of it.
    keys = [f"{n}é?%s" for n in range(600)]

    def write(transaction: Transaction) -> list[Event]:
        return [transaction.append("decision", b"", time=0.0, key=key) for key in keys]

    written = journal.transact(NAME, write)
    expected = dict(zip(keys, written, strict=True))
    assert journal.view(NAME).find_all([*keys, keys[0], "new", "\0"]) == expected
    assert journal.view(NAME).find_all([]) == {}

    def look(transaction: Transaction) -> tuple[list[Event | None], Event]:
        events = [transaction.find(key) for key in ("new", "\0", *keys)]
        return events, transaction.append("decision", b"", time=0.0, key="new")

    events, new = journal.transact(NAME, look, keys=["never looked up", "new", "\0", *keys, keys[0]])
    assert events == [None, None, *written]
    odd: Any = [5, None, ["new"]]
    for hints in ([], ["new"], odd):
        assert journal.transact(NAME, lambda t: t.find("new"), keys=hints) == new
        again = partial(journal.transact, NAME, lambda t: t.append("k", b"", time=0.0, key="new"), keys=hints)
        refused(JournalConflictError, again)
    refused(JournalNotFoundError, lambda: journal.transact("none", lambda t: None, keys=["new"]))


@check
def a_submitted_transaction_is_one_whose_result_comes_later(journal: Journal) -> None:
    begin(journal)

    def work(transaction: Transaction, key: str) -> Event:
        return transaction.find(key) or transaction.append("decision", b"", time=0.0, key=key)

    with ThreadPoolExecutor(4) as executor:
        keys = [f"d{n % 7}" for n in range(30)]
        waiting = [journal.submit(NAME, partial(work, key=key), keys=[key], executor=executor) for key in keys]
        events = [each.result() for each in waiting]
        assert [event.key for event in events] == keys
        assert sorted({event.number for event in events}) == list(range(2, 9))
        assert [journal.find(NAME, key) for key in keys] == events
        refused(ZeroDivisionError, journal.submit(NAME, lambda t: t.head.number // 0, executor=executor).result)
        missing = partial(journal.submit, "none", lambda t: None, executor=executor)
        refused(JournalNotFoundError, lambda: missing().result())
        journal.close()
        refused(JournalUnavailableError, lambda: missing().result())


@check
def work_that_raises_leaves_nothing(journal: Journal) -> None:
    created = begin(journal)

    def work(transaction: Transaction) -> None:
        transaction.append("decision", b"1", time=0.0, key="d")
        transaction.attach(b"state")
        raise InputError("no")

    refused(InputError, lambda: journal.transact(NAME, work))
    assert list(journal.read(NAME)) == [created]
    assert journal.find(NAME, "d") is None
    assert append(journal)[0].previous == created.hash


@check
def bad_events_are_refused(journal: Journal) -> None:
    created = begin(journal)

    def attempt(kind: str, key: str | None, time: float) -> Event:
        return journal.transact(NAME, lambda t: t.append(kind, b"", time=time, key=key))

    for kind, key in [("", None), ("a\nb", None), ("k", ""), ("k", "\0"), ("k", "x" * 501)]:
        refused(InputError, partial(attempt, kind, key, 0.0))
    for time in (math.nan, math.inf):
        refused(InputError, partial(attempt, "k", None, time))
    for name in ("", "two\nlines", "x" * 201):
        refused(InputError, partial(begin, journal, name))
    assert list(journal.read(NAME)) == [created]
    assert journal.names() == [NAME]


@check
def transactions_do_not_nest(journal: Journal) -> None:
    begin(journal)
    refused(JournalBusyError, lambda: journal.transact(NAME, lambda t: append(journal)))
    refused(JournalBusyError, lambda: journal.transact(NAME, lambda t: begin(journal, "other")))
    kept = journal.transact(NAME, lambda t: t)
    refused(JournalBusyError, lambda: kept.append("afterthought", b"", time=0.0))
    assert journal.head(NAME).number == 1


@check
def transactions_run_alone(journal: Journal) -> None:
    begin(journal)
    inside, most = [0], [0]
    shared = {"count": 0}

    def work(transaction: Transaction) -> Event:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        count = shared["count"]
        # Long enough for another thread to break in, if it could.
        threading.Event().wait(0.0005)
        shared["count"] = count + 1
        inside[0] -= 1
        return transaction.append("decision", canonical({"count": count + 1}), time=0.0)

    with ThreadPoolExecutor(8) as pool:
        events = list(pool.map(lambda _: journal.transact(NAME, work), range(64)))
    assert most == [1]
    assert sorted(event.number for event in events) == list(range(2, 66))
    assert [event.value()["count"] for event in journal.read(NAME, 1)] == list(range(1, 65))


@check
def a_failure_hurts_no_neighbour(journal: Journal) -> None:
    begin(journal)

    def attempt(n: int) -> bool:
        def work(transaction: Transaction) -> None:
            transaction.append("decision", b"", time=0.0, key=f"d{n}")
            if n % 3 == 0:
                raise ZeroDivisionError(n)

        try:
            journal.transact(NAME, work)
        except ZeroDivisionError as error:
            return error.args != (n,)
        return True

    with ThreadPoolExecutor(16) as pool:
        done = list(pool.map(attempt, range(90)))
    assert done == [n % 3 != 0 for n in range(90)]
    assert {event.key for event in journal.read(NAME, 1)} == {f"d{n}" for n in range(90) if n % 3}


@check
def a_key_that_many_send_at_once_is_used_once(journal: Journal) -> None:
    begin(journal)

    def send(n: int) -> Event:
        key = f"d{n // 8}"
        return journal.transact(NAME, lambda t: t.find(key) or t.append("decision", b"", time=float(n), key=key))

    with ThreadPoolExecutor(16) as pool:
        events = list(pool.map(send, range(160)))
    assert set(events) == set(journal.read(NAME, 1))
    assert len(set(events)) == 20


@check
def a_closed_journal_says_so(journal: Journal) -> None:
    begin(journal)
    journal.close()
    journal.close()
    for call in (journal.names, lambda: journal.head(NAME), lambda: append(journal), lambda: begin(journal, "x")):
        refused(JournalUnavailableError, call)


def _text(n: int, person: str | None = None) -> PrivateText:
    return PrivateText(f"visit 'ä' {n}", person, bytes([n]) * 16, b'{"n":%d}' % n)


def _write(journal: Journal, count: int, person: str | None = None) -> None:
    def work(transaction: Transaction) -> None:
        for n in range(count):
            transaction.append("decision", b"{}", time=0.0, key=f"d:{n}", private=_text(n, person))

    journal.transact(NAME, work, keys=[by_alias(str(_text(n).alias)) for n in range(count)])


@check
def a_private_text_is_found_by_its_alias_and_its_person(journal: Journal) -> None:
    begin(journal)
    _write(journal, 70, "user-17")
    view = journal.view(NAME)
    assert view.find(by_alias(str(_text(5).alias))) == view.find("d:5")
    assert view.find("visit 'ä' 5") is None
    assert view.find(by_alias("nobody")) is None
    assert view.private(7) == _text(5, "user-17")
    assert view.private(1) is None
    assert view.about("user-17") == list(range(2, 72))
    assert view.about("user-17", newest=2) == [70, 71]
    assert view.about("user-18") == []
    assert view.privates(60, 3) == [(n, _text(n - 2, "user-17")) for n in (61, 62, 63)]
    keys = [by_alias(str(_text(n).alias)) for n in range(70)]
    assert set(view.find_all([*keys, "d:3", by_alias("nobody")])) == {*keys, "d:3"}


@check
def an_alias_is_used_once(journal: Journal) -> None:
    begin(journal)
    _write(journal, 1)
    again = lambda t: t.append("decision", b"{}", time=0.0, private=_text(0))  # noqa: E731
    refused(JournalConflictError, lambda: journal.transact(NAME, again))
    assert journal.head(NAME).number == 2


@check
def an_erased_text_is_gone_and_its_event_stays(journal: Journal) -> None:
    begin(journal)
    _write(journal, 3, "user-17")
    alias = by_alias(str(_text(1).alias))

    def work(transaction: Transaction) -> int:
        assert transaction.private(3) is not None
        erased = transaction.erase([3, 99])
        assert transaction.private(3) is None
        assert transaction.find(alias) is None
        assert transaction.about("user-17") == [2, 4]
        return erased

    head = journal.head(NAME)
    assert journal.transact(NAME, work) == 1
    view = journal.view(NAME)
    assert view.private(3) is None
    assert view.find(alias) is None
    assert view.about("user-17") == [2, 4]
    assert [number for number, _ in view.privates(0, 10)] == [2, 4]
    assert view.head == head
    assert len(list(view.read())) == 4
    # The alias may be used again.
    journal.transact(NAME, lambda t: t.append("decision", b"{}", time=0.0, private=_text(1)))
    assert journal.find(NAME, alias) == journal.latest(NAME, "decision")


@check
def an_alias_that_is_erased_may_be_used_again_at_once(journal: Journal) -> None:
    begin(journal)
    _write(journal, 2)

    def work(transaction: Transaction) -> int:
        transaction.erase([2])
        return transaction.append("decision", b"{}", time=0.0, private=_text(0)).number

    assert journal.transact(NAME, work) == 4
    assert journal.find(NAME, by_alias(str(_text(0).alias))) == journal.latest(NAME, "decision")
    assert journal.view(NAME).private(2) is None


@check
def many_events_of_one_transaction_come_back_to_the_bit(journal: Journal) -> None:
    # Many at once may be written in another way than a few.
    begin(journal)
    texts = [PrivateText(f"é {n}", "p" if n % 3 else None, bytes([n]) * 16, b"\x00\xff" * n) for n in range(150)]

    def work(transaction: Transaction, kept: Sequence[PrivateText | None]) -> list[Event]:
        first = transaction.head.number
        keys = [None if n % 2 else f"k:{first + n}" for n in range(len(kept))]
        return [
            transaction.append("decision", b'{"n":%d}' % n, time=n / 7, key=key, private=text)
            for n, (key, text) in enumerate(zip(keys, kept, strict=True))
        ]

    for kept in (texts, [None] * 150):
        written = journal.transact(NAME, partial(work, kept=kept))
        assert list(journal.read(NAME, after=written[0].number - 1)) == written
        assert journal.head(NAME) == written[-1].head
        assert [journal.view(NAME).private(event.number) for event in written] == list(kept)


@check
def many_aliases_that_are_erased_may_be_used_again_at_once(journal: Journal) -> None:
    begin(journal)
    _write(journal, 100)

    def work(transaction: Transaction) -> None:
        assert transaction.erase(range(2, 102)) == 100
        for n in range(100):
            transaction.append("decision", b"{}", time=0.0, private=_text(n))

    journal.transact(NAME, work)
    event = journal.find(NAME, by_alias(str(_text(99).alias)))
    assert event is not None
    assert (event.number, len(journal.view(NAME).privates(0, 300))) == (201, 100)


@check
def a_text_is_written_with_its_event_or_not_at_all(journal: Journal) -> None:
    begin(journal)

    def work(transaction: Transaction) -> None:
        event = transaction.append("decision", b"{}", time=0.0, private=_text(0))
        assert transaction.private(event.number) == _text(0)
        assert transaction.find(by_alias(str(_text(0).alias))) == event
        raise KeyError

    refused(KeyError, lambda: journal.transact(NAME, work))
    assert journal.view(NAME).privates(0, 10) == []


@check
def a_removed_experiment_is_gone_with_all_that_belongs_to_it(journal: Journal) -> None:
    begin(journal)
    begin(journal, "other")
    _write(journal, 3, "user-17")
    journal.transact(NAME, lambda t: t.attach(b"a state"))
    journal.create(JOURNAL, b"{}", time=0.0)
    head = journal.head(NAME)
    journal.remove(NAME, head=head, note=lambda t: t.append("deleted", b"{}", time=0.0))
    assert journal.names() == ["other"]
    assert [event.kind for event in journal.read(JOURNAL)] == ["created", "deleted"]
    assert begin(journal).number == 1
    view = journal.view(NAME)
    assert (view.privates(0, 10), view.about("user-17"), view.find("d:1")) == ([], [], None)


@check
def an_experiment_that_was_written_to_meanwhile_is_not_removed(journal: Journal) -> None:
    head = begin(journal).head
    journal.create(JOURNAL, b"{}", time=0.0)
    _write(journal, 1, "user-17")
    note = lambda t: t.append("deleted", b"{}", time=0.0)  # noqa: E731
    refused(JournalConflictError, lambda: journal.remove(NAME, head=head, note=note))
    assert journal.names() == [NAME]
    assert journal.head(JOURNAL).number == 1


@check
def a_removal_without_its_note_does_not_happen(journal: Journal) -> None:
    head = begin(journal).head
    journal.create(JOURNAL, b"{}", time=0.0)

    def note(transaction: Transaction) -> None:
        transaction.append("deleted", b"{}", time=0.0)
        raise KeyError("no")

    refused(KeyError, lambda: journal.remove(NAME, head=head, note=note))
    assert journal.names() == [NAME]
    assert journal.head(JOURNAL).number == 1


def check_durable(reopen: Callable[[], Journal]) -> None:
    """What was acknowledged is there when a journal is opened again; what was erased or removed is not.

    Parameters
    ----------
    reopen : callable
        Opens the journal: an empty one first, and the same one every time after that.

    Examples
    --------
    >>> import tempfile
    >>> from surefoot.journal import open_journal
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     check_durable(lambda: open_journal(f"{folder}/shop.journal"))
    """
    with reopen() as journal:
        begin(journal)
        journal.create(JOURNAL, b"{}", time=0.0)
        _write(journal, 2, "user-17")
        written = append(journal, 3, kind="reward")
        digest = journal.transact(NAME, lambda t: t.attach(b"a state"))
        journal.transact(NAME, lambda t: t.erase([2]))
        other = begin(journal, "other").head
        journal.remove("other", head=other, note=lambda t: t.append("deleted", b"{}", time=0.0))
        head = journal.head(NAME)
    with reopen() as journal:
        view = journal.view(NAME)
        assert (journal.names(), journal.head(NAME), journal.head(JOURNAL).number) == ([NAME], head, 2)
        verify(NAME, view.read())
        assert list(view.read(after=3)) == written
        assert view.attachment(digest) == b"a state"
        assert view.privates(0, 10) == [(3, _text(1, "user-17"))]
        assert view.find(by_alias(str(_text(1).alias))) == view.find("d:1")
        append(journal)
    with reopen() as journal:
        assert journal.head(NAME).number == head.number + 1

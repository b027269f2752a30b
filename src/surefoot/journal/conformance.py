"""The contract of `surefoot.journal.base` as checks that run on any journal.

A new backend is held to it by running every one of `CHECKS` on a fresh, empty journal of its kind:

>>> from surefoot.journal.memory import MemoryJournal
>>> for check in CHECKS:
...     check(MemoryJournal())
"""

import math
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from surefoot.errors import (
    InputError,
    JournalBusyError,
    JournalConflictError,
    JournalError,
    JournalNotFoundError,
    JournalUnavailableError,
    SurefootError,
)
from surefoot.journal.base import PAGE, Journal, Transaction
from surefoot.journal.events import START, Event, Head, canonical, verify

NAME = "shop — büro 'one'; %s ?"
ODD_FLOATS = [0.0, 0.1, 1e300, 5e-324, 1.7976931348623157e308, 1 / 3, 1754000000.123457]


def append(journal: Journal, count: int = 1, *, kind: str = "decision", name: str = NAME) -> list[Event]:
    """Append events in one transaction."""

    def work(transaction: Transaction) -> list[Event]:
        return [transaction.append(kind, canonical({"n": n}), time=float(n)) for n in range(count)]

    return journal.transact(name, work)


def begin(journal: Journal, name: str = NAME) -> Event:
    """Create an experiment."""
    return journal.create(name, b'{"alpha":0.05}', time=1.0)


def refused(error: type[SurefootError], call: Callable[[], object]) -> None:
    """The call must raise this error."""
    try:
        call()
    except error:
        return
    raise AssertionError(f"{error.__name__} must be raised, but nothing was")


def an_experiment_begins_with_one_created_event(journal: Journal) -> None:
    created = begin(journal)
    assert (created.number, created.kind, created.previous) == (1, "created", START.hash)
    assert list(journal.read(NAME)) == [created]
    assert journal.head(NAME) == created.head
    refused(JournalConflictError, lambda: begin(journal))
    assert list(journal.read(NAME)) == [created]


def names_are_sorted_by_code_point(journal: Journal) -> None:
    for name in ["b", "ä", "B", "a b", "Z", "a"]:
        begin(journal, name)
    assert journal.names() == sorted(["b", "ä", "B", "a b", "Z", "a"])


def what_does_not_exist_is_not_found(journal: Journal) -> None:
    assert journal.names() == []
    refused(JournalNotFoundError, lambda: journal.head("none"))
    refused(JournalNotFoundError, lambda: list(journal.read("none")))
    refused(JournalNotFoundError, lambda: append(journal, name="none"))
    begin(journal)
    assert journal.find(NAME, "no such key") is None
    assert journal.find(NAME, "\0") is None
    assert journal.latest(NAME, "snapshot") is None
    assert journal.attachment(NAME, "0" * 64) is None


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


def reading_is_paged_in_order(journal: Journal) -> None:
    begin(journal)
    written = append(journal, 2 * PAGE + 7)
    everything = list(journal.read(NAME))
    assert everything[1:] == written
    verify(NAME, everything)
    assert list(journal.read(NAME, 5, limit=PAGE + 3)) == everything[5 : PAGE + 8]
    assert list(journal.read(NAME, 5, limit=0)) == []
    assert list(journal.read(NAME, len(everything))) == list(journal.read(NAME, len(everything) + 9)) == []


def the_latest_of_a_kind_is_found(journal: Journal) -> None:
    begin(journal)
    append(journal, 3, kind="snapshot")
    newest = append(journal, 2, kind="snapshot")[-1]
    append(journal, 3)
    assert journal.latest(NAME, "snapshot") == newest
    assert journal.latest(NAME, "created") == next(journal.read(NAME))


def experiments_do_not_mix(journal: Journal) -> None:
    for name in ("one", "two"):
        begin(journal, name)
        journal.transact(name, lambda t: t.append("decision", b"{}", time=0.0, key="same key"))
    one, two = (list(journal.read(name)) for name in ("one", "two"))
    assert [event.number for event in one] == [event.number for event in two] == [1, 2]
    assert {event.hash for event in one}.isdisjoint(event.hash for event in two)


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


def bad_events_are_refused(journal: Journal) -> None:
    created = begin(journal)
    for kind, key, time in [("", None, 0.0), ("a\nb", None, 0.0), ("k", "", 0.0), ("k", "\0", 0.0), ("k", "x" * 501, 0.0)]:
        refused(InputError, lambda k=kind, y=key, t=time: journal.transact(NAME, lambda x: x.append(k, b"", time=t, key=y)))
    for when in (math.nan, math.inf):
        refused(InputError, lambda w=when: journal.transact(NAME, lambda x: x.append("k", b"", time=w)))
    for name in ("", "two\nlines", "x" * 201):
        refused(InputError, lambda n=name: begin(journal, n))
    assert list(journal.read(NAME)) == [created]
    assert journal.names() == [NAME]


def transactions_do_not_nest(journal: Journal) -> None:
    begin(journal)
    refused(JournalBusyError, lambda: journal.transact(NAME, lambda t: append(journal)))
    refused(JournalBusyError, lambda: journal.transact(NAME, lambda t: begin(journal, "other")))
    kept = journal.transact(NAME, lambda t: t)
    refused(JournalBusyError, lambda: kept.append("afterthought", b"", time=0.0))
    assert journal.head(NAME).number == 1


def attachments_are_named_by_their_hash_and_can_go(journal: Journal) -> None:
    begin(journal)
    large = bytes(range(256)) * 5_000
    digests = [journal.transact(NAME, lambda t, d=data: t.attach(d)) for data in (large, large, b"")]
    assert digests[0] == digests[1]
    assert journal.attachment(NAME, digests[0]) == large
    assert journal.attachment(NAME, digests[2]) == b""
    journal.transact(NAME, lambda t: t.detach(digests[0]))
    journal.transact(NAME, lambda t: t.detach("0" * 64))
    assert journal.attachment(NAME, digests[0]) is None
    assert journal.transact(NAME, lambda t: (t.detach(digests[2]), t.attach(b""), t.attachment(digests[2]))[-1]) == b""


def earlier_heads_are_known_and_strange_ones_not(journal: Journal) -> None:
    created = begin(journal)
    heads = [created.head, *(event.head for event in append(journal, 3))]
    assert all(journal.transact(NAME, lambda t, h=head: t.follows(h)) for head in [START, *heads])
    strange = [Head(2, heads[2].hash), Head(9, heads[-1].hash), Head(0, heads[0].hash), Head(4, "f" * 64)]
    assert not any(journal.transact(NAME, lambda t, h=head: t.follows(h)) for head in strange)


def transactions_run_alone(journal: Journal) -> None:
    begin(journal)
    inside, most = [0], [0]
    shared = {"count": 0}

    def work(transaction: Transaction) -> Event:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        seen = shared["count"]
        threading.Event().wait(0.0005)
        shared["count"] = seen + 1
        inside[0] -= 1
        return transaction.append("decision", canonical({"count": seen + 1}), time=0.0)

    with ThreadPoolExecutor(8) as pool:
        events = list(pool.map(lambda _: journal.transact(NAME, work), range(64)))
    assert most == [1]
    assert sorted(event.number for event in events) == list(range(2, 66))
    assert [event.value()["count"] for event in journal.read(NAME, 1)] == list(range(1, 65))


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
            assert error.args == (n,)
            return False
        return True

    with ThreadPoolExecutor(16) as pool:
        done = list(pool.map(attempt, range(90)))
    assert done == [n % 3 != 0 for n in range(90)]
    assert {event.key for event in journal.read(NAME, 1)} == {f"d{n}" for n in range(90) if n % 3}


def a_closed_journal_says_so(journal: Journal) -> None:
    begin(journal)
    journal.close()
    journal.close()
    for call in (journal.names, lambda: journal.head(NAME), lambda: append(journal), lambda: begin(journal, "x")):
        refused(JournalUnavailableError, call)
    assert issubclass(JournalUnavailableError, JournalError)


CHECKS: tuple[Callable[[Journal], None], ...] = (
    an_experiment_begins_with_one_created_event,
    names_are_sorted_by_code_point,
    what_does_not_exist_is_not_found,
    events_come_back_to_the_bit,
    reading_is_paged_in_order,
    the_latest_of_a_kind_is_found,
    experiments_do_not_mix,
    a_key_is_used_once,
    a_transaction_sees_the_truth_and_itself,
    work_that_raises_leaves_nothing,
    bad_events_are_refused,
    transactions_do_not_nest,
    attachments_are_named_by_their_hash_and_can_go,
    earlier_heads_are_known_and_strange_ones_not,
    transactions_run_alone,
    a_failure_hurts_no_neighbour,
    a_closed_journal_says_so,
)

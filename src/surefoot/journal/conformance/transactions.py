"""Checks of transactions: alone, on the truth, all or nothing."""

import math
import threading
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
from surefoot.journal.conformance.rules import NAME, append, begin, check, refused
from surefoot.journal.contract import Journal, Transaction
from surefoot.journal.events import Event, canonical


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
        found = [transaction.find(key) for key in ("new", "\0", *keys)]
        return found, transaction.append("decision", b"", time=0.0, key="new")

    found, new = journal.transact(NAME, look, keys=["never looked up", "new", "\0", *keys, keys[0]])
    assert found == [None, None, *written]
    odd: Any = [5, None, ["new"]]
    for told in ([], ["new"], odd):
        assert journal.transact(NAME, lambda t: t.find("new"), keys=told) == new
        again = partial(journal.transact, NAME, lambda t: t.append("k", b"", time=0.0, key="new"), keys=told)
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
        found = [each.result() for each in waiting]
        assert [event.key for event in found] == keys
        assert sorted({event.number for event in found}) == list(range(2, 9))
        assert [journal.find(NAME, key) for key in keys] == found
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
        seen = shared["count"]
        # Long enough for another thread to break in, if it could.
        threading.Event().wait(0.0005)
        shared["count"] = seen + 1
        inside[0] -= 1
        return transaction.append("decision", canonical({"count": seen + 1}), time=0.0)

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

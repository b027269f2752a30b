"""Checks of private texts: found by their alias, written with their event, and gone once they are erased."""

from collections.abc import Sequence
from functools import partial

from surefoot.errors import JournalConflictError
from surefoot.journal.conformance.rules import NAME, begin, check, refused
from surefoot.journal.contract import Journal, Transaction
from surefoot.journal.events import JOURNAL, Event
from surefoot.journal.private_text import PrivateText, by_alias


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
    found = journal.find(NAME, by_alias(str(_text(99).alias)))
    assert found is not None
    assert (found.number, len(journal.view(NAME).privates(0, 300))) == (201, 100)


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
    seen = begin(journal).head
    journal.create(JOURNAL, b"{}", time=0.0)
    _write(journal, 1, "user-17")
    note = lambda t: t.append("deleted", b"{}", time=0.0)  # noqa: E731
    refused(JournalConflictError, lambda: journal.remove(NAME, head=seen, note=note))
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

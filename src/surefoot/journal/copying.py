"""Copies of journals: a backup of a file that is in use, and a journal that moves to another kind of place."""

import os
import sqlite3
from contextlib import closing
from functools import partial
from itertools import islice
from pathlib import Path

from surefoot.errors import ConfigError, JournalConflictError, JournalNotFoundError
from surefoot.journal.address import beside, flush_folder, parse
from surefoot.journal.address import private_file as private_file
from surefoot.journal.contract import Journal, Transaction
from surefoot.journal.events import JOURNAL, Event, Head
from surefoot.journal.private_text import PrivateText
from surefoot.journal.sqlite import SqliteJournal, explained

AT_ONCE = 500  # events of a copy in one transaction
BESIDE = ("", "-wal", "-shm", "-journal", "-writer", ".mark", ".new")  # what a journal's file may have beside it


def heads_of(journal: Journal) -> dict[str, Head]:
    """Where every chain of a journal stands, its own included."""
    names = [*journal.names(), JOURNAL]
    return {name: head for name in names if (head := _head(journal, name)) is not None}


def verify_all(journal: Journal) -> dict[str, Head]:
    """Read every event and check its hash; the heads of all chains."""
    heads = heads_of(journal)
    for name in heads:
        for _ in journal.read(name):
            pass
    return heads


def check_new_file(target: Path, what: str) -> None:
    """Raise where a file is, or what SQLite left beside one: a new file would take that for its own last changes."""
    if not target.parent.is_dir():
        raise ConfigError(f"{what} must lie in a folder that exists, but {target.parent} is none. Make it first.")
    ends = ("",) if target.exists() else ("-wal", "-journal")
    for path in (beside(target, end) for end in ends):
        if path.is_dir() or (path.exists() and (path == target or path.stat().st_size)):
            raise ConfigError(
                f"{what} must be a new file, but {path} exists. Name another one, or put the old one aside with all "
                "that stands beside it."
            )


def remove_file(path: Path) -> None:
    """Remove a journal's file, as far as it is there, and what stands beside it."""
    for end in BESIDE:
        beside(path, end).unlink(missing_ok=True)


def backup(source: Path | str, target: Path | str) -> dict[str, Head]:
    """Copy a journal in a file, which may be in use, verify the copy, and return its heads.

    The copy appears under its name when it is whole and flushed; what is written meanwhile may or may not be in it.
    """
    target = Path(target)
    check_new_file(target, "A backup")
    part = beside(target, ".part")
    remove_file(part)
    if parse(source).kind == "file":
        from surefoot.journal.file import FileJournal

        with FileJournal(source, read_only=True) as old, FileJournal(part) as copy:
            copy_journal(old, copy)
            heads = verify_all(copy)
    else:
        with SqliteJournal(source, read_only=True):  # says what is wrong with it, if something is
            private_file(part)
            _copy_pages(Path(source), part)
        with SqliteJournal(part, read_only=True) as copied:
            heads = verify_all(copied)
    settle(part, target)
    return heads


def _copy_pages(source: Path, part: Path) -> None:
    uri = f"{source.absolute().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as old, closing(sqlite3.connect(part)) as new:
            old.backup(new)
            # One file, which a read-only place can be read from.
            new.execute("PRAGMA journal_mode = DELETE").fetchall()
    except sqlite3.Error as error:
        part.unlink(missing_ok=True)
        raise explained(error, source) from error


def settle(part: Path, target: Path) -> None:
    """Give a file that is whole its name, durably."""
    with part.open("rb") as file:
        os.fsync(file.fileno())
    if beside(part, ".mark").exists():  # first: without its mark a file journal is not written to
        beside(part, ".mark").rename(beside(target, ".mark"))
    part.rename(target)
    flush_folder(target)


def copy_journal(source: Journal, target: Journal) -> dict[str, Head]:
    """Copy every chain of a journal to another one, event by event, with the same hashes; returns the heads.

    A copy that was interrupted goes on where it stopped. Nothing may write to the source meanwhile.
    """
    heads = heads_of(source)
    # All of it before anything is written.
    for name, there in heads_of(target).items():
        _check_beginning(source, name, there)
    for name in heads:
        copy_experiment(source, target, name)
    return heads


def _check_beginning(source: Journal, name: str, there: Head) -> None:
    """Refuse a target that holds anything but the beginning of the same chain."""
    if _head(source, name) is None or not source.view(name).follows(there):
        what = "the journal's own chain" if name == JOURNAL else f"an experiment {name!r}"
        raise JournalConflictError(
            f"The target must be empty, or begun by the same copy, but it has {what}, of {there.number} events, which "
            "the source has not, or has otherwise. Name an empty target."
        )


def copy_experiment(source: Journal, target: Journal, name: str) -> Head:
    """Copy one chain, or the rest of it."""
    events = source.read(name)
    first, there = next(events), _head(target, name)
    if there is None:
        target.create(name, first.payload, time=first.time)
        there = first.head
    _check_beginning(source, name, there)
    rest = source.read(name, there.number)
    view = source.view(name)
    while part := list(islice(rest, AT_ONCE)):
        texts = dict(view.privates(part[0].number - 1, len(part)))
        target.transact(name, partial(_append, events=part, texts=texts))
    _forget_erased(source, target, name)
    _copy_snapshot(source, target, name)
    return target.head(name)


def _append(transaction: Transaction, *, events: list[Event], texts: dict[int, PrivateText]) -> None:
    for event in events:
        private = texts.get(event.number)
        copy = transaction.append(event.kind, event.payload, time=event.time, key=event.key, private=private)
        assert copy.hash == event.hash, "the same event after the same events has the same hash"


def _forget_erased(source: Journal, target: Journal, name: str) -> None:
    """Erase what the source has erased since a copy was begun that is resumed now."""
    ours, theirs, after = source.view(name), target.view(name), 0
    while page := theirs.privates(after, AT_ONCE):
        after = page[-1][0]
        kept = {number for number, _ in ours.privates(page[0][0] - 1, len(page))}
        # So many of the source's from there on hold every one of these that it still has.
        if gone := [number for number, _ in page if number not in kept]:
            target.transact(name, partial(_erase, numbers=gone))


def _erase(transaction: Transaction, *, numbers: list[int]) -> int:
    return transaction.erase(numbers)


def _copy_snapshot(source: Journal, target: Journal, name: str) -> None:
    """The newest snapshot only saves time, so that any other may stay behind."""
    newest = source.latest(name, "snapshot")
    data = None if newest is None else source.attachment(name, str(newest.value().get("digest")))
    if data is not None:
        target.transact(name, lambda transaction: transaction.attach(data))


def _head(journal: Journal, name: str) -> Head | None:
    try:
        return journal.head(name)
    except JournalNotFoundError:
        return None

"""Experiments that go: to a file of their own, or for good; a tombstone in the journal's own chain says so."""

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from surefoot.errors import ConfigError, JournalBusyError, JournalConflictError
from surefoot.journal import Head, Journal
from surefoot.journal.copying import check_new_file, copy_experiment, private_file, remove_file, verify_all
from surefoot.journal.events import JOURNAL
from surefoot.journal.journal_chain import Tombstone, bury
from surefoot.journal.sqlite import SqliteJournal

MOST_TRIES = 20


def delete(journal: Journal, name: str, *, by: str, reason: str, clock: Callable[[], float] = time.time) -> Head:
    """Remove an experiment for good, and leave a tombstone: who, why, and where its chain stood.

    Parameters
    ----------
    journal : Journal
        The journal; a server that still uses the experiment finds it gone.
    name : str
        The experiment.
    by, reason : str
        Who removes it, and why; kept in the journal.
    clock : callable
        Tells the time in seconds since 1970.

    Returns
    -------
    Head
        Where its chain stood.

    Raises
    ------
    ConfigError
        If nobody answers for it.
    JournalNotFoundError
        If there is no such experiment.
    JournalBusyError
        If it is written to all the time; nothing has changed.

    Examples
    --------
    >>> import surefoot
    >>> journal = surefoot.open_journal("memory:")
    >>> shop = surefoot.Experiment.create(journal, "shop", surefoot.UCB(arms=2))
    >>> delete(journal, "shop", by="ada", reason="it was a trial").number, journal.names()
    (1, [])
    """
    _check_removable(journal, name, by, reason)
    return _remove(journal, lambda head: Tombstone(name, *head, by, reason), lambda: journal.head(name), clock)


def archive(
    journal: Journal,
    name: str,
    file: Path,
    *,
    by: str,
    reason: str,
    clock: Callable[[], float] = time.time,
) -> Head:
    """Move an experiment to a journal of its own, with every event, and leave a tombstone.

    Parameters
    ----------
    journal, name, by, reason, clock
        As in `delete`.
    file : Path
        A new SQLite file, which can be opened and audited as any other.

    Returns
    -------
    Head
        Where its chain stood.

    Raises
    ------
    ConfigError
        If the file exists, or nobody answers for it.
    JournalBusyError
        If it is written to all the time; nothing has changed, and there is no file.

    Notes
    -----
    A call that fails removes the file only while the journal still has the experiment. Where that is gone, or the
    journal cannot be asked, the file stays, and a note of the exception says so.

    Examples
    --------
    >>> import tempfile
    >>> import surefoot
    >>> journal, file = surefoot.open_journal("memory:"), Path(tempfile.mkdtemp()) / "shop.journal"
    >>> shop = surefoot.Experiment.create(journal, "shop", surefoot.UCB(arms=2))
    >>> archive(journal, "shop", file, by="ada", reason="it is over") == surefoot.open_journal(file).head("shop")
    True
    """
    _check_removable(journal, name, by, reason)
    check_new_file(file, "An archive")
    private_file(file)
    try:
        with SqliteJournal(file) as kept:

            def copied() -> Head:
                copy_experiment(journal, kept, name)
                return verify_all(kept)[name]

            return _remove(journal, lambda head: Tombstone(name, *head, by, reason, True), copied, clock)
    except BaseException as error:
        if _still_has(journal, name):
            remove_file(file)
        else:
            error.add_note(f"The archive stays at {file}: {name!r} may have left the journal before this happened.")
        raise


def _still_has(journal: Journal, name: str) -> bool:
    """Whether the journal has the experiment for certain."""
    try:
        # By a transaction, which waits for a removal that another thread is still committing; a read would not.
        journal.transact(name, lambda transaction: transaction.head)
    except BaseException:  # a second Ctrl-C, too: without an answer nothing is thrown away
        return False
    return True


def _remove(
    journal: Journal,
    record: Callable[[Head], Tombstone],
    prepare: Callable[[], Head],
    clock: Callable[[], float],
) -> Head:
    """Remove the experiment where `prepare` has seen it; what was written meanwhile is prepared for again."""
    for _ in range(MOST_TRIES):
        head = prepare()
        with suppress(JournalConflictError):
            bury(journal, record(head), time=clock())
            break
    else:
        raise JournalBusyError(
            f"An experiment must be idle to be removed, but {record(head).name!r} is written to all the time. "
            "Stop its servers, or send its callers elsewhere, and try again."
        )
    journal.forget()
    return head


def _check_removable(journal: Journal, name: str, by: str, reason: str) -> None:
    """Refuse what nobody answers for, and what must stay."""
    if not by.strip() or not reason.strip():
        raise ConfigError("`by` and `reason` must say who removes the experiment, and why: an auditor will ask.")
    if name == JOURNAL:
        raise ConfigError("The journal's own chain must stay: it says what happened to everything else.")
    journal.view(name)

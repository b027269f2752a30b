"""Experiments that go: to a file of their own, or for good; a tombstone in the journal's own chain says so."""

import time
from collections.abc import Callable
from pathlib import Path

from surefoot.errors import ConfigError
from surefoot.journal import Head, Journal
from surefoot.journal.copying import check_new_file, copy_experiment, verify_all
from surefoot.journal.events import JOURNAL
from surefoot.journal.journal_chain import Tombstone, bury
from surefoot.journal.sqlite import SqliteJournal


def delete(
    journal: Journal, name: str, *, by: str, reason: str, clock: Callable[[], float] = time.time, archive: bool = False
) -> Head:
    """Remove an experiment for good, and leave a tombstone: who, why, and where its chain stood.

    Parameters
    ----------
    journal : Journal
        The journal; no server may be using the experiment.
    name : str
        The experiment.
    by, reason : str
        Who removes it, and why; kept in the journal.
    clock : callable
        Tells the time in seconds since 1970.
    archive : bool
        Whether a copy was kept elsewhere; the tombstone says so.

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
    """
    head = _removable(journal, name, by, reason)
    # First, so that nothing goes without a word; whoever is killed in between says it again.
    bury(journal, Tombstone(name, head.number, head.hash, by, reason, archive), time=clock())
    journal.remove(name)
    journal.forget()
    return head


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
    """
    _removable(journal, name, by, reason)
    check_new_file(file, "An archive")
    with SqliteJournal(file) as kept:
        copy_experiment(journal, kept, name)
        verify_all(kept)
    return delete(journal, name, by=by, reason=reason, clock=clock, archive=True)


def _removable(journal: Journal, name: str, by: str, reason: str) -> Head:
    """Where a chain stands that may go, by somebody's word."""
    if not by.strip() or not reason.strip():
        raise ConfigError("`by` and `reason` must say who removes the experiment, and why: an auditor will ask.")
    if name == JOURNAL:
        raise ConfigError("The journal's own chain must stay: it says what happened to everything else.")
    return journal.head(name)

"""A process that appends from several threads until it is killed, and tells every key once it is acknowledged.

`python -m tests.journal.writer ADDRESS PREFIX [UNSURE...]`: keys that an earlier process sent without hearing back are
sent again first, as a careful client would.
"""

import itertools
import os
import sys
import threading

from surefoot.errors import JournalError
from surefoot.journal import Event, Journal, Transaction, canonical, open_journal

THREADS = 6
NAME = "shop"


def send(journal: Journal, key: str) -> None:
    """Append the key unless it is there, and only then say so."""

    def work(transaction: Transaction) -> None:
        if transaction.find(key) is None:
            transaction.append("decision", canonical({"key": key, "pad": "x" * 300}), time=0.0, key=key)

    os.write(1, f"sent {key}\n".encode())
    journal.transact(NAME, work)
    os.write(1, f"done {key}\n".encode())


def append(journal: Journal, key: str, size: int = 300) -> Event:
    """One event of about that many bytes."""
    payload = b'"' + b"x" * size + b'"'
    return journal.transact(NAME, lambda t: t.append("decision", payload, time=0.0, key=key))


def keep_sending(journal: Journal, prefix: str) -> None:
    for n in itertools.count():
        try:
            send(journal, f"{prefix}-{n}")
        except JournalError as error:
            os.write(1, f"error {type(error).__name__}\n".encode())


def main(address: str, prefix: str, *unsure: str) -> None:
    journal = open_journal(address, sync="unsynced" not in address)
    for key in unsure:
        send(journal, key)
    for n in range(THREADS):
        threading.Thread(target=keep_sending, args=(journal, f"{prefix}.{n}")).start()


if __name__ == "__main__":
    main(*sys.argv[1:])

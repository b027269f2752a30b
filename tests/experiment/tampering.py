"""Tampering with an experiment in a real SQLite file, by hand, or as a forger does who computes all hashes anew."""

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from surefoot.audit import Report, audit
from surefoot.journal import canonical, open_journal
from surefoot.journal.events import START, Event, next_event

Row = dict[str, Any]
Tamper = Callable[[list[Row]], int]  # edits the events, and returns the number of the one that was touched
COLUMNS = ("number", "kind", "time", "payload", "key", "previous", "hash")


def load(path: Path) -> list[Row]:
    """The events, payloads as data."""
    with sqlite3.connect(path) as connection:
        found = connection.execute(
            f"SELECT {', '.join(COLUMNS)} FROM events WHERE experiment = 1 ORDER BY number"
        ).fetchall()
    connection.close()
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in found]
    return [{**row, "payload": msgspec.json.decode(row["payload"])} for row in rows]


def save(path: Path, rows: list[Row], *, head: tuple[int, str] | None) -> None:
    """Write events over those of the file, and the head where one is given."""
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM events WHERE experiment = 1")
        for row in rows:
            values = [row[column] if column != "payload" else canonical(row["payload"]) for column in COLUMNS]
            connection.execute("INSERT INTO events VALUES (1, ?, ?, ?, ?, ?, ?, ?)", values)
        if head is not None:
            connection.execute("UPDATE experiments SET number = ?, hash = ? WHERE id = 1", head)
    connection.close()


def rehashed(rows: list[Row]) -> list[Row]:
    """Number all events anew, in what names one by its number too, and compute every hash: as a careful forger does."""
    head, made = START, list[Row]()
    numbers = {row["number"]: place for place, row in enumerate(rows, 1)}
    for row in rows:
        payload = row["payload"]
        if isinstance(payload, dict) and "coins" in payload and row["kind"] == "round":
            payload["coins"] = numbers.get(payload["coins"], payload["coins"])
        elif row["kind"] == "coins":
            payload["revealed"] = [[numbers.get(one, one), secret] for one, secret in payload.get("revealed", [])]
        if row["kind"] == "snapshot" and row["payload"]["number"] == row["number"] - 1:
            row["payload"].update(number=head.number, hash=head.hash)
        event: Event = next_event(
            "shop", head, kind=row["kind"], payload=canonical(row["payload"]), time=row["time"], key=row["key"]
        )
        made.append({**row, "number": event.number, "previous": event.previous, "hash": event.hash})
        head = event.head
    return made


def forged(folder: Path, name: str, tamper: Tamper, tmp_path: Path, *, rehash: bool) -> tuple[int, Report]:
    """The number of the event that was touched, and what the audit says."""
    path = tmp_path / f"{name}.db"
    shutil.copy(folder / f"{name}.db", path)
    rows = load(path)
    touched = tamper(rows)
    rows = rehashed(rows) if rehash else rows
    save(path, rows, head=(rows[-1]["number"], rows[-1]["hash"]) if rehash else None)
    with open_journal(path, read_only=True) as journal:
        return touched, audit(journal, "shop")


def first(rows: list[Row], kind: str, where: Callable[[Row], bool] = lambda row: True, *, after: int = 0) -> Row:
    return next(row for row in rows if row["kind"] == kind and row["number"] > after and where(row["payload"]))


def is_learner(payload: Row) -> bool:
    return bool(payload["source"] == "learner")


def swap(rows: list[Row], a: int, b: int) -> None:
    for column in ("kind", "time", "payload", "key"):
        rows[a][column], rows[b][column] = rows[b][column], rows[a][column]


def assert_named(folder: Path, name: str, tamper: Tamper, tmp_path: Path, *, check: str, later: int) -> None:
    """A check must catch what a careful forger did, in the event that was touched or at most so many events later."""
    touched, report = forged(folder, name, tamper, tmp_path, rehash=True)
    found = [finding for finding in report.findings if finding.what == check]
    assert found, [*report.findings]
    assert touched <= min(finding.event for finding in found) <= touched + later

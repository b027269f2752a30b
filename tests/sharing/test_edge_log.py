"""A log that was put back, cut short, half written or inherited by a fork never spends a lease twice."""

import multiprocessing
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from surefoot.edge import base_edge_journal, edge_log
from surefoot.edge.edge_entries import Decided, Opened, framed, read_entries

from surefoot.errors import ConfigError, JournalCorruptedError, JournalError, JournalFullError, JournalUnavailableError
from tests.edge.edges import ROWS, Shop, crash, findings, play, warmed


@pytest.mark.parametrize("largest", [1 << 26, 1000])  # where the log begins anew with every lease, too
def test_a_log_that_is_put_back_over_itself_is_refused(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, largest: int
) -> None:
    monkeypatch.setattr(base_edge_journal, "LARGEST_LOG", largest)
    monkeypatch.setattr(edge_log, "_identity", lambda file: "same")  # a new file would be told by that
    with shop.edge() as edge:
        play(edge, 5)
    log, backup = shop.folder / "till.log", shop.folder / "backup"
    shutil.copyfile(log, backup)
    edge = shop.edge()
    edge.renew()
    play(edge, 5)
    crash(edge)
    newest = log.read_bytes()
    shutil.copyfile(backup, log)  # into the same file
    with pytest.raises(ConfigError, match="earlier state"):
        shop.edge()
    log.write_bytes(newest)
    with shop.edge() as again:
        assert again.rounds == 10
        again.renew()
    assert findings(shop.audit()) == []


def test_a_log_without_its_own_mark_is_refused(shop: Shop) -> None:
    for shard in ("till", "else"):
        with shop.edge(shard) as edge:
            play(edge, 2)
    mark = shop.folder / "till.log.mark"
    kept = mark.read_bytes()
    for other in (None, b"", kept[:16], (shop.folder / "else.log.mark").read_bytes()[:16] + bytes(8)):
        mark.unlink()
        if other is not None:
            mark.write_bytes(other)
        with pytest.raises(ConfigError, match=r"mark|earlier"):
            shop.edge()
        mark.write_bytes(kept)
    with shop.edge() as edge:
        assert edge.rounds == 2


def test_a_fork_plays_the_baseline_and_the_parent_goes_on(shop: Shop) -> None:
    edge = shop.edge()
    warmed(edge)
    waits = edge.decide(ROWS, baseline=0).decision_id
    context = multiprocessing.get_context("fork")
    found: Any = context.SimpleQueue()

    def child() -> None:
        made = edge.decide(ROWS, baseline=1)
        errors = list[str]()
        for call in (edge.renew, lambda: edge.reward(waits, 1.0), lambda: edge.abandon(waits), edge.close):
            try:
                call()
            except JournalUnavailableError as error:
                errors.append(str(error))
        found.put((made.action, made.source, made.is_fallback, made.explanation, errors))

    with edge._lock, edge._renewing:  # as if threads were in the middle of something
        process = context.Process(target=child)
        process.start()
    process.join(60.0)
    assert process.exitcode == 0
    action, source, is_fallback, explanation, errors = found.get()
    assert (action, source, is_fallback, len(errors)) == (1, "baseline", True, 3)
    assert all("fork" in text for text in (explanation, *errors))
    assert edge.reward(waits, 0.8).is_accepted
    assert play(edge, 5) == 5
    edge.renew()
    edge.close()
    report = shop.audit()
    assert findings(report) == []
    assert report.shards["till"].tally.decisions == 146


def test_a_log_that_lost_its_end_is_told_when_it_is_handed_in(shop: Shop) -> None:
    edge = shop.edge()
    play(edge, 5)
    os.truncate(shop.folder / "till.log", edge._journal._log.size - 3)
    with pytest.raises(JournalCorruptedError, match="must hold"):
        edge.renew()
    crash(edge)


def test_a_power_cut_after_a_log_was_opened_again_is_noticed(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    boots, synced, sync = tmp_path / "boot", dict[int, int](), os.fsync
    boots.write_text("first")
    monkeypatch.setattr(edge_log, "BOOT", boots)

    def spy(file: int) -> None:
        sync(file)
        synced[os.fstat(file).st_ino] = os.fstat(file).st_size

    monkeypatch.setattr(os, "fsync", spy)
    with shop.edge() as edge:
        play(edge, 3)
    edge = shop.edge()
    play(edge, 3)
    log = shop.folder / "till.log"
    os.truncate(log, synced[log.stat().st_ino])
    crash(edge)
    boots.write_text("second")
    with pytest.raises(ConfigError, match="switched off"):
        shop.edge()


def failing(*args: object) -> None:
    raise OSError(5, "Input/output error")


@pytest.mark.parametrize("also_truncate", [False, True])
def test_what_could_not_be_synced_is_not_handed_in(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, also_truncate: bool
) -> None:
    edge = shop.edge(sync=True)
    warmed(edge)
    waits = edge.decide(ROWS, baseline=0).decision_id
    sync, calls = os.fdatasync, list[int]()

    def once(file: int) -> None:
        calls.append(file)
        failing() if len(calls) == 1 else sync(file)

    with monkeypatch.context() as disk:
        disk.setattr(os, "fdatasync", once)
        if also_truncate:
            disk.setattr(os, "ftruncate", failing)
        made = edge.decide(ROWS, baseline=0)
    assert (made.source, made.decision_id) == ("baseline", "")
    with pytest.raises(JournalFullError, match="Input/output"):  # though the disk is well again
        edge.reward(waits, 0.8)
    edge.close()
    if also_truncate:  # the round is still there, and nobody played it
        with pytest.raises(ConfigError, match="written to its end"):
            shop.edge()
        return
    with shop.edge() as again:
        assert again.rounds == 141
        assert again.reward(waits, 0.8).is_accepted
        assert play(again, 3) == 3
        again.renew()
    assert findings(shop.audit()) == []


def test_a_disk_that_cannot_sync_is_told_when_a_log_is_opened(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    with shop.edge() as edge:
        play(edge, 2)
    with monkeypatch.context() as disk:
        disk.setattr(os, "fsync", failing)
        for shard in ("till", "new"):
            with pytest.raises(JournalError, match="The disk must write"):
                shop.edge(shard)
    with shop.edge() as edge:
        assert edge.rounds == 2


def test_a_last_entry_that_a_power_cut_left_half_written_is_left_out(shop: Shop) -> None:
    edge = shop.edge(sync=True)
    play(edge, 3)
    crash(edge)
    frame = framed(Decided(4, 1.0, ROWS.tobytes(), 3, None, 0, None, 0, False, False))
    path = shop.folder / "till.log"
    for kept in (5, 12, 30, len(frame) - 1):
        with path.open("ab") as file:
            file.write(frame[:kept] + bytes(len(frame) - kept))
        again = shop.edge(sync=True)
        assert again.rounds == 3
        crash(again)
    # What was synced is behind the mark: zeros there are no half-written entry.
    data = path.read_bytes()
    assert isinstance(list(read_entries(data))[-1][0], Opened)
    path.write_bytes(data[:-4] + bytes(4))
    with pytest.raises(ConfigError, match="earlier state"):
        shop.edge()


def test_an_empty_log_is_a_new_one(shop: Shop) -> None:
    (shop.folder / "till.log").touch()
    with shop.edge() as edge:
        assert play(edge, 1) == 0
    with shop.edge() as edge:
        assert edge.rounds == 1


def test_an_edge_that_was_closed_keeps_nothing_and_says_so(shop: Shop) -> None:
    edge = shop.edge()
    made = edge.decide(ROWS, baseline=0)
    edge.close()
    assert edge.reward("till:7", 1.0).refused == "unknown"
    with pytest.raises(JournalUnavailableError, match="closed"):
        edge.reward(made.decision_id, 1.0)
    with pytest.raises(JournalUnavailableError, match="closed"):
        edge.abandon(made.decision_id)
    after = edge.decide(ROWS, baseline=2)
    assert (after.action, after.decision_id) == (2, "")
    assert "closed" in after.explanation
